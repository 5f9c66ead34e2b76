// Owns the choice of the next step from a record and the time.
// Must never depend on anything but its two arguments; the workflow performs, the fold decides.

import { needsFreshSession } from './handle.js';
import { operatorNote } from './build-receipt.js';
import type { OperatorEnd, ReplyMail } from './facts.js';
import { askedGeneration, isCancelRaised, openRounds, waitDeadlineAt } from './policy.js';
import type { ToolOperation } from './record.js';

export interface ObserveStep {
  /** `askHuman` is an observation that goes on, slowly, while people are asked. */
  readonly kind: 'observe' | 'askHuman';
  readonly openRoundIds: readonly string[];
  /** Absolute: end of the step when nothing new was seen. */
  readonly deadlineAt: number | null;
  /** Absolute: no look before. */
  readonly notBeforeAt: number | null;
  readonly freshSession: boolean;
  /** A single look, whatever it shows. */
  readonly once: boolean;
}

export type Step =
  | { readonly kind: 'open' }
  | { readonly kind: 'submit'; readonly deadlineAt: number; readonly notBeforeAt: number | null }
  /** `given`: an operator named the work; it is recorded, and the next look verifies it. */
  | {
      readonly kind: 'lookUp';
      readonly notBeforeAt: number | null;
      /** Absolute: past it the step ends without having seen anything. */
      readonly deadlineAt: number | null;
      readonly given?: string;
      /** Whose word it is, and on what evidence. */
      readonly grounds?: string;
    }
  | ObserveStep
  | { readonly kind: 'answer'; readonly reply: ReplyMail; readonly deadlineAt: number }
  /** `generation`: what the row is raised to before anything is sent. */
  | { readonly kind: 'cancel'; readonly reason: string; readonly generation: number }
  | { readonly kind: 'fetchResult'; readonly notBeforeAt: number | null }
  /** An operator's end and its result go into the row; acceptance comes after, as always. */
  | { readonly kind: 'recordEnd'; readonly end: OperatorEnd; readonly note: string }
  | { readonly kind: 'accept' }
  /** Asked before there is any work: nothing to look at meanwhile. */
  | { readonly kind: 'awaitReply'; readonly untilAt: number }
  | { readonly kind: 'awaitOperator'; readonly untilAt: number | null }
  | { readonly kind: 'done' };

/** The next step of an operation. `nowMs` is the workflow's clock. */
export function nextStep(record: ToolOperation, nowMs: number): Step {
  const hasEnded = record.receipt !== null;
  if (record.ledgerBehind && !hasEnded) {
    // An operator ends it: the row is made again or adopted, as it is. Or somebody says that another store is there.
    if (record.operator?.isAboutLedger || record.reopen) return { kind: 'open' };
    return stepWhileBehind(record.ledgerBehind.nextRecheckAt, nowMs);
  }
  if ((record.executionEpoch === 0 || record.reopen) && !hasEnded) return { kind: 'open' };
  switch (record.state) {
    case 'SUBMITTING':
    case 'NOT_FOUND_SAFE':
      return stepBeforeSending(record, nowMs);
    case 'SUBMISSION_UNKNOWN':
      return stepWhileUnknown(record, nowMs);
    case 'WORKING':
      return observeStep(record, waitDeadlineAt(record));
    case 'INPUT_REQUIRED':
      return stepWhileAsked(record);
    case 'CANCEL_REQUESTED':
      return stepWhileCancelling(record, nowMs);
    case 'TERMINAL_OBSERVED':
    case 'FETCHING_RESULT':
      return isReadyToAccept(record)
        ? { kind: 'accept' }
        : { kind: 'fetchResult', notBeforeAt: record.nextFetchAt };
    case 'UNRESOLVED':
      return stepWhileHeld(record, nowMs);
    case 'ACCEPTED':
    case 'CANCELLED_ACCEPTED':
    case 'REJECTED':
      return { kind: 'done' };
  }
}

function isReadyToAccept(record: ToolOperation): boolean {
  return record.terminalObservation?.remoteStatus === 'cancelled' || record.result !== null;
}

/** The store was restored from a backup, or is another one: looked at again, nothing is sent meanwhile. */
function stepWhileBehind(nextRecheckAt: number, nowMs: number): Step {
  return nowMs >= nextRecheckAt ? { kind: 'open' } : { kind: 'awaitOperator', untilAt: nextRecheckAt };
}

