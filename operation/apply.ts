// Owns the fold: one record and one fact give the next record and the verdict for whoever brought the fact.
// Must never do I/O, read a clock, or throw for a fact from outside.

import { deriveState, isAskedBeforeWork, isLegalMove } from './derive-state.js';
import type { Fact, FirstSight, OutsideFact, StepFact, Verdict } from './facts.js';
import { enforceTime } from './enforce-time.js';
import { foldRow, isBehind } from './fold-row.js';
import { objectionToWord } from './operator-word.js';
import { LIMITS } from './limits.js';
import { backOffMs, clip, looksWithoutSending, unsettledLegs } from './policy.js';
import { loseHandle, needsFreshSession } from './handle.js';
import { afterRecheck, holdOperation, mayAskAgain, mayLeaveToCancel, releaseHold } from './hold.js';
import type { ToolOperation } from './record.js';
import { flagLedger, foldOpening, hearOfBackup } from './opening.js';
import { closeWaitingReplies, foldReply, settleReply } from './replies.js';

export interface Folded {
  readonly record: ToolOperation;
  readonly verdict: Verdict;
}

/** An outcome of our own step that no course allows: a broken invariant, never a fact of the world. */
export class IllegalTransition extends Error {
  override readonly name = 'IllegalTransition';
}

/**
 * Folds one fact into the record. Total for facts from outside in every state.
 * @throws IllegalTransition only for an outcome of our own step that no course allows.
 */
export function apply(record: ToolOperation, fact: Fact): Folded {
  switch (fact.kind) {
    case 'cancelRequested':
    case 'replyGiven':
    case 'operatorDecided':
    case 'storeRestored':
    case 'superseded':
    case 'interrupted':
    case 'timePassed':
      return applyOutside(record, fact);
    default:
      return { record: applyStep(record, fact), verdict: { kind: 'folded' } };
  }
}

function applyOutside(record: ToolOperation, fact: OutsideFact): Folded {
  switch (fact.kind) {
    case 'cancelRequested':
      return foldCancelRequest(record, fact);
    case 'replyGiven': {
      const { record: next, verdict } = foldReply(record, fact.reply);
      return { record: settle(next, fact.at), verdict };
    }
    case 'operatorDecided': {
      if (objectionToWord(record, fact.decision) !== null) return { record, verdict: { kind: 'ignored' } };
      return { record: settle(hearWord(record, fact), fact.at), verdict: { kind: 'folded' } };
    }
    case 'storeRestored':
      return { record: hearOfBackup(record), verdict: { kind: 'folded' } };
    case 'superseded':
      // Only a live run hears of it: it opens the row again and goes on from there.
      return {
        record: { ...keepPace(record, fact.at), executionEpoch: 0, takeovers: record.takeovers + 1 },
        verdict: { kind: 'folded' },
      };
    case 'interrupted':
      return { record: settle(keepPace(record, fact.at), fact.at), verdict: { kind: 'folded' } };
    case 'timePassed':
      return { record: settle(record, fact.at), verdict: { kind: 'folded' } };
  }
}

function foldCancelRequest(
  record: ToolOperation,
  fact: Extract<OutsideFact, { kind: 'cancelRequested' }>,
): Folded {
  if (record.receipt || record.terminalObservation) return { record, verdict: { kind: 'tooLate' } };
  const isRepeat = record.cancelAsked !== null || record.cancelGeneration > 0;
  if (isRepeat && !mayAskAgain(record)) return { record, verdict: { kind: 'alreadyRequested' } };
  const cancelAsked = {
    reason: clip(fact.reason, LIMITS.reasonChars),
    requestedBy: clip(fact.requestedBy, LIMITS.reasonChars),
    at: fact.at,
    ...(isRepeat ? { generation: record.cancelGeneration + 1 } : {}),
    ...(fact.requestToken === undefined ? {} : { requestToken: fact.requestToken }),
  };
  // What was sent before has had its time: this one is sent anew, and settles anew.
  const heard = { ...record, cancelAsked, cancelSends: 0, nextCancelAt: null, settleDeadlineAt: null };
  const released = mayLeaveToCancel(record) ? releaseHold(heard, fact.at) : heard;
  return { record: settleTime(released, fact.at), verdict: { kind: 'requested' } };
}

function hearWord(
  record: ToolOperation,
  { decision, evidence, decidedBy }: Extract<OutsideFact, { kind: 'operatorDecided' }>,
): ToolOperation {
  const { kind } = decision;
  const operator = {
    decision: kind,
    remoteId: kind === 'found' ? decision.remoteId : null,
    ...(kind === 'ended' ? { end: { outcome: decision.outcome, resultJson: decision.resultJson } } : {}),
    ...(record.ledgerBehind ? { isAboutLedger: true as const } : {}),
    evidence: clip(evidence, LIMITS.evidenceChars),
    decidedBy: clip(decidedBy, LIMITS.reasonChars),
  };
  return { ...record, operator };
}

