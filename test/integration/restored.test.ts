// A backup put in the place of the store, on the real engine: nothing is sent a second time, what it has forgotten is
// listed, and only an operator (or the newer store) ends it.

import { copyFile, rm } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RestoredReport, ToolOperationHandle } from '../../client/index.js';
import type { WorkerChild } from '../../cli/worker-child.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

const ANN = { evidence: 'the log of the server', decidedBy: 'Ann' };
const RESULT = '{"content":[{"type":"text","text":"seen in the log"}]}';

let lab: FaultLab;
let worker: WorkerChild;
beforeEach(async () => {
  lab = await openFaultLab();
  worker = await lab.startWorker();
});
afterEach(async () => {
  await lab?.close();
});

/** As a backup tool does it with the workers down: one file, with all that its log held. */
async function backUp(name: string): Promise<void> {
  await worker.stop();
  const database = new Database(lab.storeFile);
  database.pragma('wal_checkpoint(TRUNCATE)');
  database.close();
  await copyFile(lab.storeFile, `${lab.storeFile}.${name}`);
}

/** The log of the newer file must not be read into the older one. */
async function putBack(name: string): Promise<void> {
  await worker.stop();
  for (const rest of ['-wal', '-shm']) await rm(lab.storeFile + rest, { force: true });
  await copyFile(`${lab.storeFile}.${name}`, lab.storeFile);
}

async function tellRestored(): Promise<RestoredReport> {
  const receipts = await openReceiptsReader(lab.storeFile);
  try {
    return await lab.client.storeRestored({ receipts });
  } finally {
    await receipts.close();
  }
}

const findingsOf = async (label: string) =>
  (await tellRestored()).findings.filter(({ callNodeId }) => callNodeId === label);

async function working(call: FaultCall): Promise<ToolOperationHandle> {
  const handle = await lab.start({ durationMs: 600_000, ...call });
  await until(handle, (view) => view.state === 'WORKING');
  return handle;
}

/** An operation at work, and a store from before its submission: made by killing the worker before the claim. */
async function forgottenSubmission(label: string): Promise<ToolOperationHandle> {
  await worker.stop();
  worker = await lab.startWorker({ killAt: 'submit:before-claim' });
  await lab.start({ label, durationMs: 600_000 });
  await worker.ended;
  await backUp('before');
  worker = await lab.startWorker();
  const handle = lab.client.getHandle(label);
  await until(handle, (view) => view.state === 'WORKING');
  await backUp('after');
  await putBack('before');
  worker = await lab.startWorker();
  return handle;
}

test('a store from before the submission: flagged and listed, nothing sent; with the newer store it goes on by itself', async () => {
  const label = 'restored-before';
  const handle = await forgottenSubmission(label);
  // Found out by the run's own next look already.
  await until(handle, (view) => view.reason === 'ledger-behind');
  expect(await findingsOf(label)).toEqual([
    expect.objectContaining({ kind: 'ledgerBehind', server: 'session-list', tool: 'work' }),
  ]);
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
  await expect(handle.resolve({ kind: 'neverCreated' }, ANN)).rejects.toThrow(
    'its store is older than its run',
  );
  await putBack('after');
  worker = await lab.startWorker();
  expect(await findingsOf(label)).toEqual([]);
  expect((await handle.status()).state).toBe('WORKING');
  await handle.cancel('enough');
  expect((await handle.result()).outcome).toBe('cancelled');
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
}, 120_000);

test('closed by an operator: the receipt owes a reconciliation, though the restored row had no submission', async () => {
  const label = 'restored-closed';
  const handle = await forgottenSubmission(label);
  expect(await findingsOf(label)).toMatchObject([{ kind: 'ledgerBehind' }]);
  await handle.resolve({ kind: 'close' }, ANN);
  const { outcome, receipt } = await handle.result();
  expect(outcome).toBe('unresolved');
  expect(receipt).toMatchObject({
    submissionLegs: [{ leg: 1, outcome: 'referenced' }],
    remoteReference: { remoteId: expect.any(String) },
    decision: { evidence: 'operator Ann: the log of the server', reason: 'ledger-behind' },
    effects: 'EFFECT_RECONCILIATION_REQUIRED',
  });
  expect(lab.rows(label)).toEqual({ receipts: 1, ready: 1, advances: 0, reconciliations: 1, legs: 1 });
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
  expect(await findingsOf(label)).toEqual([]);
}, 120_000);

