// Owns the one reading of a record's state, and which moves between states are a legal course.
// Must never change a record.

import type { OperationState } from './names.js';
import { isAbsenceProved, openRounds, unsettledLegs } from './policy.js';
import type { ToolOperation } from './record.js';

/** The state follows from the facts; it is never set by hand. The order of the questions is the order of authority. */
export function deriveState(record: Omit<ToolOperation, 'state'>): OperationState {
  if (record.receipt) return record.receipt.state;
  if (record.ledgerBehind) return 'SUBMISSION_UNKNOWN';
  if (record.hold) return 'UNRESOLVED';
  if (record.terminalObservation) return endingState(record);
  if (record.remoteReference) {
    if (record.cancelAsked || record.cancelGeneration > 0) return 'CANCEL_REQUESTED';
    return openRounds(record.rounds).length > 0 ? 'INPUT_REQUIRED' : 'WORKING';
  }
  if (record.hasForgotten) return 'SUBMISSION_UNKNOWN';
  if (isAskedBeforeWork(record)) return 'INPUT_REQUIRED';
  if (unsettledLegs(record.submissionLegs).length === 0) return 'SUBMITTING';
  return isAbsenceProved({ ...record, legs: record.submissionLegs })
    ? 'NOT_FOUND_SAFE'
    : 'SUBMISSION_UNKNOWN';
}

/** The submission came back with questions instead of work: it goes on with the replies, unless somebody has cancelled. */
export function isAskedBeforeWork(record: Omit<ToolOperation, 'state'>): boolean {
  // A row from before the submission knows nothing of where it stands now.
  if (record.remoteReference || record.hasForgotten) return false;
  const isCancelled = record.cancelAsked !== null || record.cancelGeneration > 0;
  return !isCancelled && openRounds(record.rounds).length > 0;
}

function endingState(record: Omit<ToolOperation, 'state'>): OperationState {
  if (record.terminalObservation?.remoteStatus === 'cancelled') return 'TERMINAL_OBSERVED';
  return record.result || record.fetches > 0 ? 'FETCHING_RESULT' : 'TERMINAL_OBSERVED';
}

/** DESIGN section 4, plus `stay`. UNRESOLVED and LedgerBehind (SUBMISSION_UNKNOWN) are open to every state that is not an end. */
export const TRANSITIONS: Readonly<Record<OperationState, readonly OperationState[]>> = {
  SUBMITTING: [
    'WORKING',
    'INPUT_REQUIRED',
    'TERMINAL_OBSERVED',
    'REJECTED',
    'SUBMISSION_UNKNOWN',
    'CANCELLED_ACCEPTED',
    'UNRESOLVED',
  ],
  SUBMISSION_UNKNOWN: ['WORKING', 'INPUT_REQUIRED', 'TERMINAL_OBSERVED', 'NOT_FOUND_SAFE', 'UNRESOLVED'],
  NOT_FOUND_SAFE: [
    'SUBMITTING',
    'INPUT_REQUIRED',
    'CANCELLED_ACCEPTED',
    'REJECTED',
    'SUBMISSION_UNKNOWN',
    'UNRESOLVED',
  ],
  WORKING: ['INPUT_REQUIRED', 'CANCEL_REQUESTED', 'TERMINAL_OBSERVED', 'SUBMISSION_UNKNOWN', 'UNRESOLVED'],
  INPUT_REQUIRED: [
    'SUBMITTING',
    'NOT_FOUND_SAFE',
    'WORKING',
    'CANCEL_REQUESTED',
    'TERMINAL_OBSERVED',
    'SUBMISSION_UNKNOWN',
    'UNRESOLVED',
  ],
  CANCEL_REQUESTED: ['TERMINAL_OBSERVED', 'CANCELLED_ACCEPTED', 'SUBMISSION_UNKNOWN', 'UNRESOLVED'],
  TERMINAL_OBSERVED: ['FETCHING_RESULT', 'CANCELLED_ACCEPTED', 'SUBMISSION_UNKNOWN', 'UNRESOLVED'],
  FETCHING_RESULT: ['ACCEPTED', 'SUBMISSION_UNKNOWN', 'UNRESOLVED'],
  UNRESOLVED: [
    'WORKING',
    'INPUT_REQUIRED',
    'TERMINAL_OBSERVED',
    'NOT_FOUND_SAFE',
    'CANCEL_REQUESTED',
    'ACCEPTED',
    'REJECTED',
    'SUBMISSION_UNKNOWN',
  ],
  ACCEPTED: [],
  CANCELLED_ACCEPTED: [],
  REJECTED: [],
};

/** States a single fact may pass through on its way, because it carries more than one piece of news. */
const PASSED_THROUGH: readonly OperationState[] = [
  'SUBMITTING',
  'WORKING',
  'NOT_FOUND_SAFE',
  'TERMINAL_OBSERVED',
];

/** A fact may carry several pieces of news (sent again, answered at once, already fetched): each move must be legal. */
export function isLegalMove(from: OperationState, to: OperationState): boolean {
  if (from === to) return true;
  // A set is walked in order of insertion, and also over what is added meanwhile.
  const passed = new Set<OperationState>([from]);
  for (const state of passed) {
    if (TRANSITIONS[state].includes(to)) return true;
    for (const next of TRANSITIONS[state]) if (PASSED_THROUGH.includes(next)) passed.add(next);
  }
  return false;
}
