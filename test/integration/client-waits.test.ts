// A caller's waits on the real engine: over resets, closed runs, holds and a missing worker; each ends when it should.

import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OperationView, ToolOperationHandle } from '../../client/index.js';
import { WORKFLOW_TYPE } from '../../operation/names.js';
import type { WorkerChild } from '../../cli/worker-child.js';
import { type Lab, openLab, RESEARCH, until, wireDelta } from './lab.js';

const ECHO = { server: 'everything', tool: 'echo', arguments: { message: 'once' } };
const ASKING = { ...RESEARCH, arguments: { topic: 'python', ambiguous: true } };

let lab: Lab;
let worker: WorkerChild;
beforeAll(async () => {
  lab = await openLab();
  worker = await lab.startWorker();
});
afterAll(async () => {
  await lab?.close();
});

test('a reset of the run goes unnoticed by who waits for its result', async () => {
  const sent = wireDelta(lab);
  const { handle, waiting, runId } = await startWaiting('waits-reset');
  await lab.temporal.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: handle.workflowId, runId },
    reason: 'a person in the UI',
    requestId: crypto.randomUUID(),
    workflowTaskFinishEventId: 4 as never,
  });
  expect((await handle.status()).runId).not.toBe(runId);
  expect((await waiting).outcome).toBe('completed');
  expect(sent()).toMatchObject({ 'tools/call': 1 });
});

test('a run replaced by another one goes unnoticed by who waits for its result', async () => {
  const sent = wireDelta(lab);
  const { handle, waiting, runId } = await startWaiting('waits-replaced');
  const { memo } = await lab.temporal.workflow.getHandle(handle.workflowId).describe();
  const requestDigest = memo?.['requestDigest'];
  await lab.temporal.workflow.start(WORKFLOW_TYPE, {
    workflowId: handle.workflowId,
    taskQueue: lab.taskQueue,
    memo: memo ?? {},
    workflowIdConflictPolicy: 'TERMINATE_EXISTING',
    args: [
      {
        ...RESEARCH,
        callNodeId: handle.callNodeId,
        requestDigest,
        waitBudgetMs: null,
        searchAttributes: true,
      },
    ],
  });
  expect((await waiting).receipt).toMatchObject({ outcome: 'completed', executionEpoch: 2 });
  expect((await handle.status()).runId).not.toBe(runId);
  expect(sent()).toMatchObject({ 'tools/call': 1 });
});

test('a run closed without a receipt ends every wait and says what to do', async () => {
  const { handle, waiting } = await startWaiting('waits-closed');
  const watched = viewsOf(handle);
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('by hand');
  await expect(waiting).rejects.toMatchObject({
    code: 'OperationUnresolved',
    message: expect.stringContaining('start the same call again') as string,
  });
  const reason = expect.stringMatching(/closed without a receipt .*start the same call again/) as string;
  expect((await watched).at(-1)).toMatchObject({ receipt: null, reason });
  expect(await handle.status()).toMatchObject({ receipt: null, reason });
  await expect(
    handle.resolve({ kind: 'close' }, { evidence: 'a test', decidedBy: 'Ann' }),
  ).rejects.toMatchObject({ code: 'InvalidRequest' });
  expect((await lab.client.execute({ callNodeId: 'waits-closed', ...RESEARCH })).outcome).toBe('completed');
});

test('who watches sees a hold as the last view, and the end as the last view', async () => {
  const handle = await holdOne('waits-held');
  const views = await viewsOf(handle);
  expect(views.at(-1)).toMatchObject({ state: 'UNRESOLVED', reason: 'ambiguous-submission' });
  await handle.resolve({ kind: 'close' }, { evidence: 'a test', decidedBy: 'Ann' });
  await handle.result();
  expect((await viewsOf(handle)).map((view) => view.outcome)).toEqual(['unresolved']);
});

