// Owns the version of the store and the way from one version to the next.
// Must never touch a store of a newer release, nor a database that is not a store.

import type { ColumnDataType } from 'kysely';

import type { Db, Tx } from './schema.js';
import { StoreError } from './store.js';

/** What the dialects spell differently. */
export interface ColumnSpelling {
  readonly bytes: ColumnDataType;
  /** An integer primary key that the database counts up by itself. */
  readonly countedKey: ColumnDataType;
}

type Migration = (tx: Tx, spelling: ColumnSpelling) => Promise<void>;

/** The migration at index n leads from version n to version n + 1. Released ones are never edited. */
const MIGRATIONS: readonly Migration[] = [createVersion1, createVersion2, createVersion3];

export const STORE_VERSION = MIGRATIONS.length;

/**
 * Brings the database to `STORE_VERSION`. Several processes may do this at once: the version is read again inside the
 * writing transaction, and a crash leaves either the old version or the new one.
 * @throws StoreError StoreVersion | StoreUnusable
 */
export async function migrate(db: Db, spelling: ColumnSpelling, place: string, at: number): Promise<void> {
  if ((await knownVersion(db, place)) === STORE_VERSION) return;
  await db.transaction().execute(async (tx) => {
    const from = await knownVersion(tx, place);
    if (from === 0) await createVersionTable(tx);
    for (const [index, migration] of MIGRATIONS.entries()) {
      if (index < from) continue;
      await migration(tx, spelling);
      await tx
        .insertInto('store_version')
        .values({ version: index + 1, applied_at: at })
        .execute();
    }
  });
}

/** For those who only read: the store must already be at this version. @throws StoreError StoreVersion | StoreUnusable */
export async function requireCurrent(db: Db, place: string): Promise<void> {
  const version = await knownVersion(db, place);
  if (version === STORE_VERSION) return;
  throw new StoreError(
    'StoreVersion',
    `The store ${place} has version ${version}, older than ${STORE_VERSION}: start a worker of this release on it once, it brings the store up to date.`,
  );
}

async function knownVersion(db: Db, place: string): Promise<number> {
  const tables = (await db.introspection.getTables()).map((table) => table.name);
  if (!tables.includes('store_version')) {
    if (tables.length === 0) return 0;
    throw new StoreError(
      'StoreUnusable',
      `${place} is a database of something else (it has no store_version table): name another file for the store.`,
    );
  }
  const newest = await db
    .selectFrom('store_version')
    .select((eb) => eb.fn.max('version').as('version'))
    .executeTakeFirst();
  const version = Number(newest?.version ?? 0);
  if (version <= STORE_VERSION) return version;
  throw new StoreError(
    'StoreVersion',
    `The store ${place} was written by a newer release (store version ${version}, this release knows ${STORE_VERSION}): run that release, or name another store.`,
  );
}

async function createVersionTable(tx: Tx): Promise<void> {
  await tx.schema
    .createTable('store_version')
    .addColumn('version', 'integer', (column) => column.primaryKey())
    .addColumn('applied_at', 'bigint', (column) => column.notNull())
    .execute();
}

async function createVersion1(tx: Tx, spelling: ColumnSpelling): Promise<void> {
  await createOperation(tx);
  await createLegsAndRounds(tx);
  await createEnd(tx, spelling);
}

async function createOperation(tx: Tx): Promise<void> {
  await tx.schema
    .createTable('operation')
    .addColumn('call_node_id', 'text', (column) => column.primaryKey())
    .addColumn('request_digest', 'text', (column) => column.notNull())
    .addColumn('server', 'text', (column) => column.notNull())
    .addColumn('tool', 'text', (column) => column.notNull())
    .addColumn('arguments_json', 'text', (column) => column.notNull())
    .addColumn('arguments_digest', 'text', (column) => column.notNull())
    .addColumn('submission_key', 'text', (column) => column.notNull())
    .addColumn('policy_json', 'text', (column) => column.notNull())
    .addColumn('execution_epoch', 'integer', (column) => column.notNull())
    .addColumn('owner_run_id', 'text', (column) => column.notNull())
    .addColumn('adapter', 'text')
    .addColumn('submission_policy', 'text')
    .addColumn('tool_version', 'text')
    .addColumn('descriptor_digest', 'text')
    .addColumn('session_json', 'text')
    .addColumn('output_schema_json', 'text')
    .addColumn('remote_reference_json', 'text')
    .addColumn('remote_id', 'text')
    .addColumn('anchor_json', 'text')
    .addColumn('cancel_generation', 'integer', (column) => column.notNull())
    .addColumn('cancel_reason', 'text')
    .addColumn('cancel_delivery', 'text', (column) => column.notNull())
    .addColumn('terminal_json', 'text')
    .addColumn('rejection_json', 'text')
    .addColumn('result_digest', 'text')
    .addColumn('result_json', 'text')
    .addColumn('proved_absent_at_leg', 'integer')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .execute();
  await tx.schema.createIndex('operation_remote_id').on('operation').column('remote_id').execute();
  await tx.schema.createIndex('operation_submission_key').on('operation').column('submission_key').execute();
}