/**
 * A look that is broken off takes its cursor along: it lives in heartbeats, and the engine gives it to nobody. The last
 * look may have been a moment ago, so the next one keeps clear of now by the interval that is known (promise 6).
 */
function keepPace(record: ToolOperation, at: number): ToolOperation {
  if (!record.remoteReference) return record;
  const { pollCursor } = record;
  const gapMs = Math.max(pollCursor.lastIntervalMs ?? 0, LIMITS.pollFloorMs);
  return {
    ...record,
    pollCursor: {
      ...pollCursor,
      nextPollNotBeforeAt: later(at + gapMs, pollCursor.nextPollNotBeforeAt ?? undefined),
    },
  };
}

function applyStep(record: ToolOperation, fact: StepFact): ToolOperation {
  if (fact.kind === 'ledgerMissing')
    return flagLedger(record, fact.at, fact.evidence, fact.isOpening === true);
  const isOpening = fact.kind === 'opened';
  // Nothing runs beside an opening, nor beside a submission that went on with its replies.
  const behind = isBehind(record, fact.row, isOpening || fact.kind === 'submitted');
  const mayEndBehind = isOpening && record.operator?.isAboutLedger === true;
  if (behind && !mayEndBehind) return flagLedger(record, fact.at, behind, isOpening);
  const tookOver = fact.row.executionEpoch > record.executionEpoch;
  const known = freeFromDoubt(freeByEvidence(foldRow(record, fact.row), record, fact.at), record, fact.at);
  const next = settle(foldOutcome(known, record, fact), fact.at);
  // A step that took the row over from another run may find it anywhere on its course.
  // An ended row is an end wherever it is met; but an end is left for no other.
  const meetsEnd = next.receipt !== null && record.receipt === null;
  const isFree = tookOver || meetsEnd || record.ledgerBehind !== null;
  if (!isFree && !isLegalMove(record.state, next.state)) {
    throw new IllegalTransition(
      `${fact.kind} moved ${record.callNodeId} from ${record.state} to ${next.state}`,
    );
  }
  return next;
}

/** Evidence that comes while held ends the hold, whichever step brought it, and overtakes a word given without it. */
function freeByEvidence(record: ToolOperation, before: ToolOperation, at: number): ToolOperation {
  const { remoteReference: now, terminalObservation } = record;
  const was = before.remoteReference;
  const isOther = was !== null && now !== null && now.remoteId !== was.remoteId;
  // What was not found under another name says nothing about this one.
  const known = isOther
    ? { ...record, missedReads: 0, violations: 0, sessionsRenewed: 0, nextLookAt: null }
    : record;
  if (!known.hold) return known;
  const ended = terminalObservation !== null && before.terminalObservation === null;
  const found = now !== null && was === null;
  return ended || found || isOther ? { ...releaseHold(known, at), operator: null } : known;
}

/**
 * A lost attempt's late word settled the last leg in doubt: it was refused, never left, or was asked; or a later leg was
 * asked. Then there is no doubt to hold.
 */
function freeFromDoubt(record: ToolOperation, before: ToolOperation, at: number): ToolOperation {
  const isDoubt =
    record.hold?.reason === 'ambiguous-submission' || record.hold?.reason === 'look-up-deadline';
  const wasInDoubt = unsettledLegs(before.submissionLegs).length > 0;
  const isSettled = unsettledLegs(record.submissionLegs).length === 0;
  const isOver = wasInDoubt && isSettled;
  return isDoubt && (isOver || isAskedBeforeWork(record))
    ? { ...releaseHold(record, at), operator: null }
    : record;
}

/** What a step says beyond the row it returns. `before` is the record the step was chosen from. */
function foldOutcome(
  record: ToolOperation,
  before: ToolOperation,
  fact: Exclude<StepFact, { kind: 'ledgerMissing' }>,
): ToolOperation {
  switch (fact.kind) {
    case 'opened':
      return foldOpening(record, before, fact);
    case 'submitted':
      return foldSubmission(paceResend(foldFirstSight(record, fact.seen ?? null), fact), fact);
    case 'lookedUp':
      return foldLookUp(record, fact);
    case 'observed':
      // A status that was too large to be read is not yet known to hold a result.
      return fact.finding === 'violation'
        ? foldObservation(record, before, fact)
        : refuseLarge(foldObservation(record, before, fact), fact);
    case 'answered':
      return settleReply(record, fact.replyToken, fact.verdict);
    case 'cancelSent':
      return foldCancel(record, fact);
    case 'resultFetched':
      return foldFetch(record, fact);
    case 'endRecorded': {
      // In the row now, or overtaken: either way the word itself is used up, and its result with it.
      const spoken = { ...record, operator: null };
      return record.terminalObservation && record.result ? releaseHold(spoken, fact.at) : spoken;
    }
    case 'accepted':
      return foldAcceptance(record, fact);
  }
}

