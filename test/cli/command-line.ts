// Owns running the built command line as a process of its own, and waiting for what it says.
// Must never reach into it: exit code, both output streams, the wire and the store are all that counts.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { OperationView } from '../../client/view.js';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
if (!existsSync(PROGRAM)) throw new Error('build first: npm run build');

export interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output, byte for byte. */
  readonly bytes: Buffer;
}

export interface Started {
  readonly ended: Promise<Ended>;
  readonly pid: number;
  kill(signal: NodeJS.Signals): void;
  /** What it has written until now. */
  soFar(): { readonly stdout: string; readonly stderr: string };
  /** Resolves when the text was written to either stream. */
  said(text: string): Promise<void>;
}

export interface Surroundings {
  readonly cwd: string;
  /** On top of this process' own, without the engine addresses of whoever runs the tests. */
  readonly env?: NodeJS.ProcessEnv;
  /** Shell words before the command: limits and traps that it inherits. */
  readonly shell?: string;
}

export function startCommand(
  { cwd, env: extra = {}, shell }: Surroundings,
  ...args: readonly string[]
): Started {
  // These tests are about an engine of the command's own.
  const { TEMPORAL_ADDRESS: _a, TEMPORAL_PROFILE: _p, TEMPORAL_CONFIG_FILE: _c, ...env } = process.env;
  const words = [process.execPath, PROGRAM, ...args];
  const [program = '', ...rest] =
    shell === undefined ? words : ['sh', '-c', `${shell}; exec "$@"`, 'sh', ...words];
  const child = spawn(program, rest, {
    cwd,
    env: { ...env, ...extra },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // A test that failed in the middle must leave no command behind, nor the engine that ends with it.
  const endWithUs = (): void => void child.kill('SIGTERM');
  process.once('exit', endWithUs);
  child.once('exit', () => process.off('exit', endWithUs));
  let stdout = '';
  let stderr = '';
  const waiting: { text: string; seen: () => void }[] = [];
  const tell = (): void => {
    for (const { text, seen } of waiting) if (`${stdout}${stderr}`.includes(text)) seen();
  };
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    stdout += chunk.toString();
    tell();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
    tell();
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (exitCode) => resolve({ exitCode, stdout, stderr, bytes: Buffer.concat(chunks) }));
  });
  return {
    ended,
    pid: child.pid ?? -1,
    kill: (signal) => child.kill(signal),
    soFar: () => ({ stdout, stderr }),
    said: async (text) => {
      const seen = new Promise<void>((resolve) => waiting.push({ text, seen: resolve }));
      tell();
      const early = ended.then(() => {
        throw new Error(`it ended without saying "${text}": ${stdout}${stderr}`);
      });
      await Promise.race([seen, early]);
    },
  };
}

export function viewOf({ stdout, stderr }: Ended): OperationView {
  expect(stdout, stderr).toMatch(/^\{/);
  return JSON.parse(stdout) as OperationView;
}
