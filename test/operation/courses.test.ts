// Owns the random courses: many seeds, the judge after every fact, and a liveness phase after the faults have stopped.
// Must never retry or skip a seed; a failure prints it.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endsAfterHealing, EVERYTHING, faultyCourse } from './courses.js';
import { Course } from './drive.js';

const FIXED_COURSES = Number(process.env['OPERATION_FIXED_COURSES'] ?? 20_000);
/** Random courses on top of the fixed seeds, other ones in every run. */
const RANDOM_COURSES = Number(process.env['OPERATION_COURSES'] ?? 2_000);

/** For a machine that does other things besides: the courses are counted, not timed. */
const PATIENCE_MS = 300_000;

describe('random courses', { timeout: PATIENCE_MS }, () => {
  it('agree with the oracle after every fact, and end once the faults stop, for the fixed seeds', () => {
    const met = new Set<string>();
    for (let seed = 1; seed <= FIXED_COURSES; seed += 1) {
      const course = new Course(seed);
      try {
        endsAfterHealing(faultyCourse(course));
      } catch (error) {
        throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
      course.met.forEach((name) => met.add(name));
    }
    expect(FIXED_COURSES).toBeGreaterThan(0);
    // A world that no longer reaches something proves nothing about it.
    if (FIXED_COURSES >= 2_000) expect([...EVERYTHING].filter((name) => !met.has(name))).toEqual([]);
  }, 180_000);

  it('agree with the oracle for seeds nobody chose', () => {
    const isFine = (seed: number): void => endsAfterHealing(faultyCourse(new Course(seed)));
    fc.assert(fc.property(fc.integer({ min: 1_000_000, max: 0x7fffffff }), isFine), {
      numRuns: RANDOM_COURSES,
    });
  });
});