/** One refusal with its evidence; the same result is never asked for again and again. */
function refuseLarge(
  record: ToolOperation,
  { at, tooLarge }: { readonly at: number; readonly tooLarge?: string },
): ToolOperation {
  if (tooLarge === undefined || record.result || record.receipt) return record;
  return holdOperation(record, 'result-too-large', at, tooLarge);
}

/** What the reply was besides; another attempt may have found the work all the same. */
function foldSubmission(
  record: ToolOperation,
  fact: Extract<StepFact, { kind: 'submitted' }>,
): ToolOperation {
  if (record.remoteReference || record.terminalObservation || record.receipt) return record;
  if (fact.violation !== undefined)
    return holdOperation(record, 'protocol-violation', fact.at, fact.violation);
  return refuseLarge(record, fact);
}

function foldFirstSight(record: ToolOperation, seen: FirstSight | null): ToolOperation {
  if (!seen) return record;
  const { remoteStatus, statusMessage, expiresAt, lastIntervalMs, nextPollNotBeforeAt } = seen;
  return {
    ...record,
    remoteStatus,
    statusMessage,
    expiresAt,
    pollCursor: { ...record.pollCursor, lastIntervalMs, nextPollNotBeforeAt },
  };
}

/** Sending again is a look-up, and look-ups are spaced: a server that answers 5xx at once must not be hammered. */
function paceResend(record: ToolOperation, fact: Extract<StepFact, { kind: 'submitted' }>): ToolOperation {
  if (unsettledLegs(record.submissionLegs).length === 0 || looksWithoutSending(record.submissionPolicy))
    return record;
  const spaced = spaceLookUps(record, fact.at);
  return { ...spaced, nextLookUpAt: later(spaced.nextLookUpAt, fact.notBeforeAt) };
}

/** Misses are spaced like polls: never under the server's interval or Retry-After. */
function afterMiss(fact: Extract<StepFact, { kind: 'observed' }>): number {
  const gapMs = Math.max(LIMITS.missedGapMs, fact.cursor.lastIntervalMs ?? 0);
  return later(fact.at + gapMs, fact.notBeforeAt) ?? fact.at + gapMs;
}

/** Our own spacing, or the server's Retry-After where that is longer. */
function later(dueAt: number | null, notBeforeAt: number | undefined): number | null {
  return notBeforeAt === undefined ? dueAt : Math.max(dueAt ?? 0, notBeforeAt);
}

function spaceLookUps(record: ToolOperation, at: number): ToolOperation {
  const lookUps = record.lookUps + 1;
  const gapMs = backOffMs(LIMITS.lookUpGapMs, LIMITS.lookUpGapCeilingMs, lookUps);
  return { ...record, lookUps, nextLookUpAt: at + gapMs };
}

function foldLookUp(record: ToolOperation, fact: Extract<StepFact, { kind: 'lookedUp' }>): ToolOperation {
  const looked = spaceLookUps(record, fact.at);
  const isWordDone = fact.given !== undefined && fact.given === record.operator?.remoteId;
  if (!isWordDone) return afterRecheck(looked, fact.at, fact.finding !== 'cannotTell');
  // Followed once, it led where it led: what it named is looked at, or the hold says why it was not taken.
  const hold =
    looked.hold && fact.finding === 'cannotTell' && fact.evidence !== null
      ? { ...looked.hold, evidence: clip(fact.evidence, LIMITS.evidenceChars) }
      : looked.hold;
  return afterRecheck({ ...looked, hold, operator: null }, fact.at, fact.finding !== 'cannotTell');
}

