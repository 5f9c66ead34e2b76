// Owns the look at a remote operation: one look per attempt; the engine's retries are the polls (constant history).
// Must never turn an error while polling into the operation's failure, nor look sooner than the server asked.

import type { ObserveFinding, StepFact } from '../../operation/facts.js';
import { LIMITS } from '../../operation/limits.js';
import type { LiveStatus } from '../../operation/live-status.js';
import {
  clampIntervalMs,
  clip,
  humanTimeMs,
  isRoundOpen,
  openRounds,
  pollGapMs,
} from '../../operation/policy.js';
import type { RowSnapshot } from '../../operation/row.js';
import type { Observation, WireFault, WireFaultKind } from '../../protocols/adapter.js';
import { type Attempt, type Ports, StepRetry } from '../ports.js';
import type { ObserveInput } from '../step-inputs.js';
import { isCreateLag } from './create-lag.js';
import { recordEnd } from './fetch-result.js';
import { silenceGapMs, withNotice } from './notice.js';
import { type Look, lookAtQuestions, showRounds } from './questions.js';
import { notBefore } from './not-before.js';
import { type Reach, reachOf } from './reach.js';
import { maxResultBytesOf, tooLargeEvidence } from './results.js';
import { wireFaultFrom } from './unforeseen.js';

export async function observe(input: ObserveInput, ports: Ports, attempt: Attempt): Promise<StepFact> {
  const row = await ports.receipts.begin(input);
  const look: Look = { input, ports, attempt, live: startLive(input, row, attempt, ports) };
  if (row.receipt || row.terminalObservation) return outcome(look, row, 'terminal', null);
  if (holdsUnheardQuestion(input, row)) return outcome(look, row, 'inputRequired', null);
  attempt.show(look.live);
  if (!isDue(look, row)) return outcome(look, row, 'deadlinePassed', null);
  const looking = showFloor(look);
  try {
    const reach = await reachInSession(looking, row);
    const seen = await reach.adapter.observe(reach.server, reach.reference, maxResultBytesOf(row));
    const foundAs = await confirm(looking, row, reach);
    await attempt.seam('observe:after-reply');
    if (foundAs.ownedBy !== undefined)
      return outcome(looking, foundAs.row, 'notFound', `it is the work of operation ${foundAs.ownedBy}`);
    return await foldSeen(noteSeen(looking, seen), foundAs.row, reach, seen);
  } catch (error) {
    // What no adapter foresaw breaks the contract too.
    const fault = wireFaultFrom(error, 'ProtocolViolation');
    return foldFault(looking, await ports.receipts.begin(input), fault);
  }
}

/**
 * A question that a lost attempt stored, and its run has not heard of: until it has, a reply to it would be refused. While
 * cancelling nobody is asked, and a single look is wanted for what it shows.
 */
function holdsUnheardQuestion(input: ObserveInput, row: RowSnapshot): boolean {
  if (input.once || row.cancelGeneration > 0) return false;
  return openRounds(row.rounds).some((round) => !input.openRoundIds.includes(round.roundId));
}

function startLive(input: ObserveInput, row: RowSnapshot, attempt: Attempt, ports: Ports): LiveStatus {
  const last = attempt.lastShown();
  return {
    schema: 'liveStatus.v1',
    remoteStatus: last?.remoteStatus ?? null,
    statusMessage: last?.statusMessage ?? null,
    expiresAt: last?.expiresAt ?? input.expiresAt,
    cursor: last?.cursor ?? input.cursor,
    openRounds: showRounds(row),
    faultStreak: last?.faultStreak ?? 0,
    lastFault: last?.lastFault ?? null,
    notice: last?.notice ?? null,
    silentAsks: last?.silentAsks ?? 0,
    updatedAt: ports.clock.nowMs(),
  };
}

/**
 * An absolute time decides, never the attempt number: a wake-up resets that number. False where the deadline came before
 * the next look may: then it passes without one.
 */
function isDue(look: Look, row: RowSnapshot): boolean {
  const nowMs = look.ports.clock.nowMs();
  const dueAt = Math.max(look.input.notBeforeAt ?? 0, look.live.cursor.nextPollNotBeforeAt ?? 0);
  if (dueAt <= nowMs) return true;
  if (nowMs >= deadlineOf(look.input, row)) return false;
  return notReady(look, row, dueAt - nowMs);
}