test('a ledger that is behind ends every wait with its evidence', async () => {
  const { handle, waiting } = await startWaiting('waits-ledger');
  const watched = viewsOf(handle);
  loseRow(lab, 'waits-ledger');
  await expect(waiting).rejects.toMatchObject({
    code: 'OperationUnresolved',
    message: expect.stringContaining('is held: ledger-behind: ') as string,
    view: { state: 'SUBMISSION_UNKNOWN', reason: 'ledger-behind' },
  });
  expect((await watched).at(-1)).toMatchObject({ reason: 'ledger-behind' });
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('its row is lost');
});

test('a cancel that comes while the result is fetched is too late, and changes nothing', async () => {
  const handle = await lab.client.start({ callNodeId: 'waits-fetching', ...RESEARCH });
  await until(handle, (view) => view.polls >= 2);
  const refused = lab.wire.faults.answerNext('tasks/result', { httpStatus: 503, body: {} });
  const held = lab.wire.faults.holdNext('tasks/result');
  await refused.played;
  await held.arrived;
  await until(handle, (view) => ['TERMINAL_OBSERVED', 'FETCHING_RESULT'].includes(view.state));
  expect(await handle.cancel('too late')).toEqual({ kind: 'tooLate', outcome: null });
  held.release();
  expect(await handle.result()).toMatchObject({ outcome: 'completed', receipt: { cancelGeneration: 0 } });
});

test('waits longer than a timer can be are waits: the reply is applied, the result comes', async () => {
  const handle = await lab.client.start({ callNodeId: 'waits-long', ...ASKING });
  const waiting = handle.result({ timeoutMs: 3e9 });
  await until(handle, (view) => view.pendingInput.length > 0);
  const verdict = await handle.answer({ content: { interpretation: 'snake' }, timeoutMs: 3e9 });
  expect(verdict).toEqual({ kind: 'applied' });
  expect((await waiting).outcome).toBe('completed');
});

// The last: it takes the worker away.
test('without a worker a hold says where its evidence is, and a cancel is requested', async () => {
  const handle = await holdOne('waits-alone');
  await worker.kill();
  await expect(handle.result()).rejects.toMatchObject({
    code: 'OperationUnresolved',
    message: expect.stringContaining(
      'the evidence is in its run and is shown once a worker answers',
    ) as string,
  });
  const unheard = await lab.client.start({ callNodeId: 'waits-unheard', ...RESEARCH });
  expect(await unheard.cancel()).toEqual({ kind: 'requested' });
  await handle.resolve({ kind: 'close' }, { evidence: 'a test', decidedBy: 'Ann' });
  await lab.startWorker();
  expect((await until(handle, (view) => view.receipt !== null)).outcome).toBe('unresolved');
  expect((await unheard.result()).outcome).toBe('cancelled');
});

/** Under way, with somebody waiting for its result. */
async function startWaiting(callNodeId: string) {
  const handle = await lab.client.start({ callNodeId, ...RESEARCH });
  const waiting = handle.result();
  waiting.catch(() => {});
  const { runId } = await until(handle, (view) => view.polls >= 1);
  return { handle, waiting, runId };
}

async function holdOne(callNodeId: string): Promise<ToolOperationHandle> {
  const lost = lab.wire.faults.dropReply('tools/call');
  const handle = await lab.client.start({ callNodeId, ...ECHO });
  await lost.played;
  await until(handle, (view) => view.state === 'UNRESOLVED');
  return handle;
}

/** All views, once the watch has ended by itself. */
async function viewsOf(handle: ToolOperationHandle): Promise<readonly OperationView[]> {
  const views: OperationView[] = [];
  for await (const view of handle.watch({ everyMs: 200 })) views.push(view);
  return views;
}

/** As a backup from before the call, put back under a running operation. */
function loseRow({ storeFile }: Lab, callNodeId: string): void {
  const database = new Database(storeFile);
  try {
    for (const table of ['submission_leg', 'operation'])
      database.prepare(`delete from ${table} where call_node_id = ?`).run(callNodeId);
  } finally {
    database.close();
  }
}
