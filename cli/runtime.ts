// Owns how a command gets an engine and a client: the running one of its state directory, or one of its own for as
// long as the command lives. Must never start a second engine on one database file.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import type { ClientConnectConfig } from '@temporalio/envconfig';
import { ToolOperationClient } from '../client/index.js';
import { openReceiptsReader, type ReceiptsReader } from '../receipts/open-store.js';
import { DEFAULT_TASK_QUEUE, ENGINE_SEARCH_ATTRIBUTES } from '../worker/engine-needs.js';
import {
  findTemporal,
  type TemporalAddress,
  type TemporalBinary,
  temporalCacheDir,
} from './engine/temporal-binary.js';
import { startTemporalServer } from './engine/temporal-server.js';
import type { Watching } from './embedded-worker.js';
import { CommandError } from './exit-codes.js';
import { endOrphanedEngines } from './orphaned-engine.js';
import {
  type EngineLock,
  type EngineNote,
  fullDiskError,
  lockEngine,
  prepareStateDirectory,
  readLiveEngine,
  type StateDirectory,
  writeEngineNote,
} from './state-directory.js';

export interface RuntimeOptions {
  readonly stateDir: string;
  /** Null: the engine alone, to look at what is there; nothing is worked on. */
  readonly configFile: string | null;
  /** One line each, for people. */
  readonly log: (line: string) => void;
  /** Of the worker of this command, where there is one. */
  readonly watching?: Watching;
}

