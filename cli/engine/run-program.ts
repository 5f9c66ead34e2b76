/**
 * Owns: running another program to its end with a time limit, and finding it on PATH. Must never use a shell:
 * paths come from the environment.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

export interface ProgramEnd {
  /** The program ended by itself with exit code 0. */
  readonly ok: boolean;
  /** Standard output and standard error, in the order they came. */
  readonly output: string;
}

/** Runs a program and collects its output. Never throws: a program that cannot be started is `ok: false`. */
export function runProgram(
  path: string,
  args: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly timeoutMs: number },
): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    const child = spawn(path, args, {
      env: options.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: options.timeoutMs,
      killSignal: 'SIGKILL',
    });
    let output = '';
    const collect = (chunk: Buffer): void => {
      output += chunk.toString('utf8');
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('error', (error) => resolve({ ok: false, output: error.message }));
    child.on('close', (exitCode, signal) => {
      if (signal !== null) output += `\nended by ${signal} (limit ${options.timeoutMs / 1000} s)`;
      resolve({ ok: exitCode === 0, output });
    });
  });
}

/** The first executable file of that name on the PATH of `env`, as a shell would find it. */
export async function findOnPath(name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    if (folder === '') continue; // An empty entry means the working directory: never run what merely lies there.
    const candidate = join(folder, name);
    if (await isExecutableFile(candidate)) return candidate;
  }
  return undefined;
}

export async function isExecutableFile(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
