// The tables of specifications against the tests: each clause names tests that are there by that name, or says why none.
// What ran and passed in one run is the last step of CI (.ci/counts.mjs), by the same code as the second half here.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  clausesIn,
  isWrittenIn,
  namedInCases,
  type RunReport,
  saysSomething,
  unprovedIn,
} from './named-tests.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const clauses = clausesIn(read('docs/PROTOCOLS.md'));
const named = clauses.flatMap(({ tests }) => tests);

describe('the tables', () => {
  test('have clauses, each number once', () => {
    const numbers = clauses.map(({ number }) => number);
    expect(numbers.length).toBeGreaterThan(100);
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  test('say of each clause how strong it is, and by what it is covered or why it is not', () => {
    const unclear = clauses.filter(
      ({ strength, tests, reason }) =>
        !/^(?:MUST|SHOULD|REQUIRED|RECOMMENDED)(?: NOT)?$/.test(strength) ||
        tests.length > 0 === (reason !== null),
    );
    expect(unclear.map(({ line }) => line)).toEqual([]);
  });

  test('name no test by a template that any title would fit', () => {
    expect(named.filter((name) => !saysSomething(name))).toEqual([]);
  });

  test.each(named)('$row: $file has "$text"', (name) => {
    expect(isWrittenIn(read(name.file), name)).toBe(true);
  });
});

describe('a run', () => {
  const FILE = 'test/a.test.ts';
  const TABLE = [
    '| A1 | one test | MUST | `test/a.test.ts: "says \\"no\\""` |',
    '| A2 | each of a table | SHOULD | `test/a.test.ts: "answered by %s is $kind"` |',
    '| A3 | a whole describe | MUST NOT | `test/a.test.ts: "a group"` |',
    '| A4 | nothing yet | MUST | — not spoken |',
  ].join('\n');
  const CASES = '| P1 | `kills`, `test/a.test.ts` | text |';
  const ran = (tests: Record<string, string>): RunReport => ({
    testResults: [
      {
        name: `/checkout/${FILE}`,
        assertionResults: Object.entries(tests).map(([title, status]) => ({
          ancestorTitles: title.startsWith('in a group') ? ['a group'] : [],
          title,
          status,
        })),
      },
    ],
  });
  const GOOD = {
    'says "no"': 'passed',
    'answered by a page is lost': 'passed',
    'answered by nothing is lost': 'passed',
    'in a group': 'passed',
  };
  const unproved = (tests: Record<string, string>) =>
    unprovedIn(
      ran(tests),
      clausesIn(TABLE).flatMap(({ tests: names }) => names),
    );

  test('in which every named test passed leaves nothing to say', () => {
    expect(unproved(GOOD)).toEqual([]);
  });

  test('without a named test, or in which one of its rows failed or was skipped, is told by clause', () => {
    const { 'says "no"': _, ...without } = GOOD;
    expect(unproved(without)).toEqual(['docs/PROTOCOLS.md A1: test/a.test.ts: "says "no"" did not run']);
    expect(unproved({ ...GOOD, 'answered by nothing is lost': 'failed', 'in a group': 'skipped' })).toEqual([
      'docs/PROTOCOLS.md A2: test/a.test.ts: "answered by %s is $kind": "answered by nothing is lost" is failed',
      'docs/PROTOCOLS.md A3: test/a.test.ts: "a group": "in a group" is skipped',
    ]);
  });

  test('proves a case by the tests that bear its number, and a file that is all about it as a whole', () => {
    const cases = namedInCases(CASES);
    expect(unprovedIn(ran({ 'P1, P2: polls': 'passed', 'P12: other': 'failed' }), cases)).toEqual([
      'docs/CASES.md P1: test/integration/kills.test.ts: "P1" did not run',
    ]);
    expect(unprovedIn(ran({ 'P12: other': 'passed' }), cases)).toHaveLength(2);
  });
});
