// Owns how the scripts here run a program and wait: its output is kept, and shown where it fails.

import { spawn } from 'node:child_process';

/** A native module compiles in 76 s on a free core, in 435 s at a load of 14: what takes longer hangs, ends with SIGTERM, fails. */
const TIMEOUT_MS = 600_000;

/**
 * @returns what it printed; `stdout` is what was piped
 * @throws Error with all its output where it ends otherwise than with 0, or where it cannot be started
 */
export async function runProgram(file, args, options = {}) {
  const ended = await tryProgram(file, args, options);
  if (ended.code === 0) return ended.stdout;
  throw new Error(`${[file, ...args].join(' ')} ended with ${ended.code}\n${ended.stdout}${ended.stderr}`);
}

/** As `runProgram`, for callers that read the exit code themselves. */
export function tryProgram(file, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: TIMEOUT_MS, ...options });
    const heard = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) {
      child[stream]?.setEncoding('utf8').on('data', (chunk) => (heard[stream] += chunk));
    }
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code: code ?? signal, ...heard }));
  });
}
