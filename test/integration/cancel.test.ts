// Cancel on the real engine and server: it never rewrites a completion, and says only what the reply said.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { type Lab, openLab, RESEARCH, until, wireDelta } from './lab.js';
import { pinEvents } from './pinned-events.js';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
  await lab.startWorker();
});
afterAll(async () => {
  await lab?.close();
});

test('a cancel in back-off is sent once and ends the operation as cancelled', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({ callNodeId: 'cancelled in back-off', ...RESEARCH });
  await until(handle, (view) => view.polls >= 1);
  expect(await handle.cancel('no longer needed')).toEqual({ kind: 'requested' });
  const result = await handle.result();
  expect(result).toMatchObject({ outcome: 'cancelled', toolResult: null });
  expect(result.receipt).toMatchObject({
    state: 'CANCELLED_ACCEPTED',
    cancelGeneration: 1,
    decision: { evidence: 'cancel-reply', reason: 'no longer needed' },
    effects: 'EFFECT_RECONCILIATION_REQUIRED',
  });
  expect(sent()).toMatchObject({ 'tools/call': 1, 'tasks/cancel': 1 });
  expect(lab.rows('cancelled in back-off')).toEqual({
    receipts: 1,
    ready: 1,
    advances: 0,
    reconciliations: 1,
    legs: 1,
  });
  await pinEvents(lab, 'cancelled', 'cancelled in back-off');
  expect(await handle.cancel('again')).toEqual({ kind: 'tooLate', outcome: 'cancelled' });
});

test('C1: a completion that beats the cancel keeps its result', async () => {
  const sent = wireDelta(lab);
  const hold = lab.wire.faults.holdNext('tasks/cancel');
  const handle = await lab.client.start({ callNodeId: 'beaten', ...RESEARCH });
  await until(handle, (view) => view.polls >= 1);
  await handle.cancel('too late');
  await hold.arrived;
  await serverSays(lab, 'beaten', 'completed');
  hold.release();
  const result = await handle.result();
  expect(result.outcome).toBe('completed');
  expect(JSON.stringify(result.toolResult)).toContain('tides');
  expect(sent()).toMatchObject({ 'tools/call': 1, 'tasks/cancel': 1 });
  expect(lab.rows('beaten')).toEqual({ receipts: 1, ready: 1, advances: 1, reconciliations: 0, legs: 1 });
  await pinEvents(lab, 'cancel-beaten', 'beaten');
});

test('a spent wait budget cancels remotely, and the true end is recorded', async () => {
  const sent = wireDelta(lab);
  const result = await lab.client.execute({ callNodeId: 'budget', ...RESEARCH, waitBudgetMs: 2_000 });
  expect(result).toMatchObject({ outcome: 'cancelled', receipt: { decision: { reason: 'wait-budget' } } });
  expect(sent()).toMatchObject({ 'tools/call': 1, 'tasks/cancel': 1 });
  expect(lab.rows('budget').receipts).toBe(1);
  await pinEvents(lab, 'wait-budget', 'budget');
});

test('native cancellation of the workflow means the same as the signal', async () => {
  const handle = await lab.client.start({ callNodeId: 'native', ...RESEARCH });
  await until(handle, (view) => view.polls >= 1);
  await lab.temporal.workflow.getHandle(handle.workflowId).cancel();
  const result = await handle.result();
  expect(result).toMatchObject({
    outcome: 'cancelled',
    receipt: { decision: { reason: 'workflow cancelled' } },
  });
});

test('C4: a lost acknowledgement of a cancel is asked again, and the state decides', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({ callNodeId: 'ack-lost', ...RESEARCH });
  await until(handle, (view) => view.polls >= 1);
  const dropped = lab.wire.faults.dropReply('tasks/cancel');
  await handle.cancel('ack will be lost');
  await dropped.played;
  const result = await handle.result();
  expect(result.outcome).toBe('cancelled');
  expect(sent()['tools/call']).toBe(1);
  expect(lab.rows('ack-lost').receipts).toBe(1);
});

test('a cancel while a tool without tasks runs never hangs up on it: the true end is recorded', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({
    callNodeId: 'in-flight',
    server: 'everything',
    tool: 'trigger-long-running-operation',
    arguments: { duration: 3, steps: 3 },
  });
  await lab.wire.waitFor('tools/call', (lab.wire.counts().toolsCall || 0) + 1 - (sent()['tools/call'] ?? 0));
  await handle.cancel('changed my mind');
  await until(handle, (view) => view.cancelRequested);
  const result = await handle.result();
  expect(result).toMatchObject({
    outcome: 'completed',
    receipt: { submissionLegs: [{ outcome: 'answered' }] },
  });
  expect(sent()).toMatchObject({ 'tools/call': 1 });
});

/** Asks the server itself, in the operation's own session, until its task says so. */
async function serverSays(of: Lab, callNodeId: string, status: string): Promise<void> {
  const reader = await openReceiptsReader(of.storeFile);
  const row = await reader.read(callNodeId);
  await reader.close();
  const locator = row?.remoteReference?.locator as { sessionId: string; protocolVersion: string };
  for (;;) {
    const response = await fetch(of.wire.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': locator.sessionId,
        'mcp-protocol-version': locator.protocolVersion,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: crypto.randomUUID(),
        method: 'tasks/get',
        params: { taskId: row?.remoteReference?.remoteId },
      }),
    });
    if ((await response.text()).includes(`"status":"${status}"`)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
