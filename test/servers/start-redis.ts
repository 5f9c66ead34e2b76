// Owns the life of a Redis of a test's own: loopback, its own folder, and what it acknowledged survives a SIGKILL.
// Must never be the machine's Redis.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../protocols/everything-server.js';
import { killChild, untilSaid } from './child-server.js';

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
    if (child) await killChild(child);
  };
  const start = async (): Promise<void> => {
    child = spawn('redis-server', [...place, ...durable], { stdio: ['ignore', 'pipe', 'ignore'] });
    await untilSaid(child.stdout, 'Ready to accept connections', 'redis-server');
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
