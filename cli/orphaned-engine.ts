// Owns finding the engine that a killed command left behind on our database file: two must not share it.
// Must never end a process that does not name exactly this file, nor be called without the directory's engine lock.

import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

interface Running {
  readonly pid: number;
  readonly words: readonly string[];
}

const PATIENCE_MS = 10_000;
const LOOK_AGAIN_MS = 50;

/** Ends the engines on `dbFile` whose command was killed (SIGKILL leaves no time to end them). */
export async function endOrphanedEngines(dbFile: string): Promise<number> {
  const forceAt = Date.now() + PATIENCE_MS;
  const asked = new Set<number>();
  for (;;) {
    // Looked up each time: a dead process that nobody reaps still has a pid, but no words.
    const orphans = (await runningPrograms()).filter((program) => servesFile(program.words, dbFile));
    if (orphans.length === 0) return asked.size;
    for (const { pid } of orphans) {
      // The database is in WAL mode: it survives a SIGKILL.
      if (!asked.has(pid)) sendSignal(pid, 'SIGTERM');
      else if (Date.now() > forceAt) sendSignal(pid, 'SIGKILL');
      asked.add(pid);
    }
    await sleep(LOOK_AGAIN_MS);
  }
}

export function servesFile(words: readonly string[], dbFile: string): boolean {
  const flag = words.indexOf('--db-filename');
  return words.includes('start-dev') && flag !== -1 && words[flag + 1] === dbFile;
}

async function runningPrograms(): Promise<readonly Running[]> {
  if (process.platform === 'linux') return fromProc();
  if (process.platform === 'win32') return [];
  return fromPs();
}

/** Minimal images have no `ps`, but every Linux has this; it also keeps the words apart. */
async function fromProc(): Promise<readonly Running[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const programs = pids.map(async (pid): Promise<Running> => {
    const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return { pid: Number(pid), words: text.split('\0') };
  });
  return Promise.all(programs);
}

function fromPs(): Promise<readonly Running[]> {
  return new Promise((resolve) => {
    execFile('ps', ['-A', '-ww', '-o', 'pid=,command='], { maxBuffer: 16_000_000 }, (error, stdout) => {
      if (error) return resolve([]);
      resolve(stdout.split('\n').map(readPsLine));
    });
  });
}

/** `ps` joins words by spaces: a path with spaces is one word up to the next flag. */
function readPsLine(line: string): Running {
  const [, pid, command] = /^\s*(\d+)\s+(.*)$/.exec(line) ?? [];
  const words = (command ?? '').split(/ (?=--)/).flatMap((part) => {
    const [flag, ...rest] = part.split(' ');
    return part.startsWith('--') ? [flag ?? '', rest.join(' ')] : part.split(' ');
  });
  return { pid: Number(pid ?? 0), words };
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone by itself.
  }
}
