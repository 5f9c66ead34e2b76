// Owns what every write inside a transaction has in hand, and the two writes they all share.
// Must never open or end a transaction: kysely-store.ts does.

import type { Updateable } from 'kysely';

import { LIMITS } from '../operation/limits.js';
import { clip } from '../operation/policy.js';
import type { RowSnapshot } from '../operation/row.js';
import type { OperationTable, Tx } from './schema.js';
import type { EvidenceKind } from './store.js';

export interface RowWork {
  readonly tx: Tx;
  /** The row as this transaction found it; nobody else can change it before the transaction ends. */
  readonly row: RowSnapshot;
  /** The store's clock, only for `updated_at` and for evidence that brings no time of its own. */
  readonly nowAt: number;
}

export async function patchOperation(work: RowWork, patch: Updateable<OperationTable>): Promise<void> {
  await work.tx
    .updateTable('operation')
    .set({ ...patch, updated_at: work.nowAt })
    .where('call_node_id', '=', work.row.callNodeId)
    .execute();
}

/** The same evidence is kept once, however often a step is retried; true where it is new. */
export async function keepEvidence(
  tx: Tx,
  evidence: { callNodeId: string; kind: EvidenceKind; detail: string; at: number },
): Promise<boolean> {
  const { callNodeId, kind, at } = evidence;
  const detail = clip(evidence.detail, LIMITS.evidenceChars);
  const known = await tx
    .selectFrom('evidence')
    .select('id')
    .where('call_node_id', '=', callNodeId)
    .where('kind', '=', kind)
    .where('detail', '=', detail)
    .executeTakeFirst();
  if (known) return false;
  await tx.insertInto('evidence').values({ call_node_id: callNodeId, kind, detail, at }).execute();
  return true;
}
