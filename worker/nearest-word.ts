// Owns finding the word that somebody meant. Must never be used to accept a wrong word, only to name the right one.

import { editDistance } from '../primitives/edit-distance.js';

/** The word with the fewest edits from `typed` (the first of equals); letters' case counts for nothing. */
export function nearestWord(typed: string, words: readonly string[]): string | undefined {
  return words.toSorted((a, b) => editDistance(typed, a) - editDistance(typed, b))[0];
}
