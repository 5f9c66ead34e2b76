// Reset and terminate, as people do them in the Temporal UI, at every point of a course: adopted, one call, one receipt.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Lab, openLab, RESEARCH, until, wireDelta } from './lab.js';
import { resetRun, workflowTasks } from './reset-run.js';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
  await lab.startWorker();
});
afterAll(async () => {
  await lab?.close();
});

const ASKING = { ...RESEARCH, arguments: { topic: 'python', ambiguous: true } };

test('an ended operation with a question, reset at each of its workflow tasks: the same receipt every time', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({ callNodeId: 'reset-ended', ...ASKING });
  await until(handle, (view) => view.pendingInput.length > 0);
  await handle.answer({ content: { interpretation: 'snake' } });
  const first = await handle.result();
  const { runId, tasks } = await workflowTasks(lab.temporal, handle.workflowId);
  expect(tasks.length).toBeGreaterThan(5);
  for (const task of tasks) {
    await resetRun(lab.temporal, handle.workflowId, runId, task);
    const again = await handle.result();
    expect(again.receipt, `reset at ${task}`).toEqual(first.receipt);
    expect(again.toolResult, `reset at ${task}`).toEqual(first.toolResult);
  }
  expect(sent()).toMatchObject({ 'tools/call': 1, answer: 1 });
  expect(lab.rows('reset-ended')).toMatchObject({ receipts: 1, ready: 1, legs: 1 });
}, 120_000);

test('a reset while a question is open: the pending observation belongs to the new run, the answer is applied', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({ callNodeId: 'reset-asked', ...ASKING });
  await until(handle, (view) => view.pendingInput.length > 0);
  const workflow = lab.temporal.workflow.getHandle(handle.workflowId);
  const before = (await workflowTasks(lab.temporal, handle.workflowId)).tasks.length;
  // Any message: a workflow task after the observation was scheduled, so that the reset keeps it pending.
  await workflow.signal('answerOperation', null);
  await expect
    .poll(async () => (await workflowTasks(lab.temporal, handle.workflowId)).tasks.length)
    .toBeGreaterThan(before);
  const { runId, tasks } = await workflowTasks(lab.temporal, handle.workflowId);
  await resetRun(lab.temporal, handle.workflowId, runId, tasks.at(-1) as number);
  await expect.poll(async () => (await workflow.describe()).runId).not.toBe(runId);
  expect(await handle.answer({ content: { interpretation: 'comedy' } })).toEqual({ kind: 'applied' });
  const result = await handle.result();
  expect(result.resultJson).toContain('comedy');
  expect(sent()).toMatchObject({ 'tools/call': 1, answer: 1 });
  expect(lab.rows('reset-asked')).toMatchObject({ receipts: 1, ready: 1 });
});

test('an earlier run reset twice: the second new run takes the operation over and ends it', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({ callNodeId: 'reset-twice', ...ASKING });
  await until(handle, (view) => view.pendingInput.length > 0);
  const { runId, tasks } = await workflowTasks(lab.temporal, handle.workflowId);
  for (const round of [1, 2]) {
    await resetRun(lab.temporal, handle.workflowId, runId, tasks[1] as number);
    await until(handle, (view) => view.pendingInput.length > 0 && view.runId !== runId && round > 0);
  }
  expect(await handle.answer({ content: { interpretation: 'snake' } })).toEqual({ kind: 'applied' });
  expect((await handle.result()).outcome).toBe('completed');
  expect(sent()).toMatchObject({ 'tools/call': 1, answer: 1 });
  expect(lab.rows('reset-twice').receipts).toBe(1);
});

test.each(['WORKING', 'INPUT_REQUIRED', 'UNRESOLVED'] as const)(
  'terminated in %s and started again: adopted',
  async (state) => {
    const callNodeId = `terminated ${state}`;
    const call = state === 'INPUT_REQUIRED' ? ASKING : RESEARCH;
    const echo = { server: 'everything', tool: 'echo', arguments: { message: 'once' } };
    const sent = wireDelta(lab);
    const lost = state === 'UNRESOLVED' ? lab.wire.faults.dropReply('tools/call') : null;
    const start = () => lab.client.start({ callNodeId, ...(lost ? echo : call) });
    const handle = await start();
    await lost?.played;
    await until(
      handle,
      (view) => view.state === state && (state !== 'INPUT_REQUIRED' || view.pendingInput.length > 0),
    );
    await lab.temporal.workflow.getHandle(handle.workflowId).terminate('a person in the UI');
    const again = await start();
    if (state === 'UNRESOLVED') {
      await until(again, (view) => view.state === 'UNRESOLVED');
      await again.resolve({ kind: 'close' }, { evidence: 'a test', decidedBy: 'Ann' });
    } else if (state === 'INPUT_REQUIRED') {
      await until(again, (view) => view.pendingInput.length > 0);
      expect(await again.answer({ content: { interpretation: 'snake' } })).toEqual({ kind: 'applied' });
    }
    const { outcome, receipt } = await again.result();
    expect(outcome).toBe(state === 'UNRESOLVED' ? 'unresolved' : 'completed');
    expect(receipt.executionEpoch).toBe(2);
    expect(sent()).toMatchObject({ 'tools/call': 1 });
    expect(lab.rows(callNodeId)).toMatchObject({ receipts: 1, ready: 1 });
  },
);
