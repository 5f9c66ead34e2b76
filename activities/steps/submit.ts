// Owns the submission: negotiate once, record, claim a leg, send, record what came back (DESIGN section 5).
// Must never send on a claim it did not make, nor twice on one claim.

import { LIMITS } from '../../operation/limits.js';
import type { FirstSight, StepFact } from '../../operation/facts.js';
import type { JsonObject } from '../../operation/json.js';
import { backOffMs, clampIntervalMs, clip, openRounds, pollGapMs } from '../../operation/policy.js';
import type { RowSnapshot } from '../../operation/row.js';
import {
  type Continuation,
  type InputReply,
  type Observation,
  type Submission,
  type ToolAdapter,
  type ToolServer,
  WireFault,
} from '../../protocols/adapter.js';
import type { Fence, StoredContinuation } from '../../receipts/store.js';
import { type Attempt, type Ports, StepInterrupted, StepRetry } from '../ports.js';
import type { SubmitInput } from '../step-inputs.js';
import { negotiateOnce, type Ready } from './negotiate-once.js';
import { notBefore } from './not-before.js';
import { roundFrom } from './questions.js';
import { serverOf } from './reach.js';
import { maxResultBytesOf, terminalFromReply, tooLargeEvidence } from './results.js';
import { wireFaultFrom } from './unforeseen.js';

export async function submit(input: SubmitInput, ports: Ports, attempt: Attempt): Promise<StepFact> {
  const row = await ports.receipts.begin(input);
  const ended = (settled: RowSnapshot): StepFact => ({
    kind: 'submitted',
    at: ports.clock.nowMs(),
    row: settled,
  });
  if (isSettled(row)) return ended(row);
  // A leg left open by another attempt: its bytes may be on the wire, nobody knows. Never send over it.
  if (row.legs.some((leg) => leg.outcome === 'open')) {
    const detail = 'the worker was lost while the submission was under way';
    return ended(await ports.receipts.abandonOpenLegs(input, detail, ports.clock.nowMs()));
  }
  const waitMs = (input.notBeforeAt ?? 0) - ports.clock.nowMs();
  if (waitMs > 0) throw new StepRetry('NotReady', 'sending again is not due yet', waitMs);
  try {
    const ready = await negotiateOnce(input, row, ports);
    if (isSettled(ready.row)) return ended(ready.row);
    if (await isDeclined(ready.row, ports)) {
      const declined = await rejectDeclined(input, ports);
      // An earlier submission in doubt forbids the rejection: held at once, by its true name.
      const inDoubt = declined.rejection ? {} : { violation: DECLINED };
      return { kind: 'submitted', at: ports.clock.nowMs(), row: declined, ...inDoubt };
    }
    if (attempt.signal.aborted) throw new StepInterrupted('a cancel came before anything was sent');
    const sent = await sendOnClaim(input, ready, ports, attempt);
    const remarks = ready.remarks.length === 0 ? {} : { remarks: ready.remarks };
    return { kind: 'submitted', at: ports.clock.nowMs(), ...sent, ...remarks };
  } catch (error) {
    // Nothing was claimed, or the claim's own end is in the row: what no adapter foresaw is bounded like an unsent try.
    const fault = wireFaultFrom(error, 'NotSent');
    return ended(await retryUnsent(input, await ports.receipts.begin(input), fault, ports));
  }
}

/** Nothing to send any more, or not before people have replied. */
function isSettled(row: RowSnapshot): boolean {
  const isOver = row.receipt || row.terminalObservation || row.remoteReference || row.rejection;
  return Boolean(isOver) || openRounds(row.rounds).length > 0;
}

/** Nothing was sent: again until the submit deadline, then REJECTED (unless an earlier leg is in doubt). */
async function retryUnsent(
  input: SubmitInput,
  row: RowSnapshot,
  fault: WireFault,
  ports: Ports,
): Promise<RowSnapshot> {
  const nowMs = ports.clock.nowMs();
  // Each try that claimed is a leg for ever: their number is kept small.
  const gapMs = backOffMs(LIMITS.submitRetryMs, LIMITS.lookUpGapCeilingMs, row.legs.length);
  const delayMs = Math.max(fault.retryAfterMs ?? 0, gapMs);
  // A Retry-After past the deadline brings one last try at it, not a rejection now.
  const leftMs = input.deadlineAt - nowMs;
  if (leftMs > 0) throw new StepRetry('NotSent', fault.message, Math.min(delayMs, leftMs));
  const message = `not sent before the submit deadline: ${clip(fault.message, LIMITS.evidenceChars)}`;
  return ports.receipts.recordRejection(input, { code: 'submit-deadline', message });
}

interface Sent {
  readonly row: RowSnapshot;
  readonly seen?: FirstSight;
  readonly tooLarge?: string;
  readonly violation?: string;
  readonly notBeforeAt?: number;
}

