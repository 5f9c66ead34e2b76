// Owns the one "not found" that says nothing: right after the creation, from a server whose reads lag behind its writes.
// Must never hide the loss of work that a look has found once, nor of work past its expiry.

import { LIMITS } from '../../operation/limits.js';
import type { RowSnapshot } from '../../operation/row.js';
import type { WireFault } from '../../protocols/adapter.js';
import type { Look } from './questions.js';

export function isCreateLag({ input, live, ports }: Look, row: RowSnapshot, fault: WireFault): boolean {
  if (fault.kind !== 'NotFound' || live.cursor.observationCount > 0) return false;
  // A look after a loss, in a session of its own or while held.
  if (input.freshSession || input.once) return false;
  const nowMs = ports.clock.nowMs();
  if (live.expiresAt !== null && nowMs >= live.expiresAt) return false;
  // An operator's word references no leg: what it named was not created just now.
  return row.legs.some(
    ({ outcome, closedAt }) => outcome === 'referenced' && nowMs < (closedAt ?? 0) + LIMITS.createLagMs,
  );
}
