// Owns the life of java-lro as a child process: Google's own mock of Spanner's database admin and of google.longrunning,
// with a thin REST front. Its protocol engine was written by nobody here. Must never be asked to remember: it has no disk.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freePort } from '../protocols/everything-server.js';
import { killChild } from './child-server.js';
import { classPathOf } from './java-classes.js';

const POM = fileURLToPath(new URL('./java-lro/pom.xml', import.meta.url));
const SOURCE = fileURLToPath(new URL('./java-lro/src/main/java/Lro.java', import.meta.url));

export const PARENT = 'projects/p/instances/i';
const DATABASE = `${PARENT}/databases/d1`;
/** The body of a backup of the database that is there from the start. */
export const BACKUP = { database: DATABASE, expireTime: '2099-01-01T00:00:00Z' };

export interface JavaLro {
  /** Up to and with the version. */
  readonly url: string;
  /** The next call fails with this status; nothing is started. */
  failNext(status: string): Promise<void>;
  /** Until told otherwise a backup is started, and its answer lost to this status (or null: not lost). */
  loseResponse(status: string | null): Promise<void>;
  /** All operations that made backups, as the server lists them. */
  backupOperations(): Promise<readonly { readonly name: string }[]>;
  /** SIGKILL, and again on the same port: it has forgotten everything. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** `durationMs`: of every backup. */
export async function startJavaLro(durationMs: number): Promise<JavaLro> {
  const classPath = await classPathOf('java-lro', POM, SOURCE);
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const launched = () => launch(classPath, { PORT: String(port), LRO_MS: String(durationMs) }, origin);
  let child = await launched();
  const control = async (path: string): Promise<void> => {
    await (await fetch(`${origin}/control/${path}`)).text();
  };
  return {
    url: `${origin}/v1`,
    failNext: (status) => control(`fail-next?status=${status}`),
    loseResponse: (status) => control(`lose-response${status === null ? '' : `?status=${status}`}`),
    async backupOperations() {
      const reply = await fetch(`${origin}/v1/${PARENT}/backupOperations`);
      const { operations } = (await reply.json()) as { operations?: { name: string }[] };
      return operations ?? [];
    },
    async restart() {
      await killChild(child);
      child = await launched();
    },
    stop: () => killChild(child),
  };
}

async function launch(classPath: string, env: NodeJS.ProcessEnv, origin: string): Promise<ChildProcess> {
  const child = spawn('java', ['-Xmx256m', '-cp', classPath, 'Lro'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const lines = createInterface({ input: child.stdout });
  const ended = once(child, 'exit').then(() => {
    throw new Error('java-lro ended before it listened');
  });
  await Promise.race([once(lines, 'line'), ended]);
  ended.catch(() => undefined);
  const made = await fetch(`${origin}/v1/${PARENT}/databases`, {
    method: 'POST',
    body: JSON.stringify({ createStatement: 'CREATE DATABASE `d1`' }),
  });
  if (!made.ok) throw new Error(`java-lro made no database: ${await made.text()}`);
  return child;
}
