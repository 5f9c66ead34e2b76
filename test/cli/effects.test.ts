// Owns the proof of `effects` and `audit` on the command line: what is owed, a person's word, and a store that is proved.
// Must never need an engine: both are about the store alone.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { StoreAudit } from '../../receipts/audit/audit-store.js';
import { openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { fillStore } from '../receipts/audited-store.js';
import { AT, ended } from '../receipts/suite-fixtures.js';
import { type Ended, startCommand } from './command-line.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dtc-effects-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const run = (...args: string[]): Promise<Ended> => startCommand({ cwd: root }, ...args).ended;
const storeFile = (): string => join(root, '.durable-tool-calls', 'operations.sqlite');

async function filled(then: (store: ReceiptStore) => Promise<unknown> = async () => {}): Promise<void> {
  const store = await openSqliteStore(storeFile(), { nowMs: () => AT });
  await fillStore(store);
  await then(store);
  await store.close();
}

interface Listed {
  readonly callNodeId: string;
  readonly status: string;
}

async function listed(...args: string[]): Promise<readonly string[]> {
  const { stdout } = await run('effects', '--json', ...args);
  const { schema, reconciliations } = JSON.parse(stdout) as { schema: string; reconciliations: Listed[] };
  expect(schema).toBe('effectReconciliations.v1');
  return reconciliations.map(({ callNodeId, status }) => `${callNodeId} ${status}`);
}

test('what is owed is listed with its reasons and the next step, settled by a person once, and opened by new evidence', async () => {
  await filled();
  const open = await run('effects');
  expect(open.exitCode).toBe(5);
  expect(open.stdout).toContain('flipped  reports/build-report  cancelled\n');
  expect(open.stdout).toMatch(
    /flipped .*\n +owed +2023-\S+Z cancelled: status\n +owed +2023-\S+Z late completed\n/,
  );
  expect(open.stdout).toContain('next      dtc effects settle flipped --note TEXT --by NAME');
  expect(open.stdout).not.toContain('closed  ');
  expect(await listed('--all')).toContain('closed settled');

  const settle = ['effects', 'settle', 'flipped', '--note', 'taken back by hand', '--by', 'Ann'];
  const first = await run(...settle, '--json');
  expect(JSON.parse(first.stdout)).toMatchObject({
    schema: 'effectSettlement.v1',
    callNodeId: 'flipped',
    isFirst: true,
    settledBy: 'Ann',
    note: 'taken back by hand',
  });
  expect(first.exitCode, first.stderr).toBe(0);
  const same = await run(...settle);
  expect(same.stdout).toMatch(
    /^"flipped" was settled before, and nothing was changed: taken back by hand \(Ann, \S+Z\)\n$/,
  );
  expect(same.exitCode).toBe(0);
  const other = await run('effects', 'settle', 'flipped', '--note', 'never mind', '--by', 'Bob');
  expect(other.stdout).toContain('was settled before, and nothing was changed: taken back by hand (Ann, ');
  expect(other.exitCode).toBe(1);
  expect((await run('receipt', 'flipped')).stdout).toMatch(
    /effects +reconciliation settled by Ann at \S+Z: taken back by hand\n/,
  );
  expect(await listed()).not.toContain('flipped settled');

  const store = await openSqliteStore(storeFile());
  await store.recordTerminal('flipped', ended('failed'), null);
  await store.close();
  expect(await listed()).toContain('flipped open');
  const audit = await run('audit');
  expect(audit.exitCode, audit.stdout).toBe(0);
});

test('a word that cannot be taken is one sentence, and nothing changes', async () => {
  await filled();
  const before = await listed('--all');
  const word = ['--note', 'n', '--by', 'b'];
  const refused: readonly (readonly [readonly string[], string])[] = [
    [['settle', 'nobody', ...word], 'no operation is named "nobody"'],
    [['settle', 'completed', ...word], 'nothing is owed for "completed": it ended completed'],
    [['settle', 'asking', ...word], 'nothing is owed for "asking": it has not ended'],
    [['settle', 'flipped', '--note', ' ', '--by', 'b'], 'settling needs a note and a name'],
    [['settle', 'flipped', '--by', 'b'], '--note'],
    [['flipped'], 'too many arguments'],
  ];
  const all = await Promise.all(refused.map(([args]) => run('effects', ...args)));
  for (const [index, { exitCode, stdout, stderr }] of all.entries()) {
    expect(stderr).toContain(refused[index]?.[1]);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(stdout).toBe('');
    expect(exitCode, stderr).toBe(2);
  }
  expect(await listed('--all')).toEqual(before);
});

test('where nothing was ever done, nothing is owed, there is nothing to prove, and nothing is made', async () => {
  const none = await run('effects');
  expect(none.stderr).toContain('nothing is owed');
  expect(none.exitCode).toBe(0);
  const settled = await run('effects', 'settle', 'n', '--note', 'n', '--by', 'b');
  expect(settled.stderr).toContain('no operation is named "n"');
  expect(settled.exitCode).toBe(2);
  const audit = await run('audit');
  expect(audit.stderr).toContain('there is no store at ');
  expect(audit.exitCode).toBe(2);
  expect(existsSync(join(root, '.durable-tool-calls'))).toBe(false);
});

test('an audit shows what it proves, names each fault with what to do, and says by its exit code whether there is one', async () => {
  await filled();
  const good = await run('audit');
  expect(good.stdout).toMatch(/^ +EXAMINED +WRONG +PROVES\n/);
  expect(good.stdout).toMatch(/\nok +17 +0 +each receipt has its ready row/);
  expect(good.stdout).toMatch(/\n23 operation\(s\): 6 open, .*nothing is wrong\n$/);
  expect(good.exitCode).toBe(0);

  const db = new Sqlite(storeFile());
  db.exec(`update ready_outbox set advances = 1 where call_node_id in ('cancelled', 'failed')`);
  db.close();
  const bad = await run('audit');
  expect(bad.stdout).toMatch(/\nWRONG +17 +2 +each receipt has its ready row/);
  expect(bad.stdout).toMatch(
    /\n"cancelled": its ready row advances .*; stop what reads the ready rows, .*\.\n/,
  );
  expect(bad.exitCode).toBe(1);
  const json = await run('audit', '--json');
  const { schema, isClean, findings } = JSON.parse(json.stdout) as StoreAudit;
  expect({ schema, isClean }).toEqual({ schema: 'storeAudit.v1', isClean: false });
  expect(findings.map(({ check, callNodeId }) => `${check} ${callNodeId}`)).toEqual([
    'ready cancelled',
    'ready failed',
  ]);
  expect(json.exitCode).toBe(1);
});

test('a store of an older release is brought up to date by a look, where no engine lives on it', async () => {
  const recorded = readFileSync(new URL('../receipts/stores/version-1.sql', import.meta.url), 'utf8');
  mkdirSync(join(root, '.durable-tool-calls'), { mode: 0o700 });
  const db = new Sqlite(storeFile());
  db.pragma('foreign_keys = off');
  db.exec(recorded);
  db.close();
  const receipt = await run('receipt', 'completed');
  expect(receipt.exitCode, receipt.stderr).toBe(0);
  expect(await listed()).toContain('flipped open');
  expect((await run('audit')).exitCode).toBe(0);
});
