// Questions on the real engine and the fault server: asked once, answered once, whoever answers, whenever, and whatever is
// killed or lost. Counted by the server's journal.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ToolOperationError, type ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import { type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { type Lab, openLab, until } from './lab.js';

const INPUT_BUDGET_MS = 6_000;
/** Longer than a look apart, so that the anchor is kept before the question comes half-way. */
const DURATION_MS = 3_000;
const LEFT = { content: { choice: 'left' } };
const RIGHT = { content: { choice: 'right' } };

let lab: FaultLab;
let everything: Lab;
beforeAll(async () => {
  [lab, everything] = await Promise.all([openFaultLab(), openLab()]);
  await Promise.all([lab.startWorker({ budgets: { settleBudgetMs: 8_000 } }), everything.startWorker()]);
});
afterAll(async () => {
  await Promise.all([lab?.close(), everything?.close()]);
});

async function asked(call: FaultCall): Promise<ToolOperationHandle> {
  const handle = await lab.start({ durationMs: DURATION_MS, ...call, plan: { ...call.plan, questions: 1 } });
  await until(handle, (view) => view.pendingInput.length === 1);
  return handle;
}

/** Without what names the task in each of them. */
const answersOf = (label: string) =>
  lab.faults.entries('answerReceived', label).map(({ answer }) => {
    const { _meta: _, ...reply } = answer as JsonObject;
    return reply;
  });

function expectAskedOnce(label: string): void {
  expect(lab.faults.entries('questionHandedOut', label)).toHaveLength(1);
  expect(lab.faults.executions(label)).toBe(1);
  expect(lab.rows(label)).toMatchObject({ receipts: 1, ready: 1 });
}

test.concurrent('two people answer at the same moment with other replies: one is applied, the other is told when', async () => {
  const label = 'input two people';
  const handle = await asked({ label });
  const verdicts = await Promise.all([handle.answer(LEFT), handle.answer(RIGHT)]);
  const kinds = verdicts.map(({ kind }) => kind).sort();
  expect(kinds).toEqual(['alreadyAnswered', 'applied']);
  expect(verdicts.find((verdict) => verdict.kind === 'alreadyAnswered')).toMatchObject({
    whenAt: expect.any(Number) as number,
  });
  const winner = verdicts[0]?.kind === 'applied' ? 'left' : 'right';
  expect((await handle.result()).resultJson).toContain(winner);
  expect(answersOf(label)).toHaveLength(1);
  expectAskedOnce(label);
});

test.concurrent('two people give the same reply at once: it goes out once, and both hear it was taken', async () => {
  const label = 'input same twice';
  const handle = await asked({ label });
  const verdicts = await Promise.all([handle.answer(LEFT), handle.answer(LEFT)]);
  for (const { kind } of verdicts) expect(['applied', 'duplicate']).toContain(kind);
  expect((await handle.result()).outcome).toBe('completed');
  expect(answersOf(label)).toEqual([{ action: 'accept', content: { choice: 'left' } }]);
  expectAskedOnce(label);
});

test.concurrent('a reply after the end is for a round that is closed', async () => {
  const label = 'input after the end';
  const handle = await asked({ label });
  const roundId = (await handle.status()).pendingInput[0]?.roundId ?? '';
  expect(await handle.answer(LEFT)).toEqual({ kind: 'applied' });
  await handle.result();
  expect(await handle.answer({ roundId, ...RIGHT })).toEqual({ kind: 'roundClosed' });
  expect(answersOf(label)).toHaveLength(1);
});

describe.concurrent('a person may also', () => {
  test.concurrent.each(['decline', 'cancel'] as const)(
    '%s: the server hears it, and its end is the end',
    async (action) => {
      const label = `input ${action}`;
      const handle = await asked({ label });
      expect(await handle.answer({ action })).toEqual({ kind: 'applied' });
      expect((await handle.result()).outcome).toBe('completed');
      expect(answersOf(label)).toEqual([{ action }]);
      expectAskedOnce(label);
    },
  );
});