export interface Runtime {
  readonly client: ToolOperationClient;
  /** The bare client, for looks that are about the engine and not about one operation. */
  readonly temporal: Client;
  readonly taskQueue: string;
  readonly directory: StateDirectory;
  readonly temporalAddress: string;
  readonly uiUrl: string | null;
  /** Where the SDK of this command's worker shows its metrics; null where it does not. */
  readonly sdkMetricsUrl: string | null;
  /** The worker (and mostly the engine) ends with this command; false where it joined a running one. */
  readonly isEmbedded: boolean;
  /** Null where there is no store yet. */
  readonly reader: ReceiptsReader | null;
  /** Whether the engine that was joined is still there; its own engine always counts as there. */
  isThere(): Promise<boolean>;
  /** Requests of the client that `use` makes are given up when the signal is aborted. */
  withAbortSignal<T>(signal: AbortSignal, use: () => Promise<T>): Promise<T>;
  /** Rejects when the worker of this process failed; never resolves. */
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

const LOCK_PATIENCE_MS = 90_000;
const LOOK_AGAIN_MS = 100;

/**
 * Joins the engine that runs on the state directory, or starts one.
 *
 * @throws CommandError, EngineError, ConfigurationError, StoreError: each with one sentence
 */
export async function openRuntime(options: RuntimeOptions): Promise<Runtime> {
  const directory = await prepareStateDirectory(options.stateDir);
  const untilAt = Date.now() + LOCK_PATIENCE_MS;
  for (;;) {
    const live = await readLiveEngine(directory);
    const joined = live && (await joinEngine(live, directory, options));
    if (joined) return joined;
    const found = await findEngine(options.log);
    if (found.kind === 'address') return runOwn({ kind: 'embedded', found, lock: null, directory, options });
    const lock = await lockEngine(directory);
    if (lock) return runOwn({ kind: 'embedded', found, lock, directory, options });
    if (Date.now() > untilAt) {
      throw new CommandError(
        `another command holds ${directory.lockFile} and no engine answers there: wait for its end, or remove ` +
          'that file if no such command runs any more',
      );
    }
    // Somebody starts or stops an engine here: soon there is one to join, or none.
    await sleep(LOOK_AGAIN_MS);
  }
}

/**
 * The engine and worker of `up`: noted in the state directory for other commands to join.
 *
 * @throws CommandError where an engine is alive there already; else as `openRuntime`
 */
export async function openStandingRuntime(options: RuntimeOptions): Promise<Runtime> {
  const directory = await prepareStateDirectory(options.stateDir);
  await refuseSecond(directory);
  const found = await findEngine(options.log);
  const lock = await lockEngine(directory);
  if (lock) return runOwn({ kind: 'up', found, lock, directory, options });
  await refuseSecond(directory);
  throw new CommandError(
    `another command starts or stops an engine on ${directory.path}: try again in a moment`,
  );
}

async function refuseSecond(directory: StateDirectory): Promise<void> {
  const live = await readLiveEngine(directory);
  if (!live) return;
  const what = live.kind === 'embedded' ? 'the engine of another command' : 'another "up"';
  throw new CommandError(
    `${what} runs on ${directory.path} already, at ${live.address} (process ${live.pid})`,
  );
}

function findEngine(log: (line: string) => void): Promise<TemporalAddress | TemporalBinary> {
  const { env } = process;
  return findTemporal({ env, cacheDir: temporalCacheDir(env), download: true, log });
}

/** Null where it ended meanwhile. */
async function joinEngine(
  live: EngineNote,
  directory: StateDirectory,
  options: RuntimeOptions,
): Promise<Runtime | null> {
  const connectConfig = await connectConfigOf(live, options.log);
  const connection = await Connection.connect(connectConfig.connectionOptions).catch(
    async (error: unknown) => {
      if ((await readLiveEngine(directory)) === null) return null;
      throw new CommandError(
        `the engine at ${live.address} cannot be used (${messageOf(error)})`,
        undefined,
        {
          cause: error,
        },
      );
    },
  );
  if (!connection) return null;
  // With the engine gone, requests are being repeated on this connection; closed under them, the SDK throws in a timer.
  const isThere = async (): Promise<boolean> => (await readLiveEngine(directory))?.pid === live.pid;
  const closers = [async () => ((await isThere()) ? connection.close() : undefined)];
  const reader = await openReader(directory, closers);
  return {
    ...clientsOf(connection, live, reader, options.log),
    directory,
    temporalAddress: live.address,
    uiUrl: live.uiUrl,
    sdkMetricsUrl: null,
    isEmbedded: false,
    reader,
    isThere,
    withAbortSignal: (signal, use) => connection.withAbortSignal(signal, use),
    failed: new Promise<never>(() => {}),
    close: closeOnce(closers),
  };
}

/** A note holds no credentials: for a cluster they come from this command's own environment. */
async function connectConfigOf(live: EngineNote, log: (line: string) => void): Promise<ClientConnectConfig> {
  if (live.uiUrl === null) {
    const found = await findEngine(log);
    if (found.kind === 'address' && found.address === live.address) return found.connectConfig;
  }
  return { connectionOptions: { address: live.address } };
}

interface OwnRun {
  readonly kind: EngineNote['kind'];
  readonly found: TemporalAddress | TemporalBinary;
  /** Held while the engine is ours; null where it is a cluster that many may use. */
  readonly lock: EngineLock | null;
  readonly directory: StateDirectory;
  readonly options: RuntimeOptions;
}

interface UsedEngine {
  readonly connectConfig: ClientConnectConfig;
  readonly address: string;
  readonly uiUrl: string | null;
  readonly namespace: string;
}

async function runOwn(run: OwnRun): Promise<Runtime> {
  const { directory, options, lock } = run;
  const closers: (() => Promise<void>)[] = [];
  const close = closeOnce(closers);
  try {
    if (lock) closers.push(() => lock.release());
    const engine = await useEngine(run, closers);
    const place = { namespace: engine.namespace, taskQueue: DEFAULT_TASK_QUEUE };
    // First of all, because its failure is the clearest.
    const connection = await connectTo(engine);
    closers.push(() => connection.close());
    let failed = new Promise<never>(() => {});
    let sdkMetricsUrl: string | null = null;
    if (options.configFile !== null) {
      // Loaded only here: the native bridge costs a second that a command on a running engine need not pay.
      const { startEmbeddedWorker } = await import('./embedded-worker.js');
      const { configFile, log, watching } = options;
      const { connectConfig } = engine;
      const about = { connectConfig, ...place, directory, configFile };
      const worker = await startEmbeddedWorker({ ...about, log, watching });
      closers.push(() => worker.stop());
      ({ failed, sdkMetricsUrl } = worker);
    }
    const reader = await openReader(directory, closers);
    if (lock) {
      const { address, uiUrl } = engine;
      const { pid } = process;
      const { kind } = run;
      const { configFile } = options;
      await writeEngineNote(directory, {
        address,
        uiUrl,
        pid,
        ...place,
        startedAt: Date.now(),
        kind,
        configFile,
      });
      closers.push(() => lock.withdrawNote());
    }
    return {
      ...clientsOf(connection, place, reader, options.log),
      directory,
      temporalAddress: engine.address,
      uiUrl: engine.uiUrl,
      sdkMetricsUrl,
      isEmbedded: true,
      reader,
      isThere: () => Promise.resolve(true),
      withAbortSignal: (signal, use) => connection.withAbortSignal(signal, use),
      failed,
      close,
    };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

async function connectTo({ connectConfig, address }: UsedEngine): Promise<Connection> {
  try {
    return await Connection.connect(connectConfig.connectionOptions);
  } catch (error) {
    throw new CommandError(
      `the Temporal server at ${address} cannot be reached (${messageOf(error)})`,
      undefined,
      {
        cause: error,
      },
    );
  }
}

async function useEngine(run: OwnRun, closers: (() => Promise<void>)[]): Promise<UsedEngine> {
  const { found, directory, kind, options } = run;
  if (found.kind === 'address') {
    const { connectConfig, address, namespace = 'default' } = found;
    return { connectConfig, address, uiUrl: null, namespace };
  }
  const orphans = await endOrphanedEngines(directory.temporalDbFile);
  if (orphans > 0) options.log(`ended the engine that a killed command had left behind on ${directory.path}`);
  const starting = startTemporalServer({
    binary: found.path,
    dbFile: directory.temporalDbFile,
    searchAttributes: ENGINE_SEARCH_ATTRIBUTES,
    logFile: join(directory.logDirectory, 'temporal.log'),
    // Those that people know; others where they are taken.
    ...(kind === 'up' ? { port: 7233, uiPort: 8233 } : {}),
  });
  const server = await starting.catch(async (error: unknown) => {
    // On a full disk the server has nowhere to say so.
    throw (await fullDiskError(directory.path, error)) ?? error;
  });
  closers.push(() => server.stop());
  const { address, uiUrl, namespace } = server;
  return { connectConfig: { connectionOptions: { address } }, address, uiUrl, namespace };
}

async function openReader(
  directory: StateDirectory,
  closers: (() => Promise<void>)[],
): Promise<ReceiptsReader | null> {
  if (!existsSync(directory.storeFile)) return null;
  const reader = await openReceiptsReader(directory.storeFile);
  closers.push(() => reader.close());
  return reader;
}

function clientsOf(
  connection: Connection,
  place: { readonly namespace: string; readonly taskQueue: string },
  reader: ReceiptsReader | null,
  log: (line: string) => void,
): Pick<Runtime, 'client' | 'temporal' | 'taskQueue'> {
  const temporal = new Client({ connection, namespace: place.namespace });
  const { taskQueue } = place;
  const results = reader ? { results: reader } : {};
  return {
    client: new ToolOperationClient({ client: temporal, taskQueue, log, ...results }),
    temporal,
    taskQueue,
  };
}

/** Runs all of them, the last one first; the first error comes out when all are done. */
function closeOnce(closers: readonly (() => Promise<void>)[]): () => Promise<void> {
  let closing: Promise<void> | undefined;
  async function closeAll(): Promise<void> {
    const errors: unknown[] = [];
    for (const closer of [...closers].reverse()) await closer().catch((error: unknown) => errors.push(error));
    if (errors.length > 0) throw errors[0];
  }
  return () => (closing ??= closeAll());
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown reason';
}
