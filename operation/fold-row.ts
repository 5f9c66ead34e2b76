// Owns how the store's row enters the record, and when the row is older than what the run has seen.
// Must never weigh the row's content: first write wins is the store's rule, the course is apply.ts's.

import { verdictOf } from './replies.js';
import type { CancelDelivery, InputRound, Recording, RowSnapshot } from './row.js';
import type { ToolOperation } from './record.js';

export function foldRow(record: ToolOperation, row: RowSnapshot): ToolOperation {
  return {
    ...record,
    argumentsDigest: row.argumentsDigest,
    submissionKey: row.submissionKey,
    policy: row.policy,
    createdAt: row.createdAt,
    adapter: row.adapter,
    submissionPolicy: row.submissionPolicy,
    toolVersion: row.toolVersion,
    descriptorDigest: row.descriptorDigest,
    executionEpoch: row.executionEpoch,
    ownerRunId: row.ownerRunId,
    submissionLegs: row.legs,
    provedAbsentAtLeg: row.provedAbsentAtLeg,
    hasForgotten: row.hasForgotten ?? false,
    remoteReference: row.remoteReference,
    rounds: mergeRounds(record.rounds, row.rounds),
    cancelGeneration: row.cancelGeneration,
    cancelReason: row.cancelReason,
    cancelDelivery: row.cancelDelivery,
    ...(row.earlierCancels ? { earlierCancels: row.earlierCancels } : {}),
    terminalObservation: row.terminalObservation,
    rejection: row.rejection,
    result: row.result,
    receipt: row.receipt,
  };
}

/**
 * An answer runs beside a pending observation, so their rows may come home in the wrong order. A round only ever gains
 * facts: whichever row knows more of it is right.
 */
function mergeRounds(known: readonly InputRound[], rows: readonly InputRound[]): readonly InputRound[] {
  return rows.map((round) => {
    const before = known.find((candidate) => candidate.roundId === round.roundId);
    if (!before) return round;
    const standing = before.reply && isTakenBack(round, before.reply) ? null : before.reply;
    const reply = standing?.deliveredAt != null ? standing : (round.reply ?? standing);
    const closedAt = round.closedAt ?? before.closedAt;
    return { ...round, reply, closedAt };
  });
}

/**
 * Names what the row has forgotten (a restored backup), or null. The row only ever gains facts.
 * `isAlone`: nothing ran beside the step that brought the row, so that its rounds too must be as new as those the run knows.
 */
export function isBehind(record: ToolOperation, row: RowSnapshot, isAlone: boolean): string | null {
  if (row.executionEpoch < record.executionEpoch) return 'the row holds an older execution epoch';
  const lostLeg = missingLeg(record, row);
  if (lostLeg) return lostLeg;
  if (record.remoteReference && !record.remoteReference.isUnseen && !row.remoteReference)
    return 'the row misses the remote reference';
  if (row.rounds.length < record.rounds.length) return 'the row misses an input round';
  const lostReply = isAlone ? missingReply(record, row) : null;
  if (lostReply) return lostReply;
  if (row.cancelGeneration < record.cancelGeneration) return 'the row holds an older cancel generation';
  if (isDeliveryOlder(record, row)) return 'the row holds an older delivery of the cancel';
  if (record.terminalObservation && !row.terminalObservation)
    return 'the row misses the terminal observation';
  if (record.rejection && !row.rejection) return 'the row misses the rejection';
  if (record.result && !row.result) return 'the row misses the result';
  if (record.receipt && !row.receipt) return 'the row misses the receipt';
  return null;
}

function missingLeg(record: ToolOperation, row: RowSnapshot): string | null {
  for (const seen of record.submissionLegs) {
    const leg = row.legs.find(({ claimToken }) => claimToken === seen.claimToken);
    if (!leg) return 'the row misses a submission leg';
    if (leg.outcome === 'open' && seen.outcome !== 'open')
      return 'the row misses the end of a submission leg';
  }
  return null;
}

/** By whichever run or attempt: the row says so. */
function isTakenBack({ takenBack = [] }: InputRound, { replyToken, recordedAt }: Recording): boolean {
  return takenBack.some((taken) => taken.replyToken === replyToken && taken.recordedAt === recordedAt);
}

/** A reply that the server refused is taken back: then the row is right to have none. */
function missingReply(record: ToolOperation, row: RowSnapshot): string | null {
  for (const seen of record.rounds) {
    const round = row.rounds.find(({ roundId }) => roundId === seen.roundId);
    if (!round) return 'the row misses an input round';
    const { reply } = seen;
    const isRefused =
      reply && (isTakenBack(round, reply) || verdictOf(record, reply.replyToken)?.kind === 'refused');
    if (reply && !isRefused && !round.reply) return 'the row misses a reply';
    if (reply?.deliveredAt != null && round.reply?.deliveredAt == null)
      return 'the row misses the delivery of a reply';
    if (seen.closedAt !== null && round.closedAt === null) return 'the row misses the end of an input round';
  }
  return null;
}

const DELIVERY_RANK: Readonly<Record<CancelDelivery, number>> = {
  none: 0,
  unsent: 1,
  sent: 2,
  // What the server answered may change from one sending to the next.
  acknowledged: 3,
  refused: 3,
  unsupported: 3,
};

/** A cancel that is asked for again begins anew. */
function isDeliveryOlder(record: ToolOperation, row: RowSnapshot): boolean {
  if (row.cancelGeneration > record.cancelGeneration) return false;
  return DELIVERY_RANK[row.cancelDelivery] < DELIVERY_RANK[record.cancelDelivery];
}
