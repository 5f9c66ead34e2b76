// A worker killed with SIGKILL at named seams: the seam was hit, the wire saw one call, the store holds one receipt.

import { expect } from 'vitest';
import type { SeamName } from '../../operation/names.js';
import { RESEARCH, testInLab, until } from './lab.js';

const ASKING = { ...RESEARCH, arguments: { topic: 'python', ambiguous: true } };

testInLab.concurrent.for<[SeamName, typeof RESEARCH]>([
  ['submit:after-send', RESEARCH],
  ['submit:after-commit', RESEARCH],
  ['observe:after-reply', RESEARCH],
  ['observe:result-fetched', RESEARCH],
  ['accept:before-commit', RESEARCH],
  ['accept:after-commit', RESEARCH],
])('killed at %s, another worker brings the one receipt', async ([seam, call], { lab }) => {
  const first = await lab.startWorker({ killAt: seam });
  const handle = await lab.client.start({ callNodeId: `killed at ${seam}`, ...call });
  expect(await first.ended).toBe('SIGKILL');
  expect(lab.wasKilledAt(seam)).toBe(true);
  await lab.startWorker();
  const result = await handle.result();
  expect(result.outcome).toBe('completed');
  expect(lab.wire.counts().toolsCall).toBe(1);
  expect(lab.rows(`killed at ${seam}`)).toEqual({
    receipts: 1,
    ready: 1,
    advances: 1,
    reconciliations: 0,
    legs: 1,
  });
});

testInLab.concurrent(
  'killed after the claim and before the send, nothing was sent and it is held, never sent on a guess',
  async ({ lab }) => {
    const first = await lab.startWorker({ killAt: 'submit:after-claim' });
    const handle = await lab.client.start({
      callNodeId: 'claimed',
      server: 'everything',
      tool: 'echo',
      arguments: { message: 'once' },
    });
    expect(await first.ended).toBe('SIGKILL');
    await lab.startWorker();
    await expect(handle.result()).rejects.toMatchObject({ code: 'OperationUnresolved' });
    expect(lab.wire.counts().toolsCall).toBe(0);
    expect(lab.rows('claimed').receipts).toBe(0);
  },
);

testInLab.concurrent.for<SeamName>(['observe:question-read', 'observe:question-stored'])(
  'killed at %s, the question is asked once and answered',
  async (seam, { lab }) => {
    const first = await lab.startWorker({ killAt: seam });
    const handle = await lab.client.start({ callNodeId: `asked at ${seam}`, ...ASKING });
    expect(await first.ended).toBe('SIGKILL');
    await lab.startWorker();
    await until(handle, (view) => view.pendingInput.length > 0);
    expect(await handle.answer({ content: { interpretation: 'snake' } })).toEqual({ kind: 'applied' });
    const result = await handle.result();
    expect(result.resultJson).toContain('snake');
    expect(lab.wire.counts()).toMatchObject({ toolsCall: 1, answers: 1 });
    expect(lab.rows(`asked at ${seam}`).receipts).toBe(1);
  },
);

testInLab.concurrent.for<SeamName>(['answer:after-record', 'answer:after-send', 'answer:after-commit'])(
  'killed at %s, the reply is applied once',
  async (seam, { lab }) => {
    const first = await lab.startWorker({ killAt: seam });
    const handle = await lab.client.start({ callNodeId: `answered at ${seam}`, ...ASKING });
    await until(handle, (view) => view.pendingInput.length > 0);
    const verdict = handle.answer({ content: { interpretation: 'comedy' } });
    expect(await first.ended).toBe('SIGKILL');
    expect(lab.wasKilledAt(seam)).toBe(true);
    await lab.startWorker();
    expect(await verdict).toEqual({ kind: 'applied' });
    const result = await handle.result();
    expect(result.resultJson).toContain('comedy');
    expect(lab.wire.counts().toolsCall).toBe(1);
    expect(lab.wire.counts().answers).toBe(1);
    expect(lab.rows(`answered at ${seam}`).receipts).toBe(1);
  },
);

testInLab.concurrent.for<SeamName>(['cancel:after-raise', 'cancel:after-send', 'cancel:after-commit'])(
  'killed at %s, the cancel is delivered and the end is recorded',
  async (seam, { lab }) => {
    const first = await lab.startWorker({ killAt: seam });
    const handle = await lab.client.start({ callNodeId: `cancelled at ${seam}`, ...RESEARCH });
    await until(handle, (view) => view.polls >= 1);
    await handle.cancel('kill test');
    expect(await first.ended).toBe('SIGKILL');
    await lab.startWorker();
    const result = await handle.result();
    // The kill takes seconds: where the cancel had not left yet, the task may complete first, and that is the truth.
    expect(['cancelled', 'completed']).toContain(result.outcome);
    if (seam !== 'cancel:after-raise') expect(result.outcome).toBe('cancelled');
    expect(lab.wire.counts().toolsCall).toBe(1);
    expect(lab.rows(`cancelled at ${seam}`).receipts).toBe(1);
  },
);
