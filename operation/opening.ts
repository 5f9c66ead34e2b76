// Owns what the opening of a row means to its run: adopted, never claimed, or older than the run (a restored backup).
// Must never let a run go on with a row that has forgotten what the run has seen.

import { deriveState } from './derive-state.js';
import type { StepFact } from './facts.js';
import { isBehind } from './fold-row.js';
import { releaseHold } from './hold.js';
import { LIMITS } from './limits.js';
import { backOffMs, clip } from './policy.js';
import type { ToolOperation } from './record.js';

/** Nothing is sent while the row is behind; it is opened again, ever more slowly, until it is not. */
export function flagLedger(
  record: ToolOperation,
  at: number,
  evidence: string,
  isOpening: boolean,
): ToolOperation {
  if (record.receipt) return record;
  const rechecks = (record.ledgerBehind?.rechecks ?? -1) + 1;
  const nextRecheckAt = at + backOffMs(LIMITS.ledgerGapMs, LIMITS.recheckCeilingMs, rechecks + 1);
  const ledgerBehind = {
    at: record.ledgerBehind?.at ?? at,
    evidence: clip(evidence, LIMITS.evidenceChars),
    rechecks,
    nextRecheckAt,
  };
  // A word about the hold was not about this; one about the ledger stays.
  const flagged = { ...record, ledgerBehind, reopen: record.reopen && !isOpening };
  return { ...flagged, state: deriveState(flagged) };
}

/** Whatever stands in the store now: the row is opened again, and compared, before the next step. */
export function hearOfBackup(record: ToolOperation): ToolOperation {
  // Not opened yet, or ended: nothing of this run can be missing there, or nothing is left to do.
  if (record.policy === null || record.receipt) return record;
  return { ...record, reopen: true, executionEpoch: 0 };
}

/** `record` has the row folded in; `before` is what the run knew without it. */
export function foldOpening(
  record: ToolOperation,
  before: ToolOperation,
  fact: Extract<StepFact, { kind: 'opened' }>,
): ToolOperation {
  const { operator, ledgerBehind } = before;
  const open = { ...record, ledgerBehind: null, reopen: false, lastRunTerminated: false };
  // What was given back makes the row whole again, but it is not the row that the run had.
  const isBackup = record.hasForgotten || isBehind(before, fact.row, true) !== null;
  if (operator?.isAboutLedger && ledgerBehind && isBackup) {
    // Never back to work: the row has forgotten what was sent. Only the operator's end is left.
    const { at: sinceAt, evidence } = ledgerBehind;
    return {
      ...releaseHold(open, fact.at),
      operator,
      hold: { reason: 'ledger-behind', sinceAt, evidence, rechecks: 0, nextRecheckAt: null },
    };
  }
  // The ledger has caught up, and overtakes a word that was about its being behind.
  const heard = operator?.isAboutLedger ? { ...open, operator: null } : open;
  return before.lastRunTerminated ? cancelUnsent(heard, fact.at) : heard;
}

/** A person terminated the run before anything was claimed: that counts as a cancel, and nothing is ever sent. */
function cancelUnsent(record: ToolOperation, at: number): ToolOperation {
  const isUntouched =
    record.submissionLegs.length === 0 &&
    !record.hasForgotten &&
    !record.remoteReference &&
    !record.rejection;
  if (!isUntouched || record.terminalObservation || record.cancelAsked || record.cancelGeneration > 0)
    return record;
  return { ...record, cancelAsked: { reason: 'terminated', requestedBy: 'engine', at } };
}
