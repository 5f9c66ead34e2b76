// Messages and servers that mean no good, or are merely odd: no run is bricked, nothing is lost, cancels get through.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { type Lab, openLab, RESEARCH, until } from './lab.js';

let lab: Lab;
let faults: FaultLab;
beforeAll(async () => {
  [lab, faults] = await Promise.all([openLab(), openFaultLab()]);
  await Promise.all([lab.startWorker(), faults.startWorker()]);
});
afterAll(async () => {
  await Promise.all([lab?.close(), faults?.close()]);
});

const ASKING = { ...RESEARCH, arguments: { topic: 'python', ambiguous: true } };

test('malformed and oversized messages are passed over, and the operation goes on', async () => {
  const handle = await lab.client.start({ callNodeId: 'hostile-messages', ...ASKING });
  const { pendingInput } = await until(handle, (view) => view.pendingInput.length > 0);
  const roundId = pendingInput[0]?.roundId;
  const workflow = lab.temporal.workflow.getHandle(handle.workflowId);
  const odd = { toString: null, valueOf: null };
  const large = 'x'.repeat(1_900_000);
  await workflow.signal('answerOperation', { roundId, replyDigest: 'x', action: 'accept' });
  await workflow.signal('answerOperation', {
    roundId,
    replyDigest: 'y',
    action: 'accept',
    content: { a: large },
  });
  await workflow.signal('answerOperation', null);
  await workflow.signal('decideOperation', { decision: 'close', evidence: odd, decidedBy: large });
  await workflow.signal('decideOperation', 7);
  expect(await handle.answer({ content: { interpretation: 'snake' } })).toEqual({ kind: 'applied' });
  expect((await handle.result()).outcome).toBe('completed');
});

test('a cancel whose fields are no text is a cancel', async () => {
  const handle = await lab.client.start({ callNodeId: 'hostile-cancel', ...RESEARCH });
  await until(handle, (view) => view.polls >= 1);
  const reason = { toString: null, valueOf: null };
  await lab.temporal.workflow.getHandle(handle.workflowId).signal('cancelOperation', { reason });
  const { outcome, receipt } = await handle.result();
  expect([outcome, receipt.decision.reason]).toEqual(['cancelled', 'cancelled by a signal']);
});

test('one stray 404 on a poll loses nothing', async () => {
  const handle = await lab.client.start({ callNodeId: 'hostile-404', ...RESEARCH });
  const stray = lab.wire.faults.answerNext('tasks/get', {
    httpStatus: 404,
    headers: { 'content-type': 'text/html' },
    body: 'not here',
  });
  await stray.played;
  expect((await handle.result()).outcome).toBe('completed');
});

test('a cancel gets through while the delivery of an answer keeps failing', async () => {
  const handle = await lab.client.start({ callNodeId: 'hostile-answer', ...ASKING });
  await until(handle, (view) => view.pendingInput.length > 0);
  const failing = lab.wire.faults.answerNext('answer', { httpStatus: 503, body: {}, times: 1_000 });
  void failing.played.catch(() => {});
  const verdict = handle.answer({ content: { interpretation: 'snake' } });
  await lab.wire.waitFor('answer', lab.wire.counts().answers + 1);
  await handle.cancel('no longer');
  const { outcome } = await handle.result();
  expect(outcome).toBe('cancelled');
  expect(await verdict).toEqual({ kind: 'roundClosed' });
  lab.wire.faults.clear();
});

test('an answer that the server refuses is told as refused, and another may be given', async () => {
  const handle = await lab.client.start({ callNodeId: 'hostile-refused', ...ASKING });
  await until(handle, (view) => view.pendingInput.length > 0);
  const refusing = lab.wire.faults.answerNext('answer', { httpStatus: 400, body: { error: 'no' } });
  expect((await handle.answer({ content: { interpretation: 'comedy' } })).kind).toBe('refused');
  await refusing.played;
  expect(await handle.answer({ content: { interpretation: 'snake' } })).toEqual({ kind: 'applied' });
  expect((await handle.result()).resultJson).toContain('snake');
});

test('a spent wait budget does not wait for the next poll of a slow server', async () => {
  const label = 'hostile-slow';
  const beganAt = Date.now();
  const handle = await faults.client.start({
    callNodeId: label,
    server: 'session-list',
    tool: 'work',
    arguments: { label, durationMs: 600_000, plan: { pollIntervalMs: 60_000, cancel: 'honour' } },
    waitBudgetMs: 2_000,
  });
  const { outcome, receipt } = await handle.result();
  expect([outcome, receipt.decision.reason]).toEqual(['cancelled', 'wait-budget']);
  expect(receipt.acceptedAt - beganAt).toBeLessThan(30_000);
});
