// Owns reading the result that an operator gives after `resolve --result`: exact bytes, bounded before they are held.
// Must never repair or re-serialise it: its digest is of the bytes as they are.

import { createReadStream } from 'node:fs';
import { objectionToResult, OPERATOR_RESULT_BYTES } from '../client/send-word.js';
import { CommandError } from './exit-codes.js';

export interface ByteSources {
  openFile(file: string): AsyncIterable<Uint8Array>;
  openStdin(): AsyncIterable<Uint8Array>;
}

const SOURCES: ByteSources = {
  openFile: (file) => createReadStream(file),
  openStdin: () => process.stdin,
};

/** `JSON`, `@file` or `-` (standard input). @throws CommandError where it cannot be a result */
export async function readResultText(given: string, sources: ByteSources = SOURCES): Promise<string> {
  const { bytes, name } = await bytesOf(given, sources);
  const text = textOf(bytes);
  if (text === null) throw new CommandError(`${name} is not UTF-8 text`);
  const objection = objectionToResult(text);
  if (objection !== null) throw new CommandError(`${name}: ${objection}`);
  return text;
}

async function bytesOf(given: string, sources: ByteSources): Promise<{ bytes: Uint8Array; name: string }> {
  if (given === '-') {
    const name = 'standard input (--result -)';
    return { bytes: await readBounded(sources.openStdin(), name), name };
  }
  if (!given.startsWith('@')) return { bytes: Buffer.from(given, 'utf8'), name: '--result' };
  const name = given.slice(1);
  try {
    return { bytes: await readBounded(sources.openFile(name), name), name };
  } catch (error) {
    if (CommandError.isInstance(error)) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
    throw new CommandError(`--result ${given}: the file cannot be read (${code})`, undefined, {
      cause: error,
    });
  }
}

async function readBounded(stream: AsyncIterable<Uint8Array>, name: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of stream) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > OPERATOR_RESULT_BYTES) {
      throw new CommandError(`${name}: the result is larger than ${OPERATOR_RESULT_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Null where the bytes are not what their text would be written as: then the digest would be of something else. */
function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