async function sendOnClaim(
  input: SubmitInput,
  { row, session }: Ready,
  ports: Ports,
  attempt: Attempt,
): Promise<Sent> {
  const server = serverOf(ports, row);
  await attempt.seam('submit:before-claim');
  const claimToken = ports.newToken();
  const claim = await ports.receipts.claimLeg(input, claimToken, ports.clock.nowMs());
  if (claim.ruling === 'spent') return { row: await rejectSpent(input, claim.row, ports) };
  if (claim.ruling !== 'granted') return { row: claim.row };
  // A crash from here on leaves the leg open: the next attempt reads it as ambiguous.
  await attempt.seam('submit:after-claim');
  const wire = await ports.receipts.wireState(row.callNodeId);
  const continuation = await continuationOf(claim.row, ports);
  // A stall since the claim may have outlived it: what another attempt has given up must not leave after all.
  const held = await ports.receipts.read(row.callNodeId);
  if (held?.legs.find((leg) => leg.claimToken === claimToken)?.outcome !== 'open') {
    const end = {
      outcome: 'notSent',
      detail: 'given up before it was sent',
      at: ports.clock.nowMs(),
    } as const;
    return { row: await ports.receipts.closeLeg(row.callNodeId, claimToken, end) };
  }
  const adapter = ports.protocols.adapter(claim.row.adapter ?? 'synchronous');
  // Another attempt may have negotiated anew before this claim; a look-up searches the session that the row holds.
  const isResend = row.legs.some((leg) => leg.outcome !== 'notSent');
  const ownSession = isResend ? session : (wire.session ?? session);
  try {
    // Never interrupted once its bytes may have left: hanging up would make a known end unknown.
    const call = {
      server,
      tool: row.tool,
      arguments: JSON.parse(wire.argumentsJson) as JsonObject,
      submissionKey: row.submissionKey,
      submissionPolicy: claim.row.submissionPolicy ?? 'at-most-once',
      keyName: row.policy.keyName,
      ...(row.policy.lookUp ? { lookUp: row.policy.lookUp } : {}),
      synchronousBoundMs: row.policy.synchronousBoundMs,
      maxResultBytes: maxResultBytesOf(row),
      ...continuation,
    };
    const submission = await adapter.submit(call, ownSession, {
      afterSend: () => attempt.seam('submit:after-send'),
      onProgress: (message) => showProgress(attempt, ports, message),
    });
    await attempt.seam('submit:after-reply');
    const recorded = await recordSubmission(input, claimToken, submission, { server, adapter, ports });
    await attempt.seam('submit:after-commit');
    return recorded;
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    const closed = await closeFailedLeg(input, claimToken, error, ports);
    // Sent again, it would be as large again: the work was done, and nobody can take its result.
    const tooLarge = error.isTooLarge ? { tooLarge: tooLargeEvidence(error.message, closed) } : {};
    return { row: closed, ...tooLarge, ...notBefore(ports.clock.nowMs(), error.retryAfterMs) };
  }
}

/** Looked for and absent after each of them: nothing was started, and it is not tried for ever. */
function rejectSpent(fence: Fence, row: RowSnapshot, ports: Ports): Promise<RowSnapshot> {
  const message = `proved absent after ${row.legs.length} submissions: ${row.legs.at(-1)?.detail ?? 'no detail'}`;
  return ports.receipts.recordRejection(fence, {
    code: 'submit-deadline',
    message: clip(message, LIMITS.evidenceChars),
  });
}

function showProgress(attempt: Attempt, ports: Ports, message: string): void {
  attempt.show({
    schema: 'liveStatus.v1',
    remoteStatus: 'running',
    statusMessage: clip(message, LIMITS.statusMessageChars),
    expiresAt: null,
    cursor: { observationCount: 0, transientFaults: 0, lastIntervalMs: null, nextPollNotBeforeAt: null },
    openRounds: [],
    faultStreak: 0,
    lastFault: null,
    updatedAt: ports.clock.nowMs(),
  });
}

async function recordSubmission(
  fence: Fence,
  claimToken: string,
  submission: Submission,
  { server, adapter, ports }: { server: ToolServer; adapter: ToolAdapter; ports: Ports },
): Promise<Sent> {
  const at = ports.clock.nowMs();
  if (submission.kind === 'answered') {
    const named = submission.reference;
    // A crash between these two commits leaves a reference: the end is then read from the work itself.
    if (named) {
      const recorded = await ports.receipts.recordReference(fence.callNodeId, claimToken, named, at);
      // Another operation's work, or another piece than the operation's own: the end of this one is not its end.
      if (recorded.ownedBy !== undefined || recorded.contradicts) return { row: recorded.row };
    }
    const { outputSchema } = await ports.receipts.wireState(fence.callNodeId);
    const { observation, result } = terminalFromReply(submission.result, outputSchema, at, ports);
    const row = await ports.receipts.recordTerminal(fence.callNodeId, observation, result, {
      claimToken,
      at,
    });
    return { row };
  }
  if (submission.kind === 'inputBeforeTask') return takeQuestions(fence, claimToken, submission, ports);
  const { reference } = submission;
  const recorded = await ports.receipts.recordReference(fence.callNodeId, claimToken, reference, at);
  // It belongs to another operation: neither looked at nor cancelled.
  if (recorded.ownedBy !== undefined) return { row: recorded.row };
  // A second piece of remote work for one operation: stop it, as far as that goes. The store keeps the evidence.
  if (recorded.contradicts) await adapter.cancel(server, reference, async () => {}).catch(() => null);
  return { row: recorded.row, seen: firstSightOf(submission.observation, at, ports) };
}

