// Owns starting and ending a worker as a child process.
// Must never leave the child behind when it is told to stop.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { WorkerProcessOptions } from './worker-process.js';

export interface WorkerChild {
  readonly pid: number;
  /** Resolves with the signal that ended it, or null. */
  readonly ended: Promise<string | null>;
  /** SIGKILL; resolves with the signal once it is gone. */
  kill(): Promise<string | null>;
  stop(): Promise<string | null>;
}

export async function startWorkerProcess(
  options: WorkerProcessOptions,
  program: string = fileURLToPath(new URL('./worker-process.js', import.meta.url)),
): Promise<WorkerChild> {
  const child = fork(program, [JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(([, signal]) => signal as string | null);
  await Promise.race([
    once(child, 'message'),
    ended.then(() => {
      throw new Error('the worker ended before it was ready');
    }),
  ]);
  return {
    pid: child.pid ?? -1,
    ended,
    kill: () => end(child, ended, 'SIGKILL'),
    stop: () => end(child, ended, 'SIGTERM'),
  };
}

async function end(
  child: ChildProcess,
  ended: Promise<string | null>,
  signal: NodeJS.Signals,
): Promise<string | null> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  return ended;
}
