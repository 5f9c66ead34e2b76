// Owns how the store's row enters the record, and when the row is older than what the run has seen.
// Must never weigh the row's content: first write wins is the store's rule, the course is apply.ts's.

import type { InputRound, RowSnapshot } from './row.js';
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
    remoteReference: row.remoteReference,
    rounds: mergeRounds(record.rounds, row.rounds),
    cancelGeneration: row.cancelGeneration,
    cancelReason: row.cancelReason,
    cancelDelivery: row.cancelDelivery,
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
    const reply = before.reply?.deliveredAt != null ? before.reply : (round.reply ?? before.reply);
    const closedAt = round.closedAt ?? before.closedAt;
    return { ...round, reply, closedAt };
  });
}

/** Names what the row has forgotten (a restored backup), or null. The row only ever gains facts. */
export function isBehind(record: ToolOperation, row: RowSnapshot): string | null {
  if (row.executionEpoch < record.executionEpoch) return 'the row holds an older execution epoch';
  if (row.legs.length < record.submissionLegs.length) return 'the row misses a submission leg';
  if (record.remoteReference && !record.remoteReference.isUnseen && !row.remoteReference)
    return 'the row misses the remote reference';
  if (row.rounds.length < record.rounds.length) return 'the row misses an input round';
  if (row.cancelGeneration < record.cancelGeneration) return 'the row holds an older cancel generation';
  if (record.terminalObservation && !row.terminalObservation)
    return 'the row misses the terminal observation';
  if (record.result && !row.result) return 'the row misses the result';
  if (record.receipt && !row.receipt) return 'the row misses the receipt';
  return null;
}
