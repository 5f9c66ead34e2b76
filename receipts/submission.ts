// Owns what the row keeps about submitting: negotiation, legs, reference, rejection, proof of absence.
// Must never decide whether a leg may be claimed: operation/policy.ts does, here inside the transaction.

import {
  isAbsenceProved,
  isUnsettled,
  mayHaveBeenSent,
  mayProveAbsence,
  mayReject,
  clip,
  rulingOnClaim,
  type ClaimRuling,
} from '../operation/policy.js';
import { LIMITS } from '../operation/limits.js';
import type { LegOutcome, Rejection, RemoteReference, SubmissionLeg } from '../operation/row.js';
import { mayLeaveEffects, oweReconciliation } from './effects.js';
import { keepEvidence, patchOperation, type RowWork } from './row-work.js';
import { insertRounds } from './rounds.js';
import type { AskedBeforeWork, NegotiationRecord } from './store.js';

/**
 * Once bytes may have left under one session, a later negotiation must not change what they meant. Where they are proved
 * to have started nothing, they mean nothing any more.
 */
export async function writeNegotiation(work: RowWork, negotiation: NegotiationRecord): Promise<void> {
  if (work.row.legs.some(mayHaveBeenSent) && !isAbsenceProved(work.row)) return;
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
  if (isEndKnown || row.hasForgotten || !mayReject(row)) return;
  await patchOperation(work, { rejection_json: JSON.stringify(rejection) });
}

/**
 * Crash window: after this commit and before the send, the leg stays open and counts as possibly sent. Before it,
 * nothing was sent and any attempt may claim.
 */
