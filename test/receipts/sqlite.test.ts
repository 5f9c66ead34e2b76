// Owns the tests of the store on SQLite files: the suite, the schema, processes that race, and files it refuses.
// Must never test a rule of the store; the suite does.

import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import Sqlite from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { STORE_VERSION } from '../../receipts/migrations.js';
import { openReceiptsReader, openSqliteStore } from '../../receipts/open-store.js';
import { connectToWrite } from '../../receipts/sqlite-dialect.js';
import { StoreError } from '../../receipts/store.js';
import type { RaceOrder, RaceReport } from './racing-writer.js';
import { storeSuite, type StoreHarness } from './store-suite.js';
import { accept, AT, CALL, codeOf, fence, finished, request } from './suite-fixtures.js';

let directory = '';
let filesMade = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'receipts-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

function newFile(): string {
  filesMade += 1;
  return join(directory, `store-${filesMade}.db`);
}

async function makeSqliteStore(): Promise<StoreHarness> {
  const file = newFile();
  const store = await openSqliteStore(file, { nowMs: () => AT });
  const reader = await openReceiptsReader(file);
  const behind = new Sqlite(file);
  return {
    store,
    reader,
    refuseReadyRows: () => {
      behind.exec(
        `create trigger no_ready_rows before insert on ready_outbox
         begin select raise(abort, 'ready rows are refused'); end`,
      );
      return () => behind.exec('drop trigger no_ready_rows');
    },
    forgetResult: (digest) => behind.prepare('delete from result_blob where digest = ?').run(digest),
    damageResult: (digest) =>
      behind.prepare(`update result_blob set bytes = x'00' where digest = ?`).run(digest),
    damageReceipt: (callNodeId) =>
      behind
        .prepare(`update receipt set receipt_json = receipt_json || ' ' where call_node_id = ?`)
        .run(callNodeId),
    async close() {
      behind.close();
      await reader.close();
      await store.close();
    },
  };
}

storeSuite('SQLite', makeSqliteStore);

