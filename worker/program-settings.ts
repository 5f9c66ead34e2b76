// Owns reading a server that is a program: `command`, `args`, `env`, `cwd`, and which of their values are secrets.
// Must never put a value into a mistake or a note.

import type { ProgramSettings } from '../protocols/adapter.js';
import {
  type JsonEntries,
  type Keys,
  mistake,
  pathNote,
  type Reading,
  readText,
  readTexts,
} from './reading.js';

export interface ReadProgram {
  readonly program: ProgramSettings;
  readonly secrets: readonly string[];
}

export function readProgram(keys: Keys, entry: JsonEntries, reading: Reading): ReadProgram {
  const { args: givenArgs, cwd: givenCwd } = entry;
  const command = readText([...keys, 'command'], entry['command'], reading);
  if (entry['command'] === '') mistake(reading, [...keys, 'command'], 'must name a program');
  const list: readonly unknown[] = Array.isArray(givenArgs) ? givenArgs : [];
  if (givenArgs !== undefined && !Array.isArray(givenArgs))
    mistake(reading, [...keys, 'args'], 'must be a list of strings');
  const args = list.map((arg, index) => readText([...keys, 'args', index], arg, reading));
  const env = readTexts([...keys, 'env'], entry['env'], reading);
  const cwd = givenCwd === undefined ? undefined : readText([...keys, 'cwd'], givenCwd, reading);
  if (entry['headers'] !== undefined)
    pathNote(
      reading,
      [...keys, 'headers'],
      'is ignored beside "command"; give a program what it needs in "env".',
    );
  const secretArgs = args.filter((arg, index) => arg !== list[index]);
  const givenEnv = entry['env'] as JsonEntries | undefined;
  const secretEnv = Object.entries(env)
    .filter(([name, value]) => value !== givenEnv?.[name] || !isPlainWord(value))
    .flatMap(([, value]) => [value, ...linesOf(value)]);
  return {
    program: { command, args, env, ...(cwd === undefined ? {} : { cwd }) },
    secrets: [...secretArgs, ...secretEnv],
  };
}

/** `production`, written in the file itself: to black it out would only make texts unreadable. */
function isPlainWord(value: string): boolean {
  return /^[a-z]*$/i.test(value);
}

/** Keys have many lines, and programs print one of them. */
function linesOf(value: string): readonly string[] {
  return value.includes('\n') ? value.split('\n').map((line) => line.trim()) : [];
}
