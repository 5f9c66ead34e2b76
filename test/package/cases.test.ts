// The table of cases against the tests: each number is found, as a number, in every file that the table names for it.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isWrittenIn, namedInCases } from './named-tests.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const TABLE = read('docs/CASES.md');

test('the table has rows, each number once', () => {
  const numbers = TABLE.split('\n').flatMap((line) => /^\| ([A-Z]\d) \| /.exec(line)?.[1] ?? []);
  expect(numbers.length).toBeGreaterThan(20);
  expect(new Set(numbers).size).toBe(numbers.length);
});

test.each(namedInCases(TABLE))('$row is named in $file', (named) => {
  expect(isWrittenIn(read(named.file), named)).toBe(true);
});