/** Written before the look: an attempt that is killed in it must not let the next one come too soon. */
function showFloor(look: Look): Look {
  const { cursor } = look.live;
  if (cursor.lastIntervalMs === null) return look;
  const nextPollNotBeforeAt = look.ports.clock.nowMs() + cursor.lastIntervalMs;
  const live = { ...look.live, cursor: { ...cursor, nextPollNotBeforeAt } };
  look.attempt.show(live);
  return { ...look, live };
}

/** The new session becomes the operation's own only after a look through it has found the work. */
async function reachInSession(look: Look, row: RowSnapshot): Promise<Reach> {
  const reach = reachOf(look.ports, row);
  if (!look.input.freshSession) return reach;
  return { ...reach, reference: await reach.adapter.renewSession(reach.server, reach.reference) };
}

/** The look has found the work: a renewed session is its own from now on, and an operator's word is seen to be true. */
async function confirm(
  { input, ports }: Look,
  row: RowSnapshot,
  { reference }: Reach,
): Promise<{ readonly row: RowSnapshot; readonly ownedBy?: string }> {
  if (row.remoteReference?.isUnseen) {
    const { remoteId, locator } = reference;
    return ports.receipts.recordReference(row.callNodeId, null, { remoteId, locator }, ports.clock.nowMs());
  }
  return { row: input.freshSession ? await ports.receipts.replaceLocator(input, reference) : row };
}

/** Counts the look and sets the floor of the next one. */
function noteSeen(look: Look, seen: Observation): Look {
  const nowMs = look.ports.clock.nowMs();
  const intervalMs = clampIntervalMs(seen.intervalMs);
  const gapMs = pollGapMs(intervalMs, null, look.ports.random());
  const live: LiveStatus = {
    ...look.live,
    remoteStatus: seen.remoteStatus,
    statusMessage: seen.statusMessage === null ? null : clip(seen.statusMessage, LIMITS.statusMessageChars),
    expiresAt: seen.expiresAt ?? look.live.expiresAt,
    cursor: {
      ...look.live.cursor,
      observationCount: look.live.cursor.observationCount + 1,
      lastIntervalMs: intervalMs,
      nextPollNotBeforeAt: nowMs + gapMs,
    },
    faultStreak: 0,
    lastFault: null,
    updatedAt: nowMs,
  };
  look.attempt.show(live);
  return { ...look, live };
}

async function foldSeen(look: Look, row: RowSnapshot, reach: Reach, seen: Observation): Promise<StepFact> {
  switch (seen.meaning) {
    case 'completed':
    case 'failed':
    case 'cancelled': {
      const end = await recordEnd(look, row, reach, seen);
      const fact = outcome(look, end.row, 'terminal', null);
      const { tooLarge } = end;
      const refusal = tooLarge === undefined ? {} : { tooLarge };
      return { ...fact, ...refusal, ...notBefore(fact.at, end.retryAfterMs) };
    }
    case 'inputRequired': {
      const asked = await lookAtQuestions(look, row, reach, seen.questions);
      const open = openRounds(asked.rounds);
      const isNew = open.some((round) => !look.input.openRoundIds.includes(round.roundId));
      if (isNew) return outcome(look, asked, 'inputRequired', null);
      // One of several was given up by the server while others are still asked.
      const isOver = asked.rounds.some(
        (round) => look.input.openRoundIds.includes(round.roundId) && round.closedAt !== null,
      );
      if (isOver) return outcome(look, asked, 'roundClosed', null);
      return goOn(await withNotice(look, asked, seen), asked);
    }
    case 'working':
    case 'other': {
      const moved = await closeOvertakenRounds(look, row);
      if (moved.closed) return outcome(look, moved.row, 'roundClosed', null);
      await keepAnchor(look, reach);
      return goOn(await withNotice(look, moved.row, seen), moved.row);
    }
  }
}

/** The server went on although a question had no reply: nobody needs to answer it any more. */
async function closeOvertakenRounds(
  look: Look,
  before: RowSnapshot,
): Promise<{ row: RowSnapshot; closed: boolean }> {
  // Read again: an answer may have been recorded while the status was on its way.
  let row = await look.ports.receipts.begin(look.input);
  let closed = false;
  // This look may be a late one: of what was asked after it was sent, it has seen nothing.
  const known = before.rounds.map(({ roundId }) => roundId);
  for (const round of openRounds(row.rounds)) {
    if (round.reply || !known.includes(round.roundId)) continue;
    row = await look.ports.receipts.closeRound(row.callNodeId, round.roundId, look.ports.clock.nowMs());
    closed = true;
  }
  return { row, closed };
}

