// Owns what happens to replies between their arrival and their verdict.
// Must never judge a reply's content; the answer step does, against the round's schema.

import type { ReplyMail, ReplyVerdict, Verdict } from './facts.js';
import { isRoundOpen } from './policy.js';
import type { ToolOperation } from './record.js';
import type { InputRound } from './row.js';

const VERDICTS_KEPT = 64;
/** More than can wait for one question in earnest; all of them settle at once, so their verdicts must all be kept. */
const REPLIES_WAITING = 32;

/** A reply just arrived: an immediate verdict where the facts suffice, else it waits for its delivery. */
export function foldReply(
  record: ToolOperation,
  reply: ReplyMail,
): { record: ToolOperation; verdict: Verdict } {
  const round = record.rounds.find((candidate) => candidate.roundId === reply.roundId);
  const known = round ? verdictFromRound(round, reply) : ROUND_CLOSED;
  if (known) return { record: keepVerdict(record, reply.replyToken, known), verdict: known };
  if (!mayAsk(record))
    return { record: keepVerdict(record, reply.replyToken, ROUND_CLOSED), verdict: ROUND_CLOSED };
  if (record.waitingReplies.length >= REPLIES_WAITING) {
    const refused: ReplyVerdict = { kind: 'refused', reason: 'too many replies wait for their delivery' };
    return { record: keepVerdict(record, reply.replyToken, refused), verdict: refused };
  }
  return {
    record: { ...record, waitingReplies: [...record.waitingReplies, reply] },
    verdict: { kind: 'waiting' },
  };
}

const ROUND_CLOSED: ReplyVerdict = { kind: 'roundClosed' };

/** Nobody is asked, and no reply is sent, once a cancel is requested or the end is known. */
function mayAsk(record: ToolOperation): boolean {
  return (
    !record.cancelAsked && record.cancelGeneration === 0 && !record.terminalObservation && !record.receipt
  );
}

function verdictFromRound(round: InputRound, reply: ReplyMail): ReplyVerdict | null {
  if (round.reply?.deliveredAt != null) {
    if (round.reply.replyToken === reply.replyToken) return { kind: 'applied' };
    if (round.reply.replyDigest === reply.replyDigest) return { kind: 'duplicate' };
    return { kind: 'alreadyAnswered', whenAt: round.reply.recordedAt };
  }
  return isRoundOpen(round) ? null : ROUND_CLOSED;
}

/** A delivery ended: its reply gets the verdict, and so does every other reply the row now decides. */
export function settleReply(record: ToolOperation, replyToken: string, verdict: ReplyVerdict): ToolOperation {
  const waitingReplies = record.waitingReplies.filter((reply) => reply.replyToken !== replyToken);
  return keepVerdict({ ...record, waitingReplies }, replyToken, verdict);
}

/** Before a run goes on, each waiting reply whose round is over gets its verdict. */
export function closeWaitingReplies(record: ToolOperation): ToolOperation {
  let next = record;
  for (const reply of record.waitingReplies) {
    const round = record.rounds.find((candidate) => candidate.roundId === reply.roundId);
    // Without its round: the store has forgotten the question, and nobody goes on with it.
    const known = round ? verdictFromRound(round, reply) : ROUND_CLOSED;
    const verdict = known ?? (mayAsk(record) ? null : ROUND_CLOSED);
    if (verdict) next = settleReply(next, reply.replyToken, verdict);
  }
  return next;
}

function keepVerdict(record: ToolOperation, replyToken: string, verdict: ReplyVerdict): ToolOperation {
  const others = record.replyVerdicts.filter((kept) => kept.replyToken !== replyToken);
  return { ...record, replyVerdicts: [...others, { replyToken, verdict }].slice(-VERDICTS_KEPT) };
}

export function verdictOf(record: ToolOperation, replyToken: string): ReplyVerdict | null {
  return record.replyVerdicts.find((kept) => kept.replyToken === replyToken)?.verdict ?? null;
}
