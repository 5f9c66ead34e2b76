// Owns the delivery of one reply to its round: checked, recorded, sent, recorded as delivered.
// Must never deliver a second, different reply, nor one to a round that is over.

import { replyDigest } from '../../operation/digests.js';
import type { ReplyVerdict, StepFact } from '../../operation/facts.js';
import { LIMITS } from '../../operation/limits.js';
import { backOffMs, clip } from '../../operation/policy.js';
import type { InputRound, RoundReply, RowSnapshot } from '../../operation/row.js';
import { WireFault } from '../../protocols/adapter.js';
import type { StoredRound } from '../../receipts/store.js';
import { type Attempt, type Ports, StepInterrupted, StepRetry } from '../ports.js';
import type { AnswerInput } from '../step-inputs.js';
import { reachOf } from './reach.js';

export async function deliverAnswer(input: AnswerInput, ports: Ports, attempt: Attempt): Promise<StepFact> {
  const row = await ports.receipts.begin(input);
  const ended = (settled: RowSnapshot, verdict: ReplyVerdict): StepFact => ({
    kind: 'answered',
    at: ports.clock.nowMs(),
    row: settled,
    replyToken: input.reply.replyToken,
    verdict,
  });
  const round = row.rounds.find((candidate) => candidate.roundId === input.reply.roundId);
  const digest = replyDigest(input.reply, ports.digests);
  const early = round ? verdictFromRow(round, input, digest) : ROUND_CLOSED;
  if (early) return ended(row, early);
  // A late leg has brought the work all the same: it goes on without what another one was asked.
  if (round?.leg !== undefined && row.remoteReference) {
    const { callNodeId, reply } = input;
    return ended(
      await ports.receipts.closeRound(callNodeId, reply.roundId, ports.clock.nowMs()),
      ROUND_CLOSED,
    );
  }

  const wire = await ports.receipts.wireState(row.callNodeId);
  const stored = wire.rounds[input.reply.roundId];
  if (!stored) return ended(row, ROUND_CLOSED);
  const objection = objectionTo(input, stored, ports);
  if (objection) return ended(row, { kind: 'refused', reason: objection });

  const record = (): Promise<RowSnapshot> => recordReply(input, digest, ports);
  const recorded = await record();
  await attempt.seam('answer:after-record');
  const holder = recorded.rounds.find((candidate) => candidate.roundId === input.reply.roundId);
  const overtaken = holder ? verdictFromRow(holder, input, digest) : ROUND_CLOSED;
  if (overtaken) return ended(recorded, overtaken);
  if (stored.leg !== null) return ended(await keepForNextLeg(input, digest, ports), { kind: 'applied' });
  return send(input, recorded, { stored, digest, record }, ports, attempt, ended);
}

const ROUND_CLOSED: ReplyVerdict = { kind: 'roundClosed' };

/** What the row says already; null where this reply is still to be sent. */
function verdictFromRow(round: InputRound, input: AnswerInput, digest: string): ReplyVerdict | null {
  const { reply } = round;
  if (reply) {
    if (reply.replyDigest !== digest) return { kind: 'alreadyAnswered', whenAt: reply.recordedAt };
    if (reply.deliveredAt === null) return round.closedAt === null ? null : ROUND_CLOSED;
    return reply.replyToken === input.reply.replyToken ? { kind: 'applied' } : { kind: 'duplicate' };
  }
  return round.closedAt === null ? null : ROUND_CLOSED;
}

function objectionTo(input: AnswerInput, stored: StoredRound, ports: Ports): string | null {
  const { action, content } = input.reply;
  if (action !== 'accept') return content === null ? null : `"${action}" carries no content`;
  const { schema, mode } = stored.question;
  if (mode === 'url') return content === null ? null : 'a link is opened, not filled in: no content';
  const sizeBytes = Buffer.byteLength(JSON.stringify(content));
  if (sizeBytes > LIMITS.replyBytes)
    return `the reply has ${sizeBytes} bytes, more than ${LIMITS.replyBytes}`;
  if (!schema) return null;
  const miss = ports.checkSchema(schema, content);
  return miss === null ? null : clip(miss, LIMITS.evidenceChars);
}

function replyIn(row: RowSnapshot | null, roundId: string): RoundReply | null {
  return row?.rounds.find((round) => round.roundId === roundId)?.reply ?? null;
}

function sendingAtOf(row: RowSnapshot | null, roundId: string): number | null {
  return replyIn(row, roundId)?.sendingAt ?? null;
}

function recordReply(input: AnswerInput, digest: string, ports: Ports): Promise<RowSnapshot> {
  const { roundId, replyToken, action, content } = input.reply;
  const recordedAt = ports.clock.nowMs();
  const reply = { replyDigest: digest, replyToken, action, recordedAt, sendingAt: null, deliveredAt: null };
  return ports.receipts.recordReply(input, roundId, reply, JSON.stringify({ action, content }));
}