describe('SQLite file', () => {
  it('has these tables and columns, and no other', async () => {
    const file = newFile();
    await (await openSqliteStore(file)).close();
    const db = new Sqlite(file, { readonly: true });
    const tables = db
      .prepare<[], { name: string; columns: string }>(
        `select m.name as name, group_concat(c.name, ' ') as columns
         from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table' group by m.name order by m.name`,
      )
      .all();
    const indexes = db
      .prepare(`select name from sqlite_master where type = 'index' and sql is not null order by name`)
      .pluck()
      .all();
    db.close();
    expect(Object.fromEntries(tables.map(({ name, columns }) => [name, columns]))).toEqual({
      earlier_cancel: 'call_node_id generation reason delivery',
      effect_reconciliation: 'call_node_id status opened_at note',
      evidence: 'id call_node_id kind detail at',
      input_round:
        'call_node_id round_id position schema_digest opened_at deadline_at closed_at question_json wire_key ' +
        'wire_json reply_digest reply_token reply_action reply_json reply_recorded_at reply_sending_at ' +
        'reply_delivered_at leg',
      operation:
        'call_node_id request_digest server tool arguments_json arguments_digest submission_key policy_json ' +
        'execution_epoch owner_run_id adapter submission_policy tool_version descriptor_digest session_json ' +
        'output_schema_json remote_reference_json remote_id anchor_json cancel_generation cancel_reason ' +
        'cancel_delivery terminal_json rejection_json result_digest result_json proved_absent_at_leg created_at ' +
        'updated_at',
      ready_outbox: 'call_node_id receipt_digest advances outcome created_at',
      reconciliation_entry: 'id call_node_id kind note settled_by at',
      receipt: 'call_node_id receipt_json receipt_digest',
      result_blob: 'digest media_type size_bytes bytes',
      store_version: 'version applied_at',
      submission_leg: 'call_node_id leg claim_token claimed_at closed_at outcome detail continuation_json',
    });
    expect(indexes).toEqual([
      'evidence_call_node_id',
      'operation_remote_id',
      'operation_result_digest',
      'operation_submission_key',
      'operation_tool',
      'reconciliation_entry_call_node_id',
    ]);
  });

  it('keeps everything over a close and a new opening', async () => {
    const file = newFile();
    const first = await openSqliteStore(file);
    await accept(first, await finished(first));
    const row = await first.read(CALL);
    await first.close();
    const second = await openSqliteStore(file);
    expect(await second.read(CALL)).toEqual(row);
    await second.close();
  });

  it('is written through to the disk at each commit, in a write-ahead log', async () => {
    const connection = await connectToWrite(newFile());
    const settings = ['journal_mode', 'synchronous', 'foreign_keys', 'busy_timeout'].map((pragma) =>
      connection.pragma(pragma, { simple: true }),
    );
    connection.close();
    const SYNCHRONOUS_FULL = 2;
    expect(settings).toEqual(['wal', SYNCHRONOUS_FULL, 1, 10_000]);
  });

  it('is made for its owner only, in a directory that is made with it', async () => {
    const file = join(directory, 'made', 'with', 'store.db');
    await (await openSqliteStore(file)).close();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('open twice in one process lets both write at once', async () => {
    const file = newFile();
    const stores = await Promise.all([openSqliteStore(file), openSqliteStore(file)]);
    await stores[0].open(request());
    const claims = await Promise.all(
      stores.flatMap((store, index) =>
        [1, 2, 3].map((attempt) => store.claimLeg(fence(), `${index}-${attempt}`, AT)),
      ),
    );
    expect(claims.filter((claim) => claim.ruling === 'granted')).toHaveLength(1);
    await Promise.all(stores.map((store) => store.close()));
  });

  it('waits for a writer that holds the lock, without stopping this process', async () => {
    const file = newFile();
    const store = await openSqliteStore(file);
    const other = new Sqlite(file);
    other.exec('begin immediate');
    // Only the event loop of this very process can release the lock.
    setImmediate(() => other.exec('commit'));
    const startedMs = performance.now();
    expect(await store.open(request())).toMatchObject({ kind: 'opened' });
    // A wait inside SQLite would have lasted its whole busy timeout of 10 s.
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    other.close();
    await store.close();
  });
});

describe('SQLite processes', () => {
  const PROCESSES = 4;
  const CALLS = Array.from({ length: 6 }, (_, index) => `node-${index}`);
  let racers: ChildProcess[] = [];

  beforeEach(async () => {
    const program = fileURLToPath(new URL('../../dist/test/receipts/racing-writer.js', import.meta.url));
    racers = Array.from({ length: PROCESSES }, () => fork(program, { execArgv: [] }));
    await Promise.all(racers.map(nextReport));
  });
  afterEach(() => {
    for (const racer of racers) racer.kill('SIGKILL');
  });

  async function nextReport(racer: ChildProcess): Promise<RaceReport> {
    const report = once(racer, 'message').then(([message]) => message as RaceReport);
    const end = once(racer, 'exit').then(([code]): never => {
      throw new Error(`a racing process ended with ${String(code)}`);
    });
    return Promise.race([report, end]);
  }

  /** By callNodeId: what each process was told. */
  async function race(
    order: Omit<RaceOrder, 'runId' | 'claimToken'>,
    isOneRun: boolean,
  ): Promise<string[][]> {
    const reports = racers.map(nextReport);
    racers.forEach((racer, index) =>
      racer.send({ ...order, runId: isOneRun ? 'run' : `run-${index}`, claimToken: `claim-${index}` }),
    );
    const said = (await Promise.all(reports)).map((report) => report.said);
    return CALLS.map((_, call) => said.map((each) => each[call] ?? 'nothing').sort());
  }

  it('of one run: one creates the store, one claim is granted, one receipt is written', async () => {
    const order = { file: newFile(), callNodeIds: CALLS };
    const opened = await race({ ...order, step: 'open' }, true);
    expect(opened).toEqual(CALLS.map(() => ['opened', 'opened', 'opened', 'opened']));
    // A claim that comes when the winner has already recorded the end is settled, one that comes before is ambiguous.
    const claimed = await race({ ...order, step: 'claim' }, true);
    for (const rulings of claimed) {
      expect(rulings.filter((ruling) => ruling === 'granted')).toHaveLength(1);
      expect(rulings.filter((ruling) => ruling === 'ambiguous' || ruling === 'settled')).toHaveLength(3);
    }
    const accepted = await race({ ...order, step: 'accept' }, true);
    expect(accepted).toEqual(CALLS.map(() => ['first', 'found', 'found', 'found']));
    await race({ ...order, step: 'close' }, true);
    const db = new Sqlite(order.file, { readonly: true });
    const counts = ['receipt', 'ready_outbox', 'submission_leg'].map((table) =>
      db.prepare(`select count(*) from ${table}`).pluck().get(),
    );
    db.close();
    expect(counts).toEqual([CALLS.length, CALLS.length, CALLS.length]);
  });

  it('of several runs: the last to open decides, the others are superseded', async () => {
    const order = { file: newFile(), callNodeIds: CALLS };
    await race({ ...order, step: 'open' }, false);
    const claimed = await race({ ...order, step: 'claim' }, false);
    expect(claimed).toEqual(CALLS.map(() => ['Superseded', 'Superseded', 'Superseded', 'granted']));
    const accepted = await race({ ...order, step: 'accept' }, false);
    for (const said of accepted) {
      expect(said.filter((each) => each === 'first')).toHaveLength(1);
      expect(said.filter((each) => each === 'found' || each === 'Superseded')).toHaveLength(3);
    }
  });
});

describe('SQLite file that is refused', () => {
  async function refusalOf(opening: Promise<unknown>): Promise<StoreError> {
    const error: unknown = await opening.catch((reason: unknown) => reason);
    if (!StoreError.isInstance(error)) throw new Error('not refused with a StoreError', { cause: error });
    return error;
  }

  async function versioned(version: number): Promise<string> {
    const file = newFile();
    await (await openSqliteStore(file)).close();
    const db = new Sqlite(file);
    db.exec('delete from store_version');
    db.prepare('insert into store_version values (?, 0)').run(version);
    db.close();
    return file;
  }

  it('was written by a newer release', async () => {
    const file = await versioned(99);
    for (const open of [openSqliteStore, openReceiptsReader]) {
      const refusal = await refusalOf(open(file));
      expect(refusal.code).toBe('StoreVersion');
      expect(refusal.message).toBe(
        `The store ${file} was written by a newer release (store version 99, this release knows ${STORE_VERSION}): run that release, or name another store.`,
      );
    }
    const db = new Sqlite(file);
    expect(db.prepare('select version from store_version').pluck().all()).toEqual([99]);
    db.close();
  });

  it('was written by an older release and is only to be read', async () => {
    expect((await refusalOf(openReceiptsReader(await versioned(0)))).code).toBe('StoreVersion');
  });

  it('is no database', async () => {
    const file = newFile();
    await writeFile(file, 'these are my notes, please do not overwrite them\n'.repeat(100));
    const before = await stat(file);
    for (const open of [openSqliteStore, openReceiptsReader]) {
      const refusal = await refusalOf(open(file));
      expect(refusal.code).toBe('StoreUnusable');
      expect(refusal.message).toContain('is not a store (not a database)');
    }
    expect((await stat(file)).size).toBe(before.size);
  });

  it('is the database of something else', async () => {
    const file = newFile();
    const db = new Sqlite(file);
    db.exec('create table recipes (name text)');
    db.close();
    const refusal = await refusalOf(openSqliteStore(file));
    expect(refusal.code).toBe('StoreUnusable');
    expect(refusal.message).toContain('is a database of something else');
  });

  it('is a directory, or lies under a file', async () => {
    const file = newFile();
    await writeFile(file, '');
    for (const place of [directory, join(file, 'store.db')]) {
      const refusal = await refusalOf(openSqliteStore(place));
      expect(refusal.code).toBe('StoreUnusable');
      expect(refusal.message).toContain('must be on a local disk and writable');
    }
  });

  it('is not there for a reader, and is not made for one', async () => {
    const file = newFile();
    const refusal = await refusalOf(openReceiptsReader(file));
    expect(refusal.code).toBe('StoreUnusable');
    expect(refusal.message).toContain('There is no store at');
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });

  it.each([
    ['a new file in a read-only directory', false],
    ['a store that may only be read', true],
  ])('is %s', async (_, isStore) => {
    const place = join(directory, `sealed-${String(isStore)}`);
    await mkdir(place);
    const file = join(place, 'store.db');
    if (isStore) {
      await (await openSqliteStore(file)).close();
      await chmod(file, 0o444);
    }
    await chmod(place, 0o555);
    await chmod(directory, 0o755);
    // Nothing is read-only to root: a child gives its privileges up first.
    const refusal =
      process.getuid?.() === 0 ? await refusalWithoutRoot(file) : await refusalOf(openSqliteStore(file));
    await chmod(place, 0o755);
    expect(refusal.code).toBe('StoreUnusable');
    expect(refusal.message).toContain('must be on a local disk and writable by this user');
  });

  async function refusalWithoutRoot(file: string): Promise<{ code: string; message: string }> {
    const program = fileURLToPath(
      new URL('../../dist/test/receipts/unprivileged-opener.js', import.meta.url),
    );
    const child = fork(program, [newFile(), file], { execArgv: [] });
    const [message] = await once(child, 'message');
    return message as { code: string; message: string };
  }

  it('gives codes that callers can tell apart', async () => {
    expect(await codeOf(openSqliteStore(await versioned(STORE_VERSION + 1)))).toBe('StoreVersion');
  });
});
