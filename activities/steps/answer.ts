// Owns the delivery of one reply to its round: checked, recorded, sent, recorded as delivered.
// Must never deliver a second, different reply, nor one to a round that is over.

import { replyDigest } from '../../operation/digests.js';
import type { ReplyVerdict, StepFact } from '../../operation/facts.js';
import { LIMITS } from '../../operation/limits.js';
import { backOffMs, clip } from '../../operation/policy.js';
import type { InputRound, RowSnapshot } from '../../operation/row.js';
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

  const wire = await ports.receipts.wireState(row.callNodeId);
  const stored = wire.rounds[input.reply.roundId];
  if (!stored) return ended(row, ROUND_CLOSED);
  const objection = objectionTo(input, stored, ports);
  if (objection) return ended(row, { kind: 'refused', reason: objection });

  const recorded = await ports.receipts.recordReply(
    input,
    input.reply.roundId,
    {
      replyDigest: digest,
      replyToken: input.reply.replyToken,
      action: input.reply.action,
      recordedAt: ports.clock.nowMs(),
      sendingAt: null,
      deliveredAt: null,
    },
    JSON.stringify({ action: input.reply.action, content: input.reply.content }),
  );
  await attempt.seam('answer:after-record');
  const holder = recorded.rounds.find((candidate) => candidate.roundId === input.reply.roundId);
  const overtaken = holder ? verdictFromRow(holder, input, digest) : ROUND_CLOSED;
  if (overtaken) return ended(recorded, overtaken);
  return send(input, recorded, stored, digest, ports, attempt, ended);
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

async function send(
  input: AnswerInput,
  row: RowSnapshot,
  stored: StoredRound,
  digest: string,
  ports: Ports,
  attempt: Attempt,
  ended: (row: RowSnapshot, verdict: ReplyVerdict) => StepFact,
): Promise<StepFact> {
  const { roundId } = input.reply;
  // A cancel came: nobody is answered any more. Heeded only here, where nothing is in flight.
  if (attempt.signal.aborted) throw new StepInterrupted('a cancel came before the reply was sent');
  const reach = reachOf(ports, row);
  // An earlier attempt may have sent these very bytes: then a server that moved on has taken them.
  const maySentBefore = row.rounds.find((round) => round.roundId === roundId)?.reply?.sendingAt != null;
  try {
    const { action, content } = input.reply;
    const delivery = await reach.adapter.answer(
      reach.server,
      reach.reference,
      stored.wire,
      { action, content },
      {
        beforeSend: async () => {
          await ports.receipts.recordSending(row.callNodeId, roundId, digest, ports.clock.nowMs());
        },
        afterSend: () => attempt.seam('answer:after-send'),
      },
    );
    if (delivery === 'roundClosed' && !maySentBefore) {
      return ended(
        await ports.receipts.closeRound(row.callNodeId, roundId, ports.clock.nowMs()),
        ROUND_CLOSED,
      );
    }
    const delivered = await ports.receipts.recordDelivery(
      row.callNodeId,
      roundId,
      digest,
      ports.clock.nowMs(),
    );
    await attempt.seam('answer:after-commit');
    return ended(delivered, { kind: 'applied' });
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    if (error.kind === 'RefusedByServer') {
      const reason = clip(error.message, LIMITS.evidenceChars);
      const nowAt = ports.clock.nowMs();
      await ports.receipts.addEvidence(row.callNodeId, 'reply-refused', `${roundId}: ${reason}`, nowAt);
      return ended(await ports.receipts.retractReply(row.callNodeId, roundId, digest), {
        kind: 'refused',
        reason,
      });
    }
    if (error.kind !== 'Transient' && error.kind !== 'NotSent') {
      return ended(
        await ports.receipts.closeRound(row.callNodeId, roundId, ports.clock.nowMs()),
        ROUND_CLOSED,
      );
    }
    const leftMs = input.deadlineAt - ports.clock.nowMs();
    // The question's own deadline has come: the core cancels, and this reply has not reached anybody we know of.
    if (leftMs <= 0) return ended(row, ROUND_CLOSED);
    const gapMs = backOffMs(LIMITS.pollFloorMs, LIMITS.answerRetryCeilingMs, attempt.attempt);
    const delayMs = Math.min(Math.max(error.retryAfterMs ?? 0, gapMs), leftMs);
    throw new StepRetry('NotReady', clip(error.message, LIMITS.failureMessageChars), delayMs);
  }
}
