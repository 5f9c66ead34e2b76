// A run that a person terminated: before anything was claimed that counts as a cancel, afterwards it means nothing.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

let lab: FaultLab;
beforeEach(async () => {
  lab = await openFaultLab();
});
afterEach(async () => {
  await lab?.close();
});

const callsOf = (label: string) => lab.faults.entries('callReceived', label).length;

async function expectNeverSent(label: string): Promise<void> {
  const { outcome, receipt } = await lab.client.getHandle(label).result();
  expect(outcome).toBe('cancelled');
  expect(receipt).toMatchObject({
    state: 'CANCELLED_ACCEPTED',
    submissionLegs: [],
    decision: { evidence: 'never sent', reason: 'terminated' },
    effects: 'none-owed',
  });
  expect(callsOf(label)).toBe(0);
  expect(lab.rows(label)).toEqual({ receipts: 1, ready: 1, advances: 0, reconciliations: 0, legs: 0 });
}

test('terminated before a worker ever lived, the next start ends it as cancelled, never sent', async () => {
  const label = 'term-no-worker';
  const handle = await lab.start({ label });
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('a person in the UI');
  await lab.start({ label });
  await lab.startWorker();
  await expectNeverSent(label);
  // A third start attaches to that end.
  await lab.start({ label });
  await expectNeverSent(label);
});

test('terminated between the opening of its row and the claim, it was never sent either', async () => {
  const label = 'term-before-claim';
  const first = await lab.startWorker({ killAt: 'submit:before-claim' });
  const handle = await lab.start({ label });
  expect(await first.ended).toBe('SIGKILL');
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('a person in the UI');
  await lab.startWorker();
  await lab.start({ label });
  await expectNeverSent(label);
});

test('terminated after the claim, it is adopted and brings its result', async () => {
  const label = 'term-after-claim';
  await lab.startWorker();
  const handle = await lab.start({ label, durationMs: 2_000 });
  await until(handle, (view) => view.state === 'WORKING');
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('a person in the UI');
  const again = await lab.start({ label, durationMs: 2_000 });
  expect((await again.result()).outcome).toBe('completed');
  expect(callsOf(label)).toBe(1);
});

test('a run that was reset is not a terminated one', async () => {
  const label = 'term-reset';
  const first = await lab.startWorker({ killAt: 'submit:before-claim' });
  const handle = await lab.start({ label });
  expect(await first.ended).toBe('SIGKILL');
  const { runId } = await lab.temporal.workflow.getHandle(handle.workflowId).describe();
  const { events } = await lab.temporal.workflow.getHandle(handle.workflowId, runId).fetchHistory();
  const task = events?.find((event) => event.workflowTaskCompletedEventAttributes)?.eventId;
  await lab.temporal.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: handle.workflowId, runId },
    reason: 'a person in the UI',
    requestId: crypto.randomUUID(),
    workflowTaskFinishEventId: task as never,
  });
  await lab.start({ label });
  await lab.startWorker();
  expect((await handle.result()).outcome).toBe('completed');
  expect(callsOf(label)).toBe(1);
});

test('a run that the engine has forgotten is not a terminated one', async () => {
  const label = 'term-forgotten';
  const handle = await lab.start({ label });
  const workflow = lab.temporal.workflow.getHandle(handle.workflowId);
  await workflow.terminate('a person in the UI');
  await lab.temporal.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: handle.workflowId },
  });
  const isThere = () => workflow.describe().then(Boolean, () => false);
  await expect.poll(isThere, { timeout: 90_000 }).toBe(false);
  await lab.startWorker();
  const again = await lab.start({ label });
  expect((await again.result()).outcome).toBe('completed');
  expect(callsOf(label)).toBe(1);
}, 120_000);
