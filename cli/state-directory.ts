// Owns the layout of the state directory, and who may run an engine on it: one process at a time.
// Must never take a file over from a process that is alive and answers.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, readFile, realpath, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { CommandError } from './exit-codes.js';

export const DEFAULT_STATE_DIRECTORY = '.durable-tool-calls';

export interface StateDirectory {
  readonly path: string;
  readonly engineFile: string;
  readonly lockFile: string;
  readonly temporalDbFile: string;
  readonly storeFile: string;
  readonly logDirectory: string;
}

/** What `engine.json` says of the engine that runs on this directory. */
export interface EngineNote {
  readonly address: string;
  /** Null where the engine is a cluster of somebody else's. */
  readonly uiUrl: string | null;
  /** The command that owns engine and worker. */
  readonly pid: number;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly startedAt: number;
  /** `up` stays; `embedded` ends with its command. */
  readonly kind: 'up' | 'embedded';
  /** What the worker there was configured from; null where it only shows what is. */
  readonly configFile: string | null;
}

export function layoutOf(directory: string): StateDirectory {
  const path = resolve(directory);
  return {
    path,
    engineFile: join(path, 'engine.json'),
    lockFile: join(path, 'engine.lock'),
    temporalDbFile: join(path, 'temporal.db'),
    storeFile: join(path, 'operations.sqlite'),
    logDirectory: join(path, 'logs'),
  };
}

const PROBE_BYTES = 16 * 1024;

