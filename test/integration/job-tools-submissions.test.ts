// Every submission policy x every end of a start call of a job (`mcp/job-tools`), each with its expected end: on the real
// engine, counted by the fault server's journal.

import { afterAll, beforeAll, expect } from 'vitest';
import { atOnce } from './at-once.js';
import { type FaultLab, LOOK_UP_POLICIES, openFaultLab, POLICIES } from './fault-lab.js';
import { endOfJob, startJob } from './job-lab.js';

let lab: FaultLab;
const { scenario, begin } = atOnce();
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: { lookUpBudgetMs: 20_000 } });
  begin();
});
afterAll(async () => {
  await lab?.close();
});

const calls = (label: string): number => lab.faults.entries('callReceived', label).length;

type Policy = keyof typeof POLICIES | keyof typeof LOOK_UP_POLICIES;
type Expected = readonly [end: string, calls: number, executions: number];
const HELD = 'held: ambiguous-submission';
const SEARCHED = 'held: look-up-deadline';

/** The start ran, its answer says nothing: the job is there. */
const HANDLED: Readonly<Record<Policy, Expected>> = {
  // A server with jobs has no list of them: configured or not, nothing is found by it.
  'session-list': [HELD, 1, 1],
  'key-argument': ['completed', 2, 1],
  'key-meta': ['completed', 2, 1],
  'lookup-tool': ['completed', 1, 1],
  'lookup-proof': ['completed', 1, 1],
  'at-most-once': [HELD, 1, 1],
  // Declared repeat-safe: the second leg runs again, and the receipt says so.
  repeatable: ['completed', 2, 2],
};
/** The start did not run, but nothing proves it. */
const UNHANDLED: Readonly<Record<Policy, Expected>> = {
  'session-list': [HELD, 1, 0],
  'key-argument': ['completed', 2, 1],
  'key-meta': ['completed', 2, 1],
  'lookup-tool': [SEARCHED, 1, 0],
  'lookup-proof': ['completed', 2, 1],
  'at-most-once': [HELD, 1, 0],
  repeatable: ['completed', 2, 1],
};
const ALL = [...Object.keys(POLICIES), ...Object.keys(LOOK_UP_POLICIES)] as Policy[];
const of = (expected: Expected): Readonly<Record<Policy, Expected>> =>
  Object.fromEntries(ALL.map((policy) => [policy, expected])) as Record<Policy, Expected>;

const STARTS: readonly (readonly [create: string, name: string, Readonly<Record<Policy, Expected>>])[] = [
  ['ok', 'is answered', of(['completed', 1, 1])],
  ['delay:500', 'is answered late', of(['completed', 1, 1])],
  ['lose', 'runs, and the socket closes without a reply', HANDLED],
  ['cut', 'is answered with half a reply', HANDLED],
  ['empty', 'is answered with 200 and nothing', HANDLED],
  ['empty-result', 'is answered with an empty result', HANDLED],
  ['tool-error', 'is answered with isError, which proves nothing', HANDLED],
  ['503:1', 'is answered 503', UNHANDLED],
  ['error:-32603', 'is answered -32603', UNHANDLED],
  ['error:-32601', 'is refused', of(['rejected', 1, 0])],
];
for (const [create, name, byPolicy] of STARTS) {
  for (const policy of ALL) {
    scenario(`a start call that ${name} under ${policy}`, async () => {
      const label = `start ${create} ${policy}`;
      const end = await endOfJob(lab, { label, server: policy, plan: { create, deduplicate: true } });
      expect([end, calls(label), lab.faults.executions(label)]).toEqual(byPolicy[policy]);
      const receipts = end.startsWith('held') ? 0 : 1;
      const advances = end === 'completed' ? 1 : 0;
      expect(lab.rows(label)).toMatchObject({ receipts, ready: receipts, advances });
    });
  }
}

scenario('a start answer with isError is a refusal where that is declared', async () => {
  const label = 'start declared refusing';
  const handle = await startJob(lab, { label, server: 'job-refusing', plan: { create: 'tool-error' } });
  const { outcome, receipt } = await handle.result();
  expect([outcome, calls(label)]).toEqual(['rejected', 1]);
  expect(receipt.decision.reason).toContain('the tool failed, as planned');
});
