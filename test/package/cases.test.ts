// The table of cases against the tests: each number is found, as a number, in every file that the table names for it.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const TABLE = readFileSync(new URL('../../docs/CASES.md', import.meta.url), 'utf8');
const rows = TABLE.split('\n').flatMap((line) => {
  const [, number = '', files = ''] = /^\| ([A-Z]\d) \| ([^|]*) \|/.exec(line) ?? [];
  return number === ''
    ? []
    : [{ number, files: [...files.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '') }];
});

test('the table has rows, each number once', () => {
  const numbers = rows.map(({ number }) => number);
  expect(numbers.length).toBeGreaterThan(20);
  expect(new Set(numbers).size).toBe(numbers.length);
});

/** Tables of many rows, and files whose every test is about one number, name it in their first lines or not at all. */
const WHOLE_FILES: readonly string[] = ['cancel-matrix', 'kills', 'deploys', 'test/cli/replay.test.ts'];

test.each(rows.flatMap(({ number, files }) => files.map((file) => [number, file] as const)))(
  '%s is named in %s',
  (number, file) => {
    const path = file.endsWith('.ts') ? `../../${file}` : `../integration/${file}.test.ts`;
    const text = readFileSync(new URL(path, import.meta.url), 'utf8');
    if (WHOLE_FILES.includes(file)) return;
    expect(text).toMatch(new RegExp(`['"\`](?:[A-Z]\\d, )*${number}(?:, [A-Z]\\d)*: `));
  },
);
