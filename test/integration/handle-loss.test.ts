// The loss of the handle, each way with its right end, on every contract: on the real engine, counted by the fault server's journal. A lost handle
// is never the failure of the work, and work of another operation is never taken for one's own nor cancelled. (A lost session
// is in faults.test.ts.)

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ToolOperationError, type ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import type { Evidence } from '../../receipts/store-reads.js';
import { CONTRACTS, type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

const LONG_MS = 600_000;
const BUDGETS = { settleBudgetMs: 4_000, lookUpBudgetMs: 8_000 };

let lab: FaultLab;
const planned: FaultCall[] = [];
const started = new Map<string, ToolOperationHandle>();

function plan(call: FaultCall): () => Promise<Ending> {
  planned.push(call);
  return () => {
    const handle = started.get(call.label);
    return handle ? endOf(handle) : Promise.reject(new Error('it was not started'));
  };
}

beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: BUDGETS });
  const handles = await Promise.all(planned.map((call) => lab.start(call)));
  for (const handle of handles) started.set(handle.callNodeId, handle);
});
afterAll(async () => {
  await lab?.close();
});

interface Ending {
  /** An outcome, or `held: reason`. */
  readonly end: string;
  readonly resultJson: string | null;
  readonly reason: string | null;
}

async function endOf(handle: ToolOperationHandle): Promise<Ending> {
  try {
    const { outcome, resultJson, receipt } = await handle.result();
    return { end: outcome, resultJson, reason: receipt.decision.reason };
  } catch (error) {
    if (!ToolOperationError.isInstance(error) || error.code !== 'OperationUnresolved') throw error;
    const { reason } = await until(handle, (view) => view.reason !== null);
    return { end: `held: ${reason}`, resultJson: null, reason };
  }
}

async function evidenceOf(callNodeId: string): Promise<readonly Evidence[]> {
  const reader = await openReceiptsReader(lab.storeFile);
  const evidence = await reader.readEvidence(callNodeId);
  await reader.close();
  return evidence;
}

const pollsOf = (label: string): number =>
  lab.faults.journal().filter((entry) => entry.kind === 'polled' && entry.label === label).length;
const cancelsOf = (label: string): number =>
  lab.faults.journal().filter((entry) => entry.kind === 'cancelReceived' && entry.label === label).length;

function expectOnce(label: string, { end }: Ending): void {
  expect(lab.faults.executions(label)).toBe(1);
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
  const receipts = end.startsWith('held') ? 0 : 1;
  expect(lab.rows(label)).toMatchObject({ receipts, ready: receipts });
}

describe.concurrent.each(CONTRACTS)('on %s work that its server does not find', (contract) => {
  const rows: readonly (readonly [string, JsonObject, number, string, number])[] = [
    // What is held is looked at again, slowly: the first good look frees it.
    [
      'from its second look on, before its expiry',
      { polls: ['ok', 'gone'] },
      LONG_MS,
      'held: handle-lost',
      4,
    ],
    ['from its second look on, after its expiry', { ttlMs: 3_000 }, LONG_MS, 'held: expired', 1],
    ['twice in mid-work', { polls: ['ok', 'error:-32602', 'error:-32602'] }, 3_000, 'completed', 3],
    ['right after its creation, for six reads', { lagReads: 6 }, 300, 'completed', 7],
  ];
  const cases = rows.map(([when, plan_, durationMs, expected, polls]) => {
    const label = `loss ${when} ${contract}`;
    return { when, label, expected, polls, end: plan({ label, contract, durationMs, plan: plan_ }) };
  });
  test.concurrent.each(cases)('$when: $expected', async ({ label, expected, polls, end }) => {
    const ending = await end();
    expect(ending.end).toBe(expected);
    expect(pollsOf(label)).toBeGreaterThanOrEqual(polls);
    expectOnce(label, ending);
  });
});

