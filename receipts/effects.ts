// Owns what is owed about effects that may exist although no receipt accounts for them, and a person's word that ends it.
// Must never change a receipt or a ready row, nor settle anything without a person's name and note.

import { LIMITS } from '../operation/limits.js';
import { clip } from '../operation/policy.js';
import { readReconciliation, type Reconciliation } from './effect-reads.js';
import type { RowWork } from './row-work.js';
import type { Tx } from './schema.js';

/**
 * Called with new evidence only: a retried step must not undo what a person settled meanwhile. New evidence does: the
 * one who settled it could not know.
 */
export async function oweReconciliation(work: RowWork, reason: string, at: number): Promise<void> {
  const { tx, row } = work;
  const note = clip(reason, LIMITS.evidenceChars);
  await tx
    .insertInto('effect_reconciliation')
    .values({ call_node_id: row.callNodeId, status: 'open', opened_at: at, note })
    .onConflict((conflict) => conflict.column('call_node_id').doUpdateSet({ status: 'open' }))
    .execute();
  await tx
    .insertInto('reconciliation_entry')
    .values({ call_node_id: row.callNodeId, kind: 'owed', note, settled_by: null, at })
    .execute();
}

/** The tool declares that it changes nothing: then nothing can be left over. */
export function mayLeaveEffects({ row }: RowWork): boolean {
  return row.policy.sideEffects !== 'none';
}

/** A person's word that the effects were looked after. */
export interface SettlementWord {
  readonly note: string;
  readonly settledBy: string;
}

export type Settlement =
  | { readonly kind: 'settled'; readonly reconciliation: Reconciliation }
  /** Nothing was changed, whatever was said; the last entry tells who settled it and when. */
  | {
      readonly kind: 'alreadySettled';
      readonly isSameWord: boolean;
      readonly reconciliation: Reconciliation;
    }
  | { readonly kind: 'nothingOwed' }
  | { readonly kind: 'unknownOperation' };

/** @throws TypeError without a note or a name */
export async function settleInside(
  tx: Tx,
  callNodeId: string,
  word: SettlementWord,
  at: number,
): Promise<Settlement> {
  const note = clip(word.note.trim(), LIMITS.evidenceChars);
  const settledBy = clip(word.settledBy.trim(), LIMITS.reasonChars);
  if (note === '' || settledBy === '') throw new TypeError('a settlement needs a note and a name');
  const held = await readReconciliation(tx, callNodeId);
  if (!held) {
    const isOperation = await isKnown(tx, callNodeId);
    return isOperation ? { kind: 'nothingOwed' } : { kind: 'unknownOperation' };
  }
  if (held.status === 'settled') {
    const last = held.entries.at(-1);
    const isSameWord = last?.kind === 'settled' && last.note === note && last.settledBy === settledBy;
    return { kind: 'alreadySettled', isSameWord, reconciliation: held };
  }
  await tx
    .updateTable('effect_reconciliation')
    .set({ status: 'settled' })
    .where('call_node_id', '=', callNodeId)
    .execute();
  await tx
    .insertInto('reconciliation_entry')
    .values({ call_node_id: callNodeId, kind: 'settled', note, settled_by: settledBy, at })
    .execute();
  const settled = await readReconciliation(tx, callNodeId);
  if (!settled) throw new Error(`the reconciliation of ${callNodeId} is not there after it was settled`);
  return { kind: 'settled', reconciliation: settled };
}

async function isKnown(tx: Tx, callNodeId: string): Promise<boolean> {
  const row = await tx
    .selectFrom('operation')
    .select('call_node_id')
    .where('call_node_id', '=', callNodeId)
    .executeTakeFirst();
  return row !== undefined;
}
