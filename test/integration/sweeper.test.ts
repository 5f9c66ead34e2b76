// The sweeper on the real engine: an open row whose run is gone ends all the same, once, and nothing else is touched.

import type { ScheduleDescription } from '@temporalio/client';
import Database from 'better-sqlite3';
import { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { SweepCounts } from '../../activities/sweep.js';
import { sweeperIdOf } from '../../operation/names.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { ensureSweeper, type SweeperOptions } from '../../worker/sweeper.js';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

const NEVER_BY_ITSELF_MS = 24 * 3_600_000;

let lab: FaultLab;
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ sweepEveryMs: NEVER_BY_ITSELF_MS });
});
afterAll(async () => {
  await schedule().delete();
  await lab?.close();
});

const schedule = () => lab.temporal.schedule.getHandle(sweeperIdOf(lab.taskQueue));

/** One sweep now, and what it counted. */
async function sweep(): Promise<SweepCounts> {
  const lastOf = ({ info }: ScheduleDescription) => info.recentActions.at(-1)?.action.workflow;
  const before = lastOf(await schedule().describe())?.firstExecutionRunId;
  await schedule().trigger();
  for (;;) {
    const run = lastOf(await schedule().describe());
    if (run && run.firstExecutionRunId !== before) {
      const handle = lab.temporal.workflow.getHandle(run.workflowId, run.firstExecutionRunId);
      return (await handle.result()) as SweepCounts;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A row younger than a minute is left alone: its start may be on its way. */
function makeOlder(callNodeId: string): void {
  change('update operation set created_at = created_at - 120000 where call_node_id = ?', callNodeId);
}

function change(sql: string, callNodeId: string): void {
  const database = new Database(lab.storeFile);
  database.prepare(sql).run(callNodeId);
  database.close();
}

async function forget(workflowId: string): Promise<void> {
  const handle = lab.temporal.workflow.getHandle(workflowId);
  await lab.temporal.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId },
  });
  const isThere = () => handle.describe().then(Boolean, () => false);
  await expect.poll(isThere, { timeout: 90_000 }).toBe(false);
}

async function working(label: string, durationMs = 6_000) {
  const handle = await lab.start({ label, durationMs });
  await until(handle, (view) => view.state === 'WORKING');
  return handle;
}

test('a terminated run that was at work is started again: one end, one call', async () => {
  const label = 'swept-terminated';
  const handle = await working(label);
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('a person in the UI');
  expect(await sweep()).toMatchObject({ looked: 0 });
  makeOlder(label);
  expect(await sweep()).toEqual({ looked: 1, started: 1, behind: 0, elsewhere: 0, failed: 0 });
  const { outcome, receipt } = await handle.result();
  expect([outcome, receipt.executionEpoch]).toEqual(['completed', 2]);
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
  expect(lab.rows(label)).toEqual({ receipts: 1, ready: 1, advances: 1, reconciliations: 0, legs: 1 });
  expect(await sweep()).toEqual({ looked: 0, started: 0, behind: 0, elsewhere: 0, failed: 0 });
  const { memo, searchAttributes } = await lab.temporal.workflow.getHandle(handle.workflowId).describe();
  expect(memo).toMatchObject({ server: 'session-list', tool: 'work' });
  expect(searchAttributes).toMatchObject({ ToolName: ['work'], OperationOutcome: ['completed'] });
  // The caller's own start attaches to what the sweeper began.
  const again = await (await lab.start({ label, durationMs: 6_000 })).result();
  expect(again.receipt).toEqual(receipt);
});

test('a run that the engine has forgotten is started again, and nothing is submitted a second time', async () => {
  const label = 'swept-forgotten';
  const handle = await working(label);
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('as retention would');
  await forget(handle.workflowId);
  makeOlder(label);
  expect(await sweep()).toMatchObject({ looked: 1, started: 1 });
  expect((await handle.result()).outcome).toBe('completed');
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
  expect(lab.rows(label)).toMatchObject({ receipts: 1, ready: 1, legs: 1 });
}, 120_000);

test('a run that is open is left alone', async () => {
  const label = 'swept-running';
  const handle = await working(label, 600_000);
  makeOlder(label);
  const { runId } = await handle.status();
  expect(await sweep()).toEqual({ looked: 1, started: 0, behind: 0, elsewhere: 0, failed: 0 });
  expect((await handle.status()).runId).toBe(runId);
  await handle.cancel('enough');
  expect((await handle.result()).outcome).toBe('cancelled');
});

test('an open row whose run has completed is never started again, not even once the engine has forgotten the run', async () => {
  const label = 'swept-receipt-lost';
  const handle = await lab.start({ label });
  await handle.result();
  makeOlder(label);
  change('delete from ready_outbox where call_node_id = ?', label);
  change('delete from receipt where call_node_id = ?', label);
  expect(await sweep()).toEqual({ looked: 1, started: 0, behind: 1, elsewhere: 0, failed: 0 });
  await forget(handle.workflowId);
  expect(await sweep()).toMatchObject({ looked: 1, started: 0, behind: 1 });
  const reader = await openReceiptsReader(lab.storeFile);
  expect(await reader.readEvidence(label)).toEqual([expect.objectContaining({ kind: 'receipt-lost' })]);
  await reader.close();
  expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
}, 120_000);

test('the schedule skips what overlaps, is made once, and stays paused where a person paused it', async () => {
  await schedule().pause('a person');
  const worker = await lab.startWorker({ sweepEveryMs: NEVER_BY_ITSELF_MS / 2 });
  const { policies, spec, state } = await schedule().describe();
  expect(policies.overlap).toBe('SKIP');
  expect(spec.intervals?.[0]?.every).toBe(NEVER_BY_ITSELF_MS / 2);
  expect(state.paused).toBe(true);
  await schedule().unpause();
  await worker.stop();
});

test('where the engine gives no schedule, that is one sentence and nothing breaks', async () => {
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') });
  const said: string[] = [];
  const options = {
    connection,
    namespace: 'no-such-namespace',
    taskQueue: 'q',
    log: (line: string) => said.push(line),
  };
  await ensureSweeper(options as unknown as SweeperOptions, 60_000);
  expect(said).toEqual([expect.stringContaining('the schedule tool-operation-sweeper/q could not be made')]);
  await connection.close();
});
