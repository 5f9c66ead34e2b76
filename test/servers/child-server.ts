// Owns the life of a server that tests run as a child process: started, heard of, killed.
// Must never end one by anything milder than SIGKILL: what it would tidy up must not be relied on.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

export interface Listening {
  readonly child: ChildProcess;
  readonly port: number;
}

/** A program of ours, which tells its port once it listens. */
export async function forkServer(program: string, options: object, name: string): Promise<Listening> {
  const child = fork(program, [JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${name} ended before it listened`);
  });
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [{ port: number }];
  ended.catch(() => undefined);
  return { child, port: message.port };
}

/** Until the child says these words on one of its streams, which is then let run. */
export async function untilSaid(stream: Readable | null, words: string, name: string): Promise<void> {
  if (!stream) throw new Error(`${name} has no such stream`);
  const said: string[] = [];
  for await (const line of createInterface({ input: stream })) {
    said.push(line);
    if (!line.includes(words)) continue;
    stream.resume();
    return;
  }
  throw new Error(`${name} ended before it was ready: ${said.slice(-5).join(' | ')}`);
}

/** SIGKILL, unless it has ended. */
export async function killChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
