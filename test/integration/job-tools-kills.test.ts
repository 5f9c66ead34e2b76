// SIGKILL of the worker at the seams of a job's submission, polls, questions, cancel and fetch (`mcp/job-tools`): the seam was
// hit, the journal of the fault server says how often the job ran, the store how many receipts there are.

import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import type { SeamName } from '../../operation/names.js';
import { type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { startJob } from './job-lab.js';
import { endOf, until } from './lab.js';

const BUDGETS = { lookUpBudgetMs: 8_000 };
const AMBIGUOUS = 'held: ambiguous-submission';

interface Row {
  readonly seam: SeamName;
  readonly server: NonNullable<FaultCall['server']>;
  readonly plan?: JsonObject;
  readonly durationMs?: number;
  readonly end: string;
  /** Real executions, and start calls received. */
  readonly ran: readonly [executions: number, calls: number];
  /** What people do; it has to survive the kill too. */
  readonly during?: (handle: ToolOperationHandle) => Promise<unknown>;
}

const ONCE = [1, 1] as const;
const answering = async (handle: ToolOperationHandle): Promise<void> => {
  const { pendingInput } = await until(handle, (view) => view.pendingInput.length > 0);
  const roundId = pendingInput[0]?.roundId ?? '';
  // Its worker may die under it: the reply that was posted is the run's to deliver.
  expect(await handle.answer({ roundId, content: { choice: 'left' } })).toEqual({ kind: 'applied' });
};
const cancelling = async (handle: ToolOperationHandle): Promise<void> => {
  await until(handle, (view) => view.remoteStatus === 'running');
  await handle.cancel('stop');
};

const MATRIX: readonly Row[] = [
  { seam: 'submit:before-claim', server: 'at-most-once', end: 'completed', ran: ONCE },
  { seam: 'submit:after-claim', server: 'at-most-once', end: AMBIGUOUS, ran: [0, 0] },
  { seam: 'submit:after-send', server: 'at-most-once', end: AMBIGUOUS, ran: ONCE },
  { seam: 'submit:after-send', server: 'key-argument', end: 'completed', ran: [1, 2] },
  { seam: 'submit:after-send', server: 'lookup-tool', end: 'completed', ran: ONCE },
  { seam: 'submit:after-reply', server: 'at-most-once', end: AMBIGUOUS, ran: ONCE },
  { seam: 'submit:after-reply', server: 'key-argument', end: 'completed', ran: [1, 2] },
  { seam: 'submit:after-commit', server: 'at-most-once', end: 'completed', ran: ONCE },
  {
    seam: 'lookUp:after-found',
    server: 'lookup-tool',
    plan: { create: 'lose' },
    end: 'completed',
    ran: ONCE,
  },
  { seam: 'observe:after-reply', server: 'at-most-once', durationMs: 1_500, end: 'completed', ran: ONCE },
  { seam: 'observe:result-fetched', server: 'at-most-once', end: 'completed', ran: ONCE },
  {
    seam: 'fetchResult:after-reply',
    server: 'at-most-once',
    plan: { result: ['503', 'ok'] },
    end: 'completed',
    ran: ONCE,
  },
  {
    seam: 'observe:question-read',
    server: 'at-most-once',
    plan: { questions: 1 },
    during: answering,
    end: 'completed',
    ran: ONCE,
  },
  {
    seam: 'answer:after-send',
    server: 'at-most-once',
    plan: { questions: 1 },
    during: answering,
    end: 'completed',
    ran: ONCE,
  },
  {
    seam: 'cancel:after-send',
    server: 'at-most-once',
    durationMs: 600_000,
    during: cancelling,
    end: 'cancelled',
    ran: ONCE,
  },
];

async function run(lab: FaultLab, label: string, row: Row): Promise<string> {
  const { seam, server, plan = {}, durationMs = 300, during } = row;
  const first = await lab.startWorker({ killAt: seam, budgets: BUDGETS });
  const handle = await startJob(lab, { label, server, durationMs, plan: { ...plan, deduplicate: true } });
  const acted = during?.(handle);
  expect(await first.ended).toBe('SIGKILL');
  expect(lab.wasKilledAt(seam)).toBe(true);
  await lab.startWorker({ budgets: BUDGETS });
  await acted;
  return endOf(handle);
}

describe.concurrent('a worker killed', () => {
  test.concurrent.each(MATRIX)('at $seam under $server', async (row) => {
    const lab = await openFaultLab();
    try {
      const label = `kill ${row.seam} ${row.server}`;
      const end = await run(lab, label, row);
      const calls = lab.faults.entries('callReceived', label).length;
      expect([end, lab.faults.executions(label), calls]).toEqual([row.end, ...row.ran]);
      const receipts = end.startsWith('held') ? 0 : 1;
      const advances = end === 'completed' ? 1 : 0;
      expect(lab.rows(label)).toMatchObject({ receipts, ready: receipts, advances });
      const answers = lab.faults.entries('answerReceived', label).map(({ answer }) => answer);
      // The same reply may arrive again, another never.
      expect(new Set(answers).size).toBeLessThanOrEqual(1);
    } finally {
      await lab.close();
    }
  });
});

test('the declaration is pinned: a worker whose configuration has lost it goes on with the job, not with new calls', async () => {
  const lab = await openFaultLab();
  try {
    const first = await lab.startWorker({ budgets: BUDGETS });
    const handle = await startJob(lab, { label: 'pinned', durationMs: 4_000 });
    await until(handle, (view) => view.remoteStatus === 'running');
    await first.stop();
    const config = JSON.parse(await readFile(lab.configFile, 'utf8')) as {
      mcpServers: Record<string, JsonObject>;
    };
    for (const entry of Object.values(config.mcpServers))
      Object.assign(entry, { durable: { protocol: 'mcp/job-tools' } });
    await writeFile(lab.configFile, JSON.stringify(config));
    await lab.startWorker({ budgets: BUDGETS });
    expect(await endOf(handle)).toBe('completed');
    expect(await endOf(await startJob(lab, { label: 'undeclared' }))).toBe('rejected');
    expect(lab.faults.entries('callReceived', 'undeclared')).toHaveLength(0);
  } finally {
    await lab.close();
  }
});

test('a server that loses its jobs with its process: held by what it says of the id, never failed, never sent again', async () => {
  const lab = await openFaultLab();
  try {
    await lab.startWorker({ budgets: BUDGETS });
    const label = 'server restarted';
    const handle = await startJob(lab, { label, durationMs: 600_000 });
    await until(handle, (view) => view.remoteStatus === 'running');
    await lab.faults.restart();
    expect(await endOf(handle)).toBe('held: handle-lost');
    expect((await handle.status()).evidence).toContain('no such job');
    expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
  } finally {
    await lab.close();
  }
});
