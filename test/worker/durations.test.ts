/** Owns: the spelling of durations. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDurationMs } from '../../worker/durations.js';

const DAY_MS = 86_400_000;
const UNITS = [
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', DAY_MS],
] as const;
const GRAMMAR = /^[0-9]+(ms|s|m|h|d)$/;

describe('a duration', () => {
  it('is its count times its unit, up to a year', () => {
    fc.assert(
      fc.property(fc.constantFrom(...UNITS), fc.nat({ max: 400 * DAY_MS }), ([unit, unitMs], count) => {
        const durationMs = count * unitMs;
        const isInRange = durationMs > 0 && durationMs <= 365 * DAY_MS;
        expect(parseDurationMs(`${count}${unit}`)).toBe(isInRange ? durationMs : null);
      }),
      {
        examples: [
          [['s', 1_000], 0],
          [['d', DAY_MS], 365],
          [['d', DAY_MS], 366],
        ],
      },
    );
  });

  it('is the same in every unit that can spell it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 365 }), (days) => {
        for (const [unit, unitMs] of UNITS) {
          expect(parseDurationMs(`${(days * DAY_MS) / unitMs}${unit}`)).toBe(days * DAY_MS);
        }
      }),
    );
  });

  it('may be a whole number of ms', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer(), fc.double()), (value) => {
        const isDuration = Number.isInteger(value) && value > 0 && value <= 365 * DAY_MS;
        expect(parseDurationMs(value)).toBe(isDuration ? value : null);
      }),
      { examples: [[0], [-1], [1], [1.5], [365 * DAY_MS], [365 * DAY_MS + 1], [Number.NaN], [Infinity]] },
    );
  });

  it('is nothing that does not have the form count and unit', () => {
    const nearMisses = fc
      .array(fc.constantFrom('1', '0', 'm', 's', 'h', 'd', ' ', '.', '-', '+', 'e'), { maxLength: 6 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.oneof(nearMisses, fc.string()), (text) => {
        fc.pre(!GRAMMAR.test(text));
        expect(parseDurationMs(text)).toBeNull();
      }),
      {
        examples: [
          '',
          '1',
          '1 s',
          ' 1s',
          '1s ',
          '1s\n',
          '1S',
          '1.5h',
          '-1s',
          '+1s',
          '1e3s',
          '1h30m',
          '1w',
        ].map((text): [string] => [text]),
      },
    );
  });

  it('is no other kind of value', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        fc.pre(typeof value !== 'string' && typeof value !== 'number');
        expect(parseDurationMs(value)).toBeNull();
      }),
    );
  });
});
