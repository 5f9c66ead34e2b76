// A run that ends under a cancel that the server has not honoured: terminated and started again, or reset. The next run
// adopts the operation with its cancel, and nothing is sent twice.

import { afterAll, beforeAll, describe, test } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';
import { resetRun, workflowTasks } from './reset-run.js';

let lab: FaultLab;
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker();
});
afterAll(async () => {
  await lab?.close();
});

interface Met {
  /** How the server meets the cancel. */
  readonly met: string;
  readonly durationMs: number;
  readonly plan: JsonObject;
  /** What the row holds of the cancel when the run ends. */
  readonly delivery: string;
  readonly outcome: string;
  /** `tasks/cancel` over both runs, from and to. */
  readonly cancels: readonly [number, number];
}

const CANCELS: readonly Met[] = [
  {
    met: 'refused',
    durationMs: 12_000,
    plan: { cancel: 'refuse' },
    delivery: 'refused',
    outcome: 'completed',
    // Asked again, with growing gaps, until the work ends by itself.
    cancels: [2, 8],
  },
  {
    met: 'acknowledged and ignored',
    durationMs: 12_000,
    plan: { cancel: 'ignore' },
    delivery: 'acknowledged',
    outcome: 'completed',
    // Once per run at most: the reply starts that run's settle budget.
    cancels: [1, 2],
  },
  {
    met: 'not heard at first',
    durationMs: 600_000,
    plan: { cancelReply: ['reset', 'reset', 'ok'] },
    delivery: 'sent',
    outcome: 'cancelled',
    cancels: [3, 3],
  },
];

/** Ends the run; resolves with the handle of whoever goes on. */
type Interruption = (
  handle: ToolOperationHandle,
  startAgain: () => Promise<ToolOperationHandle>,
) => Promise<ToolOperationHandle>;

const resetAt =
  (index: number): Interruption =>
  async (handle) => {
    const { runId, tasks } = await workflowTasks(lab.temporal, handle.workflowId);
    await resetRun(lab.temporal, handle.workflowId, runId, tasks.at(index) as number);
    return lab.client.getHandle(handle.callNodeId);
  };

const INTERRUPTIONS: Readonly<Record<string, Interruption>> = {
  'terminated and started again': async (handle, startAgain) => {
    await lab.temporal.workflow.getHandle(handle.workflowId).terminate('a person in the UI');
    return startAgain();
  },
  'reset to its first task': resetAt(0),
  'reset to its last task': resetAt(-1),
};

async function deliveryOf(callNodeId: string): Promise<string | undefined> {
  const reader = await openReceiptsReader(lab.storeFile);
  try {
    return (await reader.read(callNodeId))?.cancelDelivery;
  } finally {
    await reader.close();
  }
}

describe.concurrent.each(Object.keys(INTERRUPTIONS))('a run in CANCEL_REQUESTED, %s', (how) => {
  test.concurrent.for(CANCELS)(
    'with a cancel that was $met: adopted, one call, one receipt',
    async (one, { expect }) => {
      const label = `cancel adopted: ${one.met}, ${how}`;
      const start = (): Promise<ToolOperationHandle> =>
        lab.start({ label, durationMs: one.durationMs, plan: one.plan });
      const handle = await start();
      const { runId: firstRunId } = await until(handle, (view) => view.state === 'WORKING');
      expect(await handle.cancel('no longer needed')).toEqual({ kind: 'requested' });
      await expect.poll(() => deliveryOf(label), { timeout: 20_000 }).toBe(one.delivery);
      expect((await handle.status()).state).toBe('CANCEL_REQUESTED');

      const next = (await INTERRUPTIONS[how]?.(handle, start)) as ToolOperationHandle;
      // Else the end was there before the next run, and nothing was adopted.
      expect(lab.faults.entries('executionEnded', label)).toEqual([]);
      await until(next, (view) => view.runId !== firstRunId);
      const { outcome, receipt } = await next.result();

      const first = await lab.temporal.workflow.getHandle(handle.workflowId, firstRunId).describe();
      expect(first.status.name).toBe('TERMINATED');
      expect(outcome).toBe(one.outcome);
      expect(receipt).toMatchObject({
        executionEpoch: 2,
        cancelGeneration: 1,
        submissionLegs: [{ outcome: 'referenced' }],
      });
      expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
      expect(lab.faults.executions(label)).toBe(1);
      const isCompleted = one.outcome === 'completed';
      if (!isCompleted) expect(receipt.decision.reason).toBe('no longer needed');
      expect(lab.faults.entries('executionEnded', label)).toMatchObject([
        { how: isCompleted ? 'completed' : 'aborted' },
      ]);
      const cancels = lab.faults.entries('cancelReceived', label).length;
      expect(cancels).toBeGreaterThanOrEqual(one.cancels[0]);
      expect(cancels).toBeLessThanOrEqual(one.cancels[1]);
      expect(lab.rows(label)).toEqual({
        receipts: 1,
        ready: 1,
        advances: isCompleted ? 1 : 0,
        reconciliations: isCompleted ? 0 : 1,
        legs: 1,
      });
    },
  );
});
