// Identity on the real engine: one callNodeId is one operation, for ever.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { ToolOperationError } from '../../client/index.js';
import { type Lab, openLab, RESEARCH, until, wireDelta } from './lab.js';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
  await lab.startWorker();
});
afterAll(async () => {
  await lab?.close();
});

test('the same start ten times at once is one operation and one call', async () => {
  const sent = wireDelta(lab);
  const start = () => lab.client.start({ callNodeId: 'twice', ...RESEARCH });
  const handles = await Promise.all(Array.from({ length: 10 }, start));
  const results = await Promise.all(handles.map((handle) => handle.result()));
  const [first, ...others] = results.map((result) => JSON.stringify(result.receipt));
  for (const other of others) expect(other).toBe(first);
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  expect(lab.rows('twice')).toMatchObject({ receipts: 1, ready: 1, legs: 1 });
});

test('a start after the end gives the recorded receipt', async () => {
  const sent = wireDelta(lab);
  const first = await lab.client.execute({ callNodeId: 'ended', ...RESEARCH });
  const again = await lab.client.execute({ callNodeId: 'ended', ...RESEARCH });
  expect(again.receipt).toEqual(first.receipt);
  expect(sent()).toMatchObject({ 'tools/call': 1 });
});

test('a start after the engine forgot the run gives the recorded receipt and result', async () => {
  const sent = wireDelta(lab);
  const first = await lab.client.execute({ callNodeId: 'forgotten', ...RESEARCH });
  const handle = lab.client.getHandle('forgotten');
  await forget(lab, handle.workflowId);
  const again = await lab.client.execute({ callNodeId: 'forgotten', ...RESEARCH });
  expect(again.receipt).toEqual(first.receipt);
  expect(again.toolResult).toEqual(first.toolResult);
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  expect(lab.rows('forgotten').receipts).toBe(1);
});

test('other arguments under the same name are refused while it runs, after it ended, and after it was forgotten', async () => {
  const other = { ...RESEARCH, arguments: { topic: 'other', ambiguous: false } };
  const codeOf = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => 'no error',
      (error: unknown) => (ToolOperationError.isInstance(error) ? error.code : error),
    );
  const handle = await lab.client.start({ callNodeId: 'conflict', ...RESEARCH });
  expect(await codeOf(lab.client.start({ callNodeId: 'conflict', ...other }))).toBe('CallNodeConflict');
  const first = await handle.result();
  expect(await codeOf(lab.client.start({ callNodeId: 'conflict', ...other }))).toBe('CallNodeConflict');
  await forget(lab, handle.workflowId);
  expect(await codeOf(lab.client.execute({ callNodeId: 'conflict', ...other }))).toBe('CallNodeConflict');
  const again = await lab.client.execute({ callNodeId: 'conflict', ...RESEARCH });
  expect(again.receipt).toEqual(first.receipt);
}, 120_000);

test('a terminated run is adopted by the next start: nothing is sent twice', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({ callNodeId: 'terminated', ...RESEARCH });
  await until(handle, (view) => view.polls >= 1);
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('by hand');
  const result = await lab.client.execute({ callNodeId: 'terminated', ...RESEARCH });
  expect(result).toMatchObject({ outcome: 'completed', receipt: { executionEpoch: 2 } });
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  expect(lab.rows('terminated').receipts).toBe(1);
});

test('a local timeout stops waiting and cancels nothing', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({ callNodeId: 'impatient', ...RESEARCH });
  const error = await handle.result({ timeoutMs: 100 }).catch((thrown: unknown) => thrown);
  expect(ToolOperationError.isInstance(error) && error.code).toBe('LocalTimeout');
  expect((await handle.result()).outcome).toBe('completed');
  expect(sent()['tasks/cancel'] ?? 0).toBe(0);
});

test('what cannot be started says why and starts nothing', async () => {
  const bad = lab.client.start({ callNodeId: '', ...RESEARCH });
  await expect(bad).rejects.toMatchObject({ code: 'InvalidRequest' });
  const large = { ...RESEARCH, arguments: { topic: 'x'.repeat(300 * 1024) } };
  await expect(lab.client.start({ callNodeId: 'large', ...large })).rejects.toMatchObject({
    code: 'InvalidRequest',
  });
  await expect(lab.client.getHandle('nobody').status()).rejects.toMatchObject({ code: 'OperationNotFound' });
});

async function forget(of: Lab, workflowId: string): Promise<void> {
  await of.temporal.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId },
  });
  for (;;) {
    const isGone = await of.temporal.workflow
      .getHandle(workflowId)
      .describe()
      .then(
        () => false,
        () => true,
      );
    if (isGone) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
