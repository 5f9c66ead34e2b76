// Owns how large a reply may be that carries a result, its envelope included (bytes).
// Must never decide what becomes of one that is larger.

import { LIMITS } from '../operation/limits.js';

/** A reply that is the result. */
export function bytesWithResult(maxResultBytes: number = LIMITS.storedResultBytes): number {
  return maxResultBytes + LIMITS.wireSlackBytes;
}

/**
 * A status that may carry the result. One over the operation's own limit is read all the same, up to what any may have: then
 * the end is known, and what is refused is told by its very size.
 */
export function bytesWithStatus(maxResultBytes = 0): number {
  return bytesWithResult(Math.max(maxResultBytes, LIMITS.storedResultBytes));
}
