// Owns what an integration test needs: real engine, real MCP server behind the counting pass-through, killable workers.
// Must never fake a part; when the lab closes, each run it closed is replayed and its store is audited.

import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import Database from 'better-sqlite3';
import { expect, inject, test, type TestAPI } from 'vitest';
import { startEverythingServer } from '../../cli/demo/everything-server.js';
import { type PassThrough, startPassThrough } from '../../cli/demo/pass-through.js';
import { startWorkerProcess, type WorkerChild } from '../../cli/worker-child.js';
import type { WorkerProcessOptions } from '../../cli/worker-process.js';
import { ToolOperationClient, ToolOperationError } from '../../client/index.js';
import type { OperationView, ToolOperationHandle } from '../../client/index.js';
import type { SeamName } from '../../operation/names.js';
import { auditStore } from '../../receipts/audit/audit-store.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { replayRun } from '../replay/replay.js';

export interface Lab {
  readonly temporal: Client;
  readonly client: ToolOperationClient;
  readonly wire: PassThrough;
  readonly storeFile: string;
  readonly taskQueue: string;
  readonly configFile: string;
  /** What the client told operators. */
  readonly advice: readonly string[];
  startWorker(options?: { killAt?: SeamName }): Promise<WorkerChild>;
  /** True once the seam that `killAt` named was hit. */
  wasKilledAt(seam: SeamName): boolean;
  seams(): readonly string[];
  /** What the store holds for one operation, counted by SQL. */
  rows(callNodeId: string): StoreRows;
  history(callNodeId: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface StoreRows {
  readonly receipts: number;
  readonly ready: number;
  readonly advances: number;
  readonly reconciliations: number;
  readonly legs: number;
}

/** The task tool of server-everything: four stages of a second each. */
export const RESEARCH = {
  server: 'everything',
  tool: 'simulate-research-query',
  arguments: { topic: 'tides', ambiguous: false },
};

/** Requests on the wire by method, since this call. */
export function wireDelta(lab: Lab): () => Record<string, number> {
  const before = lab.wire.counts().byMethod;
  return () => {
    const now = lab.wire.counts().byMethod;
    return Object.fromEntries(
      Object.entries(now)
        .map(([method, count]) => [method, count - (before[method] ?? 0)] as const)
        .filter(([, count]) => count > 0),
    );
  };
}

export const WORKER = new URL('../../dist/cli/worker-process.js', import.meta.url).pathname;
let labs = 0;

export async function openLab(durable: Record<string, unknown> = {}, namespace = 'default'): Promise<Lab> {
  const dir = await mkdtemp(join(tmpdir(), 'dtc-lab-'));
  const everything = await startEverythingServer();
  const wire = await startPassThrough({ targetUrl: everything.url });
  const configFile = join(dir, 'tool-servers.json');
  const config = {
    mcpServers: { everything: { url: wire.url, durable: { maxPollsPerSecond: 50, ...durable } } },
  };
  await writeFile(configFile, JSON.stringify(config));
  const storeFile = join(dir, 'operations.sqlite');
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const temporal = new Client({ connection, namespace });
  const taskQueue = `lab-${process.pid}-${++labs}`;
  const advice: string[] = [];
  // Workers make the store; the reader opens what they made.
  const client = new ToolOperationClient({
    client: temporal,
    taskQueue,
    results: { readResult: async (digest) => readStored(storeFile, digest) },
    log: (message) => advice.push(message),
  });
  const workers: WorkerChild[] = [];
  const seamLog = join(dir, 'seams.log');

  return {
    temporal,
    client,
    wire,
    storeFile,
    taskQueue,
    configFile,
    advice,
    async startWorker(options = {}) {
      const killAt = options.killAt && { seam: options.killAt, mark: markOf(dir, options.killAt) };
      const process_: WorkerProcessOptions = {
        address: inject('temporalAddress'),
        namespace,
        taskQueue,
        storeFile,
        configFile,
        // A sweep in the middle of a test would be one that it did not ask for.
        sweepEveryMs: 0,
        seamLog,
        ...(killAt ? { killAt } : {}),
      };
      const worker = await startWorkerProcess(process_, WORKER);
      workers.push(worker);
      return worker;
    },
    wasKilledAt: (seam) => existsSync(markOf(dir, seam)),
    seams: () => (existsSync(seamLog) ? readFileSync(seamLog, 'utf8').trim().split('\n') : []),
    rows: (callNodeId) => countRows(storeFile, callNodeId),
    history: async (callNodeId) => eventNames(temporal, client.getHandle(callNodeId)),
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      await replayClosedRuns(temporal, taskQueue);
      await wire.stop();
      await everything.stop();
      await connection.close();
      await proveStore(storeFile);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A test with a lab of its own. Run such tests with `concurrent`: they wait for kills and time-outs, not for each other. */
export const testInLab: TestAPI<{ readonly lab: Lab }> = test.extend<{ readonly lab: Lab }>({
  lab: async ({ onTestFinished }, use) => {
    const lab = await openLab();
    onTestFinished(() => lab.close());
    await use(lab);
  },
});

function markOf(dir: string, seam: string): string {
  return join(dir, `killed-${seam.replaceAll(':', '-')}`);
}

export async function readStored(storeFile: string, digest: string): Promise<Uint8Array | null> {
  const reader = await openReceiptsReader(storeFile);
  try {
    return await reader.readResult(digest);
  } finally {
    await reader.close();
  }
}

/** Whatever a test did: the store proves all that it promises. */
export async function proveStore(storeFile: string): Promise<void> {
  // Only a worker makes one.
  if (!existsSync(storeFile)) return;
  const reader = await openReceiptsReader(storeFile);
  const { findings, notes } = await auditStore(reader).finally(() => reader.close());
  expect({ findings, notes }).toEqual({ findings: [], notes: [] });
}

export function countRows(storeFile: string, callNodeId: string): StoreRows {
  const database = new Database(storeFile, { readonly: true });
  const count = (from: string): number =>
    (database.prepare(`select count(*) as n from ${from}`).get(callNodeId) as { n: number }).n;
  try {
    return {
      receipts: count('receipt where call_node_id = ?'),
      ready: count('ready_outbox where call_node_id = ?'),
      advances: count('ready_outbox where call_node_id = ? and advances = 1'),
      reconciliations: count('effect_reconciliation where call_node_id = ?'),
      legs: count('submission_leg where call_node_id = ?'),
    };
  } finally {
    database.close();
  }
}

async function eventNames(temporal: Client, handle: ToolOperationHandle): Promise<readonly string[]> {
  const history = await temporal.workflow.getHandle(handle.workflowId).fetchHistory();
  return (history.events ?? []).map(
    (event) => Object.keys(event).find((key) => key.endsWith('Attributes')) ?? '?',
  );
}

/** Every closed run of this lab, also those that a test ended by hand. */
export async function replayClosedRuns(temporal: Client, taskQueue: string): Promise<void> {
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus != 'Running'`;
  for await (const run of temporal.workflow.list({ query }))
    await replayRun(temporal, run.workflowId, run.runId);
}

/** Looks until the view fits; the test's own timeout ends a wait that never would. */
export async function until(
  handle: ToolOperationHandle,
  fits: (view: OperationView) => boolean,
): Promise<OperationView> {
  for (;;) {
    const view = await handle.status();
    if (fits(view)) return view;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** An outcome, or `held: reason`. */
export async function endOf(handle: ToolOperationHandle): Promise<string> {
  try {
    return (await handle.result()).outcome;
  } catch (error) {
    if (!ToolOperationError.isInstance(error) || error.code !== 'OperationUnresolved') throw error;
    // A busy worker may not tell its reason at once.
    return `held: ${(await until(handle, ({ reason }) => reason !== null)).reason}`;
  }
}
