// Owns the worker that lives inside a command, and where its log goes.
// Must never write to the terminal by itself, nor catch the signals that are meant for the command.

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientConnectConfig } from '@temporalio/envconfig';
import { DefaultLogger, makeTelemetryFilterString, NativeConnection, Runtime } from '@temporalio/worker';
import { openSqliteStore } from '../receipts/open-store.js';
import { createToolOperationWorker } from '../worker/index.js';
import { loadToolServers } from '../worker/tool-servers.js';
import type { StateDirectory } from './state-directory.js';

export interface EmbeddedWorkerOptions {
  readonly connectConfig: ClientConnectConfig;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly directory: StateDirectory;
  readonly configFile: string;
  readonly log: (line: string) => void;
}

export interface EmbeddedWorker {
  /** Rejects when the worker failed; never resolves. */
  readonly failed: Promise<never>;
  /** Lets steps in flight end, then closes connection and store. */
  stop(): Promise<void>;
}

/** Above the longest submission (a plain call of 60 s): one that is cut off leaves its operation in doubt. */
const SHUTDOWN_GRACE_MS = 65_000;

export async function startEmbeddedWorker(options: EmbeddedWorkerOptions): Promise<EmbeddedWorker> {
  const servers = await loadToolServers(options.configFile, process.env);
  installRuntime(join(options.directory.logDirectory, 'worker.log'));
  const store = await openSqliteStore(options.directory.storeFile);
  let connection: NativeConnection | undefined;
  try {
    connection = await NativeConnection.connect(options.connectConfig.connectionOptions);
    const { namespace, taskQueue, log } = options;
    const shutdownGraceMs = SHUTDOWN_GRACE_MS;
    const worker = await createToolOperationWorker({
      connection,
      namespace,
      taskQueue,
      servers,
      store,
      log,
      shutdownGraceMs,
    });
    return supervise(worker, async () => {
      await connection?.close();
      await store.close();
    });
  } catch (error) {
    await connection?.close();
    await store.close();
    throw error;
  }
}

function supervise(
  worker: { run(): Promise<void>; shutdown(): void },
  afterwards: () => Promise<void>,
): EmbeddedWorker {
  const running = worker.run();
  const failed = running.then(() => new Promise<never>(() => {}));
  // Who does not listen is not crashed by it.
  failed.catch(() => {});
  return {
    failed,
    async stop() {
      worker.shutdown();
      // A failed worker was reported through `failed`.
      await running.catch(() => {});
      await afterwards();
    },
  };
}

/** Once per process, before anything else of the SDK. */
function installRuntime(logFile: string): void {
  const logger = new DefaultLogger('INFO', ({ level, message, meta }) => {
    const line = `${new Date().toISOString()} ${level} ${message}${describe(meta)}\n`;
    // A full disk must not take the worker down.
    try {
      appendFileSync(logFile, line, { mode: 0o600 });
    } catch {}
  });
  try {
    Runtime.install({
      logger,
      telemetryOptions: {
        logging: { filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }), forward: {} },
      },
      // The command decides when its worker ends: a submission in flight is let finish.
      shutdownSignals: [],
    });
  } catch {
    // A command that had to reopen its runtime installed it before.
  }
}

function describe(meta: Readonly<Record<string | symbol, unknown>> | undefined): string {
  if (!meta) return '';
  return ` ${JSON.stringify(meta, (_key, value: unknown) => (value instanceof Error ? value.message : typeof value === 'bigint' ? String(value) : value))}`;
}
