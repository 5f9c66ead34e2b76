// Owns the single acceptance point: the one place that writes a receipt, its ready row, and owed reconciliation.
// Must never accept what it has not compared, nor write any of the three without the others.

import {
  isTakenBack,
  PRESENTED_FACTS,
  presentedBy,
  type End,
  type Presented,
} from '../operation/build-receipt.js';
import type { Receipt } from '../operation/receipt.js';
import type { RowSnapshot, StoredResult } from '../operation/row.js';
import { oweReconciliation } from './effects.js';
import { passFence, requireRow, type Owned } from './ownership.js';
import { toReceiptText } from './receipt-json.js';
import { keepEvidence, type RowWork } from './row-work.js';
import type { Tx } from './schema.js';
import { StoreError, type Fence } from './store.js';
import { dropReference } from './submission.js';

export type Decide = (row: RowSnapshot) => { end: End; receipt: Receipt } | null;

export type AcceptanceRuling =
  | { kind: 'written' }
  | { kind: 'found' }
  | { kind: 'refused'; fact: string; evidence: string }
  /** Another run owns the row: this one must end by the error, once the refusal is committed. */
  | { kind: 'superseded'; error: StoreError };

/** Runs inside one transaction: a crash before its commit leaves nothing, after it everything. */
export async function acceptInside(
  tx: Tx,
  request: { fence: Fence; presented: Presented; decide: Decide; at: number; nowAt: number },
): Promise<AcceptanceRuling> {
  const { fence, presented, decide, at, nowAt } = request;
  const found = await requireRow(tx, fence.callNodeId);
  if (found.receipt) {
    const differing = firstDifference(presented, presentedBy(found), ['callNodeId', 'requestDigest']);
    return differing ? refuse({ tx, row: found, nowAt }, differing, at) : { kind: 'found' };
  }
  const owned = await ownedOrSuperseded(tx, fence, nowAt);
  if (StoreError.isInstance(owned)) {
    await refuse({ tx, row: found, nowAt }, { fact: 'owner', evidence: owned.message }, at);
    return { kind: 'superseded', error: owned };
  }
  const { row, isAdopted } = owned;
  const work: RowWork = { tx, row, nowAt };
  const held = presentedBy(row);
  // This very call took the epoch, so the run could only present the one before.
  const isOwnStep = isAdopted && presented.executionEpoch === row.executionEpoch - 1;
  const compared = isOwnStep ? { ...presented, executionEpoch: row.executionEpoch } : presented;
  const differing = firstDifference(compared, held, PRESENTED_FACTS);
  if (differing) return refuse(work, differing, at);

  const decided = decide(row);
  if (!decided) return refuse(work, { fact: 'end', evidence: 'the row proves no end' }, at);
  const missing = await missingPayload(tx, decided.receipt);
  if (missing) return refuse(work, { fact: 'resultDigest', evidence: missing }, at);
  await writeEnd(work, decided.receipt, decided.end, at);
  return { kind: 'written' };
}

/** The fence writes nothing before it refuses, so that the refusal may be recorded in this very transaction. */
async function ownedOrSuperseded(tx: Tx, fence: Fence, nowAt: number): Promise<Owned | StoreError> {
  try {
    return await passFence(tx, fence, nowAt);
  } catch (error) {
    if (StoreError.isInstance(error) && error.code === 'Superseded') return error;
    throw error;
  }
}

interface Difference {
  readonly fact: string;
  readonly evidence: string;
}

function firstDifference(
  presented: Presented,
  held: Presented,
  facts: readonly (keyof Presented)[],
): Difference | null {
  const fact = facts.find((name) => presented[name] !== held[name]);
  if (!fact) return null;
  return { fact, evidence: `presented ${presented[fact]}, the store holds ${held[fact]}` };
}

async function refuse(work: RowWork, difference: Difference, at: number): Promise<AcceptanceRuling> {
  await keepEvidence(work.tx, {
    callNodeId: work.row.callNodeId,
    kind: 'acceptance-refused',
    detail: `${difference.fact}: ${difference.evidence}`,
    at,
  });
  return { kind: 'refused', ...difference };
}

/** Promise 3: completed and failed are accepted only with their result stored under its digest. */
async function missingPayload(tx: Tx, receipt: Receipt): Promise<string | null> {
  const hasPayload = receipt.outcome === 'completed' || receipt.outcome === 'failed';
  if (!hasPayload) return null;
  if (!receipt.result) return `${receipt.outcome} without a result`;
  return (await isStored(tx, receipt.result)) ? null : `result ${receipt.result.digest} is not in the store`;
}

async function isStored(tx: Tx, result: StoredResult): Promise<boolean> {
  const blob = await tx
    .selectFrom('result_blob')
    .select('size_bytes')
    .where('digest', '=', result.digest)
    .executeTakeFirst();
  return blob?.size_bytes === result.sizeBytes;
}

async function writeEnd(work: RowWork, receipt: Receipt, end: End, at: number): Promise<void> {
  const { tx, row } = work;
  const { json, digest } = toReceiptText(receipt);
  await tx
    .insertInto('receipt')
    .values({ call_node_id: row.callNodeId, receipt_json: json, receipt_digest: digest })
    .execute();
  await tx
    .insertInto('ready_outbox')
    .values({
      call_node_id: row.callNodeId,
      receipt_digest: digest,
      advances: receipt.outcome === 'completed' ? 1 : 0,
      outcome: receipt.outcome,
      created_at: at,
    })
    .execute();
  if (receipt.effects === 'EFFECT_RECONCILIATION_REQUIRED') {
    await oweReconciliation(work, `${receipt.outcome}: ${end.evidence}`, at);
  }
  if (isTakenBack(row, end)) {
    const detail = `remote id ${row.remoteReference?.remoteId}, never seen: ${end.evidence}`;
    await keepEvidence(tx, { callNodeId: row.callNodeId, kind: 'reference-dropped', detail, at });
    await dropReference(work);
  }
}
