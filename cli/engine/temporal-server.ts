/**
 * Owns: one Temporal dev server as a child process, from start to proven health to its end. Must never leave the
 * process behind when this process ends normally, and never hand out a server that does not answer yet.
 *
 * Two servers must not share one database file; the owner of the state directory sees to that.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { endWithUs } from './end-with-us.js';
import { EngineError, lastLines } from './engine-error.js';
import { freePort, LOOPBACK } from './free-port.js';
import { probeServer } from './server-health.js';

export type SearchAttributeKind = 'Text' | 'Keyword' | 'Int' | 'Double' | 'Bool' | 'Datetime' | 'KeywordList';

export interface TemporalServerOptions {
  /** The `temporal` CLI, as `findTemporal` gives it. */
  readonly binary: string;
  /** SQLite file with all state; made when missing. */
  readonly dbFile: string;
  /** Wanted ports; another free one is taken where they are in use. Read the real ones from the result. */
  readonly port?: number;
  readonly uiPort?: number;
  /** Default: `default`. */
  readonly namespace?: string;
  readonly searchAttributes: Readonly<Record<string, SearchAttributeKind>>;
  /** Added to the two partition settings, as `--dynamic-config-value`. */
  readonly dynamicConfig?: Readonly<Record<string, string | number | boolean>>;
  /** Gets the server's output, appended. Default: `<dbFile>.log`. */
  readonly logFile?: string;
}

export interface TemporalServer {
  /** `127.0.0.1:<port>` */
  readonly address: string;
  readonly uiUrl: string;
  readonly namespace: string;
  readonly logFile: string;
  readonly pid: number;
  /** Resolves when the process is gone. May be called more than once. */
  readonly stop: () => Promise<void>;
}

/** Measured: 1 s from a cold file; the rest is for slow disks. */
const HEALTH_LIMIT_MS = 60_000;
const PROBE_INTERVAL_MS = 50;
/** A dev server that is told to end takes under a second. */
const STOP_LIMIT_MS = 10_000;
/** A port, also one of those that the server picks for itself, can be lost between choice and use. */
const START_ATTEMPTS = 3;

/**
 * Starts a server and waits until it can be used: it answers gRPC, has the namespace and all search attributes.
 *
 * @throws EngineError `TEMPORAL_START_FAILED` with the last words of the server.
 */
export async function startTemporalServer(options: TemporalServerOptions): Promise<TemporalServer> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(options.port);
    const uiPort = await freePort(options.uiPort, [port]);
    try {
      return await startOn(port, uiPort, options);
    } catch (error) {
      if (!EngineError.isInstance(error) || attempt === START_ATTEMPTS || !/in use/i.test(error.message))
        throw error;
    }
  }
}

async function startOn(
  port: number,
  uiPort: number,
  options: TemporalServerOptions,
): Promise<TemporalServer> {
  const { binary, namespace = 'default', logFile = `${options.dbFile}.log` } = options;
  const log = openSync(logFile, 'a');
  const logStart = statSync(logFile).size;
  const child = spawn(binary, serverArgs(port, uiPort, options), {
    stdio: ['ignore', log, log],
    // A group of its own: a terminal's Ctrl-C would end it before the worker has drained.
    detached: true,
  });
  closeSync(log);
  const running = supervise(child);
  const address = `${LOOPBACK}:${port}`;
  try {
    await untilHealthy();
  } catch (error) {
    await running.stop();
    throw error;
  }
  const { pid } = child;
  if (pid === undefined) throw new EngineError('TEMPORAL_START_FAILED', `${binary} has no process id.`);
  return { address, uiUrl: `http://${LOOPBACK}:${uiPort}`, namespace, logFile, pid, stop: running.stop };

  async function untilHealthy(): Promise<void> {
    const expected = { port, namespace, searchAttributes: Object.keys(options.searchAttributes) };
    const deadlineAtMs = Date.now() + HEALTH_LIMIT_MS;
    for (;;) {
      const missing = await probeServer(expected);
      const ended = running.ended();
      // Asked after the probe: a stranger may listen on the port that our dead child could not take.
      if (ended !== undefined) throw startFailed(`${ended}; ${lastWords()}`);
      if (missing === undefined) return;
      if (Date.now() > deadlineAtMs)
        throw startFailed(`was not usable after 60 s (${missing}); ${lastWords()}`);
      await sleep(PROBE_INTERVAL_MS);
    }
  }

  function lastWords(): string {
    const words = lastLines(readFileSync(logFile).subarray(logStart).toString('utf8'), 3);
    return words === '' ? 'it said nothing' : `its last words: ${words}`;
  }
}

function startFailed(what: string): EngineError {
  return new EngineError('TEMPORAL_START_FAILED', `The Temporal server ${what}`);
}

/**
 * The flags are measured ones: without the WAL pragmas everything is three times slower, and queue limits are exact
 * only with one partition.
 */
function serverArgs(port: number, uiPort: number, options: TemporalServerOptions): string[] {
  const args = ['server', 'start-dev', '--ip', LOOPBACK, '--port', `${port}`, '--ui-port', `${uiPort}`];
  args.push('--db-filename', options.dbFile);
  args.push('--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL');
  if (options.namespace !== undefined) args.push('--namespace', options.namespace);
  const dynamicConfig = {
    'matching.numTaskqueueReadPartitions': 1,
    'matching.numTaskqueueWritePartitions': 1,
    ...options.dynamicConfig,
  };
  for (const [key, value] of Object.entries(dynamicConfig)) {
    // The value is JSON to the server, so a duration needs its quotes.
    args.push('--dynamic-config-value', `${key}=${JSON.stringify(value)}`);
  }
  for (const [name, kind] of Object.entries(options.searchAttributes)) {
    args.push('--search-attribute', `${name}=${kind}`);
  }
  return args;
}

interface Supervised {
  /** How the process ended, as the middle of a sentence; `undefined` while it runs. */
  readonly ended: () => string | undefined;
  readonly stop: () => Promise<void>;
}

function supervise(child: ChildProcess): Supervised {
  let end: string | undefined;
  const release = endWithUs(child);
  const gone = new Promise<void>((resolve) => {
    const settle = (how: string): void => {
      end ??= how;
      release();
      resolve();
    };
    child.once('error', (error) => settle(`could not be started (${error.message})`));
    child.once('exit', (exitCode, signal) => settle(`ended with ${signal ?? `exit code ${exitCode}`}`));
  });
  // A caller that forgets stop() must still be able to end; the exit hook above then ends the server.
  child.unref();

  let stopping: Promise<void> | undefined;
  async function stopOnce(): Promise<void> {
    if (end !== undefined) return;
    child.ref();
    child.kill('SIGTERM');
    const patience = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    await gone;
    clearTimeout(patience);
  }
  return {
    ended: () => end,
    stop: () => (stopping ??= stopOnce()),
  };
}