function stepBeforeSending(record: ToolOperation, nowMs: number): Step {
  if (!record.policy) return { kind: 'open' };
  if (record.rejection) return { kind: 'accept' };
  if (record.cancelGeneration > 0) return { kind: 'accept' };
  // Never submit in order to cancel: the raised generation also bars every zombie's claim.
  if (record.cancelAsked) return cancelStep(record);
  const fromAt = record.state === 'SUBMITTING' ? (lastReplyAt(record) ?? record.createdAt) : nowMs;
  return { kind: 'submit', deadlineAt: fromAt + record.policy.submitBudgetMs, notBeforeAt: null };
}

/** A call that was asked goes on anew with the replies: people's time is not the submission's. */
function lastReplyAt({ rounds }: ToolOperation): number | null {
  const deliveredAt = rounds.flatMap(({ reply }) => reply?.deliveredAt ?? []);
  return deliveredAt.length > 0 ? Math.max(...deliveredAt) : null;
}

function stepWhileUnknown(record: ToolOperation, nowMs: number): Step {
  switch (record.submissionPolicy) {
    case 'key-argument':
    case 'key-meta':
    case 'request-id':
    case 'repeatable':
      // The same key again is the look-up; a repeatable tool is simply sent again.
      return {
        kind: 'submit',
        deadlineAt: record.lookUpDeadlineAt ?? nowMs,
        notBeforeAt: record.nextLookUpAt,
      };
    default:
      return { kind: 'lookUp', notBeforeAt: record.nextLookUpAt, deadlineAt: record.lookUpDeadlineAt };
  }
}

function observeStep(record: ToolOperation, deadlineAt: number | null): ObserveStep {
  return {
    kind: 'observe',
    openRoundIds: [],
    deadlineAt,
    notBeforeAt: record.nextLookAt,
    freshSession: needsFreshSession(record),
    once: false,
  };
}

function stepWhileAsked(record: ToolOperation): Step {
  const rounds = openRounds(record.rounds);
  const deadlineAt = Math.min(...rounds.map((round) => round.deadlineAt));
  const reply = record.waitingReplies.find((waiting) =>
    rounds.some((round) => round.roundId === waiting.roundId),
  );
  if (reply) return { kind: 'answer', reply, deadlineAt };
  if (!record.remoteReference) return { kind: 'awaitReply', untilAt: deadlineAt };
  return {
    ...observeStep(record, deadlineAt),
    kind: 'askHuman',
    openRoundIds: rounds.map((round) => round.roundId),
  };
}

function stepWhileCancelling(record: ToolOperation, nowMs: number): Step {
  if (!isCancelRaised(record)) return cancelStep(record);
  // Not sent yet by this run. One that adopted a raised generation sends too: the reply starts its settle budget.
  if (record.cancelSends === 0 && record.cancelDelivery !== 'unsupported') return cancelStep(record);
  if (record.nextCancelAt !== null && nowMs >= record.nextCancelAt) return cancelStep(record);
  if (record.cancelDelivery === 'unsupported') return observeStep(record, waitDeadlineAt(record));
  return observeStep(record, earliest(record.nextCancelAt, record.settleDeadlineAt));
}

function cancelStep(record: ToolOperation): Step {
  const reason = record.cancelAsked?.reason ?? record.cancelReason ?? 'cancelled';
  return { kind: 'cancel', reason, generation: askedGeneration(record) };
}

function stepWhileHeld(record: ToolOperation, nowMs: number): Step {
  const { operator } = record;
  if (operator?.remoteId != null) {
    const { remoteId: given } = operator;
    return { kind: 'lookUp', notBeforeAt: null, deadlineAt: null, given, grounds: operatorNote(operator) };
  }
  if (operator?.end) return { kind: 'recordEnd', end: operator.end, note: operatorNote(operator) };
  if (operator) return { kind: 'accept' };
  const recheckAt = record.hold?.nextRecheckAt ?? null;
  if (recheckAt !== null && nowMs >= recheckAt) return recheck(record, nowMs);
  return { kind: 'awaitOperator', untilAt: earliest(recheckAt, closesAt(record)) };
}

/** One look, whatever it shows: at the work where it is known, else whether it has become known. */
function recheck(record: ToolOperation, nowMs: number): Step {
  if (!record.remoteReference) return { kind: 'lookUp', notBeforeAt: null, deadlineAt: nowMs };
  // In turns: the work may be found from anywhere again, or only where it was made.
  const freshSession =
    record.hold?.reason === 'handle-lost' ? record.hold.rechecks % 2 === 0 : needsFreshSession(record);
  return { ...observeStep(record, null), notBeforeAt: null, freshSession, once: true };
}

function closesAt(record: ToolOperation): number | null {
  const rule = record.policy?.onUnresolved;
  return record.hold && rule?.kind === 'closeAfter' ? record.hold.sinceAt + rule.afterMs : null;
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null) return b;
  return b === null ? a : Math.min(a, b);
}
