// Owns everything that is SQLite and nothing else: the connection, its pragmas, how a transaction begins.
// Must never know a table; and no other file may hold SQL that only SQLite understands.

import Sqlite from 'better-sqlite3';
import {
  CompiledQuery,
  SqliteDialect,
  SqliteDriver,
  type DatabaseConnection,
  type Driver,
  type TransactionSettings,
} from 'kysely';

import type { ColumnSpelling } from './migrations.js';

export const SQLITE_SPELLING: ColumnSpelling = { bytes: 'blob', countedKey: 'integer' };

/** How long (ms) a writer waits for the writers of other processes before it gives up with SQLITE_BUSY. */
const BUSY_WAIT_MS = 10_000;
const BUSY_PAUSE_CEILING_MS = 20;

/** After a large result the write-ahead log is cut back to this many bytes at the next checkpoint. */
const LOG_KEPT_BYTES = 16 * 1024 * 1024;

/**
 * Opens one connection that may write. Several processes of one machine share the file through the write-ahead log;
 * a network file system cannot carry it.
 * @throws SqliteError with its `code`
 */
export async function connectToWrite(file: string): Promise<Sqlite.Database> {
  const connection = new Sqlite(file, { timeout: BUSY_WAIT_MS });
  try {
    // Switching to WAL takes the file alone and does not always honour the busy timeout: ask again.
    await whileBusy(() => connection.pragma('journal_mode = wal'));
    // FULL, not NORMAL: under NORMAL a power cut takes the last commits back. A lost claim would let us submit a
    // second time after its bytes left, and a lost receipt would un-happen. Costs one fsync per commit.
    connection.pragma('synchronous = full');
    // macOS answers fsync before the disk has written, unless asked so; elsewhere these do nothing.
    connection.pragma('fullfsync = on');
    connection.pragma('checkpoint_fullfsync = on');
    connection.pragma('foreign_keys = on');
    connection.pragma(`journal_size_limit = ${LOG_KEPT_BYTES}`);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** @throws SqliteError with its `code` */
export function connectToRead(file: string): Sqlite.Database {
  return new Sqlite(file, { readonly: true, fileMustExist: true, timeout: BUSY_WAIT_MS });
}

/** What SQLite's own check of the whole file finds; empty where it is sound. */
export function damageIn(connection: Sqlite.Database): readonly string[] {
  try {
    const found = connection.pragma('integrity_check(20)') as readonly { readonly integrity_check: string }[];
    return found.map((row) => row.integrity_check).filter((word) => word !== 'ok');
  } catch (error) {
    // Where a page is past reading the check itself fails.
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_CORRUPT'))
      return [error.message];
    throw error;
  }
}

/** The code of an error raised by SQLite, e.g. `SQLITE_NOTADB`; null for any other error. */
export function sqliteCodeOf(error: unknown): string | null {
  return error instanceof Sqlite.SqliteError ? error.code : null;
}

export class ImmediateSqliteDialect extends SqliteDialect {
  readonly #connection: Sqlite.Database;

  constructor(connection: Sqlite.Database) {
    super({ database: connection });
    this.#connection = connection;
  }

  override createDriver(): Driver {
    return new ImmediateSqliteDriver(this.#connection);
  }
}

class ImmediateSqliteDriver extends SqliteDriver {
  readonly #connection: Sqlite.Database;

  constructor(connection: Sqlite.Database) {
    super({ database: connection });
    this.#connection = connection;
  }

  /**
   * Writers take the write lock before they read. A deferred transaction that reads first and writes later fails
   * with SQLITE_BUSY_SNAPSHOT, without waiting, as soon as another process wrote in between.
   */
  override async beginTransaction(
    connection: DatabaseConnection,
    settings?: TransactionSettings,
  ): Promise<void> {
    if (settings?.accessMode === 'read only') {
      await connection.executeQuery(CompiledQuery.raw('begin'));
      return;
    }
    await whileBusy(() => this.#beginImmediate());
  }

  /**
   * Never blocks: SQLite's own wait would stop this process' heartbeats, and would never end where the lock is held
   * by another store of this very process, which needs the event loop to finish.
   */
  #beginImmediate(): void {
    this.#connection.pragma('busy_timeout = 0');
    try {
      this.#connection.exec('begin immediate');
    } finally {
      this.#connection.pragma(`busy_timeout = ${BUSY_WAIT_MS}`);
    }
  }
}

async function whileBusy(attempt: () => unknown): Promise<void> {
  let waitedMs = 0;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, BUSY_PAUSE_CEILING_MS)) {
    try {
      attempt();
      return;
    } catch (error) {
      const isBusy = sqliteCodeOf(error)?.startsWith('SQLITE_BUSY') ?? false;
      if (!isBusy || waitedMs >= BUSY_WAIT_MS) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    waitedMs += pauseMs;
  }
}
