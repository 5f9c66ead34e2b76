// An operator's outcome with its result: accepted like every other end, never taken for the far side's word, never doubled.

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OperationView, ToolOperationHandle } from '../../client/index.js';
import type { SeamName } from '../../operation/names.js';
import { type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { readStored, until } from './lab.js';

const BUDGETS = { lookUpBudgetMs: 4_000, fetchBudgetMs: 3_000 };
const RESULT =
  '{ "content": [{"type":"text","text":"12345678901234567890"}],\n "big": 12345678901234567890 }';
const DIGEST = createHash('sha256').update(RESULT).digest('hex');
const ANN = { evidence: 'the log of the server', decidedBy: 'Ann' };

let lab: FaultLab;
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: BUDGETS });
});
afterAll(async () => {
  await lab?.close();
});

async function holdOne(call: FaultCall): Promise<[ToolOperationHandle, OperationView]> {
  const handle = await lab.start(call);
  const view = await until(handle, (seen) => seen.state === 'UNRESOLVED' || seen.receipt !== null);
  expect(view.receipt).toBeNull();
  return [handle, view];
}

const UNKNOWN = { server: 'at-most-once', plan: { create: 'lose' } } as const;
const ended = (outcome: 'completed' | 'failed', resultJson = RESULT) =>
  ({ kind: 'ended', outcome, resultJson }) as const;

test.concurrent('completed: the result is stored under its digest, downstream moves, and whose word it is stays visible', async () => {
  const label = 'ops-completed';
  const [handle] = await holdOne({ label, ...UNKNOWN });
  await handle.resolve(ended('completed'), ANN);
  const { outcome, receipt, resultJson } = await handle.result();
  expect([outcome, resultJson]).toEqual(['completed', RESULT]);
  expect(receipt).toMatchObject({
    state: 'ACCEPTED',
    result: {
      digest: DIGEST,
      sizeBytes: Buffer.byteLength(RESULT),
      note: 'operator Ann: the log of the server',
    },
    decision: { evidence: 'operator Ann: the log of the server' },
    // Nobody heard the far side say anything.
    remoteSaid: { remoteStatus: null, statusMessage: null },
    effects: 'none-owed',
  });
  expect(Buffer.from((await readStored(lab.storeFile, DIGEST)) ?? []).toString('utf8')).toBe(RESULT);
  expect(lab.rows(label)).toEqual({ receipts: 1, ready: 1, advances: 1, reconciliations: 0, legs: 1 });
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
});

test.concurrent('failed: nothing advances', async () => {
  const label = 'ops-failed';
  const [handle] = await holdOne({ label, ...UNKNOWN });
  const json = '{"content":[],"isError":true}';
  await handle.resolve(ended('failed', json), ANN);
  const { outcome, receipt } = await handle.result();
  expect([outcome, receipt.failureKind]).toEqual(['failed', 'tool']);
  expect(lab.rows(label)).toMatchObject({ receipts: 1, ready: 1, advances: 0 });
});

test.concurrent('a lost result is given by an operator, the status stays what the server said; another outcome is refused', async () => {
  const label = 'ops-result-lost';
  const [handle, view] = await holdOne({ label, plan: { result: 'lost' } });
  expect(view).toMatchObject({ reason: 'result-lost', remoteStatus: 'completed' });
  await expect(handle.resolve(ended('failed'), ANN)).rejects.toThrow('the server said that it completed');
  await handle.resolve(ended('completed'), ANN);
  const { outcome, receipt } = await handle.result();
  expect(outcome).toBe('completed');
  expect(receipt).toMatchObject({
    result: { digest: DIGEST },
    decision: { evidence: 'status; result by operator Ann: the log of the server' },
    remoteSaid: { remoteStatus: 'completed' },
  });
  expect(lab.rows(label)).toMatchObject({ receipts: 1, ready: 1, advances: 1 });
});

