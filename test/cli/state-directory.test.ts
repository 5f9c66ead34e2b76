// Owns the proof that one process at a time runs an engine on a state directory, and that stale files stop nobody.
// Must never wait by sleeping.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { servesFile } from '../../cli/orphaned-engine.js';
import {
  type EngineNote,
  layoutOf,
  lockEngine,
  prepareStateDirectory,
  readLiveEngine,
  type StateDirectory,
  writeEngineNote,
} from '../../cli/state-directory.js';

let root: string;
let directory: StateDirectory;
const servers: Server[] = [];

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'dtc-state-'));
  directory = await prepareStateDirectory(join(root, 'state'));
});

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(root, { recursive: true, force: true });
});

/** An address that answers until the test ends. */
async function anAddress(): Promise<string> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bound = server.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('no port');
  return `127.0.0.1:${bound.port}`;
}

async function aSilentAddress(): Promise<string> {
  const address = await anAddress();
  await new Promise((resolve) => servers.pop()?.close(resolve));
  return address;
}

/** The pid of a process that has ended and was reaped. */
function aDeadPid(): number {
  return spawnSync(process.execPath, ['-e', '']).pid;
}

function note(over: Partial<EngineNote>): EngineNote {
  return {
    address: '127.0.0.1:1',
    uiUrl: null,
    pid: process.pid,
    namespace: 'default',
    taskQueue: 'q',
    startedAt: 0,
    kind: 'up',
    configFile: null,
    ...over,
  };
}

test('the directory is for its owner only, and its parts have their places', () => {
  expect(statSync(directory.path).mode & 0o777).toBe(0o700);
  expect(directory.engineFile).toBe(join(directory.path, 'engine.json'));
  expect(directory.temporalDbFile).toBe(join(directory.path, 'temporal.db'));
  expect(directory.storeFile).toBe(join(directory.path, 'operations.sqlite'));
  expect(existsSync(join(directory.path, 'logs'))).toBe(true);
});

test('a directory that cannot be written is told in one sentence', async () => {
  const file = join(root, 'file');
  writeFileSync(file, '');
  const refusal = prepareStateDirectory(join(file, 'state'));
  await expect(refusal).rejects.toThrow(/cannot be written \(ENOTDIR\): name another with --state-dir/);
  await expect(refusal).rejects.toMatchObject({ exitCode: 2 });
});

test('looking at a directory makes none', async () => {
  const absent = layoutOf(join(root, 'absent'));
  expect(await readLiveEngine(absent)).toBeNull();
  expect(existsSync(absent.path)).toBe(false);
});

describe('a live engine', () => {
  test('is one whose owner lives and whose address answers', async () => {
    const live = note({ address: await anAddress() });
    await writeEngineNote(directory, live);
    expect(await readLiveEngine(directory)).toEqual(live);
  });

  test('is none when its owner is dead', async () => {
    await writeEngineNote(directory, note({ address: await anAddress(), pid: aDeadPid() }));
    expect(await readLiveEngine(directory)).toBeNull();
  });

  test('is none when its address is silent', async () => {
    await writeEngineNote(directory, note({ address: await aSilentAddress() }));
    expect(await readLiveEngine(directory)).toBeNull();
  });

  test.each(['', '{', 'null', '[]', '{"address":1}'])('is none where the file holds %j', async (text) => {
    writeFileSync(directory.engineFile, text);
    expect(await readLiveEngine(directory)).toBeNull();
  });
});

describe('the lock', () => {
  test('is given once until it is released', async () => {
    const lock = await lockEngine(directory);
    expect(lock).not.toBeNull();
    expect(await lockEngine(directory)).toBeNull();
    await lock?.release();
    const next = await lockEngine(directory);
    expect(next).not.toBeNull();
  });

  test('of twenty who want it at once one gets it', async () => {
    const locks = await Promise.all(Array.from({ length: 20 }, () => lockEngine(directory)));
    expect(locks.filter((lock) => lock !== null)).toHaveLength(1);
  });

  test('of a dead process is taken over, with its note', async () => {
    writeFileSync(directory.lockFile, `${aDeadPid()} token`);
    await writeEngineNote(directory, note({ pid: aDeadPid() }));
    expect(await lockEngine(directory)).not.toBeNull();
    expect(existsSync(directory.engineFile)).toBe(false);
  });

  test('of a dead process goes to one of twenty', async () => {
    writeFileSync(directory.lockFile, `${aDeadPid()} token`);
    const locks = await Promise.all(Array.from({ length: 20 }, () => lockEngine(directory)));
    expect(locks.filter((lock) => lock !== null)).toHaveLength(1);
  });

  test('of a live process is respected while its engine starts or stops', async () => {
    writeFileSync(directory.lockFile, `${process.ppid} token`);
    expect(await lockEngine(directory)).toBeNull();
  });

  test('of a pid that was used again is refuted by the note of its silent engine', async () => {
    writeFileSync(directory.lockFile, `${process.ppid} token`);
    await writeEngineNote(directory, note({ pid: process.ppid, address: await aSilentAddress() }));
    expect(await lockEngine(directory)).not.toBeNull();
  });

  test('withdraws the note first and keeps others out until it is released', async () => {
    const lock = await lockEngine(directory);
    await writeEngineNote(directory, note({ address: await anAddress() }));
    await lock?.withdrawNote();
    expect(await readLiveEngine(directory)).toBeNull();
    expect(await lockEngine(directory)).toBeNull();
  });
});

test('an orphaned engine is known by its database file alone', () => {
  const words = ['/bin/temporal', 'server', 'start-dev', '--db-filename', '/a/temporal.db', '--port', '1'];
  expect(servesFile(words, '/a/temporal.db')).toBe(true);
  expect(servesFile(words, '/b/temporal.db')).toBe(false);
  expect(servesFile(['vi', '/a/temporal.db'], '/a/temporal.db')).toBe(false);
});
