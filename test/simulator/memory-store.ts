// Owns the shipped store on a database in memory, shared by many simulated worlds, and what only a test reads of it.
// Must never replace a rule of the store: broken twins are made elsewhere, on purpose and by name.

import Sqlite from 'better-sqlite3';
import { Kysely } from 'kysely';
import { KyselyReceiptStore } from '../../receipts/kysely-store.js';
import { migrate } from '../../receipts/migrations.js';
import type { StoreTables } from '../../receipts/schema.js';
import { ImmediateSqliteDialect, SQLITE_SPELLING } from '../../receipts/sqlite-dialect.js';
import type { RowSnapshot } from '../../operation/row.js';
import type { ReceiptStore, WireState } from '../../receipts/store.js';

export interface StoredRows {
  readonly receipts: readonly { readonly receipt_json: string; readonly receipt_digest: string }[];
  readonly ready: readonly {
    readonly receipt_digest: string;
    readonly advances: number;
    readonly outcome: string;
  }[];
  readonly legs: readonly { readonly leg: number; readonly outcome: string }[];
  readonly rounds: readonly {
    readonly round_id: string;
    readonly wire_key: string;
    readonly reply_json: string | null;
  }[];
  readonly reconciliations: readonly { readonly note: string }[];
  readonly evidence: readonly { readonly kind: string; readonly detail: string }[];
}

export interface MemoryStore {
  readonly store: ReceiptStore;
  rowsOf(callNodeId: string): StoredRows;
  hasResult(digest: string): boolean;
  /** For broken twins: changes the tables behind the store's back. */
  spoil(sql: string, callNodeId: string): void;
  close(): void;
}

const TABLES = {
  receipts: 'receipt',
  ready: 'ready_outbox',
  legs: 'submission_leg',
  rounds: 'input_round',
  reconciliations: 'effect_reconciliation',
  evidence: 'evidence',
} as const;

export async function openMemoryStore(nowMs: () => number): Promise<MemoryStore> {
  const connection = new Sqlite(':memory:');
  connection.pragma('foreign_keys = on');
  keepStatements(connection);
  const db = new Kysely<StoreTables>({ dialect: new ImmediateSqliteDialect(connection) });
  await migrate(db, SQLITE_SPELLING, ':memory:', nowMs());
  const entries = Object.entries(TABLES).map(
    ([name, table]) => [name, connection.prepare(`select * from ${table} where call_node_id = ?`)] as const,
  );
  const total = connection.prepare('select total_changes()').pluck();
  return {
    store: new RememberingStore(db, nowMs, () => total.get()),
    rowsOf: (callNodeId) =>
      Object.fromEntries(entries.map(([name, all]) => [name, all.all(callNodeId)])) as unknown as StoredRows,
    hasResult: (digest) =>
      connection.prepare('select 1 from result_blob where digest = ?').get(digest) !== undefined,
    spoil: (sql, callNodeId) => connection.prepare(sql).run(callNodeId),
    close: () => connection.close(),
  };
}

/** Most looks of a long course read what nothing has changed since the look before: the answer is the same. */
class RememberingStore extends KyselyReceiptStore {
  readonly #row: Memory<RowSnapshot | null>;
  readonly #wire: Memory<WireState>;

  constructor(db: Kysely<StoreTables>, nowMs: () => number, changes: () => unknown) {
    super(db, nowMs);
    this.#row = new Memory(changes, (callNodeId) => super.read(callNodeId));
    this.#wire = new Memory(changes, (callNodeId) => super.wireState(callNodeId));
  }

  override read(callNodeId: string): Promise<RowSnapshot | null> {
    return this.#row.ask(callNodeId);
  }

  override wireState(callNodeId: string): Promise<WireState> {
    return this.#wire.ask(callNodeId);
  }
}

/** The last answer, good until anything at all is written, even where that is taken back. */
class Memory<T> {
  readonly #changes: () => unknown;
  readonly #read: (callNodeId: string) => Promise<T>;
  #last: { readonly callNodeId: string; readonly changes: unknown; readonly said: T } | null = null;

  constructor(changes: () => unknown, read: (callNodeId: string) => Promise<T>) {
    this.#changes = changes;
    this.#read = read;
  }

  async ask(callNodeId: string): Promise<T> {
    const changes = this.#changes();
    if (this.#last?.callNodeId === callNodeId && this.#last.changes === changes) return this.#last.said;
    const said = await this.#read(callNodeId);
    if (this.#changes() === changes) this.#last = { callNodeId, changes, said };
    return said;
  }
}

/** The same few statements come a million times: each is prepared once. */
function keepStatements(connection: Sqlite.Database): void {
  const kept = new Map<string, Sqlite.Statement>();
  const prepare = connection.prepare.bind(connection);
  connection.prepare = ((sql: string) => {
    const known = kept.get(sql) ?? prepare(sql);
    kept.set(sql, known);
    return known;
  }) as typeof connection.prepare;
}