export async function claimLeg(work: RowWork, claimToken: string, at: number): Promise<ClaimRuling> {
  const ruling = rulingOnClaim(work.row, at);
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
      continuation_json: null,
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

/** See ReceiptStore.recordAsked. One transaction: a leg that is over without its questions would never be gone on from. */
export async function writeAsked(work: RowWork, claimToken: string, asked: AskedBeforeWork): Promise<void> {
  const { row } = work;
  const leg = legOf(work, claimToken);
  if (!leg || !isUnsettled(leg)) return;
  const { requestState, needsConsent } = asked;
  await writeLegEnd(work, leg, { outcome: 'asked', detail: null, at: asked.at });
  await work.tx
    .updateTable('submission_leg')
    .set({ continuation_json: JSON.stringify({ requestState, needsConsent }) })
    .where('call_node_id', '=', row.callNodeId)
    .where('leg', '=', leg.leg)
    .execute();
  const isPast = leg.leg < row.legs.length || row.remoteReference || row.terminalObservation || row.receipt;
  if (!isPast && row.cancelGeneration === 0) await insertRounds(work, asked.rounds, leg.leg);
}

export async function abandonOpenLegs(work: RowWork, detail: string, at: number): Promise<void> {
  for (const leg of work.row.legs) {
    if (leg.outcome === 'open') await writeLegEnd(work, leg, { outcome: 'ambiguous', detail, at });
  }
}

export interface ReferenceRuling {
  /** A second piece of remote work: the row keeps the first, the caller cancels this one. */
  readonly contradicts: boolean;
  /** The operation that this work belongs to: not adopted, and not cancelled either. */
  readonly ownedBy?: string;
}

export async function writeReference(
  work: RowWork,
  claimToken: string | null,
  reference: RemoteReference,
  at: number,
): Promise<ReferenceRuling> {
  const { row } = work;
  const { remoteReference: known } = row;
  const isOwn = known && !known.isUnseen && known.remoteId === reference.remoteId;
  const owner = isOwn ? null : await ownerOf(work, reference);
  if (owner !== null) {
    await refuseForeign(work, { claimToken, reference, owner, at });
    return { contradicts: false, ownedBy: owner };
  }
  const leg = claimToken === null ? row.legs.findLast(isUnsettled) : legOf(work, claimToken);
  // A reference in hand outweighs every earlier belief about its leg, even "not sent"; an operator's word does not.
  if (leg && !reference.isUnseen && leg.outcome !== 'referenced' && leg.outcome !== 'answered') {
    await writeLegEnd(work, leg, { outcome: 'referenced', detail: null, at });
  }
  const isFirst = !known || (known.isUnseen && known.remoteId !== reference.remoteId);
  const isSeenNow = known?.isUnseen && known.remoteId === reference.remoteId && !reference.isUnseen;
  if (!row.receipt && (isFirst || isSeenNow)) {
    if (known && isFirst) {
      const detail = `remote id ${known.remoteId}, never seen, gives way to ${reference.remoteId}`;
      await keepEvidence(work.tx, { callNodeId: row.callNodeId, kind: 'reference-replaced', detail, at });
    }
    await patchOperation(work, {
      remote_reference_json: JSON.stringify(reference),
      remote_id: reference.remoteId,
    });
    return { contradicts: false };
  }
  // A mere word is no second piece of work.
  if (known?.remoteId === reference.remoteId || reference.isUnseen) return { contradicts: false };
  const held = known?.remoteId ?? 'none (the receipt is written)';
  const detail = `remote id ${reference.remoteId}; the row holds ${held}`;
  const evidence = { callNodeId: row.callNodeId, kind: 'second-reference', detail, at } as const;
  const isNew = await keepEvidence(work.tx, evidence);
  if (isNew && mayLeaveEffects(work)) await oweReconciliation(work, `second reference: ${detail}`, at);
  return { contradicts: true };
}

/**
 * Another operation of the same server that holds this work, or null. What is only an operator's word gives way to
 * everyone, and holds nothing against what the server itself has named.
 */
async function ownerOf(work: RowWork, { remoteId, isUnseen }: RemoteReference): Promise<string | null> {
  const holders = await work.tx
    .selectFrom('operation')
    .select(['call_node_id', 'remote_reference_json'])
    .where('remote_id', '=', remoteId)
    .where('server', '=', work.row.server)
    .where('call_node_id', '!=', work.row.callNodeId)
    .orderBy('created_at')
    .execute();
  const owner = holders.find(({ remote_reference_json: json }) => {
    // The column only finds it: the JSON alone keeps every id exactly.
    const held = json === null ? null : (JSON.parse(json) as RemoteReference);
    return held?.remoteId === remoteId && (isUnseen || !held.isUnseen);
  });
  return owner?.call_node_id ?? null;
}

/** Its result would be the other's. Whether this submission started anything of its own, nobody knows. */
async function refuseForeign(
  work: RowWork,
  foreign: { claimToken: string | null; reference: RemoteReference; owner: string; at: number },
): Promise<void> {
  const { row, tx } = work;
  const { claimToken, reference, owner, at } = foreign;
  const detail = `remote id ${reference.remoteId} belongs to operation ${owner}`;
  await keepEvidence(tx, { callNodeId: row.callNodeId, kind: 'foreign-reference', detail, at });
  const leg = claimToken === null ? undefined : legOf(work, claimToken);
  if (leg && leg.outcome !== 'referenced' && leg.outcome !== 'answered') {
    const end = { outcome: 'ambiguous', detail: clip(detail, LIMITS.evidenceChars), at } as const;
    await writeLegEnd(work, leg, end);
  }
  // A look has found the work that an operator's word named, and it is the other's.
  const { remoteReference: known } = row;
  if (known?.isUnseen && known.remoteId === reference.remoteId && !row.receipt) await dropReference(work);
}

/** Only for what was never more than an operator's word. */
export async function dropReference(work: RowWork): Promise<void> {
  await patchOperation(work, { remote_reference_json: null, remote_id: null });
}

export async function writeLocator(work: RowWork, reference: RemoteReference): Promise<void> {
  if (work.row.remoteReference?.remoteId !== reference.remoteId) return;
  await patchOperation(work, { remote_reference_json: JSON.stringify(reference) });
}

/** `at`: when the look was sent. Absence proves nothing while a leg is open: its bytes may still be on their way. */
export async function writeAbsence(work: RowWork, evidence: string, at: number): Promise<void> {
  const { row } = work;
  if (row.remoteReference || row.terminalObservation || !mayProveAbsence(row, at)) return;
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