describe.concurrent.each(CONTRACTS)('on %s a reply', (contract) => {
  const foreignLabel = `loss foreign once ${contract}`;
  const foreign = plan({
    label: foreignLabel,
    contract,
    plan: { polls: ['ok', 'foreign-task'] },
    durationMs: 2_500,
  });
  test.concurrent('about another task is not taken for this one’s', async () => {
    const ending = await foreign();
    expect(ending.end).toBe('completed');
    expect(ending.resultJson).toContain(`execution 1 of ${foreignLabel} is done`);
    expect(pollsOf(foreignLabel)).toBeGreaterThan(2);
    expectOnce(foreignLabel, ending);
  });

  const always = ['foreign-task', 'foreign-task', 'foreign-task'];
  const neverLabel = `loss foreign ${contract}`;
  const never = plan({ label: neverLabel, contract, plan: { polls: always }, durationMs: LONG_MS });
  test.concurrent('about another task, three times, is a broken contract and no end', async () => {
    const ending = await never();
    expect(ending.end).toBe('held: protocol-violation');
    expectOnce(neverLabel, ending);
  });

  const resultLabel = `loss foreign result ${contract}`;
  const result = plan({ label: resultLabel, contract, plan: { result: ['foreign-task', 'ok'] } });
  test.concurrent('with the result of another task is fetched again', async () => {
    const ending = await result();
    expect(ending.end).toBe('completed');
    expect(ending.resultJson).toContain(`execution 1 of ${resultLabel} is done`);
    expectOnce(resultLabel, ending);
  });

  const staleLabel = `loss stale ${contract}`;
  // The end is told without its result, so that there is more to read.
  const after = contract === '2025-11-25' ? ['error:-32602', '503', 'ok'] : ['bare', '503', 'ok'];
  const stale = plan({ label: staleLabel, contract, plan: { staleReads: 4, result: after } });
  test.concurrent('that says working after it said completed changes nothing', async () => {
    const ending = await stale();
    expect(ending.end).toBe('completed');
    expect(ending.resultJson).toContain(`execution 1 of ${staleLabel} is done`);
    expectOnce(staleLabel, ending);
  });
});

describe.concurrent.each(CONTRACTS)('on %s a zombie that says working for ever', (contract) => {
  const rows = [
    { cancel: 'honour', expected: 'cancelled', reconciliations: 1 },
    { cancel: 'ignore', expected: 'held: cancel-never-settled', reconciliations: 0 },
  ].map((row) => {
    const label = `loss zombie ${row.cancel} ${contract}`;
    const plan_ = { cancel: row.cancel };
    const call = { label, contract, durationMs: LONG_MS, waitBudgetMs: 4_000, plan: plan_ };
    return { ...row, label, end: plan(call) };
  });
  test.concurrent.each(rows)(
    'is ended by the wait budget; a cancel that is met with $cancel: $expected',
    async ({ label, expected, reconciliations, end }) => {
      const ending = await end();
      expect(ending.end).toBe(expected);
      expect(cancelsOf(label)).toBe(1);
      if (expected === 'cancelled') expect(ending.reason).toBe('wait-budget');
      expectOnce(label, ending);
      expect(lab.rows(label).reconciliations).toBe(reconciliations);
    },
  );
});

describe.concurrent.each(CONTRACTS)(
  'on %s a create reply with the id of another operation’s work',
  (contract) => {
    const unlisted = contract === '2025-11-25' ? 'held: look-up-deadline' : 'held: ambiguous-submission';
    /** The end of the second operation, and what became of the leg that named the other's work. */
    test.concurrent.each([
      ['at-most-once', 'held: ambiguous-submission', 1],
      ['session-list', unlisted, 1],
      // The look-up names the own work: it is found after all.
      ['lookup-tool', 'completed', 1],
      ['key-argument', 'completed', 2],
      ['repeatable', 'completed', 2],
    ] as const)('under %s is not adopted: %s', async (server, expected, calls) => {
      const owner = `loss owner ${server} ${contract}`;
      const label = `loss thief ${server} ${contract}`;
      const owning = await lab.start({ label: owner, contract, server, durationMs: 9_000 });
      await until(owning, ({ state }) => state === 'WORKING');
      const plan_ = { create: ['reused-id', 'ok'], reusedOf: owner, deduplicate: true };
      const thief = await lab.start({ label, contract, server, durationMs: 1_000, plan: plan_ });
      const [owned] = lab.faults.entries('taskCreated', owner);
      const ending = await endOf(thief);
      expect(ending.end).toBe(expected);
      expect(lab.faults.entries('callReceived', label)).toHaveLength(calls);
      expect(await evidenceOf(label)).toMatchObject([
        {
          kind: 'foreign-reference',
          detail: `remote id ${owned?.remoteTaskId} belongs to operation ${owner}`,
        },
      ]);
      if (expected === 'completed') expect(ending.resultJson).toContain(`of ${label} is done`);
      // Nobody touched the other's work.
      const own = await endOf(owning);
      expect(own.end).toBe('completed');
      expect(own.resultJson).toContain(`execution 1 of ${owner} is done`);
      expect(cancelsOf(owner)).toBe(0);
      expect(await evidenceOf(owner)).toEqual([]);
    });
  },
);

