// Cases from the field, P1 to P5 (docs/CASES.md): polls that fail, hints that mean no good, on every contract. As the server's socket saw it.

import { afterAll, beforeAll, expect } from 'vitest';
import type { OperationResult, ToolOperationHandle } from '../../client/index.js';
import { atOnce } from './at-once.js';
import { CONTRACTS, type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

let lab: FaultLab;
const { scenario, begin } = atOnce();
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker();
  begin();
});
afterAll(async () => {
  await lab?.close();
});

async function resultOf(call: FaultCall): Promise<OperationResult> {
  return (await lab.start(call)).result();
}

/** Times between the polls of one call (ms), the first from its creation. */
function gapsOf(label: string): readonly number[] {
  const [created] = lab.faults.entries('taskCreated', label);
  const at = lab.faults.entries('polled', label).map(({ connectedAt = 0 }) => connectedAt);
  return at.map((time, n) => time - (n === 0 ? (created?.at ?? 0) : (at[n - 1] ?? 0)));
}

/** When the engine will look again (epoch ms), once that is later than `afterAt`. */
async function nextLookAt(handle: ToolOperationHandle, afterAt: number): Promise<number> {
  for (;;) {
    const { raw } = await lab.temporal.workflow.getHandle(handle.workflowId).describe();
    const [pending] = raw.pendingActivities ?? [];
    const scheduled = pending?.nextAttemptScheduleTime ?? pending?.scheduledTime;
    const dueAt = Number(scheduled?.seconds ?? 0) * 1_000;
    if (dueAt > afterAt) return dueAt;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const FLOOR_MS = 990;

for (const contract of CONTRACTS) {
  scenario(
    `on ${contract} P1: a poll that times out, one that answers 503 and one that is reset cost time, nothing else`,
    async () => {
      const { outcome, receipt } = await resultOf({
        label: `P1 times out ${contract}`,
        contract,
        durationMs: 45_000,
        plan: { polls: ['ok', 'hang', 'ok', '503:1', 'reset'] },
      });
      expect([outcome, receipt.transport.transientFaults]).toEqual(['completed', 3]);
      expect(lab.faults.executions(`P1 times out ${contract}`)).toBe(1);
    },
  );

  scenario(
    `on ${contract} P2: hints of 2, 0, -1, none, and others with every read: the floor holds, and each longer one`,
    async () => {
      const plan = { pollIntervalMs: 2, pollIntervals: [0, -1, null, 700, 2_500, 2] };
      const { outcome } = await resultOf({
        label: `P2 changing ${contract}`,
        contract,
        durationMs: 7_000,
        plan,
      });
      expect(outcome).toBe('completed');
      const gaps = gapsOf(`P2 changing ${contract}`);
      expect(gaps.length).toBeGreaterThanOrEqual(4);
      for (const gapMs of gaps) expect(gapMs).toBeGreaterThanOrEqual(FLOOR_MS);
      // Without a hint it is looked at every 5 s.
      expect(gaps[3]).toBeGreaterThanOrEqual(4_990);
    },
  );

  scenario(
    `on ${contract} P2: a hint of 1e12 ms is five minutes, and a cancel does not wait for it`,
    async () => {
      const handle = await lab.start({
        label: `P2 1e12 ${contract}`,
        contract,
        durationMs: 600_000,
        plan: { pollIntervalMs: 1e12 },
      });
      await until(handle, (view) => view.state === 'WORKING');
      const [created] = lab.faults.entries('taskCreated', `P2 1e12 ${contract}`);
      const gapMs = (await nextLookAt(handle, Date.now() + 5_000)) - (created?.at ?? 0);
      // Whole seconds, and a tenth of jitter on top.
      expect(gapMs).toBeGreaterThanOrEqual(299_000);
      expect(gapMs).toBeLessThanOrEqual(335_000);
      expect(lab.faults.entries('polled', `P2 1e12 ${contract}`)).toEqual([]);
      await handle.cancel('seen enough');
      await lab.faults.until((entry) => entry.kind === 'cancelReceived' && entry.label === handle.callNodeId);
      // There the acknowledgement is no end, and the look that shows it keeps to the hint.
      if (contract === '2025-11-25') expect((await handle.result()).outcome).toBe('cancelled');
      else expect((await handle.status()).receipt).toBeNull();
    },
  );

  scenario(
    `on ${contract} P3: a server that is exhausted is asked again, spaced, and then the call completes`,
    async () => {
      const words = ['error:-32603', '429:2', '504'];
      const call = {
        label: `P3 exhausted ${contract}`,
        contract,
        durationMs: 4_500,
        plan: { polls: ['ok', ...words] },
      };
      expect((await resultOf(call)).outcome).toBe('completed');
      expect(lab.faults.entries('faultPlayed', `P3 exhausted ${contract}`).map(({ word }) => word)).toEqual(
        words,
      );
      const gaps = gapsOf(`P3 exhausted ${contract}`);
      for (const gapMs of gaps) expect(gapMs).toBeGreaterThanOrEqual(FLOOR_MS);
      // After the Retry-After of 2 s.
      expect(gaps[3]).toBeGreaterThanOrEqual(1_990);
      expect(lab.faults.executions(`P3 exhausted ${contract}`)).toBe(1);
    },
  );

  scenario(`on ${contract} P5: a fast and a slow task of one server keep each its own interval`, async () => {
    const calls = [
      { label: `P5 fast ${contract}`, contract, durationMs: 8_000, plan: { pollIntervalMs: 1_000 } },
      { label: `P5 slow ${contract}`, contract, durationMs: 8_000, plan: { pollIntervalMs: 4_000 } },
    ];
    const ends = await Promise.all(calls.map(resultOf));
    expect(ends.map(({ outcome }) => outcome)).toEqual(['completed', 'completed']);
    for (const gapMs of gapsOf(`P5 slow ${contract}`)) expect(gapMs).toBeGreaterThanOrEqual(3_990);
    expect(gapsOf(`P5 fast ${contract}`).length).toBeGreaterThanOrEqual(5);
    expect(gapsOf(`P5 slow ${contract}`).length).toBeLessThanOrEqual(3);
  });

  scenario(
    `on ${contract} P5: a Retry-After of 120 s is not shortened by an interval of one second`,
    async () => {
      const handle = await lab.start({
        label: `P5 Retry-After ${contract}`,
        contract,
        durationMs: 600_000,
        plan: { polls: '429:120' },
      });
      const faulted = await until(handle, (view) => view.lastFault !== null);
      expect(faulted.lastFault).toContain('429');
      const [first] = lab.faults.entries('polled', `P5 Retry-After ${contract}`);
      const dueAt = await nextLookAt(handle, Date.now() + 5_000);
      expect(dueAt - (first?.at ?? 0)).toBeGreaterThanOrEqual(118_900);
      expect(lab.faults.entries('polled', `P5 Retry-After ${contract}`)).toHaveLength(1);
      await handle.cancel('seen enough');
      expect((await handle.result()).outcome).toBe('cancelled');
    },
  );
}
