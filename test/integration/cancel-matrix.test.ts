// Cancel x (where the operation stands) x (how the server meets it), on every contract, each with its expected end: on the
// real engine, counted by the fault server's journal. The moments that end before a cancel can be sent are one row per way all the same:
// the way must not matter.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import { type Contract, CONTRACTS, type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { endOf, until } from './lab.js';

const BUDGETS = { settleBudgetMs: 12_000, lookUpBudgetMs: 20_000 };
const LONG_MS = 600_000;
const SHORT_MS = 4_000;

let lab: FaultLab;
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: BUDGETS });
});
afterAll(async () => {
  await lab?.close();
});

interface Way {
  readonly plan: JsonObject;
  readonly durationMs: number;
  readonly server?: 'no-cancel' | 'keyed-no-cancel';
  readonly isAskedTwice?: boolean;
}

/** How the server meets the cancel. */
const WAYS = {
  confirmed: { plan: { cancel: 'honour' }, durationMs: LONG_MS },
  refused: { plan: { cancel: 'refuse' }, durationMs: SHORT_MS },
  'ack lost': { plan: { cancelReply: 'lose' }, durationMs: LONG_MS },
  unsupported: { plan: {}, durationMs: SHORT_MS, server: 'no-cancel' },
  'never honoured': { plan: { cancel: 'ignore' }, durationMs: LONG_MS },
  'server away for a while': { plan: { cancelReply: ['reset', '503'] }, durationMs: LONG_MS },
  'asked twice': { plan: { cancel: 'honour' }, durationMs: LONG_MS, isAskedTwice: true },
} as const satisfies Record<string, Way>;
type WayName = keyof typeof WAYS;

/** End, and how many cancels reached the server (null: at least one). */
type Expected = readonly [end: string, cancels: number | null];

const WHILE_IT_RUNS: Readonly<Record<WayName, Expected>> = {
  confirmed: ['cancelled', 1],
  refused: ['completed', null],
  'ack lost': ['cancelled', 1],
  unsupported: ['completed', 0],
  'never honoured': ['held: cancel-never-settled', 1],
  'server away for a while': ['cancelled', null],
  'asked twice': ['cancelled', 1],
};

const ROWS = {
  submit: WHILE_IT_RUNS,
  unknown: WHILE_IT_RUNS,
  poll: WHILE_IT_RUNS,
  // Nobody is asked once a cancel is requested, so what waits for an answer ends by the cancel or not at all.
  input: {
    ...WHILE_IT_RUNS,
    refused: ['held: cancel-never-settled', null],
    unsupported: ['held: wait-budget', 0],
  },
} as const satisfies Record<string, Readonly<Record<WayName, Expected>>>;
type Phase = keyof typeof ROWS;

/** What brings the operation to the moment, beside the way's own plan. */
const PLAN_OF: Readonly<Record<Phase, JsonObject>> = {
  submit: { create: 'delay:2500' },
  // Its reply is lost, the first look-up (the same key again) finds the server away, the second finds the work.
  unknown: { create: ['lose', '503'], deduplicate: true },
  poll: {},
  input: { questions: 1 },
};

async function startAt(
  phase: Phase,
  label: string,
  contract: Contract,
  way: Way,
): Promise<ToolOperationHandle> {
  const plain = way.server ?? 'session-list';
  const server = phase === 'unknown' ? (way.server ? 'keyed-no-cancel' : 'key-argument') : plain;
  const call: FaultCall = {
    label,
    server,
    contract,
    // Longer than a look apart where a question comes half-way.
    durationMs: phase === 'input' ? 1_500 : way.durationMs,
    plan: { ...way.plan, ...PLAN_OF[phase] },
    // Where the server cannot cancel and nobody answers, only the budget ends it.
    ...(phase === 'input' && way.server ? { waitBudgetMs: 10_000 } : {}),
  };
  const handle = await lab.start(call);
  switch (phase) {
    case 'submit':
      await lab.faults.until((entry) => entry.kind === 'callReceived' && entry.label === label);
      break;
    case 'unknown':
      await until(handle, (view) => view.state === 'SUBMISSION_UNKNOWN');
      break;
    case 'poll':
      await until(handle, (view) => view.state === 'WORKING');
      break;
    case 'input':
      await until(handle, (view) => view.pendingInput.length === 1);
  }
  return handle;
}

