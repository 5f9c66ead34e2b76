// Owns how a server's Retry-After enters a fact: as an absolute time, bounded.
// Must never shorten what the server asked for, up to that bound.

import { LIMITS } from '../../operation/limits.js';

/** Empty where the server asked for nothing, so that facts without it stay as they are. */
export function notBefore(at: number, retryAfterMs: number | null): { readonly notBeforeAt?: number } {
  if (retryAfterMs === null) return {};
  return { notBeforeAt: at + Math.min(retryAfterMs, LIMITS.retryAfterCeilingMs) };
}
