// Owns the proof that stores of released versions are brought up to date with all that they hold.
// Must never edit a recorded store: people have such files.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { auditStore } from '../../receipts/audit/audit-store.js';
import { STORE_VERSION } from '../../receipts/migrations.js';
import { openReceiptsReader, openSqliteStore } from '../../receipts/open-store.js';
import { workingOne } from './audited-store.js';
import { AT, codeOf, ended } from './suite-fixtures.js';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'migrations-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

async function recorded(version: number, name: string): Promise<string> {
  const file = join(directory, `${name}.db`);
  const db = new Sqlite(file);
  db.pragma('foreign_keys = off');
  db.exec(await readFile(new URL(`./stores/version-${version}.sql`, import.meta.url), 'utf8'));
  db.close();
  return file;
}

const TABLES = [
  'operation',
  'submission_leg',
  'input_round',
  'result_blob',
  'receipt',
  'ready_outbox',
  'effect_reconciliation',
  'evidence',
];

function rowsOf(file: string): Readonly<Record<string, unknown>> {
  const db = new Sqlite(file, { readonly: true });
  const rows = TABLES.map((table) => [table, db.prepare(`select * from ${table} order by rowid`).all()]);
  db.close();
  return Object.fromEntries(rows) as Record<string, unknown>;
}

it('a store of version 1 keeps every row, has an audit without findings, and its debts can be settled', async () => {
  const file = await recorded(1, 'whole');
  const before = rowsOf(file);
  const store = await openSqliteStore(file, { nowMs: () => AT });
  const reader = await openReceiptsReader(file);
  expect(rowsOf(file)).toMatchObject(before);
  expect(await auditStore(reader)).toMatchObject({
    findings: [],
    storeVersion: STORE_VERSION,
    operations: 20,
  });
  expect(await reader.listReconciliations()).toHaveLength(6);
  expect(await reader.readReconciliation('cancelled')).toEqual({
    status: 'open',
    openedAt: AT + 100,
    note: 'cancelled: status',
    entries: [{ kind: 'owed', at: AT + 100, note: 'cancelled: status' }],
  });
  const word = { note: 'looked after', settledBy: 'Ann' };
  expect(await store.settleReconciliation('cancelled', word, AT + 500)).toMatchObject({ kind: 'settled' });
  expect(await reader.listReconciliations()).toHaveLength(5);
  await reader.close();
  await store.close();
});

it('a store of version 1 can be opened by several processes at once, and goes on where it was', async () => {
  const file = await recorded(1, 'raced');
  const stores = await Promise.all([openSqliteStore(file), openSqliteStore(file), openSqliteStore(file)]);
  const [store] = stores;
  if (!store) throw new Error('no store');
  await (await workingOne(store, 'after')).saw('completed');
  await store.recordTerminal('cancelled', ended('completed'), null);
  const reader = await openReceiptsReader(file);
  expect((await reader.readReconciliation('cancelled'))?.entries.map(({ note }) => note)).toEqual([
    'cancelled: status',
    'late completed',
  ]);
  expect((await auditStore(reader)).findings).toEqual([]);
  await reader.close();
  await Promise.all(stores.map((each) => each.close()));
});

it('a store of version 1 is not read by a reader of this release before a worker has brought it up to date', async () => {
  expect(await codeOf(openReceiptsReader(await recorded(1, 'unread')))).toBe('StoreVersion');
});

it('a worker of release 0.1.0 that goes on writing keeps its reasons in the row, and they are shown', async () => {
  const file = await recorded(1, 'mixed');
  await (await openSqliteStore(file)).close();
  const db = new Sqlite(file);
  // As that release writes it.
  db.exec(
    `insert into effect_reconciliation values ('claimed', 'open', ${AT}, 'second reference: x');
     insert into evidence (call_node_id, kind, detail, at) values ('claimed', 'second-reference', 'd', ${AT})`,
  );
  db.close();
  const reader = await openReceiptsReader(file);
  expect(await reader.readReconciliation('claimed')).toMatchObject({
    entries: [{ kind: 'owed', at: AT, note: 'second reference: x' }],
  });
  expect((await auditStore(reader)).findings).toEqual([]);
  await reader.close();
});
