// `npm start` as a person runs it: two demos at once, each judged by what it saw.

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const MAIN = new URL('../../dist/cli/main.js', import.meta.url).pathname;

interface Ran {
  readonly code: number;
  readonly text: string;
  readonly stdout: string;
}

function runDemo(cwd: string): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, 'demo'], { cwd }, (error, stdout, stderr) => {
      resolve({
        code: typeof error?.code === 'number' ? error.code : error ? -1 : 0,
        text: stdout + stderr,
        stdout,
      });
    });
    child.stdin?.end();
  });
}

test('two demos at once each see the kill, a new process, one request and one receipt, and leave nothing running', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'dtc-demo-'));
  const demos = await Promise.all([runDemo(cwd), runDemo(cwd)]);
  for (const { code, text, stdout } of demos) {
    expect(code, text).toBe(0);
    expect(text).toContain('(SIGKILL)');
    expect(text).toContain('answer: applied');
    expect(text).toContain('tools/call requests: 1, receipts: 1');
    const [, interpretation] = /its answer: \{"interpretation":"(\w+)"\}/.exec(text) ?? [];
    expect(stdout).toContain(interpretation);
    const pids = [...text.matchAll(/worker: process (\d+)/g)].map((match) => Number(match[1]));
    expect(new Set(pids).size).toBe(2);
    for (const pid of pids) expect(isAlive(pid)).toBe(false);
    const address = /engine: 127\.0\.0\.1:(\d+)/.exec(text)?.[1];
    expect(await isListening(Number(address))).toBe(false);
  }
  await rm(cwd, { recursive: true, force: true });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function isListening(port: number): Promise<boolean> {
  const { isListening: listening } = await import('../../cli/engine/free-port.js');
  return listening(port);
}
