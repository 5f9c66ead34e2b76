// Owns the proof that an audit finds what it says it finds: one planted corruption each, in a store that is good without it.
// Must never plant by the store's own calls: they would refuse.

import { copyFile, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';

import { auditStore, type StoreAudit } from '../../receipts/audit/audit-store.js';
import { AUDIT_CHECKS } from '../../receipts/audit/findings.js';
import { faultsOfEnd } from '../../receipts/audit/end-rules.js';
import { auditReadsOf, REFERENCES, type AuditedOperation } from '../../receipts/audit/reads.js';
import { faultsOfRow } from '../../receipts/audit/row-rules.js';
import { openReceiptsReader, openSqliteStore } from '../../receipts/open-store.js';
import { fillStore, workingOne } from './audited-store.js';
import { END_CORRUPTIONS } from './planted-in-ends.js';
import { ROW_CORRUPTIONS } from './planted-in-rows.js';
import { type Plant, sql } from './planting.js';
import { AT, resultOf } from './suite-fixtures.js';

const CORRUPTIONS = [...ROW_CORRUPTIONS, ...END_CORRUPTIONS];

let directory = '';
let good = '';
let copies = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'audit-'));
  good = join(directory, 'good.db');
  const store = await openSqliteStore(good, { nowMs: () => AT });
  await fillStore(store);
  await store.close();
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

async function audited(file: string): Promise<StoreAudit> {
  const reader = await openReceiptsReader(file);
  try {
    return await auditStore(reader);
  } finally {
    await reader.close();
  }
}

async function planted(plant: Plant): Promise<string> {
  copies += 1;
  const file = join(directory, `planted-${copies}.db`);
  await copyFile(good, file);
  const db = new Sqlite(file);
  db.pragma('foreign_keys = off');
  db.pragma('synchronous = off');
  plant(db);
  db.close();
  return file;
}

describe('audit', () => {
  it('finds nothing in a good store, and has looked at all of it', async () => {
    const audit = await audited(good);
    expect(audit.findings).toEqual([]);
    expect(audit).toMatchObject({
      isClean: true,
      operations: 23,
      open: 6,
      ended: { completed: 6, failed: 1, cancelled: 5, rejected: 2, unresolved: 3 },
      owedReconciliations: 6,
      notes: [],
    });
    expect(audit.checks.filter(({ examined }) => examined === 0)).toEqual([]);
  });

  it.each(CORRUPTIONS)('finds %s, and nothing else', async (_, plant, check, callNodeId, says) => {
    const audit = await audited(await planted(plant));
    expect(audit.findings).toEqual([{ check, callNodeId, says: expect.stringMatching(says) as string }]);
    expect(audit.findings[0]?.says).toContain(`"${callNodeId}": `);
    expect(audit.findings[0]?.says).toContain(AUDIT_CHECKS[check].mend);
    expect(audit.isClean).toBe(false);
  });

  it('finds a damaged file, and then trusts none of it', async () => {
    for (const part of ['operation_remote_id', 'operation']) {
      const file = await planted(() => {});
      const db = new Sqlite(file, { readonly: true });
      const page = Number(db.prepare('select rootpage from sqlite_master where name = ?').pluck().get(part));
      const pageBytes = Number(db.pragma('page_size', { simple: true }));
      db.close();
      const handle = await open(file, 'r+');
      await handle.write(Buffer.alloc(64, 0xff), 0, 64, (page - 1) * pageBytes);
      await handle.close();
      const audit = await audited(file);
      expect(new Set(audit.findings.map(({ check }) => check)), part).toEqual(new Set(['file']));
      expect(audit.findings[0]?.says).toContain('restore the store from a backup');
      expect(audit.operations).toBe(0);
    }
  });

  it('notes a result that no operation refers to, and evidence about lost rows, without calling them faults', async () => {
    const file = await planted((db) => {
      const { stored, bytes } = resultOf('{"nobody":1}');
      db.prepare('insert into result_blob values (?, ?, ?, ?)').run(
        stored.digest,
        'x/y',
        bytes.byteLength,
        bytes,
      );
      db.prepare(`insert into evidence values (900, 'lost', 'protocol-violation', 'd', 1)`).run();
    });
    const audit = await audited(file);
    expect(audit).toMatchObject({ isClean: true, findings: [] });
    expect(audit.notes.join('\n')).toContain('about operations that this store does not hold: "lost"');
    expect(audit.notes.join('\n')).toContain(resultOf('{"nobody":1}').stored.digest);
  });

  it('counts all findings where a store is full of them, and tells of each', async () => {
    const file = await planted((db) => sql(`update ready_outbox set advances = 1 - advances`)(db));
    const reader = await openReceiptsReader(file);
    const told: string[] = [];
    const audit = await auditStore(reader, { onFinding: ({ check }) => told.push(check) });
    await reader.close();
    expect(told).toHaveLength(17);
    expect(audit.checks.find(({ check }) => check === 'ready')).toMatchObject({ examined: 17, found: 17 });
  });

  it('plants at least one corruption for each check', () => {
    const covered = new Set<string>([...CORRUPTIONS.map(([, , check]) => check), 'file']);
    expect([...covered].sort()).toEqual(Object.keys(AUDIT_CHECKS).sort());
  });

  it('knows every reference between the tables', async () => {
    const db = new Sqlite(good, { readonly: true });
    const held = db
      .prepare<[], { child: string; parent: string; column: string }>(
        `select m.name as child, f."table" as parent, f."from" as "column"
         from sqlite_master m join pragma_foreign_key_list(m.name) f where m.type = 'table'`,
      )
      .all();
    db.close();
    expect(held.every(({ column }) => column === 'call_node_id')).toBe(true);
    expect(held.map(({ child, parent }) => `${child} ${parent}`).sort()).toEqual(
      REFERENCES.map((pair) => pair.join(' ')).sort(),
    );
  });
});

test('an operation that ends in the middle of its being looked at is no finding', async () => {
  const file = join(directory, 'written.db');
  const store = await openSqliteStore(file);
  const reader = await openReceiptsReader(file);
  const met = new Set<string>();
  // Each time the look begins some turns later: before the end, at every point of it, after it.
  for (let turns = 0; turns < 1_000; turns += 20) {
    const after = `node-${turns}`;
    const writer = await workingOne(store, `${after}-a`);
    const seen: AuditedOperation[] = [];
    const ending = writer.saw('completed', resultOf(after)).then(() => writer.end());
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    await auditReadsOf(reader).visitOperations(after, 1, (operation) => seen.push(operation));
    await ending;
    const [operation] = seen;
    if (!operation) throw new Error('nothing was looked at');
    expect([...faultsOfRow(operation), ...faultsOfEnd(operation)], `after ${turns} turns`).toEqual([]);
    met.add(operation.receipt ? 'ended' : 'open');
  }
  expect(met).toEqual(new Set(['open', 'ended']));
  expect((await auditStore(reader)).findings).toEqual([]);
  await reader.close();
  await store.close();
});
