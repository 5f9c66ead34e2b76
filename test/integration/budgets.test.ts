// Budgets that are spent: nothing spins, nothing is called a success, and what is held says why. The clock is scaled by short
// budgets (ms instead of minutes); the rules are the shipped ones.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import type { ToolOperation } from '../../operation/record.js';
import { until } from './lab.js';

const BUDGETS = {
  lookUpBudgetMs: 6_000,
  settleBudgetMs: 6_000,
  fetchBudgetMs: 5_000,
  submitBudgetMs: 5_000,
  recheckGapMs: 2_000,
};

let lab: FaultLab;
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: BUDGETS });
});
afterAll(async () => {
  await lab?.close();
});

async function heldReason(call: FaultCall): Promise<string | null> {
  const handle = await lab.start(call);
  const view = await until(handle, (seen) => seen.state === 'UNRESOLVED' || seen.receipt !== null);
  expect(view.receipt).toBeNull();
  expect(lab.rows(call.label)).toMatchObject({ receipts: 0, ready: 0 });
  return view.reason;
}

test.concurrent('a look-up in a session that is gone ends at its deadline, held', async () => {
  const label = 'budget-look-up session gone';
  expect(await heldReason({ label, plan: { create: 'lose', session: 'lose-after-create' } })).toBe(
    'look-up-deadline',
  );
  expect(lab.faults.executions(label)).toBe(1);
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
});

test.concurrent('a keyed resend finds its task from a new session, the old one being gone', async () => {
  const label = 'budget-keyed session gone';
  const plan = { create: 'lose', session: 'lose-after-create', deduplicate: true };
  const handle = await lab.start({ label, server: 'key-argument', plan });
  const { outcome, receipt } = await handle.result();
  expect(outcome).toBe('completed');
  expect(lab.faults.executions(label)).toBe(1);
  expect(receipt.submissionLegs).toHaveLength(2);
});

test.concurrent('a cancel that is never honoured is held once its settle budget is spent', async () => {
  const label = 'budget-cancel ignored';
  const handle = await lab.start({ label, durationMs: 600_000, plan: { cancel: 'ignore' } });
  await until(handle, (view) => view.state === 'WORKING');
  await handle.cancel('budget test');
  const view = await until(handle, (seen) => seen.state === 'UNRESOLVED');
  expect(view.reason).toBe('cancel-never-settled');
});

test.concurrent('a result that never comes is held once its fetch budget is spent', async () => {
  expect(await heldReason({ label: 'budget-result lost', plan: { result: 'lost' } })).toBe('result-lost');
});

test.concurrent('what is held is looked at again by itself, and an end that came meanwhile is accepted', async () => {
  const label = 'budget-late end';
  const handle = await lab.start({ label, durationMs: 14_000, plan: { cancel: 'ignore' } });
  await until(handle, (view) => view.state === 'WORKING');
  await handle.cancel('budget test');
  const held = await until(handle, (seen) => seen.state === 'UNRESOLVED');
  expect(held).toMatchObject({ reason: 'cancel-never-settled', evidence: expect.any(String), receipt: null });
  // Without anybody's word.
  const { receipt } = await until(handle, (seen) => seen.receipt !== null);
  expect(receipt).toMatchObject({ outcome: 'completed', decision: { evidence: 'status' } });
  expect(lab.faults.executions(label)).toBe(1);
});

test.concurrent('a held submission is looked up again ever more slowly, and stays held', async () => {
  const label = 'budget-rechecked';
  const handle = await lab.start({ label, plan: { create: 'lose', session: 'lose-after-create' } });
  await until(handle, (seen) => seen.state === 'UNRESOLVED');
  const workflow = lab.temporal.workflow.getHandle(handle.workflowId);
  let hold: ToolOperation['hold'] = null;
  while ((hold?.rechecks ?? 0) < 2) {
    await until(handle, (seen) => seen.state === 'UNRESOLVED');
    ({ hold } = await workflow.query<ToolOperation>('operation'));
  }
  expect(hold).toMatchObject({ reason: 'look-up-deadline', evidence: expect.any(String) });
  expect((hold?.nextRecheckAt ?? 0) - (hold?.sinceAt ?? 0)).toBeGreaterThan(7 * BUDGETS.recheckGapMs);
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
});

test('the standing decision of the configuration closes what nobody resolved, as unresolved and with its effects owed', async () => {
  const submission = { policy: 'at-most-once' };
  const closing = await openFaultLab({ tools: { work: { submission, onUnresolved: { closeAfter: '2s' } } } });
  try {
    await closing.startWorker();
    const label = 'budget-close after';
    const handle = await closing.start({ label, plan: { create: 'lose' } });
    const held = await until(handle, (seen) => seen.state === 'UNRESOLVED' || seen.receipt !== null);
    expect(held.state).toBe('UNRESOLVED');
    const { receipt } = await until(handle, (seen) => seen.receipt !== null);
    expect(receipt).toMatchObject({
      outcome: 'unresolved',
      decision: {
        evidence: 'operator onUnresolved: standing decision of the configuration: close after 2000 ms',
        reason: 'ambiguous-submission',
      },
      effects: 'EFFECT_RECONCILIATION_REQUIRED',
    });
    expect(closing.rows(label)).toEqual({ receipts: 1, ready: 1, advances: 0, reconciliations: 1, legs: 1 });
    expect(closing.faults.entries('callReceived', label)).toHaveLength(1);
  } finally {
    await closing.close();
  }
});

test('a look-up at a server that is down ends at its deadline, held; a fresh call there is rejected, never sent', async () => {
  const label = 'budget-server down';
  const handle = await lab.start({ label, plan: { create: 'lose' } });
  await lab.faults.until((entry) => entry.kind === 'callReceived' && entry.label === label);
  await lab.faults.kill();
  const view = await until(handle, (seen) => seen.state === 'UNRESOLVED');
  expect(view.reason).toBe('look-up-deadline');
  const fresh = await lab.start({ label: 'budget-never sent', plan: {} });
  const { outcome, receipt } = await fresh.result();
  expect([outcome, receipt.decision.evidence]).toEqual(['rejected', 'submit-deadline']);
});
