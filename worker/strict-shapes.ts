// Owns the forms that every setting of ours is made of: objects without unknown keys, durations, names.
// Must never let a misspelt key pass: it would silently be no setting.

import { z } from 'zod';
import { listOf } from './configuration-error.js';
import { DURATION_FORMS, parseDurationMs } from './durations.js';
import { nearestWord } from './nearest-word.js';

/** An object with these keys only; a stranger is told the nearest of them. */
export function strict<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const allowed = Object.keys(shape);
  return z.strictObject(shape, {
    error(issue) {
      if (issue.code !== 'unrecognized_keys') return `must be an object with the keys ${listOf(allowed)}`;
      const strangers = issue['keys'] as readonly string[];
      const named = strangers.map(
        (key) => `${JSON.stringify(key)} (nearest: "${nearestWord(key, allowed)}")`,
      );
      return `unknown key ${named.join(', ')}; allowed: ${listOf(allowed)}`;
    },
  });
}

export const duration = z.unknown().transform((value, context) => {
  const durationMs = parseDurationMs(value);
  if (durationMs !== null) return durationMs;
  context.addIssue({ code: 'custom', message: `must be a duration: ${DURATION_FORMS}` });
  return z.NEVER;
});

export function oneOf<const Words extends readonly string[]>(words: Words) {
  return z.enum(words, { error: `must be ${listOf(words)}` });
}

export function keyName(what: string) {
  const error = `must be ${what}`;
  return z.string({ error }).min(1, { error });
}
