// Jobs of plain start and status tools (`mcp/job-tools`) on the real engine: what reads and results do to an operation.
// Counted by the fault server's journal.

import { afterAll, beforeAll, expect } from 'vitest';
import { atOnce } from './at-once.js';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { endOfJob, startJob } from './job-lab.js';
import { until } from './lab.js';

let lab: FaultLab;
const { scenario, begin } = atOnce();
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: { settleBudgetMs: 30_000, fetchBudgetMs: 15_000 } });
  begin();
});
afterAll(async () => {
  await lab?.close();
});

const calls = (label: string): number => lab.faults.entries('callReceived', label).length;
const results = (label: string): number => lab.faults.entries('resultAsked', label).length;

scenario('a job completes with its progress shown, and the receipt names contract and id', async () => {
  const label = 'progress';
  const handle = await startJob(lab, { label, durationMs: 3_000 });
  const seen = await until(handle, (view) => view.remoteStatus === 'running' && view.statusMessage !== null);
  expect(seen.statusMessage).toBe('progress: running');
  const { outcome, receipt, toolResult } = await handle.result();
  expect(outcome).toBe('completed');
  expect(receipt).toMatchObject({
    adapter: 'mcp/job-tools',
    failureKind: null,
    submissionPolicy: 'at-most-once',
  });
  const [made] = lab.faults.entries('taskCreated', label);
  expect(receipt.remoteReference?.remoteId).toBe(made?.remoteTaskId);
  expect(JSON.stringify(toolResult)).toContain('execution 1 of progress is done');
  expect([results(label), lab.rows(label).advances]).toEqual([1, 1]);
});

scenario('numeric ids and answers in JSON text alone: the id goes back as a number', async () => {
  const label = 'text job';
  const handle = await startJob(lab, { label, tool: 'start_text_job' });
  const { outcome, receipt } = await handle.result();
  expect(outcome).toBe('completed');
  expect(receipt.remoteReference?.remoteId).toMatch(/^\d+$/);
  expect(lab.faults.entries('polled', label).length).toBeGreaterThan(0);
});

scenario('where no result tool is declared, the status answer that says the end is the result', async () => {
  const label = 'no result tool';
  const handle = await startJob(lab, { label, server: 'job-no-result' });
  const { outcome, toolResult } = await handle.result();
  expect([outcome, results(label)]).toEqual(['completed', 0]);
  expect(toolResult).toMatchObject({ structuredContent: { state: 'done' } });
});

const PASSING = ['503:1', 'error:-32603', 'lose', 'cut', 'tool-error', 'html', 'empty-result', 'wrong-json'];
for (const word of PASSING) {
  scenario(`a status call that goes wrong (${word}) is never the end of the job`, async () => {
    const label = `poll ${word}`;
    expect(await endOfJob(lab, { label, durationMs: 1_500, plan: { polls: [word, word] } })).toBe(
      'completed',
    );
    expect([calls(label), lab.faults.executions(label)]).toEqual([1, 1]);
  });
}

scenario('the interval that a status hints at holds, clamped: 2 s between looks', async () => {
  const label = 'hints';
  expect(await endOfJob(lab, { label, durationMs: 5_000, plan: { pollIntervals: [2_000] } })).toBe(
    'completed',
  );
  const at = lab.faults.entries('polled', label).map(({ connectedAt = 0 }) => connectedAt);
  const gaps = at.slice(1).map((time, n) => time - (at[n] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(2_000);
});

scenario('a word that is not declared is shown and bounded, never an end', async () => {
  const label = 'odd word';
  const plan = { workingStatus: 'archived' };
  const handle = await startJob(lab, {
    label,
    durationMs: 600_000,
    waitBudgetMs: 20_000,
    plan,
  });
  const seen = await until(handle, (view) => view.remoteStatus === 'archived' && view.notice !== null);
  expect(seen.notice).toBe('the server says "archived", a status of no known meaning');
  const { outcome, receipt } = await handle.result();
  expect([outcome, receipt.decision.reason]).toEqual(['cancelled', 'wait-budget']);
});

scenario('a status about another job says nothing of this one', async () => {
  const label = 'foreign once';
  expect(await endOfJob(lab, { label, durationMs: 2_000, plan: { polls: ['foreign-task'] } })).toBe(
    'completed',
  );
});

scenario('a server that tells of other jobs only is held with that evidence', async () => {
  const label = 'foreign always';
  const plan = { polls: Array.from({ length: 20 }, () => 'foreign-task') };
  const handle = await startJob(lab, { label, durationMs: 2_000, plan });
  const held = await until(handle, ({ reason }) => reason !== null);
  expect(held.reason).toBe('protocol-violation');
  expect(held.evidence).toContain('about another job');
});

scenario('a job that the server has forgotten is held, never called failed', async () => {
  const label = 'job forgotten';
  expect(await endOfJob(lab, { label, durationMs: 60_000, plan: { ttlMs: 2_500 } })).toBe(
    'held: handle-lost',
  );
});

scenario('a job that is not found right after its start is looked for again', async () => {
  const label = 'lag';
  expect(await endOfJob(lab, { label, plan: { lagReads: 3 } })).toBe('completed');
});

for (const sessionGone of ['404', '400'] as const) {
  scenario(`a lost session (${sessionGone}) costs a new one, not the job`, async () => {
    const label = `session ${sessionGone}`;
    const plan = { session: 'lose-after-create', sessionGone, taskAfterSession: 'found' };
    expect(await endOfJob(lab, { label, durationMs: 2_000, plan })).toBe('completed');
    expect(calls(label)).toBe(1);
  });
}

for (const [plan, kind] of [
  [{ outcome: 'isError' }, 'done'],
  [{ outcome: 'protocolError' }, 'error'],
] as const) {
  scenario(`the word "${kind}" with a result that says isError: failed, its content kept`, async () => {
    const label = `ends ${kind}`;
    const handle = await startJob(lab, { label, plan });
    const { outcome, receipt, toolResult } = await handle.result();
    expect([outcome, receipt.failureKind]).toEqual(['failed', 'tool']);
    expect(toolResult).toMatchObject({ isError: true });
    expect(lab.rows(label)).toMatchObject({ receipts: 1, ready: 1, advances: 0 });
  });
}

for (const word of ['lose', 'cut', '503:1', 'error:-32603', 'wrong-types', 'error:-32602']) {
  scenario(`a result that is lost once (${word}) is fetched again`, async () => {
    const label = `result ${word}`;
    expect(await endOfJob(lab, { label, plan: { result: [word] } })).toBe('completed');
    expect([results(label), lab.rows(label).advances]).toEqual([2, 1]);
  });
}

scenario('a result that is lost for ever is held, never a success', async () => {
  const label = 'result lost';
  expect(await endOfJob(lab, { label, plan: { result: 'lost' } })).toBe('held: result-lost');
  expect(lab.rows(label)).toMatchObject({ receipts: 0, ready: 0 });
});

scenario('a result larger than what may be taken is held with the limit named', async () => {
  const label = 'result large';
  const handle = await startJob(lab, { label, server: 'job-small', resultBytes: 30_000 });
  const held = await until(handle, ({ reason }) => reason !== null);
  expect(held.reason).toBe('result-too-large');
  expect(held.evidence).toContain('the limit of this operation is 10000 bytes');
});
