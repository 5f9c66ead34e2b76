// Owns the life of a Redis of a test's own: loopback, its own folder, and what it acknowledged survives a SIGKILL.
// Must never be the machine's Redis.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../protocols/everything-server.js';

export interface Redis {
  readonly url: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** On the same port and data. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<Redis> {
  const dir = await mkdtemp(join(tmpdir(), 'dtc-redis-'));
  const port = await freePort();
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--daemonize', 'no'];
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
  let child: ChildProcess | null = null;
  const kill = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  const start = async (): Promise<void> => {
    child = spawn('redis-server', [...place, ...durable], { stdio: ['ignore', 'pipe', 'ignore'] });
    await untilReady(child);
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}/0`,
    kill,
    start,
    async stop() {
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function untilReady(child: ChildProcess): Promise<void> {
  if (!child.stdout) throw new Error('the child has no stdout');
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.includes('Ready to accept connections')) continue;
    child.stdout.resume();
    return;
  }
  throw new Error('redis-server ended before it was ready');
}
