// Owns what the store keeps of a row that has forgotten what its run has seen (a restored backup), and what it takes back.
// Must never replace what the row holds: only what is missing is written, and only on an operator's word.

import type { RowSnapshot, SeenByRun, SubmissionLeg } from '../operation/row.js';
import { keepEarlierCancels } from './cancellation.js';
import { readSnapshot } from './row-snapshot.js';
import { keepEvidence, patchOperation, type RowWork } from './row-work.js';
import type { SubmissionLegTable, Tx } from './schema.js';
import type { OpenRequest } from './store.js';

/** Evidence outlives the run: whoever opens the row later, or makes it anew, claims nothing on it. */
export async function keepForgotten(tx: Tx, request: OpenRequest): Promise<void> {
  const { callNodeId, at, seen } = request;
  const detail = seen?.evidence ?? 'the row is missing, though its run is not new';
  await keepEvidence(tx, { callNodeId, kind: 'ledger-behind', detail, at });
}

/**
 * In the transaction that opens the row. Crash window: before its commit nothing has changed and the next attempt does it
 * again; after it, whoever adopts the row finds what was lost, so that nothing is sent a second time.
 */
export async function compareWithRun(tx: Tx, request: OpenRequest, nowAt: number): Promise<void> {
  const { seen } = request;
  if (!seen) return;
  const row = await readSnapshot(tx, request.callNodeId);
  if (!row || row.receipt || !lacks(row, seen)) return;
  await keepForgotten(tx, request);
  if (seen.mayGiveBack) await giveBack({ tx, row, nowAt }, seen, request.at);
}

/** Of what was sent and what became of it: the rest proves nothing about a submission. */
function lacks(row: RowSnapshot, seen: SeenByRun): boolean {
  const tokens = new Set(row.legs.map(({ claimToken }) => claimToken));
  return (
    seen.legs.some(({ claimToken }) => !tokens.has(claimToken)) ||
    (seen.remoteReference !== null && row.remoteReference === null) ||
    (seen.terminalObservation !== null && row.terminalObservation === null)
  );
}

async function giveBack(work: RowWork, lost: SeenByRun, at: number): Promise<void> {
  const { row } = work;
  let leg = row.legs.length;
  for (const seen of lost.legs) {
    const known = row.legs.find(({ claimToken }) => claimToken === seen.claimToken);
    // Numbered on without a gap: an earlier number may be another submission's by now.
    if (known) await closeKnownLeg(work, known, seen, at);
    else await giveBackLeg(work, (leg += 1), seen, at);
  }
  const { remoteReference, terminalObservation } = lost;
  const known = new Set((row.earlierCancels ?? []).map(({ generation }) => generation));
  await keepEarlierCancels(
    work,
    (lost.earlierCancels ?? []).filter(({ generation }) => !known.has(generation)),
  );
  await patchOperation(work, {
    ...(row.adapter === null ? { adapter: lost.adapter, submission_policy: lost.submissionPolicy } : {}),
    ...(row.descriptorDigest === null
      ? { tool_version: lost.toolVersion, descriptor_digest: lost.descriptorDigest }
      : {}),
    ...(row.remoteReference === null && remoteReference
      ? { remote_reference_json: JSON.stringify(remoteReference), remote_id: remoteReference.remoteId }
      : {}),
    ...(row.cancelGeneration < lost.cancelGeneration
      ? {
          cancel_generation: lost.cancelGeneration,
          cancel_reason: lost.cancelReason,
          cancel_delivery: lost.cancelDelivery,
        }
      : {}),
    ...(row.terminalObservation === null && terminalObservation
      ? { terminal_json: JSON.stringify(terminalObservation) }
      : {}),
  });
}

/** Its end, where the row has none. */
async function closeKnownLeg(
  work: RowWork,
  known: SubmissionLeg,
  seen: SubmissionLeg,
  at: number,
): Promise<void> {
  if (known.outcome !== 'open') return;
  await work.tx
    .updateTable('submission_leg')
    .set(endOf(seen, at))
    .where('call_node_id', '=', work.row.callNodeId)
    .where('leg', '=', known.leg)
    .execute();
}

async function giveBackLeg(work: RowWork, leg: number, seen: SubmissionLeg, at: number): Promise<void> {
  await work.tx
    .insertInto('submission_leg')
    .values({
      call_node_id: work.row.callNodeId,
      leg,
      claim_token: seen.claimToken,
      claimed_at: seen.claimedAt,
      continuation_json: null,
      ...endOf(seen, at),
    })
    .execute();
}

function endOf(
  seen: SubmissionLeg,
  at: number,
): Pick<SubmissionLegTable, 'outcome' | 'closed_at' | 'detail'> {
  // Whether the bytes of an open one arrived, nobody will learn from this row any more.
  const isOpen = seen.outcome === 'open';
  return {
    outcome: isOpen ? 'ambiguous' : seen.outcome,
    closed_at: seen.closedAt ?? at,
    detail: isOpen ? 'lost with the store, given back by its run' : seen.detail,
  };
}