/**
 * Nothing was started: the call goes on, as another leg, once its questions are answered. Where it asked nothing but to be
 * called again, that is a further try of this step, with its pace.
 */
async function takeQuestions(
  fence: Fence,
  claimToken: string,
  asked: Extract<Submission, { kind: 'inputBeforeTask' }>,
  ports: Ports,
): Promise<Sent> {
  const openedAt = ports.clock.nowMs();
  // Evidence is never fenced: another run may own the row by now.
  const before = await ports.receipts.read(fence.callNodeId);
  const leg = before?.legs.find((one) => one.claimToken === claimToken)?.leg ?? 0;
  const deadlineAt = openedAt + (before?.policy.inputBudgetMs ?? LIMITS.inputBudgetMs);
  const source = { remoteId: `leg ${leg}`, openedAt, deadlineAt };
  const rounds = asked.questions.map((question) => roundFrom(question, source, ports));
  const taken = rounds.filter((round) => typeof round !== 'string');
  const refusal = rounds.find((round) => typeof round === 'string');
  const row = await ports.receipts.recordAsked(fence.callNodeId, claimToken, {
    requestState: asked.requestState,
    needsConsent: asked.needsConsent ?? false,
    rounds: refusal === undefined ? taken : [],
    at: openedAt,
  });
  if (refusal !== undefined) return { row, violation: refusal };
  const times = row.legs.filter(({ outcome }) => outcome === 'asked').length;
  if (times > LIMITS.continuations) {
    const violation = `asked ${times} times before there was any work (limit ${LIMITS.continuations})`;
    return { row, violation };
  }
  if (isSettled(row) || row.cancelGeneration > 0) return { row };
  const gapMs = backOffMs(LIMITS.submitRetryMs, LIMITS.lookUpGapCeilingMs, times);
  throw new StepRetry('NotReady', 'the server wants to be called again', gapMs);
}

const DECLINED = 'the server demands that a link is opened first, and that was declined';

/** What the server demands before it begins, somebody has declined; the server hears of it from nobody. */
async function isDeclined(row: RowSnapshot, ports: Ports): Promise<boolean> {
  const continuation = await storedContinuation(row, ports);
  if (!continuation?.needsConsent) return false;
  return continuation.replies.some(
    ({ replyJson }) => (JSON.parse(replyJson) as InputReply).action !== 'accept',
  );
}

function rejectDeclined(fence: Fence, ports: Ports): Promise<RowSnapshot> {
  return ports.receipts.recordRejection(fence, { code: 'declined', message: DECLINED });
}

/** Asked of the store only where some leg was asked: almost never. */
function storedContinuation(row: RowSnapshot, ports: Ports): Promise<StoredContinuation | null> {
  const wasAsked = row.legs.some(({ outcome }) => outcome === 'asked');
  return wasAsked ? ports.receipts.continuation(row.callNodeId) : Promise.resolve(null);
}

/** Where the last leg that was asked left off. */
async function continuationOf(
  row: RowSnapshot,
  ports: Ports,
): Promise<{ readonly continuation?: Continuation }> {
  const stored = await storedContinuation(row, ports);
  if (!stored) return {};
  const replies = stored.replies.map(({ wireKey, replyJson }): [string, InputReply] => [
    wireKey,
    JSON.parse(replyJson) as InputReply,
  ]);
  const { requestState } = stored;
  return { continuation: { requestState, replies: Object.fromEntries(replies) } };
}

/** The first look follows the server's hint, not the reply at once. */
function firstSightOf(seen: Observation, at: number, ports: Ports): FirstSight {
  const lastIntervalMs = clampIntervalMs(seen.intervalMs);
  const gapMs = pollGapMs(lastIntervalMs, null, ports.random());
  const statusMessage =
    seen.statusMessage === null ? null : clip(seen.statusMessage, LIMITS.statusMessageChars);
  return {
    remoteStatus: clip(seen.remoteStatus, LIMITS.statusMessageChars),
    statusMessage,
    expiresAt: seen.expiresAt,
    lastIntervalMs,
    nextPollNotBeforeAt: at + gapMs,
  };
}

async function closeFailedLeg(
  fence: SubmitInput,
  claimToken: string,
  fault: WireFault,
  ports: Ports,
): Promise<RowSnapshot> {
  const at = ports.clock.nowMs();
  const detail = clip(fault.message, LIMITS.evidenceChars);
  const close = (outcome: 'notSent' | 'refused' | 'ambiguous') =>
    ports.receipts.closeLeg(fence.callNodeId, claimToken, { outcome, detail, at });
  if (fault.kind === 'NotSent') {
    return retryUnsent(fence, await close('notSent'), fault, ports);
  }
  if (fault.kind === 'RefusedByServer') {
    await close('refused');
    return ports.receipts.recordRejection(fence, { code: 'refused-by-server', message: detail });
  }
  // Every other end of a send is ambiguous: the tool may run.
  return close('ambiguous');
}
