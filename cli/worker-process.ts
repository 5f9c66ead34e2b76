// Owns the worker as a process of its own: started by the demo and by tests, which kill it.
// Must never be needed by people's code: they call createToolOperationWorker.

import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { NativeConnection, Runtime } from '@temporalio/worker';
import { openSqliteStore } from '../receipts/open-store.js';
import { createToolOperationWorker } from '../worker/index.js';
import type { Budgets } from '../worker/server-directory.js';
import { loadToolServers } from '../worker/tool-servers.js';

/** Handed over as JSON in the first argument. */
export interface WorkerProcessOptions {
  readonly address: string;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly storeFile: string;
  readonly configFile: string;
  /** Tests only: budgets of new operations (ms). */
  readonly budgets?: Budgets;
  readonly sweepEveryMs?: number;
  /** Tests only: SIGKILL at this seam, once; `mark` is the file that says it happened. */
  readonly killAt?: { readonly seam: string; readonly mark: string };
  /** Tests only: appends each seam passed to this file. */
  readonly seamLog?: string;
}

const options = JSON.parse(process.argv[2] ?? 'null') as WorkerProcessOptions | null;
if (!options)
  throw new Error('worker-process is started by the demo and the tests, with its options as JSON');

Runtime.install({ logger: { ...silentLogger(), warn: say, error: say } });
const connection = await NativeConnection.connect({ address: options.address });
const store = await openSqliteStore(options.storeFile);
const worker = await createToolOperationWorker({
  connection,
  namespace: options.namespace,
  taskQueue: options.taskQueue,
  servers: await loadToolServers(options.configFile, process.env),
  store,
  shutdownGraceMs: 5_000,
  ...(options.budgets ? { budgets: options.budgets } : {}),
  ...(options.sweepEveryMs === undefined ? {} : { sweepEveryMs: options.sweepEveryMs }),
  seam: passSeam,
});
process.on('SIGTERM', () => worker.shutdown());
// The parent is gone: so is the reason to live. A worker orphaned by a killed demo must not poll on.
process.on('disconnect', () => worker.shutdown());
const running = worker.run();
process.send?.({ kind: 'ready', pid: process.pid });
try {
  await running;
} finally {
  await store.close();
  await connection.close();
}
process.exit(0);

async function passSeam(name: string, callNodeId: string): Promise<void> {
  if (options?.seamLog) appendFileSync(options.seamLog, `${name} ${callNodeId} ${process.pid}\n`);
  const kill = options?.killAt;
  if (!kill || kill.seam !== name || existsSync(kill.mark)) return;
  writeFileSync(kill.mark, `${process.pid}\n`);
  process.kill(process.pid, 'SIGKILL');
  // Nothing after this line may run: the signal is delivered asynchronously.
  await new Promise(() => {});
}

function say(message: string, meta?: Record<string, unknown>): void {
  // The poll worker runs no workflows, on purpose.
  if (message.startsWith('No workflows registered')) return;
  process.stderr.write(
    `${message} ${meta ? JSON.stringify(meta, (_key, value) => (value instanceof Error ? value.message : value)) : ''}\n`,
  );
}

function silentLogger() {
  const nothing = (): void => {};
  return { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };
}
