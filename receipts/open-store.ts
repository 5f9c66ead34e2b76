// Owns how a store is opened, for writing and for reading only, and every sentence that says why it cannot be.
// Must never repair or replace a file it does not understand.

import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

import { Kysely } from 'kysely';

import type { Receipt } from '../operation/receipt.js';
import type { Question, RowSnapshot } from '../operation/row.js';
import {
  listReconciliations,
  readReconciliation,
  type ListedReconciliation,
  type Reconciliation,
} from './effect-reads.js';
import { auditReads, keepAuditReads } from './audit/reads.js';
import { KyselyReceiptStore, readInOne } from './kysely-store.js';
import { migrate, requireCurrent, STORE_VERSION } from './migrations.js';
import { readSnapshot } from './row-snapshot.js';
import type { Db, StoreTables } from './schema.js';
import {
  connectToRead,
  connectToWrite,
  damageIn,
  ImmediateSqliteDialect,
  SQLITE_SPELLING,
  sqliteCodeOf,
} from './sqlite-dialect.js';
import {
  findCallNodeIds,
  listOperations,
  readEvidence,
  readQuestions,
  readReady,
  readReceipt,
  readResult,
  type Evidence,
  type ReadyRow,
  type StoredOperation,
} from './store-reads.js';
import { StoreError, type ReceiptStore } from './store.js';

/**
 * Opens the store in `file`, creating or upgrading it. Any number of processes of one machine may hold it open.
 * @throws StoreError StoreVersion | StoreUnusable
 */
export async function openSqliteStore(
  file: string,
  options: { readonly nowMs?: () => number } = {},
): Promise<ReceiptStore> {
  const place = resolve(file);
  const nowMs = options.nowMs ?? Date.now;
  return explained(place, 'write', async () => {
    await prepareFile(place);
    const connection = await connectToWrite(place);
    const db: Db = new Kysely<StoreTables>({ dialect: new ImmediateSqliteDialect(connection) });
    try {
      await migrate(db, SQLITE_SPELLING, place, nowMs());
    } catch (error) {
      connection.close();
      throw error;
    }
    return new KyselyReceiptStore(db, nowMs);
  });
}

/** What a program may see that must not write: command line, dashboards, downstream readers. */
export interface ReceiptsReader {
  read(callNodeId: string): Promise<RowSnapshot | null>;
  readReceipt(callNodeId: string): Promise<Receipt | null>;
  /** Bytes of a stored result by its digest, verified against it. */
  readResult(digest: string): Promise<Uint8Array | null>;
  /** By round id, of closed rounds too. */
  readQuestions(callNodeId: string): Promise<Readonly<Record<string, Question>>>;
  /** In the order in which it came. */
  readEvidence(callNodeId: string): Promise<readonly Evidence[]>;
  readReady(callNodeId: string): Promise<ReadyRow | null>;
  readReconciliation(callNodeId: string): Promise<Reconciliation | null>;
  /** The open ones, the oldest first; `store.settleReconciliation` settles one. */
  listReconciliations(options?: {
    readonly includeSettled?: boolean;
  }): Promise<readonly ListedReconciliation[]>;
  /** Operations by task id, operation name or submission key; `by` narrows it to one of them. */
  find(remoteIdOrKey: string, by?: 'remoteId' | 'submissionKey'): Promise<readonly string[]>;
  /** The newest first; ended ones have an outcome. */
  list(options?: { readonly includeEnded?: boolean }): Promise<readonly StoredOperation[]>;
  /** Reads the whole file: for a doctor, not for a watch. */
  check(): Promise<StoreCheck>;
  close(): Promise<void>;
}

export interface StoreCheck {
  /** The version of its tables. */
  readonly version: number;
  /** What is damaged, in the database's own words; empty where nothing is. */
  readonly damage: readonly string[];
}

/**
 * Opens an existing store of this release's version for reading only.
 * @throws StoreError StoreVersion | StoreUnusable
 */
export async function openReceiptsReader(file: string): Promise<ReceiptsReader> {
  const place = resolve(file);
  return explained(place, 'read', async () => {
    const connection = connectToRead(place);
    const db: Db = new Kysely<StoreTables>({ dialect: new ImmediateSqliteDialect(connection) });
    try {
      await requireCurrent(db, place);
    } catch (error) {
      connection.close();
      throw error;
    }
    const reader: ReceiptsReader = {
      read: (callNodeId) => readInOne(db, (tx) => readSnapshot(tx, callNodeId)),
      readReceipt: (callNodeId) => readReceipt(db, callNodeId),
      readResult: (digest) => readResult(db, digest),
      readQuestions: (callNodeId) => readQuestions(db, callNodeId),
      readEvidence: (callNodeId) => readEvidence(db, callNodeId),
      readReady: (callNodeId) => readReady(db, callNodeId),
      readReconciliation: (callNodeId) => readInOne(db, (tx) => readReconciliation(tx, callNodeId)),
      listReconciliations: (options) =>
        readInOne(db, (tx) => listReconciliations(tx, options?.includeSettled ?? false)),
      find: (remoteIdOrKey, by) => findCallNodeIds(db, remoteIdOrKey, by),
      list: (options) => listOperations(db, options?.includeEnded ?? false),
      check: async () => ({ version: STORE_VERSION, damage: damageIn(connection) }),
      close: () => db.destroy(),
    };
    keepAuditReads(
      reader,
      auditReads(db, (read) => readInOne(db, read)),
    );
    return reader;
  });
}

/** Arguments, questions and results are nobody else's business: the file is for its owner only. */
async function prepareFile(place: string): Promise<void> {
  await mkdir(dirname(place), { recursive: true, mode: 0o700 });
  const handle = await open(place, 'a', 0o600);
  await handle.close();
}

type Access = 'read' | 'write';

async function explained<T>(place: string, access: Access, opening: () => Promise<T>): Promise<T> {
  try {
    return await opening();
  } catch (error) {
    const sentence = await sentenceFor(place, access, error);
    if (sentence === null) throw error;
    throw new StoreError('StoreUnusable', sentence, { cause: error });
  }
}

/** One sentence by the error's code, never by its text; null = not about the file. */
async function sentenceFor(place: string, access: Access, error: unknown): Promise<string | null> {
  const code = sqliteCodeOf(error) ?? systemCodeOf(error);
  if (code === null) return null;
  if (code === 'SQLITE_NOTADB')
    return `${place} is not a store (not a database): name another file, or move this one away.`;
  if (code.startsWith('SQLITE_CORRUPT')) return `The store ${place} is damaged: restore it from a backup.`;
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    return `The store ${place} is held by another process that does not let go: end that process and try again.`;
  }
  if (code.startsWith('SQLITE_FULL') || code === 'ENOSPC')
    return `The disk of the store ${place} is full: make room and try again.`;
  if (access === 'read' && (await isAbsent(place)))
    return `There is no store at ${place}: check the path, or start a worker there first.`;
  return `The store ${place} cannot be opened (${code}): it and its directory must be on a local disk and writable by this user.`;
}

function systemCodeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && 'syscall' in error && typeof error.code === 'string'
    ? error.code
    : null;
}

async function isAbsent(place: string): Promise<boolean> {
  try {
    await stat(place);
    return false;
  } catch (error) {
    return systemCodeOf(error) === 'ENOENT';
  }
}
