// Owns what an integration test of AIP-151 needs: real engine, killable workers, the project's own operation server and,
// where it is asked for, java-lro. Must never count by our own side: executions come from the servers. When it closes, each
// run it closed is replayed and its store is audited.

import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { inject } from 'vitest';
import { startWorkerProcess, type WorkerChild } from '../../cli/worker-child.js';
import { ToolOperationClient, type ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import type { SeamName } from '../../operation/names.js';
import { type OperationServer, startOperationServer } from '../operation-server/start-operation-server.js';
import { countRows, proveStore, readStored, replayClosedRuns, type StoreRows, WORKER } from './lab.js';

const REPORTS = '/{parent=projects/*}/reports';
const REPORT_LIST = `${REPORTS}/{reportId}/operations`;
const BACKUPS = '/{parent=projects/*/instances/*}/backups';
const BACKUP_LIST = `${BACKUPS}/{backupId}/operations`;

/** Methods of the operation server, each under its own policy. */
const REPORT_METHODS = {
  report: { path: REPORTS, submission: { policy: 'at-most-once' } },
  keyed: { path: REPORTS, requestIdField: 'requestId' },
  'keyed-briefly': { path: REPORTS, requestIdField: 'requestId', requestIdWindow: '10s' },
  listed: {
    path: REPORTS,
    operation: { list: { path: REPORT_LIST, startedAt: '/metadata/startTime' } },
  },
  tidy: { path: REPORTS, requestIdField: 'requestId', deleteAfterReceipt: true },
  small: { path: REPORTS, requestIdField: 'requestId', maxResultBytes: 1_024, deleteAfterReceipt: true },
} as const;

/** What the README shows is what runs here. */
const EXAMPLE = JSON.parse(
  readFileSync(new URL('../../examples/operation-servers.json', import.meta.url), 'utf8'),
) as { operationServers: { spanner: { durable: { tools: Record<'create-backup', JsonObject> } } } };

/** Methods of java-lro: the id is the caller's, or made of the call's own key. */
const BACKUP_METHODS = {
  'create-backup': {
    path: `${BACKUPS}?backupId={backupId}`,
    body: 'backup',
    operation: {
      list: {
        path: BACKUP_LIST,
        match: { '/metadata/database': '{backup.database}' },
        startedAt: '/metadata/progress/startTime',
      },
    },
  },
  'create-own-backup': EXAMPLE.operationServers.spanner.durable.tools['create-backup'],
} as const;

export interface OperationCall {
  /** Names the operation and, in the journal, the call. */
  readonly label: string;
  readonly tool?: keyof typeof REPORT_METHODS;
  readonly reportId?: string;
  readonly plan?: JsonObject;
  readonly waitBudgetMs?: number;
}

export interface OperationLab {
  readonly client: ToolOperationClient;
  readonly temporal: Client;
  readonly server: OperationServer;
  readonly storeFile: string;
  readonly configFile: string;
  startWorker(options?: { readonly killAt?: SeamName }): Promise<WorkerChild>;
  start(call: OperationCall): Promise<ToolOperationHandle>;
  wasKilledAt(seam: SeamName): boolean;
  rows(callNodeId: string): StoreRows;
  close(): Promise<void>;
}

/** What no text of ours may ever hold. */
export const SECRET = 'planted-4711-do-not-tell';

let labs = 0;

export async function openOperationLab(spannerUrl?: string): Promise<OperationLab> {
  const dir = await mkdtemp(join(tmpdir(), 'dtc-operation-lab-'));
  const server = await startOperationServer();
  const configFile = join(dir, 'tool-servers.json');
  const durable = { maxPollsPerSecond: 50, pollInterval: '1s' };
  const operationServers = {
    reports: {
      url: server.url,
      headers: { 'x-api-key': SECRET },
      durable: { ...durable, tools: REPORT_METHODS },
    },
    ...(spannerUrl === undefined
      ? {}
      : { spanner: { url: spannerUrl, durable: { ...durable, tools: BACKUP_METHODS } } }),
  };
  await writeFile(configFile, JSON.stringify({ operationServers }));
  const storeFile = join(dir, 'operations.sqlite');
  const address = inject('temporalAddress');
  const connection = await Connection.connect({ address });
  const temporal = new Client({ connection });
  const taskQueue = `operation-lab-${process.pid}-${++labs}`;
  const client = new ToolOperationClient({
    client: temporal,
    taskQueue,
    results: { readResult: async (digest) => readStored(storeFile, digest) },
    log: () => undefined,
  });
  const workers: WorkerChild[] = [];
  const markOf = (seam: SeamName): string => join(dir, `killed-${seam}`);
  return {
    client,
    temporal,
    server,
    storeFile,
    configFile,
    async startWorker({ killAt } = {}) {
      // Each asks for a kill of its own.
      if (killAt !== undefined) await rm(markOf(killAt), { force: true });
      const kill = killAt === undefined ? {} : { killAt: { seam: killAt, mark: markOf(killAt) } };
      const options = { address, namespace: 'default', taskQueue, storeFile, configFile, ...kill };
      const worker = await startWorkerProcess(options, WORKER);
      workers.push(worker);
      return worker;
    },
    start: ({ label, tool = 'report', reportId, plan = {}, waitBudgetMs }) =>
      client.start({
        callNodeId: label,
        server: 'reports',
        tool,
        arguments: { parent: 'projects/p', label, plan, ...(reportId === undefined ? {} : { reportId }) },
        ...(waitBudgetMs === undefined ? {} : { waitBudgetMs }),
      }),
    wasKilledAt: (seam) => existsSync(markOf(seam)),
    rows: (callNodeId) => countRows(storeFile, callNodeId),
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      await replayClosedRuns(temporal, taskQueue);
      await server.stop();
      await connection.close();
      await proveStore(storeFile);
      // A killed worker's database files may go only now.
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
