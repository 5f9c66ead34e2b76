// Owns the promise that facts from outside never throw and never lead out of an end, whatever they hold.
// Must never use a fact of our own steps: those may be illegal.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apply } from '../../operation/apply.js';
import type { OutsideFact } from '../../operation/facts.js';
import { nextStep } from '../../operation/next-step.js';
import { recordIn, ROWS, startedRecord, type SampleState } from './sample-facts.js';

const states = [...(Object.keys(ROWS) as SampleState[]), null];
const text = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.constantFrom('__proto__', 'round-1', '\u0000', '💥'.repeat(400)),
);
const time = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(Number.NaN, Infinity, -Infinity, 0, -1, 1e300),
);

const outsideFact: fc.Arbitrary<OutsideFact> = fc.oneof(
  fc.record({ kind: fc.constant('cancelRequested' as const), at: time, reason: text, requestedBy: text }),
  fc.record({
    kind: fc.constant('replyGiven' as const),
    at: time,
    reply: fc.record({
      roundId: text,
      replyDigest: text,
      replyToken: text,
      action: fc.constantFrom('accept' as const, 'decline' as const, 'cancel' as const),
      content: fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<null>,
    }),
  }),
  fc.record({
    kind: fc.constant('operatorDecided' as const),
    at: time,
    decision: fc.constantFrom({ kind: 'close' as const }, { kind: 'neverCreated' as const }),
    evidence: text,
    decidedBy: text,
  }),
  fc.record({
    kind: fc.constantFrom('superseded' as const, 'interrupted' as const, 'timePassed' as const),
    at: time,
  }),
);

describe('facts from outside', () => {
  it('are folded in every state, in any number, with a next step after each', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...states),
        fc.array(outsideFact, { maxLength: 12 }),
        time,
        (state, facts, nowMs) => {
          let record = state ? recordIn(state) : startedRecord();
          const isOver = record.receipt !== null;
          const before = record.state;
          for (const fact of facts) {
            const folded = apply(record, fact);
            record = folded.record;
            expect(typeof folded.verdict.kind).toBe('string');
            expect(typeof nextStep(record, nowMs).kind).toBe('string');
            if (isOver) expect(record.state).toBe(before);
          }
          if (isOver)
            expect([record.waitingReplies, record.operator, record.cancelAsked]).toEqual([[], null, null]);
        },
      ),
      { numRuns: 1_500 },
    );
  });

  it('never change the record they are folded into', () => {
    const freeze = (value: unknown): void => {
      if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
      Object.freeze(value);
      Object.values(value).forEach(freeze);
    };
    fc.assert(
      fc.property(fc.constantFrom(...states), outsideFact, (state, fact) => {
        const record = state ? recordIn(state) : startedRecord();
        freeze(record);
        expect(() => apply(record, fact)).not.toThrow();
      }),
      { numRuns: 500 },
    );
  });
});
