// Owns the worker that lives inside a command, and where its log goes.
// Must never write to the terminal by itself, nor catch the signals that are meant for the command.

import { join } from 'node:path';
import type { ClientConnectConfig } from '@temporalio/envconfig';
import { IllegalStateError } from '@temporalio/common';
import { DefaultLogger, makeTelemetryFilterString, NativeConnection, Runtime } from '@temporalio/worker';
import type { OperationEvent } from '../activities/events.js';
import { openSqliteStore } from '../receipts/open-store.js';
import { createToolOperationWorker } from '../worker/index.js';
import { loadToolServers } from '../worker/tool-servers.js';
import { freePort, LOOPBACK } from './engine/free-port.js';
import type { StateDirectory } from './state-directory.js';
import { eventLine, logFileSink, type LogSink, sdkLine } from './worker-log.js';

export interface EmbeddedWorkerOptions {
  readonly connectConfig: ClientConnectConfig;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly directory: StateDirectory;
  readonly configFile: string;
  readonly log: (line: string) => void;
  readonly watching: Watching | undefined;
}

/** Who else is told what the worker does; its log file always is. */
export interface Watching {
  readonly onEvent: (event: OperationEvent) => void;
  /** Each line of the log. */
  readonly logLine: LogSink;
  /** Whether the SDK shows its own metrics, on a loopback port that it is given. */
  readonly hasSdkMetrics: boolean;
}

export interface EmbeddedWorker {
  /** Rejects when the worker failed; never resolves. */
  readonly failed: Promise<never>;
  /** Where the SDK shows its metrics; null where it does not. */
  readonly sdkMetricsUrl: string | null;
  /** Lets steps in flight end, then closes connection and store. */
  stop(): Promise<void>;
}

/** Above the longest submission (a plain call of 60 s): one that is cut off leaves its operation in doubt. */
const SHUTDOWN_GRACE_MS = 65_000;

export async function startEmbeddedWorker(options: EmbeddedWorkerOptions): Promise<EmbeddedWorker> {
  const servers = await loadToolServers(options.configFile, process.env);
  const { watching } = options;
  const toFile = logFileSink(join(options.directory.logDirectory, 'worker.log'));
  const logLine: LogSink = (line) => {
    toFile(line);
    watching?.logLine(line);
  };
  const sdkMetricsUrl = await installRuntime(logLine, watching?.hasSdkMetrics ?? false);
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
      onEvent: (event) => {
        logLine(eventLine(event));
        watching?.onEvent(event);
      },
    });
    return supervise(worker, sdkMetricsUrl, async () => {
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
  sdkMetricsUrl: string | null,
  afterwards: () => Promise<void>,
): EmbeddedWorker {
  const running = worker.run();
  const failed = running.then(() => new Promise<never>(() => {}));
  // Who does not listen is not crashed by it.
  failed.catch(() => {});
  return {
    failed,
    sdkMetricsUrl,
    async stop() {
      worker.shutdown();
      // A failed worker was reported through `failed`.
      await running.catch(() => {});
      await afterwards();
    },
  };
}

const PORT_ATTEMPTS = 3;

/**
 * Once per process, before anything else of the SDK.
 * @returns where it shows its metrics; null where it was not asked to
 */
async function installRuntime(logLine: LogSink, hasMetrics: boolean): Promise<string | null> {
  const logger = new DefaultLogger('INFO', (entry) => {
    // The poll worker runs no workflows, on purpose.
    if (!entry.message.startsWith('No workflows registered')) logLine(sdkLine(entry));
  });
  for (let attempt = 1; ; attempt += 1) {
    const bindAddress = hasMetrics ? `${LOOPBACK}:${await freePort(undefined)}` : null;
    try {
      Runtime.install({
        logger,
        telemetryOptions: {
          logging: { filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }), forward: {} },
          ...(bindAddress === null ? {} : { metrics: { prometheus: { bindAddress } } }),
        },
        // The command decides when its worker ends: a submission in flight is let finish.
        shutdownSignals: [],
      });
      return bindAddress === null ? null : `http://${bindAddress}/metrics`;
    } catch (error) {
      // A command that had to reopen its runtime installed it before.
      if (error instanceof IllegalStateError) return null;
      // Somebody else took the port between our look and its use.
      if (bindAddress === null || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}
