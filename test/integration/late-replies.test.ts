// The reply of a submission that its run has given up, on every contract: recorded all the same, and a second piece of work is stopped. The run
// is terminated while its request is on the wire, so the attempt that sent it is a zombie beside the run that adopts.

import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import type { Evidence } from '../../receipts/store-reads.js';
import { CONTRACTS, type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

let lab: FaultLab;
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker();
});
afterAll(async () => {
  await lab?.close();
});

/** Starts it, and again after a person terminated the run whose request is on the wire. */
async function adopted(call: FaultCall): Promise<ToolOperationHandle> {
  const first = await lab.start(call);
  await lab.faults.until((entry) => entry.kind === 'callReceived' && entry.label === call.label);
  await lab.temporal.workflow.getHandle(first.workflowId).terminate('a person in the UI');
  return lab.start(call);
}

interface Stored {
  readonly remoteId: string | null;
  readonly legs: readonly string[];
}

function stored(callNodeId: string): Stored {
  const database = new Database(lab.storeFile, { readonly: true });
  const row = database.prepare('select remote_id from operation where call_node_id = ?').get(callNodeId);
  const legs = database
    .prepare('select outcome from submission_leg where call_node_id = ? order by leg')
    .all(callNodeId) as { outcome: string }[];
  database.close();
  return {
    remoteId: (row as { remote_id: string | null }).remote_id,
    legs: legs.map(({ outcome }) => outcome),
  };
}

async function evidenceOf(callNodeId: string): Promise<readonly Evidence[]> {
  const reader = await openReceiptsReader(lab.storeFile);
  const evidence = await reader.readEvidence(callNodeId);
  await reader.close();
  return evidence;
}

const madeBy = (label: string): readonly string[] =>
  lab.faults.entries('taskCreated', label).map(({ remoteTaskId }) => remoteTaskId);

const cancelledOf = (label: string): readonly string[] =>
  lab.faults
    .journal()
    .flatMap((entry) =>
      entry.kind === 'cancelReceived' && entry.label === label ? [entry.remoteTaskId] : [],
    );

test.concurrent.each(CONTRACTS)(
  'on %s of a held operation is recorded, and overtakes the word that was given without it',
  async (contract) => {
    const label = `late held ${contract}`;
    const handle = await adopted({ label, contract, server: 'at-most-once', plan: { create: 'delay:5000' } });
    await until(handle, ({ state }) => state === 'UNRESOLVED');
    expect(stored(label)).toMatchObject({ remoteId: null });
    await until(handle, () => stored(label).remoteId !== null);
    expect(stored(label)).toEqual({ remoteId: madeBy(label)[0], legs: ['referenced'] });
    // Held until somebody looks: the operator's word meets what the store knows meanwhile.
    await handle.resolve({ kind: 'close' }, { evidence: 'no answer came', decidedBy: 'Ann' });
    const { outcome, receipt } = await handle.result();
    expect([outcome, receipt.remoteReference?.remoteId]).toEqual(['completed', madeBy(label)[0]]);
    expect(lab.faults.executions(label)).toBe(1);
    expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
    expect(lab.rows(label)).toMatchObject({ receipts: 1, reconciliations: 0, legs: 1 });
  },
);

test.concurrent.each([
  // 2026-07-28 has no list.
  ['2025-11-25', 'session-list'],
  ['2025-11-25', 'lookup-tool'],
  ['2026-07-28', 'lookup-tool'],
] as const)(
  'on %s names the work that a look-up (%s) has found meanwhile: one reference, no contradiction',
  async (contract, server) => {
    const label = `late found ${server} ${contract}`;
    const plan = { create: 'delay:5000' };
    const handle = await adopted({ label, server, contract, durationMs: 8_000, plan });
    await until(handle, ({ state }) => state === 'WORKING');
    expect(stored(label)).toEqual({ remoteId: madeBy(label)[0], legs: ['referenced'] });
    expect((await handle.result()).outcome).toBe('completed');
    expect(lab.faults.executions(label)).toBe(1);
    expect(cancelledOf(label)).toEqual([]);
    expect(await evidenceOf(label)).toEqual([]);
  },
);

test.concurrent.each(CONTRACTS)(
  'on %s that names other work than the second leg: the first reference stays, the other work is cancelled',
  async (contract) => {
    const label = `late second ${contract}`;
    // The server does not deduplicate the key: what the policy trusts is not so, and both legs run.
    const plan = { create: ['delay:7000', 'ok'] };
    const handle = await adopted({ label, contract, server: 'key-argument', durationMs: 15_000, plan });
    const { outcome, receipt } = await handle.result();
    const [late, own] = madeBy(label);
    expect([outcome, receipt.remoteReference?.remoteId]).toEqual(['completed', own]);
    expect(receipt.submissionLegs.map((leg) => leg.outcome)).toEqual(['referenced', 'referenced']);
    expect(cancelledOf(label)).toEqual([late]);
    expect(lab.faults.entries('executionEnded', label).map(({ execution, how }) => [execution, how])).toEqual(
      [
        [1, 'aborted'],
        [2, 'completed'],
      ],
    );
    expect(await evidenceOf(label)).toMatchObject([
      { kind: 'second-reference', detail: `remote id ${late}; the row holds ${own}` },
    ]);
    expect(lab.rows(label)).toMatchObject({ receipts: 1, advances: 1, reconciliations: 1 });
  },
);

test.concurrent('is not lost while the store is away: it is found again, or held with its key (S4)', async () => {
  const own = await openFaultLab();
  try {
    await own.startWorker();
    const calls = CONTRACTS.map((contract) => ({ label: `store away ${contract}`, contract }));
    // Without a list the look-up is by tool.
    const start = (call: (typeof calls)[number]): Promise<ToolOperationHandle> =>
      own.start({
        ...call,
        server: call.contract === '2025-11-25' ? 'session-list' : 'lookup-tool',
        durationMs: 3_000,
        plan: { create: 'delay:1500' },
      });
    const handles = await Promise.all(calls.map(start));
    const isOf = (label: string, kind: string) => (entry: { kind: string; label?: unknown }) =>
      entry.kind === kind && entry.label === label;
    for (const { label } of calls) await own.faults.until(isOf(label, 'callReceived'));
    const lock = new Database(own.storeFile);
    lock.exec('begin immediate');
    for (const { label } of calls) await own.faults.until(isOf(label, 'executionEnded'));
    // Longer than the store waits for its lock: the write of the reference fails, and the engine tries the step again.
    const attempts = async (handle: ToolOperationHandle): Promise<number> => {
      const described = await own.temporal.workflow.getHandle(handle.workflowId).describe();
      return described.raw.pendingActivities?.[0]?.attempt ?? 0;
    };
    for (const handle of handles) while ((await attempts(handle)) < 2) await sleep(250);
    lock.exec('rollback');
    lock.close();
    for (const handle of handles) {
      const label = handle.callNodeId;
      expect((await handle.result()).outcome).toBe('completed');
      expect(own.faults.executions(label)).toBe(1);
      expect(own.faults.entries('callReceived', label)).toHaveLength(1);
      expect(own.rows(label)).toMatchObject({ receipts: 1, legs: 1 });
    }
  } finally {
    await own.close();
  }
});
