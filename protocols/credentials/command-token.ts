// Owns a token that a program prints. Must never let its output, or what it says of its errors, go anywhere else.

import { execFile } from 'node:child_process';
import { CredentialFault } from './credential-fault.js';
import type { Token } from './token-keeper.js';

const LIMIT_MS = 30_000;
const MAX_OUTPUT_BYTES = 64 * 1024;

/**
 * Runs it once, without a shell, in the worker's own environment: it is the operator's program and may need all of it.
 * @throws CredentialFault
 */
export async function tokenOfCommand(
  server: string,
  [command = '', ...args]: readonly string[],
  lifetimeMs: number | null,
): Promise<Token> {
  const startedAt = Date.now();
  const output = await run(server, command, args);
  const value = output.trim();
  if (value === '') throw faultOf(server, 'printed nothing; its standard output must be the token');
  // A token that no header can carry: help texts, error pages, several lines.
  if (!/^[\x21-\x7e]+$/.test(value))
    throw faultOf(server, 'printed more than one word; its standard output must be the token alone');
  return { value, expiresAt: lifetimeMs === null ? null : startedAt + lifetimeMs };
}

function run(server: string, command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { timeout: LIMIT_MS, maxBuffer: MAX_OUTPUT_BYTES, windowsHide: true } as const;
    const child = execFile(command, args, options, (error, stdout) => {
      if (!error) return resolve(stdout);
      reject(faultOf(server, endOf(error)));
    });
    child.stdin?.end();
  });
}

function endOf(error: Error & { code?: unknown; signal?: unknown; killed?: unknown }): string {
  const { code, signal, killed } = error;
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER')
    return `printed more than ${MAX_OUTPUT_BYTES} bytes; its standard output must be the token alone`;
  if (killed === true) return `did not end within ${LIMIT_MS / 1000} s`;
  if (typeof code === 'string') return `could not be run (${code}); check its first word`;
  const end = typeof signal === 'string' ? `signal ${signal}` : `exit code ${String(code)}`;
  return `ended with ${end}; run it by hand to see why`;
}

function faultOf(server: string, what: string): CredentialFault {
  return new CredentialFault(`the program of "auth.command" of ${server} ${what}`);
}
