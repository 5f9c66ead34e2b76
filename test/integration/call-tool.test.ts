// Other workflows call a tool as a child: one operation per name, whatever becomes of the caller.

import { type WorkflowHandle, WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { CallToolOptions } from '../../workflows/call-tool.js';
import { quietRuntime, readHistory, replayHistory } from '../replay/replay.js';
import { type Lab, openLab, RESEARCH, until, wireDelta } from './lab.js';
import type * as orchestrators from './orchestrators.js';

const CALLERS = `callers-${process.pid}`;
const WORKFLOWS = new URL('../../dist/test/integration/orchestrators.js', import.meta.url).pathname;

let lab: Lab;
let connection: NativeConnection;
let worker: Worker;
let running: Promise<void>;
beforeAll(async () => {
  quietRuntime();
  lab = await openLab();
  await lab.startWorker();
  connection = await NativeConnection.connect({ address: inject('temporalAddress') });
  worker = await Worker.create({ connection, taskQueue: CALLERS, workflowsPath: WORKFLOWS });
  running = worker.run();
});
afterAll(async () => {
  worker?.shutdown();
  await running;
  await connection?.close();
  await lab?.close();
});

function optionsOf(callNodeId: string): CallToolOptions {
  return { callNodeId, ...RESEARCH, taskQueue: lab.taskQueue };
}

function start(
  workflow: 'callOne' | 'callAndFail' | 'callAndContinueAsNew',
  callNodeId: string,
): Promise<WorkflowHandle> {
  return lab.temporal.workflow.start(workflow, {
    workflowId: `caller of ${callNodeId}`,
    taskQueue: CALLERS,
    args: [optionsOf(callNodeId)],
    retry: { maximumAttempts: 2, initialInterval: '10ms' },
  });
}

function isBegun(callNodeId: string): Promise<unknown> {
  const handle = lab.client.getHandle(callNodeId);
  return expect
    .poll(
      () =>
        handle.status().then(
          (view) => view.polls,
          () => 0,
        ),
      { timeout: 30_000 },
    )
    .toBeGreaterThan(0);
}

async function replayCaller(handle: WorkflowHandle): Promise<void> {
  const { runId } = await handle.describe();
  await replayHistory(
    await readHistory(lab.temporal, handle.workflowId, runId),
    handle.workflowId,
    WORKFLOWS,
  );
}

test('a workflow calls a tool as a child and gets the receipt and the result', async () => {
  const sent = wireDelta(lab);
  const caller = await start('callOne', 'child');
  const end = (await caller.result()) as orchestrators.Ended;
  expect(end).toMatchObject({ outcome: 'completed', receipt: { callNodeId: 'child' } });
  expect(JSON.stringify(end.toolResult)).toContain('tides');
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  await replayCaller(caller);
});

test('started from code, running and then ended: the workflow attaches and gets the same receipt', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({ callNodeId: 'from-code', ...RESEARCH });
  const caller = await start('callOne', 'from-code');
  const attached = (await caller.result()) as orchestrators.Ended;
  const { receipt } = await handle.result();
  expect(attached.receipt).toEqual(receipt);
  const again = await lab.temporal.workflow.execute('callOne', {
    workflowId: 'second caller of from-code',
    taskQueue: CALLERS,
    args: [optionsOf('from-code')],
  });
  expect(again.receipt).toEqual(receipt);
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  await replayCaller(caller);
});

test('the calling workflow is retried: its second attempt attaches', async () => {
  const sent = wireDelta(lab);
  const caller = await start('callAndFail', 'retried');
  await isBegun('retried');
  await caller.signal('goOn');
  const end = (await caller.result()) as orchestrators.Ended;
  expect(end.receipt).toEqual((await lab.client.getHandle('retried').result()).receipt);
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  await replayCaller(caller);
});

