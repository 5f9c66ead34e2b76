// Owns the systematic exploration: small scripts of one operation, a worker lost or late at every single point of them.
// Must never sample: what is too much for one test run is bounded by a setting, and the number of schedules is printed.
//
// By hand: EXPLORER_PAIRS=plain tries two blows of every manner on the plain way (some 5,000 schedules, a minute),
// EXPLORER_PAIRS=all on every way (an hour): npx vitest run test/simulator/explorer.test.ts

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { SEAMS } from '../../operation/names.js';
import { MANNERS, newWalk, type Walk, walkPairs, walkSingles } from './explore.js';
import { type MemoryStore, openMemoryStore } from './memory-store.js';
import type { Blow } from './script.js';
import { ENDS, PLAIN, SCRIPTS } from './scripts.js';

vi.mock('@temporalio/workflow', () => import('./fake-workflow.js'));
vi.mock('@temporalio/activity', () => import('./fake-activity.js'));

const PAIRS = process.env['EXPLORER_PAIRS'];
/** The ways on which two blows are tried, and the manners of both: by default workers that are killed twice. */
const TWICE = PAIRS === 'all' ? SCRIPTS : [PLAIN];
const TWICE_SO: readonly Blow[] = PAIRS === undefined ? [{ kind: 'kill' }] : Object.values(MANNERS);

let memory: MemoryStore;
const walk: Walk = newWalk();

beforeAll(async () => {
  memory = await openMemoryStore(() => Date.now());
});
afterAll(() => memory.close());

function unlessWrong({ wrong }: Walk): void {
  if (wrong.length > 0) throw new Error(`${wrong.length} schedules broke a promise; the first:\n${wrong[0]}`);
}

describe('a worker that is lost or late at one point', () => {
  it.each(SCRIPTS)('keeps every promise: $name', { timeout: 600_000 }, async (script) => {
    const own = newWalk();
    await walkSingles(script, memory, own);
    unlessWrong(own);
    // A way that ends otherwise than it is meant to is not the way that is explored.
    expect(own.undisturbed).toBe(ENDS[script.name] ?? 'completed');
    walk.schedules += own.schedules;
    for (const [manner, names] of own.struck) {
      walk.struck.set(manner, new Set([...(walk.struck.get(manner) ?? []), ...names]));
    }
    own.outcomes.forEach((outcome) => walk.outcomes.add(outcome));
  });

  it('was so at every named seam, in every manner, on the way to every outcome', () => {
    console.log(`explorer: ${walk.schedules} schedules with one blow`);
    for (const manner of Object.keys(MANNERS)) {
      const struck = walk.struck.get(manner) ?? new Set();
      console.log(
        `explorer: ${manner} at ${struck.size} points, ${SEAMS.filter((s) => struck.has(s)).length} seams`,
      );
      expect(SEAMS.filter((seam) => !struck.has(seam))).toEqual([]);
    }
    expect([...walk.outcomes].sort()).toEqual(['cancelled', 'completed', 'failed', 'rejected', 'unresolved']);
  });
});

describe('workers that are lost or late at two points', () => {
  it.each(TWICE)('keep every promise: $name', { timeout: 3_600_000 }, async (script) => {
    const pairs = newWalk();
    await walkPairs(script, memory, pairs, TWICE_SO);
    console.log(`explorer: ${script.name}: ${pairs.schedules} schedules with two blows`);
    unlessWrong(pairs);
    expect(pairs.schedules).toBeGreaterThan(400);
  });
});
