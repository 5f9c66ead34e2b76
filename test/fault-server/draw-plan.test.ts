// The plan that a seed stands for: the same for ever, known to the server, and as often what the distribution says.

import { expect, test } from 'vitest';
import { type DrawnPlan, drawPlan, WAYS } from './draw-plan.js';
import { readPlan } from './plan.js';

const SEEDS = 4_000;
const drawn: readonly DrawnPlan[] = Array.from({ length: SEEDS }, (_, seed) => drawPlan(seed));
const share = (fits: (plan: DrawnPlan) => boolean): number => (100 * drawn.filter(fits).length) / SEEDS;
const list = (plan: DrawnPlan, field: string): readonly string[] => plan.plan[field] as readonly string[];

test('a seed is a plan for ever', () => {
  expect(drawPlan(1)).toEqual(drawPlan(1));
  expect(new Set(drawn.map(({ plan }) => JSON.stringify(plan))).size).toBeGreaterThan(SEEDS * 0.95);
  expect(drawPlan(1).plan).toMatchInlineSnapshot(`
    {
      "answers": [],
      "cancel": "ignore",
      "cancelReply": [],
      "create": [
        "empty-result",
        "reorder",
      ],
      "deduplicate": true,
      "foreignQuestion": false,
      "heldAnswerReads": 1,
      "lagReads": 0,
      "lists": [
        "lose",
      ],
      "outcome": "protocolError",
      "pollIntervals": [
        1500,
        null,
      ],
      "polls": [
        "delay:600",
        "error:-32603",
        "reset",
        "reorder",
      ],
      "questionReplays": 0,
      "questions": 1,
      "result": [
        "delay:600",
        "error:-32603",
      ],
      "staleReads": 2,
    }
  `);
});

test('every drawn plan is one that the server takes, and reading its seed gives it', () => {
  for (const [seed, { plan }] of drawn.entries()) expect(readPlan({ seed })).toEqual(readPlan(plan));
});

test('the shares are those of the distribution', () => {
  expect(share(({ plan }) => plan['outcome'] === 'completed')).toBeCloseTo(80, -1);
  expect(share((plan) => list(plan, 'create').length === 0)).toBeGreaterThan(50);
  expect(share((plan) => list(plan, 'create').length > 0)).toBeGreaterThan(40);
  expect(share(({ plan }) => 'sessionGone' in plan)).toBeCloseTo(12, -1);
  expect(share(({ plan }) => 'ttlMs' in plan)).toBeGreaterThan(2);
  expect(share(({ plan }) => 'questions' in plan)).toBeGreaterThan(15);
  for (const word of ['lose', 'reset', 'duplicate', 'reorder', 'deep-json', '429:1']) {
    expect(share((plan) => list(plan, 'polls').includes(word))).toBeGreaterThan(0.5);
  }
});

test('no drawn plan says "unknown" or breaks the contract three times: it would be held with no end allowed', () => {
  const misses = ['error:-32602', 'wrong-types', 'foreign-task', 'empty-result', 'deep-json'];
  for (const { plan } of drawn) {
    const words = plan['polls'] as readonly string[];
    const missed = words.filter((word) => misses.includes(word)).length;
    expect(missed + Number(plan['lagReads'])).toBeLessThanOrEqual(2);
  }
});

test.each([
  ['a keyed call with a lost create reply must be accepted, run once', 'keyed', ['completed'], [1, 1]],
  ['one that is found in its session too', 'session-list', ['completed'], [1, 1]],
  ['one that may be repeated runs once more', 'repeatable', ['completed'], [2, 2]],
  ['one that may not is held', 'at-most-once', ['held'], [1, 1]],
] as const)('%s', (_, way, ends, executions) => {
  const plain = drawn.find(
    (plan) =>
      list(plan, 'create').join() === 'lose' &&
      plan.plan['outcome'] === 'completed' &&
      !list(plan, 'result').some((word) => word === 'lost' || word === 'gone') &&
      !('ttlMs' in plan.plan || 'sessionGone' in plan.plan),
  );
  expect(plain?.allowed[way]).toEqual({ ends, executions });
});

test('what was never made is held where only a list could find it, and nothing ran', () => {
  const unmade = drawn.filter((plan) => list(plan, 'create')[0] === 'reset');
  expect(unmade.length).toBeGreaterThan(10);
  for (const { allowed } of unmade) {
    expect(allowed['session-list']).toEqual({ ends: ['held'], executions: [0, 0] });
    expect(allowed['keyed'].executions).toEqual([1, 1]);
  }
});

test('every way has an allowed end, and only a list, a session or a loss for ever allows a hold to a keyed call', () => {
  for (const plan of drawn) {
    for (const way of WAYS) expect(plan.allowed[way].ends.length).toBeGreaterThan(0);
    const isHoldable = plan.allowed.keyed.ends.includes('held');
    const result = list(plan, 'result');
    const hasReason =
      'ttlMs' in plan.plan ||
      'sessionGone' in plan.plan ||
      list(plan, 'create').includes('foreign-task') ||
      result.includes('lost') ||
      result.includes('gone');
    if (isHoldable) expect(hasReason).toBe(true);
  }
});