async function createLegsAndRounds(tx: Tx): Promise<void> {
  await tx.schema
    .createTable('submission_leg')
    .addColumn('call_node_id', 'text', (column) => column.notNull().references('operation.call_node_id'))
    .addColumn('leg', 'integer', (column) => column.notNull())
    .addColumn('claim_token', 'text', (column) => column.notNull())
    .addColumn('claimed_at', 'bigint', (column) => column.notNull())
    .addColumn('closed_at', 'bigint')
    .addColumn('outcome', 'text', (column) => column.notNull())
    .addColumn('detail', 'text')
    .addPrimaryKeyConstraint('submission_leg_key', ['call_node_id', 'leg'])
    .addUniqueConstraint('submission_leg_token', ['call_node_id', 'claim_token'])
    .execute();
  await tx.schema
    .createTable('input_round')
    .addColumn('call_node_id', 'text', (column) => column.notNull().references('operation.call_node_id'))
    .addColumn('round_id', 'text', (column) => column.notNull())
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('schema_digest', 'text', (column) => column.notNull())
    .addColumn('opened_at', 'bigint', (column) => column.notNull())
    .addColumn('deadline_at', 'bigint', (column) => column.notNull())
    .addColumn('closed_at', 'bigint')
    .addColumn('question_json', 'text', (column) => column.notNull())
    .addColumn('wire_key', 'text', (column) => column.notNull())
    .addColumn('wire_json', 'text', (column) => column.notNull())
    .addColumn('reply_digest', 'text')
    .addColumn('reply_token', 'text')
    .addColumn('reply_action', 'text')
    .addColumn('reply_json', 'text')
    .addColumn('reply_recorded_at', 'bigint')
    .addColumn('reply_sending_at', 'bigint')
    .addColumn('reply_delivered_at', 'bigint')
    .addPrimaryKeyConstraint('input_round_key', ['call_node_id', 'round_id'])
    .execute();
}

async function createEnd(tx: Tx, spelling: ColumnSpelling): Promise<void> {
  await tx.schema
    .createTable('result_blob')
    .addColumn('digest', 'text', (column) => column.primaryKey())
    .addColumn('media_type', 'text', (column) => column.notNull())
    .addColumn('size_bytes', 'bigint', (column) => column.notNull())
    .addColumn('bytes', spelling.bytes, (column) => column.notNull())
    .execute();
  await tx.schema
    .createTable('receipt')
    .addColumn('call_node_id', 'text', (column) => column.primaryKey().references('operation.call_node_id'))
    .addColumn('receipt_json', 'text', (column) => column.notNull())
    .addColumn('receipt_digest', 'text', (column) => column.notNull())
    .execute();
  await tx.schema
    .createTable('ready_outbox')
    .addColumn('call_node_id', 'text', (column) => column.primaryKey().references('receipt.call_node_id'))
    .addColumn('receipt_digest', 'text', (column) => column.notNull())
    .addColumn('advances', 'integer', (column) => column.notNull())
    .addColumn('outcome', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .execute();
  await tx.schema
    .createTable('effect_reconciliation')
    .addColumn('call_node_id', 'text', (column) => column.primaryKey().references('operation.call_node_id'))
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('opened_at', 'bigint', (column) => column.notNull())
    .addColumn('note', 'text', (column) => column.notNull())
    .execute();
  // No foreign key: evidence about an operation whose row is lost is kept all the same.
  await tx.schema
    .createTable('evidence')
    .addColumn('id', spelling.countedKey, (column) => column.primaryKey())
    .addColumn('call_node_id', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('detail', 'text', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .execute();
  await tx.schema.createIndex('evidence_call_node_id').on('evidence').column('call_node_id').execute();
}

/**
 * Reconciliations can be settled and opened again; the audit finds the operations of a result; calls may be asked before
 * there is any work (MCP 2026-07-28).
 */
async function createVersion2(tx: Tx, spelling: ColumnSpelling): Promise<void> {
  await tx.schema
    .createTable('reconciliation_entry')
    .addColumn('id', spelling.countedKey, (column) => column.primaryKey())
    .addColumn('call_node_id', 'text', (column) =>
      column.notNull().references('effect_reconciliation.call_node_id'),
    )
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('note', 'text', (column) => column.notNull())
    .addColumn('settled_by', 'text')
    .addColumn('at', 'bigint', (column) => column.notNull())
    .execute();
  await tx.schema
    .createIndex('reconciliation_entry_call_node_id')
    .on('reconciliation_entry')
    .column('call_node_id')
    .execute();
  await tx.schema.createIndex('operation_result_digest').on('operation').column('result_digest').execute();
  await tx.schema
    .createIndex('operation_tool')
    .on('operation')
    .columns(['server', 'tool', 'created_at'])
    .execute();
  await tx.schema.alterTable('submission_leg').addColumn('continuation_json', 'text').execute();
  await tx.schema.alterTable('input_round').addColumn('leg', 'integer').execute();
  await tx
    .insertInto('reconciliation_entry')
    .columns(['call_node_id', 'kind', 'note', 'at'])
    .expression((eb) =>
      eb
        .selectFrom('effect_reconciliation')
        .select((row) => ['call_node_id', row.val('owed').as('kind'), 'note', 'opened_at'])
        .orderBy('opened_at'),
    )
    .execute();
}

/** A cancel may be asked for again; what became of those before is kept. */
async function createVersion3(tx: Tx): Promise<void> {
  await tx.schema
    .createTable('earlier_cancel')
    .addColumn('call_node_id', 'text', (column) => column.notNull().references('operation.call_node_id'))
    .addColumn('generation', 'integer', (column) => column.notNull())
    .addColumn('reason', 'text', (column) => column.notNull())
    .addColumn('delivery', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('earlier_cancel_key', ['call_node_id', 'generation'])
    .execute();
}