const cancelsOf = (label: string): number => lab.faults.entries('cancelReceived', label).length;

const MOMENTS = CONTRACTS.flatMap((contract) =>
  (Object.keys(ROWS) as Phase[]).map((phase) => [contract, phase] as const),
);

describe.concurrent.each(MOMENTS)('on %s a cancel in the moment "%s"', (contract, phase) => {
  test.concurrent.each(Object.keys(WAYS) as WayName[])('%s', async (name) => {
    const way: Way = WAYS[name];
    const label = `cancel-matrix ${contract} ${phase} ${name}`;
    const handle = await startAt(phase, label, contract, way);
    expect(await handle.cancel('first')).toEqual({ kind: 'requested' });
    // The first may have brought the end by then; it is never a second request.
    if (way.isAskedTwice)
      expect(['alreadyRequested', 'tooLate']).toContain((await handle.cancel('second')).kind);

    const [end, cancels] = ROWS[phase][name];
    expect(await endOf(handle)).toBe(end);
    if (cancels === null) expect(cancelsOf(label)).toBeGreaterThanOrEqual(1);
    else expect(cancelsOf(label)).toBe(cancels);
    expect(lab.faults.executions(label)).toBe(1);
    expect(lab.faults.entries('answerReceived', label)).toEqual([]);

    const isHeld = end.startsWith('held');
    expect(lab.rows(label)).toMatchObject({
      receipts: isHeld ? 0 : 1,
      advances: end === 'completed' ? 1 : 0,
      // Bytes were sent and nothing was accepted: what it did meanwhile is owed a look.
      reconciliations: end === 'cancelled' ? 1 : 0,
    });
    const { receipt, cancelRequested } = await handle.status();
    expect(cancelRequested).toBe(true);
    // However often it was asked and sent meanwhile, it is one request, with the first reason.
    if (receipt) {
      expect(receipt).toMatchObject({ cancelGeneration: 1 });
      expect(receipt).not.toHaveProperty('earlierCancels');
    }
    if (end === 'cancelled') expect(receipt?.decision.reason).toBe('first');
    // After the end nothing is sent any more, and who asks is told.
    if (isHeld) return;
    expect(await handle.cancel('third')).toEqual({ kind: 'tooLate', outcome: end });
    if (cancels !== null) expect(cancelsOf(label)).toBe(cancels);
  });
});

/** Asks while it runs, until it is held as never honoured: the first is sent once, whoever else asks meanwhile. */
async function heldAfterCancel(call: FaultCall): Promise<ToolOperationHandle> {
  const handle = await lab.start({ durationMs: LONG_MS, ...call });
  await until(handle, (view) => view.state === 'WORKING');
  expect(await handle.cancel('first')).toEqual({ kind: 'requested' });
  await until(handle, () => cancelsOf(call.label) === 1);
  expect(await handle.cancel('impatient')).toEqual({ kind: 'alreadyRequested' });
  expect(await endOf(handle)).toBe('held: cancel-never-settled');
  expect(cancelsOf(call.label)).toBe(1);
  return handle;
}

