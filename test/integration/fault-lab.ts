// Owns what an integration test on the fault server needs: real engine, killable workers, one server entry per policy.
// Must never count by our own side: executions come from the fault server's journal.

import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { expect, inject } from 'vitest';
import { startWorkerProcess, type WorkerChild } from '../../cli/worker-child.js';
import type { WorkerProcessOptions } from '../../cli/worker-process.js';
import { ToolOperationClient, type ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import type { SeamName } from '../../operation/names.js';
import { START_JOB, START_TEXT_JOB } from '../fault-server/jobs.js';
import { LOOK_UP_ARGUMENT, LOOK_UP_TOOL } from '../fault-server/look-ups.js';
import { type FaultServer, startFaultServer } from '../fault-server/start-fault-server.js';
import { KEY_ARGUMENT, KEY_META, TOOLS } from '../fault-server/tools.js';
import { countRows, proveStore, readStored, replayClosedRuns, type StoreRows, WORKER } from './lab.js';

/** Entries of `tool-servers.json`, all of them the one fault server. */
export const POLICIES = {
  'session-list': { submission: { policy: 'session-list' } },
  'key-argument': { submission: { policy: 'key-argument', argument: KEY_ARGUMENT } },
  'key-meta': { submission: { policy: 'key-meta', key: KEY_META } },
  'at-most-once': { submission: { policy: 'at-most-once' } },
  repeatable: { submission: { policy: 'repeatable' }, sideEffects: 'none' },
} as const;
export type PolicyName = keyof typeof POLICIES;

const FIND = { tool: LOOK_UP_TOOL, argument: LOOK_UP_ARGUMENT };
const PROOF = { ...FIND, id: '/jobId', provesAbsence: true };

/** Work is looked up by `find_work`; the second one is declared to prove absence, and sends its key in `_meta`. */
export const LOOK_UP_POLICIES = {
  'lookup-tool': {
    submission: {
      policy: 'lookup-tool',
      argument: KEY_ARGUMENT,
      lookUp: { ...FIND, id: '/structuredContent/jobId' },
    },
  },
  'lookup-proof': {
    submission: { policy: 'lookup-tool', key: KEY_META, lookUp: { ...PROOF, settleAfter: '3s' } },
  },
} as const;
/** As `lookup-proof`, but it takes longer to settle than any look-up of a test. */
const SETTLING = {
  'lookup-settling': {
    submission: { policy: 'lookup-tool', key: KEY_META, lookUp: { ...PROOF, settleAfter: '5m' } },
  },
} as const;

const STATUS_WORDS = {
  running: 'working',
  needs_input: 'inputRequired',
  done: 'completed',
  error: 'failed',
  cancelled: 'cancelled',
  'no such job': 'notFound',
};

/** The job of both start tools; `at` leads to a member of an answer. */
function jobDeclaration(at: string): JsonObject {
  return {
    id: `${at}/jobId`,
    status: {
      tool: 'job_status',
      argument: 'jobId',
      id: `${at}/jobId`,
      pointer: `${at}/state`,
      words: STATUS_WORDS,
      message: `${at}/note`,
      interval: { pointer: `${at}/pollAfterMs` },
    },
    result: { tool: 'job_result', argument: 'jobId' },
    cancel: { tool: 'cancel_job', argument: 'jobId' },
    input: {
      tool: 'answer_job',
      argument: 'jobId',
      question: `${at}/question`,
      key: { pointer: `${at}/questionId`, argument: 'questionId' },
    },
  };
}

/** Every server entry of the lab declares them; structured answers, and answers in JSON text. */
const JOB = jobDeclaration('/structuredContent');
const JOBS = { [START_JOB]: JOB, [START_TEXT_JOB]: jobDeclaration('') } as const;

function without(member: string): JsonObject {
  return Object.fromEntries(Object.entries(JOB).filter(([name]) => name !== member));
}

/** As `at-most-once`, with less or more declared of its jobs. */
const JOB_ENTRIES = {
  'job-no-cancel': { job: without('cancel') },
  'job-no-result': { job: without('result') },
  'job-refusing': { job: { ...JOB, refusedByError: true } },
  'job-small': { job: JOB, maxResultBytes: 10_000 },
} as const;

/** As `session-list` (the default), but the server speaks otherwise. */
const STYLES = {
  json: '?replies=json',
  'no-event-ids': '?eventIds=no',
  'no-cancel': '?cancel=no',
} as const;

/** A key policy on a server that speaks otherwise. */
const KEYED_STYLES = { 'keyed-no-cancel': '?cancel=no' } as const;

/** The contracts that the fault server is spoken to in; their rows run side by side in one lab. */
export const CONTRACTS = ['2025-11-25', '2026-07-28'] as const;
export type Contract = (typeof CONTRACTS)[number];

export interface FaultCall {
  /** Names the operation and, in the journal, the call. */
  readonly label: string;
  readonly server?:
    | PolicyName
    | keyof typeof LOOK_UP_POLICIES
    | keyof typeof SETTLING
    | keyof typeof JOB_ENTRIES
    | keyof typeof STYLES
    | keyof typeof KEYED_STYLES;
  /** Default: 2025-11-25. */
  readonly contract?: Contract;
  readonly tool?: string;
  readonly durationMs?: number;
  readonly resultBytes?: number;
  readonly plan?: JsonObject;
  readonly waitBudgetMs?: number;
}

export interface FaultWorkerOptions extends Pick<WorkerProcessOptions, 'budgets' | 'sweepEveryMs'> {
  /** SIGKILL at this seam, once. */
  readonly killAt?: SeamName;
}

export interface LabEngine {
  readonly temporal: Client;
  readonly client: ToolOperationClient;
  readonly taskQueue: string;
  startWorker(options?: FaultWorkerOptions): Promise<WorkerChild>;
  start(call: FaultCall): Promise<ToolOperationHandle>;
}

export interface FaultLab extends LabEngine {
  readonly faults: FaultServer;
  readonly storeFile: string;
  readonly configFile: string;
  /** True once a worker was killed at the seam that its `killAt` named. */
  wasKilledAt(seam: SeamName): boolean;
  /** Another engine, on the same store, configuration and server. */
  joinEngine(address: string): Promise<LabEngine>;
  rows(callNodeId: string): StoreRows;
  close(): Promise<void>;
}

let labs = 0;

/** `address`: another engine than the one of the test run. */
export async function openFaultLab(
  durable: JsonObject = {},
  address: string = inject('temporalAddress'),
): Promise<FaultLab> {
  const dir = await mkdtemp(join(tmpdir(), 'dtc-fault-lab-'));
  const faults = await startFaultServer();
  const configFile = join(dir, 'tool-servers.json');
  await writeFile(configFile, JSON.stringify({ mcpServers: serverEntries(faults.url, durable) }));
  const storeFile = join(dir, 'operations.sqlite');
  const taskQueue = `fault-lab-${process.pid}-${++labs}`;
  const workers: WorkerChild[] = [];
  const engines: Client[] = [];
  const killOption = (seam: SeamName | undefined) =>
    seam === undefined ? {} : { killAt: { seam, mark: join(dir, `killed-${seam}`) } };
  const joinEngine = async (engineAddress: string): Promise<LabEngine> => {
    const connection = await Connection.connect({ address: engineAddress });
    const temporal = new Client({ connection });
    engines.push(temporal);
    const client = new ToolOperationClient({
      client: temporal,
      taskQueue,
      results: { readResult: async (digest) => readStored(storeFile, digest) },
      log: () => undefined,
    });
    return {
      temporal,
      client,
      taskQueue,
      async startWorker({ killAt, ...more } = {}) {
        const place = { address: engineAddress, namespace: 'default', taskQueue, storeFile, configFile };
        // A sweep in the middle of a test would be one that it did not ask for.
        const options = { ...place, sweepEveryMs: 0, ...more, ...killOption(killAt) };
        const worker = await startWorkerProcess(options, WORKER);
        workers.push(worker);
        return worker;
      },
      start: (call) => startCall(client, call),
    };
  };
  return {
    ...(await joinEngine(address)),
    joinEngine,
    faults,
    storeFile,
    configFile,
    wasKilledAt: (seam) => existsSync(join(dir, `killed-${seam}`)),
    rows: (callNodeId) => countRows(storeFile, callNodeId),
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      for (const temporal of engines) await replayClosedRuns(temporal, taskQueue);
      // Whatever a test did: each request said of itself what its contract demands.
      expect(faults.journal().filter(({ kind }) => kind === 'requestRefused')).toEqual([]);
      await faults.stop();
      for (const temporal of engines) await temporal.connection.close();
      await proveStore(storeFile);
      // A killed worker's database files may go only now.
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function startCall(client: ToolOperationClient, call: FaultCall): Promise<ToolOperationHandle> {
  const { label, server = 'session-list', contract, tool = 'work', plan, ...more } = call;
  const { durationMs, resultBytes, waitBudgetMs } = more;
  const args = { label, durationMs: durationMs ?? 300, resultBytes: resultBytes ?? 0, plan: plan ?? {} };
  const budget = waitBudgetMs === undefined ? {} : { waitBudgetMs };
  const name = contract === '2026-07-28' ? twinOf(server) : server;
  return client.start({ callNodeId: label, server: name, tool, arguments: args, ...budget });
}

function serverEntries(url: string, durable: JsonObject): JsonObject {
  const entries: [string, JsonObject][] = [];
  const withTools = (settings: JsonObject): JsonObject => {
    const tools = Object.fromEntries(
      Object.keys(TOOLS).map((tool) => {
        const job = tool === START_JOB || tool === START_TEXT_JOB ? { job: JOBS[tool] } : {};
        return [tool, { ...job, ...settings }];
      }),
    );
    return { maxPollsPerSecond: 50, tools, ...durable };
  };
  for (const [name, settings] of Object.entries({ ...POLICIES, ...LOOK_UP_POLICIES, ...SETTLING }))
    entries.push([name, { url, durable: withTools(settings) }]);
  for (const [name, settings] of Object.entries(JOB_ENTRIES)) {
    const tools = { [START_JOB]: { submission: { policy: 'at-most-once' }, ...settings } };
    entries.push([name, { url, durable: { maxPollsPerSecond: 50, tools, ...durable } }]);
  }
  for (const [name, query] of Object.entries(KEYED_STYLES)) {
    entries.push([name, { url: `${url}${query}`, durable: withTools(POLICIES['key-argument']) }]);
  }
  for (const [name, query] of Object.entries(STYLES)) {
    entries.push([name, { url: `${url}${query}`, durable: { maxPollsPerSecond: 50, ...durable } }]);
  }
  return Object.fromEntries([...entries, ...entries.map(onModern)]);
}

const twinOf = (name: string): string => `${name}-2026`;

/** The same settings on the other contract, where `session-list` finds no list and is at-most-once. */
function onModern([name, entry]: readonly [string, JsonObject]): [string, JsonObject] {
  const { url, durable } = entry as { url: string; durable: JsonObject };
  const modern = new URL(url);
  modern.searchParams.set('contract', '2026-07-28');
  // The server alone decides whether a call becomes a task: each may take as long as a plain one. Shorter than the default,
  // so that a row that outwaits it takes half a minute, as on the other contract.
  const tools = Object.entries((durable['tools'] ?? {}) as Record<string, JsonObject>).map(
    ([tool, settings]) => [tool, { ...settings, synchronousBound: '25s' }] as const,
  );
  const ours = { ...durable, tools: Object.fromEntries(tools), protocol: 'mcp/2026-07-28' };
  return [twinOf(name), { url: modern.href, durable: ours }];
}
