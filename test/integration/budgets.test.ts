// Budgets that are spent: nothing spins, nothing is called a success, and what is held says why. The clock is scaled by short
// budgets (ms instead of minutes); the rules are the shipped ones.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

const BUDGETS = { lookUpBudgetMs: 6_000, settleBudgetMs: 6_000, fetchBudgetMs: 5_000, submitBudgetMs: 5_000 };

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