describe.concurrent.each(CONTRACTS)('on %s an operator’s word about where the work is', (contract) => {
  const GROUNDS = { evidence: 'the list of the server', decidedBy: 'Ann' };
  async function heldOne(label: string, durationMs = 300): Promise<ToolOperationHandle> {
    const plan_ = { create: 'lose' };
    const call = { label, contract, server: 'at-most-once', durationMs, plan: plan_ } as const;
    const handle = await lab.start(call);
    await until(handle, ({ state }) => state === 'UNRESOLVED');
    return handle;
  }
  const taskOf = (label: string): string => lab.faults.entries('taskCreated', label)[0]?.remoteTaskId ?? '';
  const isLost = ({ state, reason }: { state: string; reason: string | null }): boolean =>
    state === 'UNRESOLVED' && reason === 'handle-lost';

  test.concurrent('that was wrong is replaced by a second one, and both are kept as evidence', async () => {
    const label = `loss word replaced ${contract}`;
    const handle = await heldOne(label);
    await handle.resolve({ kind: 'found', remoteId: `not ${label}` }, GROUNDS);
    await until(handle, isLost);
    await handle.resolve({ kind: 'found', remoteId: taskOf(label) }, { ...GROUNDS, decidedBy: 'Bob' });
    const { outcome, receipt } = await handle.result();
    expect([outcome, receipt.remoteReference?.remoteId]).toEqual(['completed', taskOf(label)]);
    expect(receipt.remoteReference?.isUnseen).toBeUndefined();
    expect(receipt.submissionLegs.map((leg) => leg.outcome)).toEqual(['referenced']);
    const kept = (await evidenceOf(label)).map(({ kind, detail }) => `${kind}: ${detail}`);
    expect(kept.toSorted()).toEqual(
      [
        `operator-found: remote id ${taskOf(label)}: operator Bob: the list of the server`,
        `operator-found: remote id not ${label}: operator Ann: the list of the server`,
        `reference-replaced: remote id not ${label}, never seen, gives way to ${taskOf(label)}`,
      ].toSorted(),
    );
  });

  test.concurrent('that was wrong is dropped by "never created"', async () => {
    const label = `loss word dropped ${contract}`;
    const handle = await heldOne(label);
    await handle.resolve({ kind: 'found', remoteId: `not ${label}` }, GROUNDS);
    await until(handle, isLost);
    await handle.resolve({ kind: 'neverCreated' }, GROUNDS);
    const { outcome, receipt } = await handle.result();
    expect([outcome, receipt.remoteReference]).toEqual(['rejected', null]);
    expect((await evidenceOf(label)).map(({ kind }) => kind)).toEqual([
      'operator-found',
      'reference-dropped',
    ]);
  });

  test.concurrent('that names the work of another operation is not followed, and the hold says why', async () => {
    const label = `loss word foreign ${contract}`;
    const owner = `loss word owner ${contract}`;
    const owning = await lab.start({ label: owner, contract, server: 'at-most-once', durationMs: 12_000 });
    await until(owning, ({ state }) => state === 'WORKING');
    const handle = await heldOne(label, 12_000);
    await handle.resolve({ kind: 'found', remoteId: taskOf(owner) }, GROUNDS);
    const why = `${taskOf(owner)} is the work of operation ${owner}`;
    const held = await until(handle, ({ evidence }) => evidence === why);
    expect([held.state, held.decidedByOperator]).toEqual(['UNRESOLVED', false]);
    await handle.resolve({ kind: 'found', remoteId: taskOf(label) }, GROUNDS);
    expect((await endOf(handle)).resultJson).toContain(`execution 1 of ${label} is done`);
    expect((await endOf(owning)).resultJson).toContain(`execution 1 of ${owner} is done`);
    expect(cancelsOf(owner)).toBe(0);
  });
});