test('the calling workflow continues as new: its next run attaches', async () => {
  const sent = wireDelta(lab);
  const caller = await start('callAndContinueAsNew', 'continued');
  await isBegun('continued');
  await caller.signal('goOn');
  const end = (await caller.result()) as orchestrators.Ended;
  expect(end.receipt).toEqual((await lab.client.getHandle('continued').result()).receipt);
  expect(sent()).toMatchObject({ 'tools/call': 1 });
});

test('the calling workflow is reset to before its call: the new run attaches', async () => {
  const sent = wireDelta(lab);
  const caller = await start('callOne', 'reset-caller');
  await isBegun('reset-caller');
  const { runId } = await caller.describe();
  await lab.temporal.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: caller.workflowId, runId },
    reason: 'a person in the UI',
    requestId: crypto.randomUUID(),
    workflowTaskFinishEventId: 4 as never,
  });
  const end = await lab.temporal.workflow.getHandle(caller.workflowId).result();
  expect(end.receipt).toEqual((await lab.client.getHandle('reset-caller').result()).receipt);
  expect(sent()).toMatchObject({ 'tools/call': 1 });
});

test('a cancel of the caller is passed on, and the true end comes back as the receipt', async () => {
  const sent = wireDelta(lab);
  const caller = await start('callOne', 'cancel-passed');
  await isBegun('cancel-passed');
  await caller.cancel();
  const end = (await caller.result()) as orchestrators.Ended;
  expect(end).toMatchObject({
    outcome: 'cancelled',
    receipt: { decision: { reason: 'calling workflow cancelled' } },
  });
  expect(sent()).toMatchObject({ 'tools/call': 1, 'tasks/cancel': 1 });
  await replayCaller(caller);
});

test('a terminated caller cancels nothing: the operation ends by itself', async () => {
  const sent = wireDelta(lab);
  const caller = await start('callOne', 'abandoned');
  await isBegun('abandoned');
  await caller.terminate('by hand');
  expect((await lab.client.getHandle('abandoned').result()).outcome).toBe('completed');
  expect(sent()['tasks/cancel'] ?? 0).toBe(0);
});

test('a terminated operation is adopted by its caller, nothing is sent twice', async () => {
  const sent = wireDelta(lab);
  const caller = await start('callOne', 'child-terminated');
  await isBegun('child-terminated');
  await lab.temporal.workflow.getHandle('tool-operation/child-terminated').terminate('by hand');
  const end = (await caller.result()) as orchestrators.Ended;
  expect(end).toMatchObject({ outcome: 'completed', receipt: { executionEpoch: 2 } });
  expect(sent()).toMatchObject({ 'tools/call': 1 });
});

test('a child that a person terminated before anything was claimed comes back as cancelled, never sent', async () => {
  const sent = wireDelta(lab);
  // Without a session nothing is claimed.
  const held = lab.wire.faults.holdNext('initialize');
  const caller = await start('callOne', 'child-unsent');
  await held.arrived;
  await lab.temporal.workflow.getHandle('tool-operation/child-unsent').terminate('a person in the UI');
  const end = (await caller.result()) as orchestrators.Ended;
  held.release();
  expect(end).toMatchObject({
    outcome: 'cancelled',
    receipt: { decision: { evidence: 'never sent', reason: 'terminated' }, submissionLegs: [] },
  });
  expect(sent()['tools/call'] ?? 0).toBe(0);
  await replayCaller(caller);
});

test('another call under the same name is a conflict', async () => {
  const handle = await lab.client.start({ callNodeId: 'taken', ...RESEARCH });
  const caller = await lab.temporal.workflow.start('callOne', {
    workflowId: 'caller of taken',
    taskQueue: CALLERS,
    args: [{ ...optionsOf('taken'), arguments: { topic: 'other' } }],
  });
  const error: unknown = await caller.result().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(WorkflowFailedError);
  expect((error as WorkflowFailedError).cause).toBeInstanceOf(ApplicationFailure);
  expect(((error as WorkflowFailedError).cause as ApplicationFailure).type).toBe('CallNodeConflict');
  await until(handle, (view) => view.receipt !== null);
});