/** Asked before there was any work: the reply is delivered by being recorded, and the next leg takes it along. */
async function keepForNextLeg(
  input: AnswerInput,
  digest: string,
  { receipts, clock }: Ports,
): Promise<RowSnapshot> {
  const { callNodeId, reply } = input;
  await receipts.recordSending(callNodeId, reply.roundId, digest, clock.nowMs());
  return receipts.recordDelivery(callNodeId, reply.roundId, digest, clock.nowMs());
}

interface Outgoing {
  readonly stored: StoredRound;
  readonly digest: string;
  readonly record: () => Promise<RowSnapshot>;
}

async function send(
  input: AnswerInput,
  row: RowSnapshot,
  { stored, digest, record }: Outgoing,
  ports: Ports,
  attempt: Attempt,
  ended: (row: RowSnapshot, verdict: ReplyVerdict) => StepFact,
): Promise<StepFact> {
  const { receipts, clock } = ports;
  const { roundId, action, content } = input.reply;
  // A cancel came: nobody is answered any more. Heeded only here, where nothing is in flight.
  if (attempt.signal.aborted) throw new StepInterrupted('a cancel came before the reply was sent');
  const reach = reachOf(ports, row);
  // Another attempt may have sent these very bytes: then a server that moved on, or refuses them now, has taken them.
  let maySentBefore = sendingAtOf(row, roundId) !== null;
  let isSentHere = false;
  const beforeSend = async (): Promise<void> => {
    const at = clock.nowMs();
    const marked = await receipts.recordSending(row.callNodeId, roundId, digest, at);
    maySentBefore ||= sendingAtOf(marked, roundId) !== at;
    isSentHere = true;
  };
  const delivered = async (): Promise<StepFact> => {
    const deliver = () => receipts.recordDelivery(row.callNodeId, roundId, digest, clock.nowMs());
    let taken = await deliver();
    // A late attempt was refused and took this reply back while it was on its way: it has arrived all the same.
    if (replyIn(taken, roundId) === null) {
      await record();
      taken = await deliver();
    }
    await attempt.seam('answer:after-commit');
    return ended(taken, { kind: 'applied' });
  };
  const closed = async (): Promise<StepFact> =>
    ended(await receipts.closeRound(row.callNodeId, roundId, clock.nowMs()), ROUND_CLOSED);
  try {
    const hooks = { beforeSend, afterSend: () => attempt.seam('answer:after-send') };
    const delivery = await reach.adapter
      .answer(reach.server, reach.reference, stored.wire, { action, content }, hooks)
      .catch((error: unknown) => closedIfGone(error, attempt));
    if (delivery === 'delivered' || maySentBefore) return await delivered();
    // This attempt may be a late one: what it read may be older than what another has sent meanwhile.
    const known = isSentHere ? null : await receipts.read(row.callNodeId);
    return await (sendingAtOf(known, roundId) === null ? closed() : delivered());
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    if (error.kind === 'RefusedByServer') {
      const reason = clip(error.message, LIMITS.evidenceChars);
      await receipts.addEvidence(row.callNodeId, 'reply-refused', `${roundId}: ${reason}`, clock.nowMs());
      // Nobody else may answer what may have been answered (promise 7).
      if (maySentBefore) return delivered();
      const retracted = await receipts.retractReply(row.callNodeId, roundId, digest);
      return ended(retracted, { kind: 'refused', reason });
    }
    if (!['Transient', 'NotSent', 'NotFound'].includes(error.kind)) return closed();
    return ended(row, laterOrNever(error, input, ports, attempt));
  }
}

/** Servers whose reads lag say "not found" of work that is there, and a closed round is not opened again: several misses count. */
function closedIfGone(error: unknown, { attempt }: Attempt): 'roundClosed' {
  const isGone = WireFault.isInstance(error) && error.kind === 'NotFound';
  if (isGone && attempt >= LIMITS.missedReads) return 'roundClosed';
  throw error;
}

/** @throws StepRetry while the question's own deadline has not come: past it the core cancels, and nobody we know of was reached. */
function laterOrNever(fault: WireFault, input: AnswerInput, ports: Ports, attempt: Attempt): ReplyVerdict {
  const leftMs = input.deadlineAt - ports.clock.nowMs();
  if (leftMs <= 0) return ROUND_CLOSED;
  const gapMs = backOffMs(LIMITS.pollFloorMs, LIMITS.answerRetryCeilingMs, attempt.attempt);
  const delayMs = Math.min(Math.max(fault.retryAfterMs ?? 0, gapMs), leftMs);
  throw new StepRetry('NotReady', clip(fault.message, LIMITS.failureMessageChars), delayMs);
}
