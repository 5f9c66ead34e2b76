// A rolling restart of two workers under a steady load: nothing runs twice, and what is held is counted by policy.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { WorkerChild } from '../../cli/worker-child.js';
import { ToolOperationError } from '../../client/index.js';
import { type FaultLab, openFaultLab, type PolicyName } from './fault-lab.js';

const POLICIES: readonly PolicyName[] = [
  'key-argument',
  'key-meta',
  'session-list',
  'at-most-once',
  'repeatable',
];
const CALLS = 100;
const AT_ONCE = 10;

let lab: FaultLab;
beforeAll(async () => {
  lab = await openFaultLab();
});
afterAll(async () => {
  await lab?.close();
});

interface Tally {
  calls: number;
  held: number;
  executions: number;
}

test('two workers restarted in turn, three times, under a steady load: no second execution', async () => {
  const tally = new Map<PolicyName, Tally>(
    POLICIES.map((name) => [name, { calls: 0, held: 0, executions: 0 }]),
  );
  const ended: { count: number; wake: (() => void)[] } = { count: 0, wake: [] };
  const untilEnded = async (count: number): Promise<void> => {
    while (ended.count < count) await new Promise<void>((resolve) => ended.wake.push(resolve));
  };

  let next = 0;
  const caller = async (): Promise<void> => {
    for (let index = next++; index < CALLS; index = next++) {
      const server = POLICIES[index % POLICIES.length] as PolicyName;
      const label = `deploy ${index}`;
      // Plain tools and tasks, short and longer ones: a restart meets each of their steps.
      const tool = index % 2 === 0 ? 'work' : 'work-plain';
      const call = { label, server, tool, durationMs: 200 + (index % 7) * 150, plan: { deduplicate: true } };
      const isHeld = await (await lab.start(call)).result().then(
        ({ outcome }) => {
          expect(outcome).toBe('completed');
          return false;
        },
        (error: unknown) => {
          expect(ToolOperationError.isInstance(error) && error.code).toBe('OperationUnresolved');
          return true;
        },
      );
      const of = tally.get(server) as Tally;
      of.calls += 1;
      of.held += isHeld ? 1 : 0;
      of.executions += lab.faults.executions(label);
      ended.count += 1;
      for (const wake of ended.wake.splice(0)) wake();
    }
  };

  const workers: WorkerChild[] = [await lab.startWorker(), await lab.startWorker()];
  const load = Promise.all(Array.from({ length: AT_ONCE }, caller));
  for (let restart = 0; restart < 6; restart += 1) {
    await untilEnded(10 + restart * 12);
    const old = workers.shift() as WorkerChild;
    // As a deploy does: the new one first, then SIGTERM to the old one, which drains.
    workers.push(await lab.startWorker());
    expect(await old.stop()).toBeNull();
  }
  await load;

  const lines = [...tally].map(
    ([policy, { calls, held, executions }]) =>
      `${policy}: ${calls} calls, ${held} held, ${executions} executions`,
  );
  console.log(`rolling restart\n  ${lines.join('\n  ')}`);
  for (const [policy, { calls, executions }] of tally) {
    if (policy === 'repeatable') expect(executions).toBeGreaterThanOrEqual(calls);
    else expect(executions, policy).toBe(calls);
  }
}, 180_000);