test('terminated while its store was behind and started again: held, never sent a second time', async () => {
  const label = 'restored-terminated';
  const handle = await forgottenSubmission(label);
  expect(await findingsOf(label)).toMatchObject([{ kind: 'ledgerBehind' }]);
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('a person in the UI');
  const again = await lab.start({ label, durationMs: 600_000 });
  const view = await until(again, (seen) => seen.state === 'UNRESOLVED' || seen.receipt !== null);
  expect([view.receipt, view.evidence]).toEqual([null, expect.stringContaining('restored from before')]);
  await again.resolve({ kind: 'ended', outcome: 'failed', resultJson: RESULT }, ANN);
  expect((await again.result()).outcome).toBe('failed');
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
}, 120_000);

test('a store that is gone: the row is made again on an operator’s word only, and ends with the given result', async () => {
  const label = 'restored-gone';
  const handle = await working({ label });
  await worker.stop();
  for (const part of ['', '-wal', '-shm']) await rm(lab.storeFile + part, { force: true });
  worker = await lab.startWorker();
  const [finding] = await findingsOf(label);
  expect(finding).toMatchObject({ kind: 'ledgerBehind', evidence: expect.stringContaining('no row') });
  expect(lab.rows(label).legs).toBe(0);
  await handle.resolve({ kind: 'ended', outcome: 'completed', resultJson: RESULT }, ANN);
  const { outcome, receipt, resultJson } = await handle.result();
  expect([outcome, resultJson]).toEqual(['completed', RESULT]);
  expect(receipt.remoteSaid.remoteStatus).toBe('working');
  expect(lab.rows(label)).toEqual({ receipts: 1, ready: 1, advances: 1, reconciliations: 0, legs: 1 });
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
});

test('a backup as new as its runs: all goes on by itself', async () => {
  const label = 'restored-healthy';
  const handle = await working({ label, durationMs: 20_000 });
  await backUp('now');
  await putBack('now');
  worker = await lab.startWorker();
  const report = await tellRestored();
  expect(report.open).toBeGreaterThan(0);
  expect(report.findings).toEqual([]);
  const { outcome, receipt } = await handle.result();
  expect([outcome, receipt.submissionLegs.length]).toEqual(['completed', 1]);
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
});

test('a receipt that the store has lost is listed, and the same call still gets it from its run', async () => {
  const label = 'restored-receipt';
  const handle = await working({ label, durationMs: 6_000 });
  await backUp('at work');
  worker = await lab.startWorker();
  const { receipt } = await handle.result();
  await putBack('at work');
  worker = await lab.startWorker();
  expect(await findingsOf(label)).toEqual([
    { kind: 'receiptLost', callNodeId: label, server: 'session-list', tool: 'work', outcome: 'completed' },
  ]);
  const again = await (await lab.start({ label, durationMs: 6_000 })).result();
  expect(again.receipt).toEqual(receipt);
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
});

test('a store that has lost an answer: nobody is asked again', async () => {
  const label = 'restored-answer';
  const handle = await lab.start({ label, durationMs: 20_000, plan: { questions: 1 } });
  await until(handle, (view) => view.pendingInput.length > 0);
  await backUp('asked');
  worker = await lab.startWorker();
  expect(await handle.answer({ content: { choice: 'left' } })).toEqual({ kind: 'applied' });
  await putBack('asked');
  worker = await lab.startWorker();
  expect(await findingsOf(label)).toMatchObject([
    { kind: 'ledgerBehind', evidence: 'the row misses a reply' },
  ]);
  expect((await handle.status()).pendingInput).toEqual([]);
  expect(lab.faults.entries('answerReceived', label)).toHaveLength(1);
}, 120_000);
