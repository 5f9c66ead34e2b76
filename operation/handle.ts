// Owns the classification of a lost handle: what NotFound and SessionLost come to mean.
// Must never call anything failed: a lost handle says nothing about the work.

import { afterRecheck, holdOperation } from './hold.js';
import { LIMITS } from './limits.js';
import type { ToolOperation } from './record.js';

/** DESIGN section 4, loss of the handle: expired, or several spaced reads and one fresh session, then UNKNOWN. */
export function loseHandle(record: ToolOperation, at: number, evidence: string): ToolOperation {
  if (record.terminalObservation) return record;
  if (record.hold) return afterRecheck(record, at, false);
  if (record.expiresAt !== null && at >= record.expiresAt)
    return holdOperation(record, 'expired', at, evidence);
  if (record.missedReads < LIMITS.missedReads || record.sessionsRenewed === 0) return record;
  return holdOperation(record, 'handle-lost', at, evidence);
}

/** The next look goes through a new session: several spaced reads in the old one found nothing. One stray 404 does not. */
export function needsFreshSession(record: ToolOperation): boolean {
  if (record.sessionsRenewed > 0) return false;
  return record.missedReads >= LIMITS.missedReads;
}
