// What callers see and can do while no worker lives.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Lab, openLab, RESEARCH, until } from './lab.js';
import { pinEvents } from './pinned-events.js';

let lab: Lab;
beforeEach(async () => {
  lab = await openLab();
});
afterEach(async () => {
  await lab?.close();
});

test('status answers without a worker and says since when one is missing', async () => {
  const before = Date.now();
  const handle = await lab.client.start({ callNodeId: 'waiting', ...RESEARCH });
  const view = await until(handle, (seen) => seen.waitingForWorkerSince !== null);
  expect(view.state).toBe('SUBMITTING');
  expect(view.server).toBe('everything');
  expect(view.waitingForWorkerSince).toBeGreaterThanOrEqual(before - 1_000);
});

test('a question is seen without a worker, and its answer waits for one', async () => {
  const worker = await lab.startWorker();
  const handle = await lab.client.start({
    callNodeId: 'asked-alone',
    ...RESEARCH,
    arguments: { topic: 'python', ambiguous: true },
  });
  await until(handle, (view) => view.pendingInput.length > 0);
  await worker.kill();
  // Until the pending work is overdue, nobody can tell that no worker lives; the question is shown all the same.
  const alone = await until(handle, (view) => view.waitingForWorkerSince !== null);
  expect(alone.pendingInput).toHaveLength(1);
  expect(alone.state).toBe('INPUT_REQUIRED');
  await expect(handle.answer({ content: { interpretation: 'snake' }, timeoutMs: 500 })).rejects.toMatchObject(
    { code: 'LocalTimeout' },
  );
  await lab.startWorker();
  const verdict = await handle.answer({ content: { interpretation: 'snake' } });
  expect(['applied', 'duplicate']).toContain(verdict.kind);
  expect((await handle.result()).resultJson).toContain('snake');
});

test('a cancel that comes before anything was sent sends nothing', async () => {
  const handle = await lab.client.start({ callNodeId: 'never-sent', ...RESEARCH });
  await handle.cancel('changed my mind');
  await lab.startWorker();
  const result = await handle.result();
  expect(result).toMatchObject({ outcome: 'cancelled', receipt: { decision: { evidence: 'never sent' } } });
  expect(lab.wire.counts().toolsCall).toBe(0);
  expect(lab.rows('never-sent')).toEqual({ receipts: 1, ready: 1, advances: 0, reconciliations: 0, legs: 0 });
  await pinEvents(lab, 'never-sent');
});

test('a cancel that comes while the submission has not left yet bars it, also after the worker died', async () => {
  const worker = await lab.startWorker({ killAt: 'submit:before-claim' });
  const handle = await lab.client.start({ callNodeId: 'barred', ...RESEARCH });
  expect(await worker.ended).toBe('SIGKILL');
  await handle.cancel('too slow');
  await lab.startWorker();
  const result = await handle.result();
  expect(result).toMatchObject({ outcome: 'cancelled', receipt: { decision: { evidence: 'never sent' } } });
  expect(lab.wire.counts().toolsCall).toBe(0);
});

test('C3: a cancel signalled while no worker lives is delivered by the next one', async () => {
  const worker = await lab.startWorker();
  const handle = await lab.client.start({
    callNodeId: 'delivered-late',
    ...RESEARCH,
    arguments: { topic: 'python', ambiguous: true },
  });
  await until(handle, (view) => view.pendingInput.length > 0);
  await worker.kill();
  await handle.cancel('nobody listens yet');
  await lab.startWorker();
  expect((await handle.result()).outcome).toBe('cancelled');
  expect(lab.wire.counts()).toMatchObject({ toolsCall: 1, tasksCancel: 1, answers: 0 });
  expect(await handle.answer({ content: { interpretation: 'snake' } })).toEqual({ kind: 'roundClosed' });
});
