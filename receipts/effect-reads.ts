// Owns the reads of effect reconciliations: one of them, or all that are open. Must never write.

import type { Outcome } from '../operation/names.js';
import type { Db } from './schema.js';

/** Why it is owed, or a person's word that it is looked after. Times are epoch ms. */
export type ReconciliationEntry =
  | { readonly kind: 'owed'; readonly at: number; readonly note: string }
  | { readonly kind: 'settled'; readonly at: number; readonly note: string; readonly settledBy: string };

/** Effects that may exist although the operation ended without accounting for them. */
export interface Reconciliation {
  readonly status: 'open' | 'settled';
  readonly openedAt: number;
  /** The first reason. */
  readonly note: string;
  /** All reasons and all words, in the order in which they came. A reason after a word opens it again. */
  readonly entries: readonly ReconciliationEntry[];
}

export interface ListedReconciliation extends Reconciliation {
  readonly callNodeId: string;
  readonly server: string;
  readonly tool: string;
  /** Null while the operation has not ended: a second piece of remote work is owed at once. */
  readonly outcome: Outcome | null;
  readonly remoteId: string | null;
}

/** Reads two tables: call it inside a transaction. */
export async function readReconciliation(db: Db, callNodeId: string): Promise<Reconciliation | null> {
  const row = await db
    .selectFrom('effect_reconciliation')
    .select(['status', 'opened_at as openedAt', 'note'])
    .where('call_node_id', '=', callNodeId)
    .executeTakeFirst();
  if (!row) return null;
  return { ...row, entries: await readEntries(db, callNodeId, row) };
}

/** The oldest first. Reads several tables: call it inside a transaction. */
export async function listReconciliations(
  db: Db,
  includeSettled: boolean,
): Promise<readonly ListedReconciliation[]> {
  const all = db
    .selectFrom('effect_reconciliation as owed')
    .innerJoin('operation', 'operation.call_node_id', 'owed.call_node_id')
    .leftJoin('ready_outbox', 'ready_outbox.call_node_id', 'owed.call_node_id')
    .select([
      'owed.call_node_id as callNodeId',
      'operation.server as server',
      'operation.tool as tool',
      'ready_outbox.outcome as outcome',
      'operation.remote_id as remoteId',
      'owed.status as status',
      'owed.opened_at as openedAt',
      'owed.note as note',
    ])
    .orderBy('owed.opened_at')
    .orderBy('owed.call_node_id');
  const rows = await (includeSettled ? all : all.where('owed.status', '=', 'open')).execute();
  const listed: ListedReconciliation[] = [];
  for (const row of rows) listed.push({ ...row, entries: await readEntries(db, row.callNodeId, row) });
  return listed;
}

async function readEntries(
  db: Db,
  callNodeId: string,
  first: { readonly openedAt: number; readonly note: string },
): Promise<readonly ReconciliationEntry[]> {
  const rows = await db
    .selectFrom('reconciliation_entry')
    .select(['kind', 'at', 'note', 'settled_by'])
    .where('call_node_id', '=', callNodeId)
    .orderBy('id')
    .execute();
  const entries = rows.map(({ kind, at, note, settled_by }): ReconciliationEntry =>
    kind === 'owed' ? { kind, at, note } : { kind, at, note, settledBy: settled_by ?? 'unknown' },
  );
  // A worker of release 0.1.0 that still writes to this store keeps the first reason in the row alone.
  const hasReason = entries.some(({ kind }) => kind === 'owed');
  return hasReason ? entries : [{ kind: 'owed', at: first.openedAt, note: first.note }, ...entries];
}
