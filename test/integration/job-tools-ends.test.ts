// Cancels and questions of jobs (`mcp/job-tools`) on the real engine: a cancel tool's answer is no evidence, a question is asked
// once and answered once. Counted by the fault server's journal.

import { afterAll, beforeAll, expect } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import { atOnce } from './at-once.js';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { startJob } from './job-lab.js';
import { endOf, until } from './lab.js';

let lab: FaultLab;
const { scenario, begin } = atOnce();
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: { settleBudgetMs: 40_000 } });
  begin();
});
afterAll(async () => {
  await lab?.close();
});

const CANCELS = [
  ['honour', 'cancelled'],
  ['delay:1500', 'cancelled'],
  ['refuse', 'completed'],
  ['ignore', 'completed'],
  ['complete-first', 'completed'],
  ['complete-after', 'completed'],
] as const;
for (const [cancel, end] of CANCELS) {
  scenario(`a cancel (${cancel}) ends ${end}: the answer of the cancel tool is no evidence`, async () => {
    const label = `cancel ${cancel}`;
    const handle = await startJob(lab, {
      label,
      durationMs: cancel === 'refuse' || cancel === 'ignore' ? 15_000 : 600_000,
      plan: { cancel },
    });
    await until(handle, (view) => view.state === 'WORKING' && view.remoteStatus === 'running');
    await handle.cancel('changed my mind');
    const { outcome, receipt } = await handle.result();
    expect(outcome).toBe(end);
    expect(lab.faults.entries('cancelReceived', label).length).toBeGreaterThan(0);
    if (end === 'cancelled') expect(receipt.decision.evidence).toBe('status');
    expect(lab.rows(label)).toMatchObject({ receipts: 1, advances: end === 'completed' ? 1 : 0 });
  });
}

scenario('a cancel whose answer is lost is sent again until the status decides', async () => {
  const label = 'cancel lost';
  const plan = { cancel: 'delay:3000', cancelReply: ['lose'] };
  const handle = await startJob(lab, { label, durationMs: 600_000, plan });
  await until(handle, (view) => view.remoteStatus === 'running');
  await handle.cancel('no');
  expect((await handle.result()).outcome).toBe('cancelled');
});

scenario('without a cancel tool nothing is asked for, and the true end is recorded', async () => {
  const label = 'cancel unsupported';
  const handle = await startJob(lab, { label, server: 'job-no-cancel', durationMs: 15_000 });
  await until(handle, (view) => view.remoteStatus === 'running');
  await handle.cancel('no');
  expect((await handle.result()).outcome).toBe('completed');
  expect(lab.faults.entries('cancelReceived', label)).toHaveLength(0);
});

scenario('a job that ignores the cancel beyond the settle budget is held', async () => {
  const label = 'cancel never';
  const plan = { cancel: 'ignore' };
  const handle = await startJob(lab, { label, durationMs: 600_000, plan });
  await until(handle, (view) => view.remoteStatus === 'running');
  await handle.cancel('no');
  expect(await endOf(handle)).toBe('held: cancel-never-settled');
});

async function openRound(handle: ToolOperationHandle, known: readonly string[] = []) {
  const isNew = ({ roundId }: { roundId: string }): boolean => !known.includes(roundId);
  const { pendingInput } = await until(handle, (view) => view.pendingInput.some(isNew));
  const round = pendingInput.find(isNew);
  if (!round) throw new Error('no round');
  return round;
}

scenario('two questions are asked once and answered once each, by what the answer tool takes', async () => {
  const label = 'asks';
  const handle = await startJob(lab, {
    label,
    durationMs: 2_000,
    plan: { questions: 2 },
  });
  const first = await openRound(handle);
  expect(first.question).toMatchObject({
    message: 'Question 1 of asks',
    schema: { properties: { choice: { enum: ['left', 'right'] } }, required: ['choice'] },
  });
  expect(first.question.schema).not.toHaveProperty('properties.jobId');
  const bad = await handle.answer({ roundId: first.roundId, content: { choice: 'up' } });
  expect(bad.kind).toBe('refused');
  const declined = await handle.answer({ roundId: first.roundId, action: 'decline' });
  expect(declined).toMatchObject({
    kind: 'refused',
    reason: expect.stringContaining('answer_job') as string,
  });
  const left = { roundId: first.roundId, content: { choice: 'left' } };
  expect(await handle.answer(left)).toEqual({ kind: 'applied' });
  // One reply is one update, however often it is given.
  expect(await handle.answer(left)).toEqual({ kind: 'applied' });
  const second = await openRound(handle, [first.roundId]);
  expect(await handle.answer({ roundId: second.roundId, content: { choice: 'right' } })).toEqual({
    kind: 'applied',
  });
  const { outcome, toolResult } = await handle.result();
  expect(outcome).toBe('completed');
  expect(JSON.stringify(toolResult)).toContain(String.raw`answers [\"left\",\"right\"]`);
  expect(lab.faults.entries('answerReceived', label).map(({ answer }) => answer)).toEqual(['left', 'right']);
});

for (const word of ['lose', '503:1', 'tool-error']) {
  scenario(`a reply whose acknowledgement goes wrong (${word}) counts once`, async () => {
    const label = `ack ${word}`;
    const handle = await startJob(lab, {
      label,
      durationMs: 2_000,
      plan: { questions: 1, answers: [word] },
    });
    const { roundId } = await openRound(handle);
    expect(await handle.answer({ roundId, content: { choice: 'left' } })).toEqual({ kind: 'applied' });
    const { toolResult } = await handle.result();
    expect(JSON.stringify(toolResult)).toContain(String.raw`answers [\"left\"]`);
  });
}

scenario('a reply is taken again where its session was lost meanwhile', async () => {
  const label = 'ask in a lost session';
  const plan = { questions: 1, sessionLossMs: 4_000, taskAfterSession: 'found' };
  const handle = await startJob(lab, { label, durationMs: 1_000, plan });
  const { roundId } = await openRound(handle);
  await lab.faults.until((entry) => entry.kind === 'sessionLost' && entry.label === label);
  expect(await handle.answer({ roundId, content: { choice: 'right' } })).toEqual({ kind: 'applied' });
  expect((await handle.result()).outcome).toBe('completed');
});
