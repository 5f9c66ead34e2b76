// Owns the reads beside the row: receipts, result bytes, wire state, and what people look up.
// Must never write.

import type { JsonObject } from '../operation/json.js';
import type { Outcome } from '../operation/names.js';
import type { Receipt } from '../operation/receipt.js';
import type { OperationPolicy, Question } from '../operation/row.js';
import { fromReceiptText, sha256Hex } from './receipt-json.js';
import { fromJson } from './row-snapshot.js';
import type { Db } from './schema.js';
import {
  StoreError,
  type EvidenceKind,
  type OpenRow,
  type OpenRowsQuery,
  type StoredContinuation,
  type StoredRound,
  type WireState,
} from './store.js';

export async function readReceipt(db: Db, callNodeId: string): Promise<Receipt | null> {
  const text = await db
    .selectFrom('receipt')
    .select(['receipt_json as json', 'receipt_digest as digest'])
    .where('call_node_id', '=', callNodeId)
    .executeTakeFirst();
  return text ? fromReceiptText(text) : null;
}

/** @throws StoreError StoreUnusable where the bytes were changed after they were written. */
export async function readResult(db: Db, digest: string): Promise<Uint8Array | null> {
  const blob = await db
    .selectFrom('result_blob')
    .select('bytes')
    .where('digest', '=', digest)
    .executeTakeFirst();
  if (!blob) return null;
  if (sha256Hex(blob.bytes) !== digest) {
    throw new StoreError(
      'StoreUnusable',
      `The stored result ${digest} does not match its digest: the store is damaged, restore it from a backup.`,
    );
  }
  // A plain view: drivers hand out Buffers, which print and compare differently.
  return new Uint8Array(blob.bytes.buffer, blob.bytes.byteOffset, blob.bytes.byteLength);
}

/** Reads two tables: call it inside a transaction. @throws StoreError LedgerMissing */
export async function readWireState(db: Db, callNodeId: string): Promise<WireState> {
  const row = await db
    .selectFrom('operation')
    .select(['arguments_json', 'session_json', 'output_schema_json', 'anchor_json'])
    .where('call_node_id', '=', callNodeId)
    .executeTakeFirst();
  if (!row) throw new StoreError('LedgerMissing', `The store holds no row for ${callNodeId}.`);
  return {
    argumentsJson: row.arguments_json,
    session: fromJson<JsonObject>(row.session_json),
    outputSchema: fromJson<JsonObject>(row.output_schema_json),
    anchor: fromJson<JsonObject>(row.anchor_json),
    rounds: await readWireRounds(db, callNodeId),
  };
}

/**
 * Reads two tables: call it inside a transaction. A leg claimed since, whatever became of it, went on from the same place:
 * what counts is the last that was asked.
 */