describe.concurrent('a cancel that was never honoured, asked for again while held', () => {
  test.concurrent('is sent once more, and ends the operation where it is honoured then', async () => {
    const label = 'cancel-matrix again honoured';
    const handle = await heldAfterCancel({ label, plan: { cancel: 'ignore:1' } });
    expect(await handle.cancel('second')).toEqual({ kind: 'requested' });
    const { receipt } = await until(handle, (view) => view.receipt !== null);
    expect(receipt).toMatchObject({
      outcome: 'cancelled',
      decision: { evidence: 'cancel-reply', reason: 'second' },
      cancelGeneration: 2,
      earlierCancels: [{ generation: 1, reason: 'first', delivery: 'acknowledged' }],
    });
    expect(cancelsOf(label)).toBe(2);
    expect(lab.faults.executions(label)).toBe(1);
    expect(lab.rows(label)).toMatchObject({ receipts: 1, advances: 0, reconciliations: 1 });
    expect(await handle.cancel('third')).toEqual({ kind: 'tooLate', outcome: 'cancelled' });
  });

  test.concurrent('is held again where it is not honoured either, and may be asked for once more', async () => {
    const label = 'cancel-matrix again ignored';
    const handle = await heldAfterCancel({ label, plan: { cancel: 'ignore:2' } });
    const { heldSince } = await handle.status();
    expect(await handle.cancel('second')).toEqual({ kind: 'requested' });
    await until(handle, () => cancelsOf(label) === 2);
    expect(await handle.cancel('impatient')).toEqual({ kind: 'alreadyRequested' });
    const held = await until(handle, (view) => view.state === 'UNRESOLVED' && view.heldSince !== heldSince);
    expect(held).toMatchObject({ reason: 'cancel-never-settled', receipt: null });
    // Both had their whole settle budget, and neither was sent twice.
    expect((held.heldSince ?? 0) - (heldSince ?? 0)).toBeGreaterThanOrEqual(BUDGETS.settleBudgetMs);
    expect(cancelsOf(label)).toBe(2);
    expect(lab.rows(label)).toMatchObject({ receipts: 0, ready: 0 });
    expect(await handle.cancel('third')).toEqual({ kind: 'requested' });
    const { receipt } = await until(handle, (view) => view.receipt !== null);
    expect(receipt).toMatchObject({ outcome: 'cancelled', cancelGeneration: 3 });
    expect(receipt?.earlierCancels?.map(({ reason }) => reason)).toEqual(['first', 'second']);
    expect(cancelsOf(label)).toBe(3);
  });

  test.concurrent('on a server that cannot cancel: tried again, and held again at once', async () => {
    const label = 'cancel-matrix again unsupported';
    const handle = await lab.start({
      label,
      server: 'no-cancel',
      durationMs: LONG_MS,
      waitBudgetMs: 6_000,
    });
    expect(await endOf(handle)).toBe('held: wait-budget');
    const { heldSince } = await handle.status();
    expect(await handle.cancel('asked')).toEqual({ kind: 'requested' });
    const held = await until(handle, (view) => view.state === 'UNRESOLVED' && view.heldSince !== heldSince);
    expect(held).toMatchObject({ reason: 'wait-budget', cancelRequested: true });
    expect(cancelsOf(label)).toBe(0);
  });

  test.concurrent('a worker killed before it sent it: the next one sends it, once', async () => {
    const own = await openFaultLab();
    try {
      const label = 'cancel-matrix again killed';
      const budgets = { ...BUDGETS, settleBudgetMs: 4_000 };
      const first = await own.startWorker({ budgets });
      const handle = await own.start({ label, durationMs: LONG_MS, plan: { cancel: 'ignore:1' } });
      await until(handle, (view) => view.state === 'WORKING');
      await handle.cancel('first');
      expect(await endOf(handle)).toBe('held: cancel-never-settled');
      await first.stop();
      const second = await own.startWorker({ budgets, killAt: 'cancel:after-raise' });
      await handle.cancel('second');
      await second.ended;
      expect(own.wasKilledAt('cancel:after-raise')).toBe(true);
      await own.startWorker({ budgets });
      const { receipt } = await until(handle, (view) => view.receipt !== null);
      expect(receipt).toMatchObject({ outcome: 'cancelled', cancelGeneration: 2 });
      expect(receipt?.earlierCancels).toHaveLength(1);
      expect(own.faults.entries('cancelReceived', label)).toHaveLength(2);
    } finally {
      await own.close();
    }
  });
});

