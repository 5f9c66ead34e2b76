// Plans drawn from seeds against the real engine, on every contract: each operation ends as its plan allows, and ran as often.
// A failure names its seed; `plan: { seed }` plays it again. More of them: DTC_FIRST_SEED=1000 DTC_SEEDS=200.

import { afterAll, beforeAll, expect } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import { type Allowed, type DrawnPlan, drawPlan, type Way, WAYS } from '../fault-server/draw-plan.js';
import { atOnce } from './at-once.js';
import { type Contract, type FaultLab, openFaultLab, type PolicyName } from './fault-lab.js';

const SERVERS: Readonly<Record<Way, PolicyName>> = {
  keyed: 'key-argument',
  'session-list': 'session-list',
  repeatable: 'repeatable',
  'at-most-once': 'at-most-once',
};
/** Shorter than people wait, longer than any drawn fault lasts. */
const BUDGETS = {
  lookUpBudgetMs: 30_000,
  settleBudgetMs: 30_000,
  fetchBudgetMs: 30_000,
  submitBudgetMs: 30_000,
};
const FIRST_SEED = Number(process.env['DTC_FIRST_SEED'] ?? 100);
const SEEDS = Number(process.env['DTC_SEEDS'] ?? 24);
/** A second question that came before there was an anchor was lost. */
const REGRESSIONS: readonly (readonly [seed: number, way: Way])[] = [[137, 'session-list']];

let lab: FaultLab;
const { scenario, begin } = atOnce();
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: BUDGETS });
  begin();
});
afterAll(async () => {
  await lab?.close();
});

const drawn = Array.from({ length: SEEDS }, (_, n) => FIRST_SEED + n).map(
  (seed) => [seed, WAYS[seed % WAYS.length] ?? 'keyed'] as const,
);
for (const [seed, way] of [...drawn, ...REGRESSIONS]) {
  const drawnPlan = drawPlan(seed);
  scenario(`seed ${seed}, ${way}, ends as its plan allows`, () =>
    play('2025-11-25', seed, way, drawnPlan, drawnPlan.allowed[way]),
  );
  // Half of them, each way in turn: the plans are the same.
  const modern = Math.floor(seed / WAYS.length) % 2 === 0 ? drawnPlan.allowedOnModern : null;
  if (!modern) continue;
  scenario(`on 2026-07-28 seed ${seed}, ${way}, ends as its plan allows`, () =>
    play('2026-07-28', seed, way, drawnPlan, modern[way]),
  );
}

async function play(
  contract: Contract,
  seed: number,
  way: Way,
  { durationMs, plan }: DrawnPlan,
  { ends, executions }: Allowed,
): Promise<void> {
  const label = `seed ${seed} ${way} ${contract}`;
  const handle = await lab.start({ label, contract, server: SERVERS[way], durationMs, plan: { seed } });
  const end = await endOf(handle);
  const ran = lab.faults.executions(label);
  const what = JSON.stringify({ contract, seed, way, end, ran, ends, executions, plan });
  expect(ends, what).toContain(end);
  expect(ran, what).toBeGreaterThanOrEqual(executions[0]);
  expect(ran, what).toBeLessThanOrEqual(executions[1]);
  const questions = lab.faults.entries('questionHandedOut', label).map(({ question }) => question);
  expect(questions, what).toEqual([...new Set(questions)]);
  const { receipts, ready } = lab.rows(label);
  expect([receipts, ready], what).toEqual(end === 'held' ? [0, 0] : [1, 1]);
}

/** Answers whatever is asked until the operation ends or is held. */
async function endOf(handle: ToolOperationHandle): Promise<string> {
  for (;;) {
    const view = await handle.status();
    if (view.receipt) return view.receipt.outcome;
    if (view.state === 'UNRESOLVED') return 'held';
    for (const { roundId } of view.pendingInput) {
      await handle.answer({ roundId, content: { choice: 'left' } });
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
