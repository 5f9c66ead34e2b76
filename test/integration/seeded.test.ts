// Plans drawn from seeds against the real engine: each operation ends as its plan allows, and ran as often.
// A failure names its seed; `plan: { seed }` plays it again.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import { type DrawnPlan, drawPlan, type Way, WAYS } from '../fault-server/draw-plan.js';
import { type FaultLab, openFaultLab, type PolicyName } from './fault-lab.js';

const SERVERS: Readonly<Record<Way, PolicyName>> = {
  keyed: 'key-argument',
  'session-list': 'session-list',
  repeatable: 'repeatable',
  'at-most-once': 'at-most-once',
};
/** Shorter than people wait, longer than any drawn fault lasts. */
const BUDGETS = {
  lookUpBudgetMs: 25_000,
  settleBudgetMs: 25_000,
  fetchBudgetMs: 25_000,
  submitBudgetMs: 25_000,
};
const FIRST_SEED = Number(process.env['DTC_FIRST_SEED'] ?? 100);
const SEEDS = Number(process.env['DTC_SEEDS'] ?? 12);

interface Drawn extends DrawnPlan {
  readonly seed: number;
  readonly way: Way;
  readonly label: string;
}
const CASES: readonly Drawn[] = Array.from({ length: SEEDS }, (_, n) => FIRST_SEED + n).map((seed) => {
  const way = WAYS[seed % WAYS.length] ?? 'keyed';
  return { ...drawPlan(seed), seed, way, label: `seed ${seed} ${way}` };
});

let lab: FaultLab;
const started = new Map<string, ToolOperationHandle>();
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: BUDGETS });
  for (const { label, way, seed, durationMs } of CASES) {
    started.set(label, await lab.start({ label, server: SERVERS[way], durationMs, plan: { seed } }));
  }
});
afterAll(async () => {
  if (process.env['DTC_KEEP'])
    (await import('node:fs')).copyFileSync(lab.faults.journalFile, process.env['DTC_KEEP']);
  await lab?.close();
});

test.concurrent.each(CASES)(
  'seed $seed, $way, ends as its plan allows',
  async ({ label, way, allowed, plan }) => {
    const handle = started.get(label);
    if (!handle) throw new Error('it was not started');
    const end = await endOf(handle);
    const { ends, executions } = allowed[way];
    const ran = lab.faults.executions(label);
    expect({ plan, end, ran, ends, executions }).toMatchObject({
      end: expect.toSatisfy((seen) => (ends as readonly string[]).includes(seen as string)),
      ran: expect.toSatisfy((seen) => executions[0] <= (seen as number) && (seen as number) <= executions[1]),
    });
    const questions = lab.faults.entries('questionHandedOut', label).map(({ question }) => question);
    const rows = lab.rows(label);
    expect(questions).toEqual([...new Set(questions)]);
    expect([rows.receipts, rows.ready]).toEqual(end === 'held' ? [0, 0] : [1, 1]);
  },
);

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
