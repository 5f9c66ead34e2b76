// Owns the spelling of durations in configuration and on the command line. Must never guess a unit for a string.

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const CEILING_MS = 365 * UNIT_MS.d;

/** For error texts. */
export const DURATION_FORMS =
  '"500ms", "30s", "10m", "2h", "1d" or a whole number of ms; more than 0, at most "365d"';

/** Whole ms in 1 ms … 365 days, or null where `value` is no such duration. A bare number is ms. */
export function parseDurationMs(value: unknown): number | null {
  const durationMs = typeof value === 'string' ? readDurationMs(value) : value;
  if (typeof durationMs !== 'number' || !Number.isSafeInteger(durationMs)) return null;
  return durationMs > 0 && durationMs <= CEILING_MS ? durationMs : null;
}

function readDurationMs(text: string): number | null {
  const [, count, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text) ?? [];
  return count !== undefined && isUnit(unit) ? Number(count) * UNIT_MS[unit] : null;
}

function isUnit(unit: string | undefined): unit is keyof typeof UNIT_MS {
  return unit !== undefined && Object.hasOwn(UNIT_MS, unit);
}
