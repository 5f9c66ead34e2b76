// Owns reading what a person wrote after `call` into a request. Must never start anything.

import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import type { JsonObject, JsonValue } from '../operation/json.js';
import type { InputAction } from '../operation/row.js';
import { DURATION_FORMS, parseDurationMs } from '../worker/durations.js';
import { CommandError } from './exit-codes.js';

/** A reply prepared on the command line. */
export interface PreparedReply {
  readonly action: InputAction;
  readonly content: JsonValue;
}

export interface ArgumentSources {
  readFile(file: string): Promise<string>;
  readStdin(): Promise<string>;
}

const SOURCES: ArgumentSources = {
  readFile: (file) => readFile(file, 'utf8'),
  readStdin: () => readAll(process.stdin),
};

/** `JSON`, `@file` or `-` (standard input). @throws CommandError */
export async function readArguments(given: string, sources: ArgumentSources = SOURCES): Promise<JsonObject> {
  const { text, name } = await readArgumentsText('--args', given, sources);
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    const hint =
      /at position \d+/.exec(error instanceof Error ? error.message : '')?.[0] ?? 'it ends too early';
    throw new CommandError(`${name} is not valid JSON (${hint})`, undefined, { cause: error });
  }
  if (!isJsonObject(value))
    throw new CommandError(`${name} must be a JSON object, for example '{"topic":"x"}'`);
  return value;
}

/** The text behind `JSON`, `@file` or `-`, and what to call it in a sentence. @throws CommandError */
export async function readArgumentsText(
  flag: string,
  given: string,
  sources: ArgumentSources = SOURCES,
): Promise<{ readonly text: string; readonly name: string }> {
  if (given === '-') return { text: await sources.readStdin(), name: `standard input (${flag} -)` };
  if (!given.startsWith('@')) return { text: given, name: flag };
  const file = given.slice(1);
  try {
    return { text: await sources.readFile(file), name: file };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
    throw new CommandError(`${flag} ${given}: the file cannot be read (${code})`, undefined, {
      cause: error,
    });
  }
}

/** An object accepts with that content, `true` accepts a link, `false` declines. @throws CommandError */
export function readAnswer(given: string, name = '--answer'): PreparedReply {
  let value: JsonValue;
  try {
    value = JSON.parse(given) as JsonValue;
  } catch (error) {
    throw new CommandError(`${name} is not valid JSON`, undefined, { cause: error });
  }
  if (value === true) return { action: 'accept', content: null };
  if (value === false) return { action: 'decline', content: null };
  if (isJsonObject(value)) return { action: 'accept', content: value };
  throw new CommandError(
    `${name} must be a JSON object (the reply), true (accept a link) or false (decline)`,
  );
}

/** @throws CommandError */
export function readDurationMs(flag: string, given: string): number {
  const durationMs = parseDurationMs(/^\d+$/.test(given) ? Number(given) : given);
  if (durationMs === null) throw new CommandError(`${flag} must be a duration: ${DURATION_FORMS}`);
  return durationMs;
}

function isJsonObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