test.concurrent('what cannot be a result is refused before it is sent, and the operation stays held', async () => {
  const [handle] = await holdOne({ label: 'ops-unfit', ...UNKNOWN });
  const refused = async (decision: unknown, why: string): Promise<void> => {
    const error = await handle.resolve(decision as never, ANN).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'InvalidRequest', message: expect.stringContaining(why) });
  };
  await refused({ kind: 'ended', outcome: 'completed' }, 'needs its result');
  await refused(ended('completed', '{"content"'), 'not valid JSON');
  await refused(ended('completed', ''), 'not valid JSON');
  await refused(ended('completed', JSON.stringify('x'.repeat(524_288))), 'larger than 524288 bytes');
  await refused(ended('completed', '['.repeat(600) + ']'.repeat(600)), 'nested deeper than');
  await refused(ended('completed', '{"isError":true}'), 'the result says isError');
  await refused({ ...ended('completed'), outcome: 'cancelled' }, '"completed" or "failed"');
  await expect(handle.resolve(ended('completed'), { ...ANN, decidedBy: ' ' })).rejects.toThrow('a name');
  // As a signal sent past the client, none of it is taken either.
  const bare = lab.temporal.workflow.getHandle(handle.workflowId);
  const message = { decision: 'ended', outcome: 'completed', ...ANN };
  for (const resultJson of [undefined, 7, '{"content"', '"'.padEnd(600_000, 'x') + '"'])
    await bare.signal('decideOperation', { ...message, resultJson });
  expect(await handle.status()).toMatchObject({ state: 'UNRESOLVED', decidedByOperator: false });
  // A dense result just under the bound still fits into message, input and query.
  const dense = `[${'"",'.repeat(170_000)}""]`;
  expect(Buffer.byteLength(dense)).toBeLessThan(524_288);
  await handle.resolve(ended('completed', dense), ANN);
  expect((await handle.result()).resultJson).toBe(dense);
});

test.concurrent('of what is not held no word is taken, nor a second one', async () => {
  const label = 'ops-not-held';
  const handle = await lab.start({ label, durationMs: 600_000 });
  await until(handle, (view) => view.state === 'WORKING');
  await expect(handle.resolve(ended('completed'), ANN)).rejects.toThrow('is not held, it is WORKING');
  await handle.cancel('enough');
  expect((await handle.result()).outcome).toBe('cancelled');
  await expect(handle.resolve(ended('completed'), ANN)).rejects.toThrow('it has ended: cancelled');
  expect(lab.rows(label)).toMatchObject({ receipts: 1, advances: 0 });
});

test.concurrent('the result leaves the record once it is in the row', async () => {
  const [handle] = await holdOne({ label: 'ops-record', ...UNKNOWN });
  await handle.resolve(ended('completed'), ANN);
  await handle.result();
  const record = await lab.temporal.workflow.getHandle(handle.workflowId).query('operation');
  expect(JSON.stringify(record)).not.toContain('12345678901234567890');
});

test.each<SeamName>(['recordEnd:before-commit', 'recordEnd:after-commit', 'accept:before-commit'])(
  'killed at %s after an operator’s word, another worker brings the one receipt',
  async (seam) => {
    const label = `ops-killed at ${seam}`;
    const killed = await openFaultLab();
    try {
      const first = await killed.startWorker({ budgets: BUDGETS, killAt: seam });
      const handle = await killed.start({ label, ...UNKNOWN });
      await until(handle, (view) => view.state === 'UNRESOLVED');
      await handle.resolve(ended('completed'), ANN);
      expect(await first.ended).toBe('SIGKILL');
      expect(killed.wasKilledAt(seam)).toBe(true);
      await killed.startWorker({ budgets: BUDGETS });
      const { outcome, receipt } = await handle.result();
      expect([outcome, receipt.result?.digest]).toEqual(['completed', DIGEST]);
      expect(killed.rows(label)).toMatchObject({ receipts: 1, ready: 1, advances: 1 });
      expect(killed.faults.entries('callReceived', label)).toHaveLength(1);
    } finally {
      await killed.close();
    }
  },
);