function foldObservation(
  record: ToolOperation,
  before: ToolOperation,
  fact: Extract<StepFact, { kind: 'observed' }>,
): ToolOperation {
  // A deadline that passed without one answered look says nothing about the work, nor of a fresh session.
  const hasSeen = fact.finding !== 'deadlinePassed' || fact.remoteStatus !== null;
  const renewed = hasSeen && needsFreshSession(before) ? 1 : 0;
  const seen: ToolOperation = {
    ...record,
    pollCursor: fact.cursor,
    remoteStatus: fact.remoteStatus ?? record.remoteStatus,
    statusMessage:
      fact.statusMessage === null
        ? record.statusMessage
        : clip(fact.statusMessage, LIMITS.statusMessageChars),
    expiresAt: fact.expiresAt ?? record.expiresAt,
    nextFetchAt: later(record.nextFetchAt, fact.notBeforeAt),
    sessionsRenewed: record.sessionsRenewed + renewed,
  };
  switch (fact.finding) {
    case 'notFound':
    case 'sessionLost': {
      const missed = { ...seen, missedReads: seen.missedReads + 1, nextLookAt: afterMiss(fact) };
      return loseHandle(missed, fact.at, fact.evidence ?? 'the server does not know the reference');
    }
    case 'violation': {
      const violations = seen.violations + 1;
      const flagged = { ...seen, violations, nextLookAt: afterMiss(fact) };
      const evidence = fact.tooLarge ?? fact.evidence ?? 'a reply broke the contract';
      const reason = fact.tooLarge === undefined ? 'protocol-violation' : 'result-too-large';
      if (flagged.hold) return afterRecheck(flagged, fact.at, false);
      return violations < LIMITS.violationReads || flagged.terminalObservation
        ? flagged
        : holdOperation(flagged, reason, fact.at, evidence);
    }
    default: {
      const found = hasSeen ? { ...seen, missedReads: 0, violations: 0, nextLookAt: null } : seen;
      return afterRecheck(found, fact.at, hasSeen);
    }
  }
}

function foldCancel(record: ToolOperation, fact: Extract<StepFact, { kind: 'cancelSent' }>): ToolOperation {
  if (fact.reply === 'neverSent') return record;
  const cancelSends = record.cancelSends + 1;
  const sent = { ...record, cancelSends };
  if (fact.reply === 'confirmed') return { ...sent, nextCancelAt: null };
  // Nothing was asked of the server, so nothing has to settle: the wait budget ends it.
  if (fact.reply === 'unsupported') return { ...sent, nextCancelAt: null, settleDeadlineAt: null };
  const settleDeadlineAt = record.settleDeadlineAt ?? fact.at + settleBudgetMs(record);
  // An acknowledged cancel is cooperative: asking again adds nothing, the state decides.
  if (fact.reply === 'acknowledged') return { ...sent, nextCancelAt: null, settleDeadlineAt };
  const gapMs = backOffMs(LIMITS.cancelResendMs, LIMITS.cancelResendCeilingMs, cancelSends);
  return { ...sent, nextCancelAt: later(fact.at + gapMs, fact.notBeforeAt), settleDeadlineAt };
}

function settleBudgetMs(record: ToolOperation): number {
  return record.policy?.settleBudgetMs ?? LIMITS.settleBudgetMs;
}

function foldFetch(record: ToolOperation, fact: Extract<StepFact, { kind: 'resultFetched' }>): ToolOperation {
  const fetches = record.fetches + 1;
  const tried = {
    ...record,
    fetches,
    nextFetchAt: fact.at + backOffMs(LIMITS.fetchRetryMs, LIMITS.pollCeilingMs, fetches),
  };
  if (fact.finding === 'tooLarge') return refuseLarge(tried, { at: fact.at, tooLarge: fact.evidence ?? '' });
  if (fact.finding !== 'lost' || record.result) return tried;
  return holdOperation(
    tried,
    'result-lost',
    fact.at,
    fact.evidence ?? 'the server no longer holds the result',
  );
}

function foldAcceptance(record: ToolOperation, fact: Extract<StepFact, { kind: 'accepted' }>): ToolOperation {
  if (fact.finding === 'accepted') return record;
  const acceptRefusals = record.acceptRefusals + 1;
  const refused = { ...record, acceptRefusals };
  if (acceptRefusals < LIMITS.acceptRefusals) return refused;
  // The word that led here is void, and a new hold begins: nobody retries without end.
  return holdOperation(
    { ...releaseHold(refused, fact.at), operator: null },
    'acceptance-refused',
    fact.at,
    fact.evidence ?? 'the store holds other facts',
  );
}

/** Lets every rule of time and policy speak, then reads the state off the facts. */
function settle(record: ToolOperation, at: number): ToolOperation {
  const settled = closeWaitingReplies(settleTime(record, at));
  return { ...settled, state: deriveState(settled) };
}

/** Without the verdicts on waiting replies: one of them may be in flight, and its delivery knows better. */
function settleTime(record: ToolOperation, at: number): ToolOperation {
  const timed = enforceTime({ ...record, state: deriveState(record) }, at);
  return { ...timed, state: deriveState(timed) };
}
