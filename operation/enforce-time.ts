// Owns what time and policy do to a record without any news: budgets, deadlines, standing decisions.
// Must never be called but from the fold; `at` is the time of the fact being folded.

import { deriveState } from './derive-state.js';
import { LIMITS } from './limits.js';
import {
  isCancelRaised,
  isRequestIdAlive,
  isTriedEnough,
  looksWithoutSending,
  openRounds,
  waitDeadlineAt,
} from './policy.js';
import type { ToolOperation } from './record.js';
import { holdOperation } from './hold.js';

export function enforceTime(record: ToolOperation, at: number): ToolOperation {
  switch (record.state) {
    case 'SUBMISSION_UNKNOWN':
      return enforceUnknown(record, at);
    case 'NOT_FOUND_SAFE':
      return endDoubt(record);
    case 'WORKING':
      return isPast(waitDeadlineAt(record), at) ? askCancel(record, at, 'wait-budget') : record;
    case 'INPUT_REQUIRED': {
      // Asked before there is any work: whatever was in doubt before is looked up anew after the reply.
      const known = record.remoteReference ? record : endDoubt(record);
      if (!openRounds(known.rounds).some((round) => at >= round.deadlineAt)) return known;
      const asked = askCancel(known, at, 'input-deadline');
      return asked.remoteReference ? asked : enforceTime({ ...asked, state: deriveState(asked) }, at);
    }
    case 'CANCEL_REQUESTED':
      return enforceCancel(record, at);
    case 'TERMINAL_OBSERVED':
    case 'FETCHING_RESULT':
      return enforceFetch(record, at);
    case 'UNRESOLVED':
      return enforceHold(record, at);
    default:
      return record;
  }
}

/** A further leg has its own time, and its own pace, to be looked up. */
function endDoubt(record: ToolOperation): ToolOperation {
  return { ...record, lookUpDeadlineAt: null, lookUps: 0, nextLookUpAt: null };
}

function isPast(deadlineAt: number | null, at: number): boolean {
  return deadlineAt !== null && at >= deadlineAt;
}

function askCancel(record: ToolOperation, at: number, reason: string): ToolOperation {
  return { ...record, cancelAsked: { reason, requestedBy: 'executor', at } };
}

const FORGOTTEN =
  'the store was restored from before the submission: nobody knows from it whether it was sent';

/** SUBMISSION_UNKNOWN: hold at once where nothing can be looked up or sent again, else at the look-up deadline. */
function enforceUnknown(record: ToolOperation, at: number): ToolOperation {
  if (record.ledgerBehind) return record;
  if (record.hasForgotten) return holdOperation(record, 'ambiguous-submission', at, FORGOTTEN);
  const lastLeg = record.submissionLegs.at(-1);
  const evidence = lastLeg?.detail ?? 'nobody knows whether the submission arrived';
  if (record.submissionPolicy === 'at-most-once' || record.submissionPolicy === null) {
    return holdOperation(record, 'ambiguous-submission', at, evidence);
  }
  // A raised generation bars every further claim, and so do open questions: sending again looks nothing up any more.
  const isBarred = record.cancelGeneration > 0 || openRounds(record.rounds).length > 0;
  if (!looksWithoutSending(record.submissionPolicy) && isBarred) {
    return holdOperation(record, 'ambiguous-submission', at, evidence);
  }
  if (
    record.submissionPolicy === 'request-id' &&
    !isRequestIdAlive(record.submissionLegs, record.policy, at)
  ) {
    const dead = 'the server may have forgotten the request id, so it is not sent again';
    return holdOperation(record, 'ambiguous-submission', at, `${dead} (${evidence})`);
  }
  if (record.submissionPolicy === 'repeatable') {
    const spent = isTriedEnough(record.submissionLegs) || record.cancelAsked !== null;
    if (spent) return holdOperation(record, 'ambiguous-submission', at, evidence);
  }
  const budgetMs = record.policy?.lookUpBudgetMs ?? LIMITS.lookUpBudgetMs;
  const lookUpDeadlineAt = record.lookUpDeadlineAt ?? at + budgetMs;
  const dated = { ...record, lookUpDeadlineAt };
  return at >= lookUpDeadlineAt ? holdOperation(dated, 'look-up-deadline', at, evidence) : dated;
}

function enforceCancel(record: ToolOperation, at: number): ToolOperation {
  if (record.settleDeadlineAt !== null && at >= record.settleDeadlineAt) {
    return holdOperation(
      record,
      'cancel-never-settled',
      at,
      `cancel ${record.cancelDelivery}, still ${record.remoteStatus}`,
    );
  }
  if (
    isCancelRaised(record) &&
    record.cancelDelivery === 'unsupported' &&
    isPast(waitDeadlineAt(record), at)
  ) {
    return holdOperation(record, 'wait-budget', at, 'the wait budget is spent and the server cannot cancel');
  }
  return record;
}

/** A result not fetched within its budget is lost for us: never success (promise 3). */
function enforceFetch(record: ToolOperation, at: number): ToolOperation {
  if (record.terminalObservation?.remoteStatus === 'cancelled' || record.result) return record;
  const fetchDeadlineAt = record.fetchDeadlineAt ?? fetchDeadlineFrom(record, at);
  const dated = { ...record, fetchDeadlineAt };
  // One try at least: a run that adopts a terminal row late may still find the result there.
  return at >= fetchDeadlineAt && record.fetches > 0
    ? holdOperation(dated, 'result-lost', at, 'the fetch budget is spent without a whole result')
    : dated;
}

/** The budget, but never past the expiry: after it the server owes nothing. */
function fetchDeadlineFrom(record: ToolOperation, at: number): number {
  const budgetMs = record.policy?.fetchBudgetMs ?? LIMITS.fetchBudgetMs;
  return Math.min(at + budgetMs, Math.max(record.expiresAt ?? Number.POSITIVE_INFINITY, at));
}

function enforceHold(record: ToolOperation, at: number): ToolOperation {
  const rule = record.policy?.onUnresolved;
  if (!record.hold || record.operator || rule?.kind !== 'closeAfter') return record;
  if (at < record.hold.sinceAt + rule.afterMs) return record;
  const evidence = `standing decision of the configuration: close after ${rule.afterMs} ms`;
  return { ...record, operator: { decision: 'close', remoteId: null, evidence, decidedBy: 'onUnresolved' } };
}