export async function readContinuation(db: Db, callNodeId: string): Promise<StoredContinuation | null> {
  const asked = await db
    .selectFrom('submission_leg')
    .select(['leg', 'continuation_json'])
    .where('call_node_id', '=', callNodeId)
    .where('outcome', '=', 'asked')
    .orderBy('leg', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (!asked) return null;
  const replies = await db
    .selectFrom('input_round')
    .select(['wire_key', 'reply_json'])
    .where('call_node_id', '=', callNodeId)
    .where('leg', '=', asked.leg)
    .orderBy('position')
    .execute();
  const kept = fromJson<Pick<StoredContinuation, 'requestState' | 'needsConsent'>>(asked.continuation_json);
  return {
    // A leg that its run gave back has none.
    requestState: kept?.requestState ?? null,
    needsConsent: kept?.needsConsent ?? false,
    replies: replies.flatMap(({ wire_key: wireKey, reply_json: replyJson }) =>
      replyJson === null ? [] : [{ wireKey, replyJson }],
    ),
  };
}

async function readWireRounds(db: Db, callNodeId: string): Promise<Record<string, StoredRound>> {
  const rounds = await db
    .selectFrom('input_round')
    .select(['round_id', 'leg', 'wire_key', 'wire_json', 'question_json', 'reply_json'])
    .where('call_node_id', '=', callNodeId)
    .orderBy('position')
    .execute();
  return Object.fromEntries(
    rounds.map((round): [string, StoredRound] => [
      round.round_id,
      {
        wireKey: round.wire_key,
        wire: JSON.parse(round.wire_json) as JsonObject,
        question: JSON.parse(round.question_json) as Question,
        replyJson: round.reply_json,
        leg: round.leg,
      },
    ]),
  );
}

/** Questions by round id, of closed rounds too: the snapshot lets go of them, the store does not. */
export async function readQuestions(db: Db, callNodeId: string): Promise<Readonly<Record<string, Question>>> {
  const rounds = await readWireRounds(db, callNodeId);
  return Object.fromEntries(Object.entries(rounds).map(([roundId, round]) => [roundId, round.question]));
}

export interface Evidence {
  readonly kind: EvidenceKind;
  readonly detail: string;
  readonly at: number;
}

export async function readEvidence(db: Db, callNodeId: string): Promise<readonly Evidence[]> {
  return db
    .selectFrom('evidence')
    .select(['kind', 'detail', 'at'])
    .where('call_node_id', '=', callNodeId)
    .orderBy('id')
    .execute();
}

export interface ReadyRow {
  readonly receiptDigest: string;
  readonly advances: boolean;
  readonly outcome: Outcome;
  readonly createdAt: number;
}

export async function readReady(db: Db, callNodeId: string): Promise<ReadyRow | null> {
  const row = await db
    .selectFrom('ready_outbox')
    .selectAll()
    .where('call_node_id', '=', callNodeId)
    .executeTakeFirst();
  if (!row) return null;
  return {
    receiptDigest: row.receipt_digest,
    advances: row.advances === 1,
    outcome: row.outcome,
    createdAt: row.created_at,
  };
}

/** The operations that remote work belongs to, by task id, operation name or submission key; `by` narrows it to one. */
export async function findCallNodeIds(
  db: Db,
  remoteIdOrKey: string,
  by: 'remoteId' | 'submissionKey' | null = null,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('operation')
    .select('call_node_id')
    .where((eb) =>
      eb.or([
        ...(by === 'submissionKey' ? [] : [eb('remote_id', '=', remoteIdOrKey)]),
        ...(by === 'remoteId' ? [] : [eb('submission_key', '=', remoteIdOrKey)]),
      ]),
    )
    .orderBy('created_at')
    .execute();
  return rows.map((row) => row.call_node_id);
}

/** By callNodeId, one page: the order is the same however the rows change meanwhile. */
export async function readOpenRows(db: Db, query: OpenRowsQuery): Promise<readonly OpenRow[]> {
  const { after, limit, createdBeforeAt } = query;
  const open = db
    .selectFrom('operation')
    .leftJoin('receipt', 'receipt.call_node_id', 'operation.call_node_id')
    .select([
      'operation.call_node_id as callNodeId',
      'operation.request_digest as requestDigest',
      'operation.server as server',
      'operation.tool as tool',
      'operation.arguments_json as argumentsJson',
      'operation.policy_json as policyJson',
      'operation.owner_run_id as ownerRunId',
    ])
    .select((eb) =>
      eb
        .selectFrom('evidence')
        .select((inner) => inner.fn.countAll().as('found'))
        .whereRef('evidence.call_node_id', '=', 'operation.call_node_id')
        .where('evidence.kind', '=', 'receipt-lost')
        .as('receiptsLost'),
    )
    .where('receipt.call_node_id', 'is', null)
    .where('operation.created_at', '<=', createdBeforeAt)
    .orderBy('operation.call_node_id')
    .limit(limit);
  const rows = await (after === null ? open : open.where('operation.call_node_id', '>', after)).execute();
  return rows.map(({ policyJson, receiptsLost, ...row }) => {
    const { waitBudgetMs, waitBudgetExplicit } = JSON.parse(policyJson) as OperationPolicy;
    return {
      ...row,
      waitBudgetMs: waitBudgetExplicit ? waitBudgetMs : null,
      isReceiptLost: Number(receiptsLost) > 0,
    };
  });
}

/** See ReceiptStore.descriptorBefore. */
export async function readDescriptorBefore(db: Db, callNodeId: string): Promise<string | null> {
  const before = await db
    .selectFrom('operation as own')
    .innerJoin('operation as other', (join) =>
      join.onRef('other.server', '=', 'own.server').onRef('other.tool', '=', 'own.tool'),
    )
    .select('other.descriptor_digest as digest')
    .where('own.call_node_id', '=', callNodeId)
    .where('other.call_node_id', '!=', callNodeId)
    .where('other.descriptor_digest', 'is not', null)
    .orderBy('other.created_at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return before?.digest ?? null;
}

/** One operation in a list; `outcome` and `endedAt` are null while it has no receipt. Times are epoch ms. */
export interface StoredOperation {
  readonly callNodeId: string;
  readonly server: string;
  readonly tool: string;
  readonly createdAt: number;
  readonly outcome: Outcome | null;
  readonly endedAt: number | null;
}

/** The newest first. What is held or being cancelled only the run knows: the row has no state. */
export async function listOperations(db: Db, includeEnded: boolean): Promise<readonly StoredOperation[]> {
  const all = db
    .selectFrom('operation')
    .leftJoin('ready_outbox', 'ready_outbox.call_node_id', 'operation.call_node_id')
    .select([
      'operation.call_node_id as callNodeId',
      'operation.server as server',
      'operation.tool as tool',
      'operation.created_at as createdAt',
      'ready_outbox.outcome as outcome',
      'ready_outbox.created_at as endedAt',
    ])
    .orderBy('operation.created_at', 'desc');
  return includeEnded ? all.execute() : all.where('ready_outbox.outcome', 'is', null).execute();
}
