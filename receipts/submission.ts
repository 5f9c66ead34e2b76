// Owns what the row keeps about submitting: negotiation, legs, reference, rejection, proof of absence.
// Must never decide whether a leg may be claimed: operation/policy.ts does, here inside the transaction.

import {
  isUnsettled,
  mayHaveBeenSent,
  mayReject,
  rulingOnClaim,
  type ClaimRuling,
} from '../operation/policy.js';
import type { LegOutcome, Rejection, RemoteReference, SubmissionLeg } from '../operation/row.js';
import { mayLeaveEffects, oweReconciliation } from './effects.js';
import { keepEvidence, patchOperation, type RowWork } from './row-work.js';
import type { NegotiationRecord } from './store.js';

/** Once bytes may have left under one session, a later negotiation must not change what they meant. */
export async function writeNegotiation(work: RowWork, negotiation: NegotiationRecord): Promise<void> {
  if (work.row.legs.some(mayHaveBeenSent)) return;
  await patchOperation(work, {
    adapter: negotiation.adapter,
    submission_policy: negotiation.submissionPolicy,
    tool_version: negotiation.toolVersion,
    descriptor_digest: negotiation.descriptorDigest,
    output_schema_json: negotiation.outputSchema ? JSON.stringify(negotiation.outputSchema) : null,
    session_json: JSON.stringify(negotiation.session),
  });
}

export async function writeRejection(work: RowWork, rejection: Rejection): Promise<void> {
  const { row } = work;
  const isEndKnown = row.rejection || row.terminalObservation || row.remoteReference;
  if (isEndKnown || !mayReject(row.legs)) return;
  await patchOperation(work, { rejection_json: JSON.stringify(rejection) });
}

/**
 * Crash window: after this commit and before the send, the leg stays open and counts as possibly sent. Before it,
 * nothing was sent and any attempt may claim.
 */
export async function claimLeg(work: RowWork, claimToken: string, at: number): Promise<ClaimRuling> {
  const ruling = rulingOnClaim(work.row);
  if (ruling !== 'granted') return ruling;
  await work.tx
    .insertInto('submission_leg')
    .values({
      call_node_id: work.row.callNodeId,
      leg: work.row.legs.length + 1,
      claim_token: claimToken,
      claimed_at: at,
      closed_at: null,
      outcome: 'open',
      detail: null,
    })
    .execute();
  return ruling;
}

export interface LegEnd {
  readonly outcome: LegOutcome;
  readonly detail: string | null;
  readonly at: number;
}

/** A zombie's late word may settle an ambiguous leg; a settled leg never changes again. */
export async function closeLeg(work: RowWork, claimToken: string, end: LegEnd): Promise<void> {
  const leg = legOf(work, claimToken);
  if (leg && isUnsettled(leg)) await writeLegEnd(work, leg, end);
}

export async function abandonOpenLegs(work: RowWork, detail: string, at: number): Promise<void> {
  for (const leg of work.row.legs) {
    if (leg.outcome === 'open') await writeLegEnd(work, leg, { outcome: 'ambiguous', detail, at });
  }
}

/** True where this is a second piece of remote work: the row keeps the first, the caller cancels this one. */
export async function writeReference(
  work: RowWork,
  claimToken: string | null,
  reference: RemoteReference,
  at: number,
): Promise<boolean> {
  const { row } = work;
  const leg = claimToken === null ? row.legs.findLast(isUnsettled) : legOf(work, claimToken);
  // A reference in hand outweighs every earlier belief about its leg, even "not sent".
  if (leg && leg.outcome !== 'referenced' && leg.outcome !== 'answered') {
    await writeLegEnd(work, leg, { outcome: 'referenced', detail: null, at });
  }
  if (!row.remoteReference && !row.receipt) {
    await patchOperation(work, {
      remote_reference_json: JSON.stringify(reference),
      remote_id: reference.remoteId,
    });
    return false;
  }
  if (row.remoteReference?.remoteId === reference.remoteId) return false;
  const known = row.remoteReference?.remoteId ?? 'none (the receipt is written)';
  const detail = `remote id ${reference.remoteId}; the row holds ${known}`;
  const evidence = { callNodeId: row.callNodeId, kind: 'second-reference', detail, at } as const;
  const isNew = await keepEvidence(work.tx, evidence);
  if (isNew && mayLeaveEffects(work)) await oweReconciliation(work, `second reference: ${detail}`, at);
  return true;
}

export async function writeLocator(work: RowWork, reference: RemoteReference): Promise<void> {
  if (work.row.remoteReference?.remoteId !== reference.remoteId) return;
  await patchOperation(work, { remote_reference_json: JSON.stringify(reference) });
}

/** Absence proves nothing while a leg is open: its bytes may still be on their way. */
export async function writeAbsence(work: RowWork, evidence: string, at: number): Promise<void> {
  const { row } = work;
  const isMoot = row.remoteReference || row.terminalObservation;
  if (isMoot || row.legs.some((leg) => leg.outcome === 'open')) return;
  await patchOperation(work, { proved_absent_at_leg: row.legs.length });
  const detail = `after leg ${row.legs.length}: ${evidence}`;
  await keepEvidence(work.tx, { callNodeId: row.callNodeId, kind: 'absence-proved', detail, at });
}

function legOf(work: RowWork, claimToken: string): SubmissionLeg | undefined {
  return work.row.legs.find((leg) => leg.claimToken === claimToken);
}

async function writeLegEnd(work: RowWork, leg: SubmissionLeg, end: LegEnd): Promise<void> {
  await work.tx
    .updateTable('submission_leg')
    .set({ outcome: end.outcome, detail: end.detail, closed_at: end.at })
    .where('call_node_id', '=', work.row.callNodeId)
    .where('leg', '=', leg.leg)
    .execute();
}
