// Owns UNRESOLVED: how an operation comes to be held, looks again, and is released.
// Must never end an operation; only evidence or an operator does.

import { LIMITS } from './limits.js';
import { backOffMs, clip, isAbsenceProved, unsettledLegs } from './policy.js';
import type { Hold, HoldReason, ToolOperation } from './record.js';

/** Looking again can help only where there is something to look at. */
const RECHECKABLE: readonly HoldReason[] = [
  'handle-lost',
  'cancel-never-settled',
  'wait-budget',
  'protocol-violation',
  'ambiguous-submission',
  'look-up-deadline',
];

export function holdOperation(
  record: ToolOperation,
  reason: HoldReason,
  at: number,
  evidence: string,
): ToolOperation {
  if (record.hold) return afterRecheck(record, at, false);
  // Where a submission was never more than asked, there is nothing to look at.
  const mayHelp = RECHECKABLE.includes(reason) && (reason !== 'protocol-violation' || record.remoteReference);
  const nextRecheckAt = mayHelp ? at + recheckGapMs(record) : null;
  const hold: Hold = {
    reason,
    sinceAt: at,
    evidence: clip(evidence, LIMITS.evidenceChars),
    rechecks: 0,
    nextRecheckAt,
  };
  return { ...record, hold };
}

function recheckGapMs({ policy }: ToolOperation): number {
  return policy?.recheckGapMs ?? LIMITS.recheckGapMs;
}

export function releaseHold(record: ToolOperation, at: number): ToolOperation {
  if (!record.hold) return record;
  return { ...record, hold: null, heldMs: record.heldMs + Math.max(0, at - record.hold.sinceAt) };
}

/**
 * A held operation whose remote work we can name, or that surely has none, leaves its hold to be cancelled. What a store has
 * forgotten is never worked on again.
 */
export function mayLeaveToCancel(record: ToolOperation): boolean {
  const hasNone = !record.hasForgotten && unsettledLegs(record.submissionLegs).length === 0;
  return (record.remoteReference !== null || hasNone) && record.hold?.reason !== 'ledger-behind';
}

/**
 * A cancel that is asked for again is sent again only where nobody delivers or watches the one before: while held. Not over
 * an operator's word, whose end is being written.
 */
export function mayAskAgain(record: ToolOperation): boolean {
  if (!record.hold || record.operator || record.ledgerBehind) return false;
  return record.remoteReference !== null && mayLeaveToCancel(record);
}

/** A look taken while held: news of an end or proof by key releases the hold, anything else waits for the next look. */
export function afterRecheck(record: ToolOperation, at: number, sawSomething: boolean): ToolOperation {
  const hold = record.hold;
  if (!hold) return record;
  const isNews =
    sawSomething &&
    (record.terminalObservation !== null || hold.reason === 'handle-lost' || isProvedAbsent(record));
  if (isNews) return releaseHold(record, at);
  const rechecks = hold.rechecks + 1;
  const gapMs = backOffMs(recheckGapMs(record), LIMITS.recheckCeilingMs, rechecks + 1);
  return { ...record, hold: { ...hold, rechecks, nextRecheckAt: at + gapMs } };
}

/** Then the same key may be sent again; not over an operator's word, which has decided the end already. */
function isProvedAbsent(record: ToolOperation): boolean {
  const absent = { legs: record.submissionLegs, provedAbsentAtLeg: record.provedAbsentAtLeg };
  const mayKnow = !record.remoteReference && !record.hasForgotten && !record.operator;
  return mayKnow && isAbsenceProved(absent);
}
