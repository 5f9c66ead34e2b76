#!/usr/bin/env node
// Owns the end of the process: what a command came to becomes its exit code and, where it went wrong, one sentence.
// Must never show a stack trace for what a person can mend.

import { endingOf } from './ending.js';
import { EXIT_CODES } from './exit-codes.js';
import { buildProgram } from './program/build-program.js';
import { printable } from './printable.js';

async function main(): Promise<void> {
  // The reader of a pipe may leave, a terminal may be closed: no reason to crash.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  let exitCode: number = EXIT_CODES.completed;
  try {
    await buildProgram((reported) => (exitCode = reported)).parseAsync();
  } catch (error) {
    const ending = endingOf(error);
    exitCode = ending.exitCode;
    if (ending.sentence !== null) process.stderr.write(`${printable(ending.sentence)}\n`);
    if (process.env['DTC_DEBUG'] === '1') console.error(error);
  }
  // What was written may still be on its way into a pipe; and a connection that cannot be closed must not hold us.
  await Promise.all([process.stdout, process.stderr].map((stream) => flushed(stream)));
  process.exit(exitCode);
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => resolve());
  });
}

await main();