/** While the work still runs: remember where a question could be replayed from, before there is one. */
async function keepAnchor(look: Look, reach: Reach): Promise<void> {
  const { anchor } = await look.ports.receipts.wireState(look.input.callNodeId);
  if (anchor) return;
  const found = await reach.adapter.anchor(reach.server, reach.reference);
  if (found) await look.ports.receipts.recordAnchor(look.input.callNodeId, found);
}

function goOn(look: Look, row: RowSnapshot): StepFact {
  const nowMs = look.ports.clock.nowMs();
  if (look.input.once || nowMs >= deadlineOf(look.input, row))
    return outcome(look, row, 'deadlinePassed', null);
  const isAsking = openRounds(row.rounds).some((round) => !round.reply);
  const gapMs = Math.max(
    (look.live.cursor.nextPollNotBeforeAt ?? nowMs) - nowMs,
    isAsking ? LIMITS.inputPollMs : 0,
    silenceGapMs(look.live),
  );
  return notReady(look, row, gapMs);
}

/** While a question is open its deadline counts; else the wait budget, moved on by the time people took meanwhile. */
function deadlineOf(input: ObserveInput, row: RowSnapshot): number {
  const inStep = row.rounds.filter((round) => input.openRoundIds.includes(round.roundId));
  if (inStep.some(isRoundOpen)) return input.inputDeadlineAt ?? Number.POSITIVE_INFINITY;
  if (input.waitDeadlineAt === null) return Number.POSITIVE_INFINITY;
  return input.waitDeadlineAt + humanTimeMs(inStep);
}

const MISSES: Partial<Record<WireFaultKind, ObserveFinding>> = {
  NotFound: 'notFound',
  SessionLost: 'sessionLost',
  ProtocolViolation: 'violation',
};

function foldFault(look: Look, row: RowSnapshot, fault: WireFault): StepFact {
  if (row.receipt || row.terminalObservation) return outcome(look, row, 'terminal', null);
  const finding = isCreateLag(look, row, fault) ? undefined : MISSES[fault.kind];
  if (finding) {
    const tooLarge = fault.isTooLarge ? tooLargeEvidence(fault.message, row) : undefined;
    const missed = outcome(look, row, finding, tooLarge ?? fault.message);
    // What was too large may have been the end with its result, and may have been anything.
    const size = tooLarge === undefined ? {} : { tooLarge };
    return { ...missed, ...size, ...notBefore(missed.at, fault.retryAfterMs) };
  }
  const nowMs = look.ports.clock.nowMs();
  const gapMs = pollGapMs(
    clampIntervalMs(look.live.cursor.lastIntervalMs),
    fault.retryAfterMs,
    look.ports.random(),
  );
  const live: LiveStatus = {
    ...look.live,
    cursor: {
      ...look.live.cursor,
      transientFaults: look.live.cursor.transientFaults + 1,
      nextPollNotBeforeAt: nowMs + gapMs,
    },
    faultStreak: look.live.faultStreak + 1,
    lastFault: clip(fault.message, LIMITS.evidenceChars),
    updatedAt: nowMs,
  };
  const faulted = { ...look, live };
  if (look.input.once || nowMs >= deadlineOf(look.input, row)) {
    return outcome(faulted, row, 'deadlinePassed', fault.message);
  }
  return notReady(faulted, row, gapMs);
}

/** Ends the attempt; the next one comes after `delayMs`, but never later than the deadline's last look. */
function notReady(look: Look, row: RowSnapshot, delayMs: number): never {
  look.attempt.show(look.live);
  const leftMs = deadlineOf(look.input, row) - look.ports.clock.nowMs();
  const clampedMs = leftMs > 0 ? Math.min(delayMs, leftMs) : delayMs;
  const { remoteStatus, statusMessage, lastFault, notice } = look.live;
  const said =
    lastFault ?? notice ?? [remoteStatus ?? 'not looked at yet', statusMessage].filter(Boolean).join(': ');
  throw new StepRetry('NotReady', clip(said, LIMITS.failureMessageChars), clampedMs);
}

function outcome(look: Look, row: RowSnapshot, finding: ObserveFinding, evidence: string | null): StepFact {
  const { live } = look;
  return {
    kind: 'observed',
    at: look.ports.clock.nowMs(),
    row,
    finding,
    cursor: live.cursor,
    remoteStatus: live.remoteStatus,
    statusMessage: live.statusMessage,
    expiresAt: live.expiresAt,
    evidence: evidence === null ? null : clip(evidence, LIMITS.evidenceChars),
  };
}
