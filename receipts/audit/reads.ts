// Owns what an audit reads, page by page: one read transaction each, so that an operation is seen at one moment while
// workers write. Must never write, and never hold more than one operation or one result in memory.

import { sql } from 'kysely';

import { readReconciliation, type Reconciliation } from '../effect-reads.js';
import { sha256Hex, type ReceiptText } from '../receipt-json.js';
import { readRow, type RowBeforeReceipt } from '../row-snapshot.js';
import type { Db, InputRoundTable, StoreTables, Tx } from '../schema.js';
import { readReady, type ReadyRow } from '../store-reads.js';
import type { EvidenceKind } from '../store.js';

/** All that the store holds about one operation, as it is written there. */
export interface AuditedOperation {
  readonly callNodeId: string;
  /** Null where a column of it cannot be read. */
  readonly row: RowBeforeReceipt | null;
  readonly argumentsJson: string;
  /** Kept a second time, to be found by. */
  readonly remoteId: string | null;
  readonly resultDigest: string | null;
  readonly rounds: readonly InputRoundTable[];
  readonly receipt: ReceiptText | null;
  readonly ready: ReadyRow | null;
  readonly reconciliation: Reconciliation | null;
  readonly evidence: ReadonlySet<EvidenceKind>;
  /** Of the row's result; null where it has none, or its bytes are not there. */
  readonly blob: BlobSize | null;
}

export interface BlobSize {
  /** As written beside the bytes, and as the bytes are. */
  readonly sizeBytes: number;
  readonly storedBytes: number;
}

export interface AuditedBlob extends BlobSize {
  readonly digest: string;
  readonly digestOfBytes: string;
  /** Some of the operations it is the result of. */
  readonly referredBy: readonly string[];
}

/** A row of `table` whose row in `parent` is not there. */
export interface Orphan {
  readonly table: string;
  readonly parent: string;
  readonly callNodeId: string;
}

export interface AuditReads {
  /** The operations after that name, in the order of their names; gives the last one, or null at the end. */
  visitOperations(
    after: string | null,
    count: number,
    visit: (operation: AuditedOperation) => void,
  ): Promise<string | null>;
  visitBlobs(after: string | null, count: number, visit: (blob: AuditedBlob) => void): Promise<string | null>;
  /** At most `count` of each table. */
  orphans(count: number): Promise<readonly Orphan[]>;
  /** Operations that only evidence tells of. */
  strayEvidence(count: number): Promise<readonly string[]>;
}

/** Of no use to anybody but an audit, and no part of what a reader promises. */
const READS = new WeakMap<object, AuditReads>();

export function keepAuditReads(reader: object, reads: AuditReads): void {
  READS.set(reader, reads);
}

/** @throws TypeError where the reader is not one of `openReceiptsReader` */
export function auditReadsOf(reader: object): AuditReads {
  const reads = READS.get(reader);
  if (!reads) throw new TypeError('an audit needs a reader of openReceiptsReader');
  return reads;
}

/** Every reference between tables; a test holds it against the schema. Evidence refers to nothing, on purpose. */
export const REFERENCES = [
  ['submission_leg', 'operation'],
  ['input_round', 'operation'],
  ['earlier_cancel', 'operation'],
  ['receipt', 'operation'],
  ['ready_outbox', 'receipt'],
  ['effect_reconciliation', 'operation'],
  ['reconciliation_entry', 'effect_reconciliation'],
] as const satisfies readonly (readonly [keyof StoreTables, keyof StoreTables])[];

const REFERRED_BY = 3;