/** Where the status carries the result, there is something to fetch only where it came without. */
const FETCHING: Readonly<Record<Contract, readonly string[]>> = { '2025-11-25': [], '2026-07-28': ['bare'] };

describe.concurrent.each(CONTRACTS)('on %s a cancel in the moment "fetch"', (contract) => {
  test.concurrent.each(Object.keys(WAYS) as WayName[])('%s', async (name) => {
    const way: Way = WAYS[name];
    const label = `cancel-matrix ${contract} fetch ${name}`;
    const handle = await lab.start({
      label,
      contract,
      ...(way.server ? { server: way.server } : {}),
      plan: { ...way.plan, result: [...FETCHING[contract], 'error:-32603', 'error:-32603', 'error:-32603'] },
    });
    await until(handle, (view) => ['TERMINAL_OBSERVED', 'FETCHING_RESULT'].includes(view.state));
    expect(await handle.cancel('first')).toEqual({ kind: 'tooLate', outcome: null });
    if (way.isAskedTwice) expect((await handle.cancel('second')).kind).toBe('tooLate');
    expect(await endOf(handle)).toBe('completed');
    expect(cancelsOf(label)).toBe(0);
    expect(lab.rows(label)).toMatchObject({ receipts: 1, advances: 1, reconciliations: 0 });
    expect((await handle.status()).receipt).toMatchObject({ cancelGeneration: 0 });
  });
});

test.concurrent('a cancel in the moment "accept" finds the end on its way: too late, whoever asks again', async () => {
  const own = await openFaultLab();
  try {
    const first = await own.startWorker({ killAt: 'accept:before-commit' });
    const label = 'cancel-matrix accept';
    const handle = await own.start({ label });
    await first.ended;
    expect(own.wasKilledAt('accept:before-commit')).toBe(true);
    // Without a worker nobody can tell yet; it is durable, and finds the end.
    await handle.cancel('first');
    await own.startWorker();
    expect(await endOf(handle)).toBe('completed');
    expect(await handle.cancel('second')).toEqual({ kind: 'tooLate', outcome: 'completed' });
    expect(own.faults.entries('cancelReceived', label)).toEqual([]);
    expect(own.rows(label)).toMatchObject({ receipts: 1, advances: 1, reconciliations: 0 });
  } finally {
    await own.close();
  }
});

test.concurrent('a cancel while the server is dead: held in every moment, nothing is made up', async () => {
  const own = await openFaultLab();
  try {
    await own.startWorker({ budgets: { settleBudgetMs: 4_000, lookUpBudgetMs: 6_000 } });
    const poll = await own.start({ label: 'cancel-matrix dead poll', durationMs: LONG_MS });
    const input = await own.start({
      label: 'cancel-matrix dead input',
      durationMs: 1_500,
      plan: { questions: 1 },
    });
    const unknown = await own.start({
      label: 'cancel-matrix dead unknown',
      server: 'key-argument',
      durationMs: LONG_MS,
      plan: { create: ['lose', '503', '503', '503', '503'], deduplicate: true },
    });
    await until(poll, (view) => view.state === 'WORKING');
    await until(input, (view) => view.pendingInput.length === 1);
    await until(unknown, (view) => view.state === 'SUBMISSION_UNKNOWN');
    await own.faults.kill();
    for (const handle of [poll, input, unknown]) {
      expect(await handle.cancel('dead')).toEqual({ kind: 'requested' });
    }
    const ends = await Promise.all([poll, input, unknown].map(endOf));
    expect(ends).toEqual([
      'held: cancel-never-settled',
      'held: cancel-never-settled',
      'held: look-up-deadline',
    ]);
    for (const handle of [poll, input, unknown]) {
      expect(own.faults.executions(handle.callNodeId)).toBe(1);
      expect(own.rows(handle.callNodeId)).toMatchObject({ receipts: 0, ready: 0 });
    }
  } finally {
    await own.close();
  }
});