test.concurrent('nobody answers: the deadline cancels, with its reason, and a late reply is told so', async () => {
  const own = await openFaultLab();
  try {
    await own.startWorker({ budgets: { inputBudgetMs: INPUT_BUDGET_MS } });
    const label = 'input deadline';
    const handle = await own.start({ label, durationMs: DURATION_MS, plan: { questions: 1 } });
    const view = await until(handle, ({ pendingInput }) => pendingInput.length === 1);
    const [round] = view.pendingInput;
    expect(round?.deadlineAt).toBeGreaterThan(Date.now());
    const { outcome, receipt } = await handle.result();
    expect([outcome, receipt.decision.reason]).toEqual(['cancelled', 'input-deadline']);
    expect(receipt.acceptedAt).toBeGreaterThanOrEqual(round?.deadlineAt ?? Number.POSITIVE_INFINITY);
    expect(own.faults.entries('cancelReceived', label)).toHaveLength(1);
    expect(await handle.answer({ roundId: round?.roundId ?? '', ...LEFT })).toEqual({ kind: 'roundClosed' });
    expect(own.faults.entries('answerReceived', label)).toEqual([]);
  } finally {
    await own.close();
  }
});

test.concurrent('the wait budget stands still while a person thinks, and counts again afterwards', async () => {
  const label = 'input budget';
  const budgetMs = 5_000;
  const handle = await asked({ label, waitBudgetMs: budgetMs });
  const askedAt = Date.now();
  // The person thinks for longer than the whole budget.
  await until(handle, () => Date.now() > askedAt + budgetMs + 1_000);
  expect(await handle.answer(LEFT)).toEqual({ kind: 'applied' });
  expect((await handle.result()).outcome).toBe('completed');
  expectAskedOnce(label);
});

test.concurrent('the wait budget counts again once the person has answered', async () => {
  const label = 'input budget spent';
  // Four seconds before the question and four after it: of six, two are left for the second half.
  const handle = await asked({ label, waitBudgetMs: 6_000, durationMs: 8_000 });
  expect(await handle.answer(LEFT)).toEqual({ kind: 'applied' });
  const { receipt, outcome } = await handle.result();
  expect([outcome, receipt.decision.reason]).toEqual(['cancelled', 'wait-budget']);
});

test.concurrent('a reply whose acknowledgement is lost is not given a second time', async () => {
  const handle = await everything.client.start({
    callNodeId: 'input ack lost',
    server: 'everything',
    tool: 'simulate-research-query',
    arguments: { topic: 'python', ambiguous: true },
  });
  await until(handle, (view) => view.pendingInput.length === 1);
  const lost = everything.wire.faults.dropReply('answer');
  const before = everything.wire.counts().answers;
  const verdict = await handle.answer({ content: { interpretation: 'snake' } });
  await lost.played;
  expect(verdict).toEqual({ kind: 'applied' });
  expect((await handle.result()).resultJson).toContain('snake');
  // The server moved on with it, and that is seen before the bytes are sent again.
  expect(everything.wire.counts().answers - before).toBe(1);
  expect(everything.rows('input ack lost')).toMatchObject({ receipts: 1, ready: 1 });
});

test.concurrent('the worker is killed while a person thinks, twice: the question stays one, the reply arrives', async () => {
  const own = await openFaultLab();
  try {
    const first = await own.startWorker();
    const label = 'input killed';
    const handle = await own.start({ label, durationMs: DURATION_MS, plan: { questions: 1 } });
    const { pendingInput } = await until(handle, (view) => view.pendingInput.length === 1);
    await first.kill();
    const second = await own.startWorker();
    await until(handle, (view) => view.pendingInput.length === 1);
    await second.kill();
    expect((await handle.status()).pendingInput.map(({ roundId }) => roundId)).toEqual([
      pendingInput[0]?.roundId,
    ]);
    const verdict = handle.answer(LEFT);
    await own.startWorker();
    expect(await verdict).toEqual({ kind: 'applied' });
    expect((await handle.result()).outcome).toBe('completed');
    expect(own.faults.entries('questionHandedOut', label)).toHaveLength(1);
    expect(own.faults.entries('answerReceived', label)).toHaveLength(1);
  } finally {
    await own.close();
  }
});

test.concurrent('a reply that does not fit is refused with the reason, nothing is sent, and the round stays open', async () => {
  const label = 'input misfit';
  const handle = await asked({ label });
  for (const content of [{ choice: 'up' }, {}, 'left', null]) {
    const verdict = await handle.answer({ content }).catch((error: unknown) => {
      if (!ToolOperationError.isInstance(error)) throw error;
      return { kind: error.code };
    });
    expect(verdict.kind).toBe('refused');
  }
  expect(answersOf(label)).toEqual([]);
  expect(await handle.answer(LEFT)).toEqual({ kind: 'applied' });
  await handle.result();
  expectAskedOnce(label);
});
