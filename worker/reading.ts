// Owns reading single values of `tool-servers.json`: texts with references to the environment, headers, URLs.
// Must never put a value into a mistake: any of them may be a secret, or have been expanded from one.

import { validateHeaderName, validateHeaderValue } from 'node:http';
import { LIMITS } from '../operation/limits.js';
import { type Mistake, pathOf } from './configuration-error.js';
import { type Environment, expandReferences } from './environment-references.js';

export type Keys = readonly PropertyKey[];
export type JsonEntries = Readonly<Record<string, unknown>>;

export interface Reading {
  readonly env: Environment;
  readonly mistakes: Mistake[];
  readonly notes: string[];
}

export function mistake(reading: Reading, keys: Keys, message: string): void {
  reading.mistakes.push({ path: pathOf(keys), message });
}

export function pathNote(reading: Reading, keys: Keys, sentence: string): void {
  reading.notes.push(`${pathOf(keys)}: ${sentence}`);
}

/** The name is the fairness key of the poll queue, and the engine bounds that. */
export function checkServerName(keys: Keys, name: string, reading: Reading): void {
  const { fairnessKeyBytes } = LIMITS;
  if (name !== '' && Buffer.byteLength(name) <= fairnessKeyBytes) return;
  mistake(reading, keys, `a server's name must have 1 to ${fairnessKeyBytes} bytes`);
}

export function readUrl(keys: Keys, given: unknown, reading: Reading): string {
  const before = reading.mistakes.length;
  const text = readText(keys, given, reading);
  if (reading.mistakes.length > before) return '';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    mistake(reading, keys, 'must be an http:// or https:// URL');
  } else if (url.username !== '' || url.password !== '') {
    // URLs are shown to people; headers never are.
    mistake(reading, keys, 'must not carry a user name or password; put them into "headers"');
  }
  return text;
}

export function readTexts(
  keys: Keys,
  given: unknown,
  reading: Reading,
  check: (name: string, text: string) => string | null = () => null,
): Readonly<Record<string, string>> {
  if (given === undefined) return {};
  if (!isEntries(given)) {
    mistake(reading, keys, 'must be an object whose values are strings');
    return {};
  }
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const text = readText([...keys, name], value, reading);
      const wrong = check(name, text);
      if (wrong !== null) mistake(reading, [...keys, name], wrong);
      return [name, text];
    }),
  );
}

export function readText(keys: Keys, given: unknown, reading: Reading): string {
  if (typeof given !== 'string') {
    mistake(reading, keys, 'must be a string');
    return '';
  }
  const expansion = expandReferences(given, reading.env);
  if (expansion.kind === 'expanded') return expansion.text;
  mistake(reading, keys, expansion.message);
  return '';
}

/** Found here, it names its path; found by the HTTP client, it would break each request instead. */
export function checkHeader(name: string, text: string): string | null {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, text);
    return null;
  } catch {
    return 'is not a header that HTTP can carry: the name must be a token, the value visible Latin characters on one line';
  }
}

export function isEntries(value: unknown): value is JsonEntries {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
