// Owns what the row keeps about input rounds: each asked once, answered once, closed once.
// Must never judge a reply: the answer step does, before it records it.

import { isRoundOpen } from '../operation/policy.js';
import type { InputRound, Recording, RoundReply } from '../operation/row.js';
import { keepEvidence, type RowWork } from './row-work.js';
import type { InputRoundTable } from './schema.js';
import type { NewRound } from './store.js';

/** The detail of the evidence `reply-taken-back`. */
export type TakenBack = Recording & { readonly roundId: string };

/** The first write wins: a replayed question (same round id) is the same round, whatever became of it. */
export async function writeRound(work: RowWork, round: NewRound): Promise<void> {
  if (!roundOf(work, round.roundId)) await insertRounds(work, [round], null);
}

/** `leg`: the submission that was asked them, where they belong to no work yet. */
export async function insertRounds(
  work: RowWork,
  rounds: readonly NewRound[],
  leg: number | null,
): Promise<void> {
  const known = work.row.rounds.length;
  for (const [index, round] of rounds.entries()) await insertRound(work, round, leg, known + index + 1);
}

async function insertRound(
  work: RowWork,
  round: NewRound,
  leg: number | null,
  position: number,
): Promise<void> {
  await work.tx
    .insertInto('input_round')
    .values({
      call_node_id: work.row.callNodeId,
      round_id: round.roundId,
      leg,
      position,
      schema_digest: round.schemaDigest,
      opened_at: round.openedAt,
      deadline_at: round.deadlineAt,
      question_json: JSON.stringify(round.question),
      wire_key: round.wireKey,
      wire_json: JSON.stringify(round.wire),
    })
    .execute();
}

export async function closeRound(work: RowWork, roundId: string, at: number): Promise<void> {
  if (roundOf(work, roundId)?.closedAt === null) await patchRound(work, roundId, { closed_at: at });
}

/**
 * Crash window: after this commit and before the send, the next attempt finds this reply and delivers it again. A
 * reply that its round's schema refuses is never recorded, so the round simply stays open.
 */
export async function writeReply(
  work: RowWork,
  roundId: string,
  reply: RoundReply,
  replyJson: string,
): Promise<void> {
  const round = roundOf(work, roundId);
  if (!round || !isRoundOpen(round) || round.reply) return;
  await patchRound(work, roundId, {
    reply_digest: reply.replyDigest,
    reply_token: reply.replyToken,
    reply_action: reply.action,
    reply_json: replyJson,
    reply_recorded_at: reply.recordedAt,
    reply_sending_at: reply.sendingAt,
    reply_delivered_at: reply.deliveredAt,
  });
}

/** Committed before the first byte may leave: whoever finds it set cannot know whether the reply arrived. */
export async function writeSending(
  work: RowWork,
  roundId: string,
  replyDigest: string,
  at: number,
): Promise<void> {
  const reply = roundOf(work, roundId)?.reply;
  if (reply?.replyDigest !== replyDigest || reply.sendingAt !== null) return;
  await patchRound(work, roundId, { reply_sending_at: at });
}

export async function writeDelivery(
  work: RowWork,
  roundId: string,
  replyDigest: string,
  at: number,
): Promise<void> {
  const reply = roundOf(work, roundId)?.reply;
  if (reply?.replyDigest !== replyDigest || reply.deliveredAt !== null) return;
  await patchRound(work, roundId, { reply_delivered_at: at });
}

/**
 * Crash window: before this commit the next attempt sends the same reply and is refused again; after it, the round is
 * as if nobody had replied, and the same reply may be tried again.
 */
export async function retractReply(work: RowWork, roundId: string, replyDigest: string): Promise<void> {
  const round = roundOf(work, roundId);
  // Open and with a reply: that reply is undelivered.
  if (!round || !isRoundOpen(round) || round.reply?.replyDigest !== replyDigest) return;
  await keepTakenBack(work, roundId, round.reply);
  await patchRound(work, roundId, {
    reply_digest: null,
    reply_token: null,
    reply_action: null,
    reply_json: null,
    reply_recorded_at: null,
    reply_sending_at: null,
    reply_delivered_at: null,
  });
}

/** Another run may have seen the reply, and would take a row without it for a restored backup. */
async function keepTakenBack(work: RowWork, roundId: string, reply: RoundReply): Promise<void> {
  const { replyToken, recordedAt } = reply;
  await keepEvidence(work.tx, {
    callNodeId: work.row.callNodeId,
    kind: 'reply-taken-back',
    detail: JSON.stringify({ roundId, replyToken, recordedAt } satisfies TakenBack),
    at: work.nowAt,
  });
}

function roundOf(work: RowWork, roundId: string): InputRound | undefined {
  return work.row.rounds.find((round) => round.roundId === roundId);
}

async function patchRound(work: RowWork, roundId: string, patch: Partial<InputRoundTable>): Promise<void> {
  await work.tx
    .updateTable('input_round')
    .set(patch)
    .where('call_node_id', '=', work.row.callNodeId)
    .where('round_id', '=', roundId)
    .execute();
}
