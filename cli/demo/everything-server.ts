/**
 * Owns: the real `@modelcontextprotocol/server-everything` as a child process, from start to proven health to its
 * end. Must never let it listen beyond the loopback address, see our environment, or outlive this process.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { isListening, LOOPBACK } from '../engine/free-port.js';
import { isListeningMessage, LOOPBACK_ONLY_PRELOAD } from './loopback-only.js';

export interface EverythingServerOptions {
  /** Wanted port; another free one is taken where it is in use. Read the real one from `url`. */
  readonly port?: number;
  /** Gets the server's output, appended. Default: nowhere. */
  readonly logFile?: string;
}

export interface EverythingServer {
  /** `http://127.0.0.1:<port>/mcp` */
  readonly url: string;
  readonly pid: number;
  /** Resolves when the process is gone. May be called more than once. */
  stop(): Promise<void>;
}

export type EverythingServerErrorCode = 'EVERYTHING_SERVER_NOT_INSTALLED' | 'EVERYTHING_SERVER_START_FAILED';

const brand: unique symbol = Symbol.for('durable-tool-calls/EverythingServerError');

/** Thrown by `startEverythingServer`; the message is one sentence that says what to do. */
export class EverythingServerError extends Error {
  override readonly name = 'EverythingServerError';
  readonly code: EverythingServerErrorCode;
  readonly [brand] = true;

  constructor(code: EverythingServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  static isInstance(value: unknown): value is EverythingServerError {
    return typeof value === 'object' && value !== null && brand in value;
  }
}

/** In a constant, because it is a dev dependency: what ships must run without it. */
const PACKAGE = '@modelcontextprotocol/server-everything';
const ANY_PORT = 0;
/** Measured: 0.4 s warm, 4 s from a cold disk. */
const START_LIMIT_MS = 30_000;
/** It has no SIGTERM handler, so it ends at once; the rest is for a machine under load. */
const STOP_LIMIT_MS = 5_000;
const LAST_WORDS_CHARS = 400;

/**
 * Starts the server and waits until it answers `initialize`.
 *
 * @throws EverythingServerError `EVERYTHING_SERVER_NOT_INSTALLED`, or `EVERYTHING_SERVER_START_FAILED` with its last words.
 */
export async function startEverythingServer(
  options: EverythingServerOptions = {},
): Promise<EverythingServer> {
  const program = findProgram();
  const wantedPort = options.port ?? ANY_PORT;
  try {
    return await startOn(wantedPort, program, options);
  } catch (error) {
    if (wantedPort === ANY_PORT || !(await isListening(wantedPort))) throw error;
    return startOn(ANY_PORT, program, options);
  }
}

function findProgram(): string {
  try {
    return createRequire(import.meta.url).resolve(`${PACKAGE}/dist/index.js`);
  } catch (cause) {
    const message = `${PACKAGE} is not installed; it is a dev dependency: run "npm install" with dev dependencies in the repository.`;
    throw new EverythingServerError('EVERYTHING_SERVER_NOT_INSTALLED', message, { cause });
  }
}

async function startOn(
  port: number,
  program: string,
  options: EverythingServerOptions,
): Promise<EverythingServer> {
  const child = spawn(process.execPath, ['--import', LOOPBACK_ONLY_PRELOAD, program, 'streamableHttp'], {
    // Nothing of our environment: its tool `get-env` shows the whole of its own to whoever calls it.
    env: { PORT: `${port}`, ...(process.env['SystemRoot'] && { SystemRoot: process.env['SystemRoot'] }) },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const running = supervise(child);
  const lastWords = collectOutput(child, options.logFile);
  try {
    const listeningPort = await untilListening(child, running.gone);
    const url = `http://${LOOPBACK}:${listeningPort}/mcp`;
    await proveAnswers(url);
    letGo(child);
    if (child.pid === undefined) throw new Error('it has no process id');
    return { url, pid: child.pid, stop: running.stop };
  } catch (cause) {
    await running.stop();
    const why = cause instanceof Error ? cause.message : 'unknown reason';
    const message = `${PACKAGE} did not start: ${why}; its last words: ${lastWords() || 'none'}`;
    throw new EverythingServerError('EVERYTHING_SERVER_START_FAILED', message, { cause });
  }
}

/** The preload tells the port, so there is none to be lost between choosing and binding it. */
function untilListening(child: ChildProcess, gone: Promise<string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const patience = setTimeout(
      () => reject(new Error(`silent for ${START_LIMIT_MS / 1000} s`)),
      START_LIMIT_MS,
    );
    child.on('message', (message) => {
      if (!isListeningMessage(message)) return;
      clearTimeout(patience);
      resolve(message.listeningPort);
    });
    void gone.then((how) => {
      clearTimeout(patience);
      reject(new Error(how));
    });
  });
}

async function proveAnswers(url: string): Promise<void> {
  const signal = AbortSignal.timeout(START_LIMIT_MS);
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'durable-tool-calls start check', version: '0' },
  };
  const reply = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
    signal,
  });
  await reply.text();
  const sessionId = reply.headers.get('mcp-session-id');
  if (!reply.ok || sessionId === null) throw new Error(`initialize was answered with HTTP ${reply.status}`);
  const ended = await fetch(url, { method: 'DELETE', headers: { 'mcp-session-id': sessionId }, signal });
  await ended.text();
}

function collectOutput(child: ChildProcess, logFile: string | undefined): () => string {
  const log = logFile === undefined ? undefined : createWriteStream(logFile, { flags: 'a' });
  // A log that cannot be written must not take the server down with it.
  log?.on('error', () => {});
  let tail = '';
  for (const output of [child.stdout, child.stderr]) {
    output?.on('data', (chunk: Buffer) => {
      log?.write(chunk);
      tail = (tail + chunk.toString('utf8')).slice(-LAST_WORDS_CHARS);
    });
  }
  child.once('close', () => log?.end());
  return () => tail.trim().replaceAll(/\s*\n\s*/g, ' | ');
}

/** A caller that forgets stop() must still be able to end; then the exit hook, or the closed channel, ends the child. */
function letGo(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
  for (const output of [child.stdout, child.stderr]) {
    if (output instanceof Socket) output.unref();
  }
}

interface Supervised {
  /** How the process ended, as the middle of a sentence. */
  readonly gone: Promise<string>;
  readonly stop: () => Promise<void>;
}

function supervise(child: ChildProcess): Supervised {
  const killWithUs = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', killWithUs);
  let isGone = false;
  const gone = new Promise<string>((resolve) => {
    const settle = (how: string): void => {
      isGone = true;
      process.off('exit', killWithUs);
      resolve(how);
    };
    child.once('error', (error) => settle(`it could not be run (${error.message})`));
    child.once('exit', (exitCode, signal) => settle(`it ended with ${signal ?? `exit code ${exitCode}`}`));
  });
  async function stopOnce(): Promise<void> {
    if (isGone) return;
    child.ref();
    child.kill('SIGTERM');
    const patience = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    await gone;
    clearTimeout(patience);
  }
  let stopping: Promise<void> | undefined;
  return { gone, stop: () => (stopping ??= stopOnce()) };
}
