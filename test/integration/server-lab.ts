// Owns what an integration test on servers nobody here wrote needs: real engine, killable workers, any configuration.
// Must never start or count for a server: those come with the test.

import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { inject } from 'vitest';
import { startWorkerProcess, type WorkerChild } from '../../cli/worker-child.js';
import type { WorkerProcessOptions } from '../../cli/worker-process.js';
import { ToolOperationClient } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import type { SeamName } from '../../operation/names.js';
import { countRows, proveStore, readStored, replayClosedRuns, type StoreRows, WORKER } from './lab.js';

export interface ServerLab {
  readonly temporal: Client;
  readonly client: ToolOperationClient;
  readonly storeFile: string;
  startWorker(options?: Pick<WorkerProcessOptions, 'budgets'> & { killAt?: SeamName }): Promise<WorkerChild>;
  /** True once a worker was killed at the seam that its `killAt` named. */
  wasKilledAt(seam: SeamName): boolean;
  rows(callNodeId: string): StoreRows;
  close(): Promise<void>;
}

let labs = 0;

/** `config`: what stands in `tool-servers.json`. */
export async function openServerLab(config: JsonObject): Promise<ServerLab> {
  const dir = await mkdtemp(join(tmpdir(), 'dtc-server-lab-'));
  const configFile = join(dir, 'tool-servers.json');
  await writeFile(configFile, JSON.stringify(config));
  const storeFile = join(dir, 'operations.sqlite');
  const address = inject('temporalAddress');
  const connection = await Connection.connect({ address });
  const temporal = new Client({ connection });
  const taskQueue = `server-lab-${process.pid}-${++labs}`;
  const client = new ToolOperationClient({
    client: temporal,
    taskQueue,
    results: { readResult: async (digest) => readStored(storeFile, digest) },
    log: () => undefined,
  });
  const workers: WorkerChild[] = [];
  const markOf = (seam: SeamName): string => join(dir, `killed-${seam}`);
  return {
    temporal,
    client,
    storeFile,
    async startWorker({ killAt, ...more } = {}) {
      // Each asks for a kill of its own.
      if (killAt !== undefined) await rm(markOf(killAt), { force: true });
      const kill = killAt === undefined ? {} : { killAt: { seam: killAt, mark: markOf(killAt) } };
      const place = { address, namespace: 'default', taskQueue, storeFile, configFile };
      // A sweep in the middle of a test would be one that it did not ask for.
      const worker = await startWorkerProcess({ ...place, sweepEveryMs: 0, ...more, ...kill }, WORKER);
      workers.push(worker);
      return worker;
    },
    wasKilledAt: (seam) => existsSync(markOf(seam)),
    rows: (callNodeId) => countRows(storeFile, callNodeId),
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      await replayClosedRuns(temporal, taskQueue);
      await connection.close();
      await proveStore(storeFile);
      // A killed worker's database files may go only now.
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