/** @throws CommandError where it cannot be made or written */
export async function prepareStateDirectory(directory: string): Promise<StateDirectory> {
  const layout = layoutOf(directory);
  const probe = join(layout.path, `.write-check-${process.pid}`);
  try {
    // Arguments, questions and results lie here: nobody else's business.
    await mkdir(layout.path, { recursive: true, mode: 0o700 });
    // A block, not nothing: a full disk still has room for names.
    await writeFile(probe, ' '.repeat(PROBE_BYTES), { mode: 0o600 });
    await rm(probe);
    // After the probe, whose code is the true one: a recursive mkdir calls a read-only disk ENOENT.
    await mkdir(layout.logDirectory, { recursive: true, mode: 0o700 });
    // One name per directory, whatever link led here: an engine is known by the name of its file.
    return layoutOf(await realpath(layout.path));
  } catch (error) {
    await rm(probe, { force: true }).catch(() => {});
    if (codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT') throw diskIsFull(layout.path, error);
    const message =
      `the state directory ${layout.path} cannot be written (${codeOf(error)}): ` +
      'name another with --state-dir, or make it writable';
    throw new CommandError(message, undefined, { cause: error });
  }
}

function diskIsFull(path: string, cause: unknown): CommandError {
  return new CommandError(
    `the disk of the state directory ${path} is full: make room, or name another with --state-dir`,
    undefined,
    { cause },
  );
}

/** Measured: a new engine and store take 4 MB before the first call. */
const NEEDED_BYTES = 4 * 1024 * 1024;

/** What a failure there comes to where the disk has no room left; null where it has. */
export async function fullDiskError(path: string, cause: unknown): Promise<CommandError | null> {
  try {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize < NEEDED_BYTES ? diskIsFull(path, cause) : null;
  } catch {
    return null;
  }
}

/** The engine that is alive on this directory: its owner lives and its address answers. A stale note is no engine. */
export async function readLiveEngine(directory: StateDirectory): Promise<EngineNote | null> {
  const note = await readNote(directory.engineFile);
  if (!note || !isAlive(note.pid)) return null;
  return (await answers(note.address)) ? note : null;
}

async function readNote(file: string): Promise<EngineNote | null> {
  try {
    const note = JSON.parse(await readFile(file, 'utf8')) as Partial<EngineNote> | null;
    const isNote =
      typeof note?.address === 'string' &&
      Number.isSafeInteger(note.pid) &&
      typeof note.namespace === 'string' &&
      typeof note.taskQueue === 'string';
    return isNote ? (note as EngineNote) : null;
  } catch {
    // Absent, or written by nobody we know: either way it names no engine.
    return null;
  }
}

/** Appears whole or not at all: other commands read it at any time. */
export async function writeEngineNote(directory: StateDirectory, note: EngineNote): Promise<void> {
  const draft = `${directory.engineFile}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(note, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, directory.engineFile);
}

export interface EngineLock {
  /** Before the engine stops: from now on nobody joins it; who comes waits for the lock. */
  withdrawNote(): Promise<void>;
  /** After the engine has stopped. */
  release(): Promise<void>;
}

/** The right to run an engine here, or null where another live process has it. */
export async function lockEngine(directory: StateDirectory): Promise<EngineLock | null> {
  const token = `${process.pid} ${randomUUID()}`;
  if (!(await tryLock(directory.lockFile, token))) {
    const holder = await readText(directory.lockFile);
    if (holder !== null && (await isHeld(directory, Number.parseInt(holder, 10)))) return null;
    if (holder !== null && !(await removeStaleLock(directory.lockFile, holder))) return null;
    if (!(await tryLock(directory.lockFile, token))) return null;
  }
  // From here on this directory's note, if any, is of an engine whose owner is dead.
  await rm(directory.engineFile, { force: true });
  const isOurs = async (): Promise<boolean> => (await readText(directory.lockFile)) === token;
  return {
    withdrawNote: async () => {
      if (await isOurs()) await rm(directory.engineFile, { force: true });
    },
    release: async () => {
      if (await isOurs()) await rm(directory.lockFile, { force: true });
    },
  };
}

/**
 * Alive, and not refuted by its own note. An owner takes its note away before it stops its engine, so a note whose
 * address is silent was left by a crash, and the pid is somebody else's by now.
 */
async function isHeld(directory: StateDirectory, holderPid: number): Promise<boolean> {
  if (!isAlive(holderPid)) return false;
  const note = await readNote(directory.engineFile);
  return note?.pid !== holderPid || (await answers(note.address));
}

async function tryLock(lockFile: string, token: string): Promise<boolean> {
  // A link appears with its content: nobody ever reads a lock without its owner.
  const draft = `${lockFile}.${randomUUID()}`;
  await writeFile(draft, token, { mode: 0o600 });
  try {
    await link(draft, lockFile);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Two may find the same stale lock: a rename takes it once, and what was taken by mistake is put back. */
async function removeStaleLock(lockFile: string, expected: string): Promise<boolean> {
  const taken = `${lockFile}.${randomUUID()}`;
  try {
    await rename(lockFile, taken);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return true;
    throw error;
  }
  const wasStale = (await readText(taken)) === expected;
  if (!wasStale) await link(taken, lockFile).catch(() => {});
  await rm(taken, { force: true });
  return wasStale;
}

async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    // Somebody else's process is alive too.
    return codeOf(error) === 'EPERM';
  }
}

/** A killed process that nobody reaped still has its pid: in containers whose first process does not reap, for ever. */
function isZombie(pid: number): boolean {
  try {
    // The state follows the program's name, which may itself hold parentheses.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
  } catch {
    // No such file system: there, `kill` is all there is to ask.
    return false;
  }
}

const ANSWER_LIMIT_MS = 2_000;

function answers(address: string): Promise<boolean> {
  const [, host, port] = /^(?:.*:\/\/)?\[?([^\]]*?)\]?:(\d+)$/.exec(address) ?? [];
  if (host === undefined || port === undefined) return Promise.resolve(false);
  return new Promise((done) => {
    const socket = connect({ host, port: Number(port), timeout: ANSWER_LIMIT_MS });
    const end = (isAnswering: boolean) => (): void => {
      socket.destroy();
      done(isAnswering);
    };
    socket.once('connect', end(true));
    socket.once('error', end(false));
    socket.once('timeout', end(false));
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'no code';
}
