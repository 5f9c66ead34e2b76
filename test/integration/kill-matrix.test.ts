// SIGKILL of the worker at the seams of submission, look-up and fetch, by policy: the seam was hit, the journal of the fault
// server says how often the tool ran, the store how many receipts there are. (kills.test.ts has the other seams.)

import { describe, expect, test } from 'vitest';
import { ToolOperationError } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import type { SeamName } from '../../operation/names.js';
import { openFaultLab, type PolicyName } from './fault-lab.js';

const BUDGETS = { lookUpBudgetMs: 8_000 };
const AMBIGUOUS = 'held: ambiguous-submission';

/** Seam, policy, plan; then the end, real executions, `tools/call` received. */
const MATRIX: readonly (readonly [SeamName, PolicyName, JsonObject, string, number, number])[] = [
  ['submit:before-claim', 'key-argument', {}, 'completed', 1, 1],
  ['submit:before-claim', 'session-list', {}, 'completed', 1, 1],
  ['submit:before-claim', 'at-most-once', {}, 'completed', 1, 1],
  ['submit:after-claim', 'key-argument', {}, 'completed', 1, 1],
  ['submit:after-claim', 'session-list', {}, 'held: look-up-deadline', 0, 0],
  ['submit:after-claim', 'at-most-once', {}, AMBIGUOUS, 0, 0],
  ['submit:after-send', 'key-argument', {}, 'completed', 1, 2],
  ['submit:after-send', 'session-list', {}, 'completed', 1, 1],
  ['submit:after-send', 'at-most-once', {}, AMBIGUOUS, 1, 1],
  ['submit:after-reply', 'key-argument', {}, 'completed', 1, 2],
  ['submit:after-reply', 'session-list', {}, 'completed', 1, 1],
  ['submit:after-reply', 'at-most-once', {}, AMBIGUOUS, 1, 1],
  ['submit:after-commit', 'at-most-once', {}, 'completed', 1, 1],
  ['lookUp:after-found', 'session-list', { create: 'lose' }, 'completed', 1, 1],
  ['fetchResult:after-reply', 'session-list', { result: ['503', 'ok'] }, 'completed', 1, 1],
  ['fetchResult:after-commit', 'session-list', { result: ['503', 'ok'] }, 'completed', 1, 1],
];

describe.concurrent('a worker killed', () => {
  test.concurrent.each(MATRIX)('at %s under %s', async (seam, server, plan, end, executions, calls) => {
    const lab = await openFaultLab();
    try {
      const label = `matrix ${seam} ${server}`;
      const first = await lab.startWorker({ killAt: seam, budgets: BUDGETS });
      const handle = await lab.start({ label, server, plan: { ...plan, deduplicate: true } });
      expect(await first.ended).toBe('SIGKILL');
      expect(lab.wasKilledAt(seam)).toBe(true);
      await lab.startWorker({ budgets: BUDGETS });
      const seen = await handle.result().then(
        ({ outcome }) => outcome,
        (error: unknown) => {
          if (!ToolOperationError.isInstance(error) || error.code !== 'OperationUnresolved') throw error;
          return `held: ${error.view?.reason}`;
        },
      );
      expect(seen).toBe(end);
      expect(lab.faults.executions(label)).toBe(executions);
      expect(lab.faults.entries('callReceived', label)).toHaveLength(calls);
      const receipts = end === 'completed' ? 1 : 0;
      expect(lab.rows(label)).toMatchObject({ receipts, ready: receipts, advances: receipts });
    } finally {
      await lab.close();
    }
  });
});