export function auditReads(db: Db, inOne: <T>(read: (tx: Tx) => Promise<T>) => Promise<T>): AuditReads {
  return {
    visitOperations: (after, count, visit) =>
      inOne(async (tx) => {
        const names = await tx
          .selectFrom('operation')
          .select('call_node_id')
          .where('call_node_id', '>', after ?? '')
          .orderBy('call_node_id')
          .limit(count)
          .execute();
        for (const { call_node_id } of names) visit(await readAudited(tx, call_node_id));
        return names.at(-1)?.call_node_id ?? null;
      }),
    visitBlobs: (after, count, visit) =>
      inOne(async (tx) => {
        const digests = await tx
          .selectFrom('result_blob')
          .select('digest')
          .where('digest', '>', after ?? '')
          .orderBy('digest')
          .limit(count)
          .execute();
        for (const { digest } of digests) visit(await readBlob(tx, digest));
        return digests.at(-1)?.digest ?? null;
      }),
    orphans: async (count) => {
      const found: Orphan[] = [];
      for (const [table, parent] of REFERENCES) {
        for (const callNodeId of await orphansOf(db, table, parent, count)) {
          found.push({ table, parent, callNodeId });
        }
      }
      return found;
    },
    strayEvidence: (count) => orphansOf(db, 'evidence', 'operation', count),
  };
}

async function orphansOf(
  db: Db,
  table: keyof StoreTables,
  parent: keyof StoreTables,
  count: number,
): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select distinct child.call_node_id as name
    from ${sql.table(table)} as child
    left join ${sql.table(parent)} as parent on parent.call_node_id = child.call_node_id
    where parent.call_node_id is null
    order by child.call_node_id
    limit ${count}`.execute(db);
  return rows.map(({ name }) => name);
}

async function readAudited(tx: Tx, callNodeId: string): Promise<AuditedOperation> {
  const columns = await tx
    .selectFrom('operation')
    .select(['arguments_json', 'remote_id', 'result_digest'])
    .where('call_node_id', '=', callNodeId)
    .executeTakeFirstOrThrow();
  const receipt = await tx
    .selectFrom('receipt')
    .select(['receipt_json as json', 'receipt_digest as digest'])
    .where('call_node_id', '=', callNodeId)
    .executeTakeFirst();
  return {
    callNodeId,
    row: await readable(() => readRow(tx, callNodeId)),
    argumentsJson: columns.arguments_json,
    remoteId: columns.remote_id,
    resultDigest: columns.result_digest,
    rounds: await tx
      .selectFrom('input_round')
      .selectAll()
      .where('call_node_id', '=', callNodeId)
      .orderBy('position')
      .execute(),
    receipt: receipt ?? null,
    ready: await readReady(tx, callNodeId),
    reconciliation: await readReconciliation(tx, callNodeId),
    evidence: await readEvidenceKinds(tx, callNodeId),
    blob: columns.result_digest === null ? null : await readBlobSize(tx, columns.result_digest),
  };
}

/** Null where the text of a column is no JSON any more. */
async function readable<T>(read: () => Promise<T | null>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

async function readEvidenceKinds(tx: Tx, callNodeId: string): Promise<ReadonlySet<EvidenceKind>> {
  const kinds = await tx
    .selectFrom('evidence')
    .select('kind')
    .distinct()
    .where('call_node_id', '=', callNodeId)
    .execute();
  return new Set(kinds.map(({ kind }) => kind));
}

async function readBlobSize(tx: Tx, digest: string): Promise<BlobSize | null> {
  const blob = await tx
    .selectFrom('result_blob')
    .select(['size_bytes as sizeBytes', sql<number>`length(bytes)`.as('storedBytes')])
    .where('digest', '=', digest)
    .executeTakeFirst();
  return blob ?? null;
}

async function readBlob(tx: Tx, digest: string): Promise<AuditedBlob> {
  const { bytes, size_bytes } = await tx
    .selectFrom('result_blob')
    .select(['bytes', 'size_bytes'])
    .where('digest', '=', digest)
    .executeTakeFirstOrThrow();
  const referring = await tx
    .selectFrom('operation')
    .select('call_node_id')
    .where('result_digest', '=', digest)
    .limit(REFERRED_BY)
    .execute();
  return {
    digest,
    sizeBytes: size_bytes,
    storedBytes: bytes.byteLength,
    digestOfBytes: sha256Hex(bytes),
    referredBy: referring.map(({ call_node_id }) => call_node_id),
  };
}
