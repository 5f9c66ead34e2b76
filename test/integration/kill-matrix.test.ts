// SIGKILL of the worker at the seams of submission, look-up and fetch, by policy and contract: the seam was hit, the journal of the fault
// server says how often the tool ran, the store how many receipts there are. (kills.test.ts has the other seams.)

import { describe, expect, test } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import type { SeamName } from '../../operation/names.js';
import { openFaultLab, type PolicyName } from './fault-lab.js';
import { endOf, until } from './lab.js';

type Server = PolicyName | 'lookup-tool';

const LONG_MS = 600_000;
const BUDGETS = { lookUpBudgetMs: 8_000 };
const AMBIGUOUS = 'held: ambiguous-submission';

/** Seam, policy, plan; then the end, real executions, `tools/call` received. */
const MATRIX: readonly (readonly [SeamName, Server, JsonObject, string, number, number])[] = [
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

/**
 * On 2026-07-28: where what is sent, found or fetched differs. `submit:before-claim` and the policies that never look are
 * the same code; `session-list` has no list there; a fetch is a further look, where the status came without its result.
 */
const MODERN_MATRIX: typeof MATRIX = [
  ['submit:after-claim', 'at-most-once', {}, AMBIGUOUS, 0, 0],
  ['submit:after-send', 'key-argument', {}, 'completed', 1, 2],
  ['submit:after-reply', 'at-most-once', {}, AMBIGUOUS, 1, 1],
  ['submit:after-commit', 'at-most-once', {}, 'completed', 1, 1],
  ['lookUp:after-found', 'lookup-tool', { create: 'lose' }, 'completed', 1, 1],
  ['observe:question-stored', 'at-most-once', { questions: 1 }, 'completed', 1, 1],
  ['answer:after-send', 'at-most-once', { questions: 1 }, 'completed', 1, 1],
  ['cancel:after-send', 'at-most-once', { cancel: 'honour' }, 'cancelled', 1, 1],
  ['observe:result-fetched', 'at-most-once', {}, 'completed', 1, 1],
  ['fetchResult:after-commit', 'at-most-once', { result: ['bare', 'ok'] }, 'completed', 1, 1],
];
const ROWS = [
  ...MATRIX.map((row) => ['2025-11-25', ...row] as const),
  ...MODERN_MATRIX.map((row) => ['2026-07-28', ...row] as const),
];

/** What people do with the operation meanwhile, whatever is killed. */
async function takePart(handle: ToolOperationHandle, plan: JsonObject): Promise<void> {
  if ('questions' in plan) {
    await until(handle, (view) => view.pendingInput.length === 1);
    expect(await handle.answer({ content: { choice: 'left' } })).toEqual({ kind: 'applied' });
  }
  if ('cancel' in plan) {
    await until(handle, (view) => view.polls >= 1);
    await handle.cancel('kill test');
  }
}

describe.concurrent('a worker killed', () => {
  test.concurrent.each(ROWS)('on %s at %s under %s', async (...row) => {
    const [contract, seam, server, plan, end, executions, calls] = row;
    const lab = await openFaultLab();
    try {
      const label = `matrix ${contract} ${seam} ${server}`;
      const first = await lab.startWorker({ killAt: seam, budgets: BUDGETS });
      const durationMs = 'cancel' in plan ? LONG_MS : 300;
      const call = { label, contract, server, durationMs, plan: { ...plan, deduplicate: true } };
      const handle = await lab.start(call);
      const done = takePart(handle, plan);
      expect(await first.ended).toBe('SIGKILL');
      expect(lab.wasKilledAt(seam)).toBe(true);
      await lab.startWorker({ budgets: BUDGETS });
      expect(await endOf(handle)).toBe(end);
      await done;
      expect(lab.faults.executions(label)).toBe(executions);
      expect(lab.faults.entries('callReceived', label)).toHaveLength(calls);
      const receipts = end.startsWith('held') ? 0 : 1;
      const advances = end === 'completed' ? 1 : 0;
      expect(lab.rows(label)).toMatchObject({ receipts, ready: receipts, advances });
      // Asked once, answered once.
      const questions = 'questions' in plan ? 1 : 0;
      expect(lab.faults.entries('answerReceived', label)).toHaveLength(questions);
    } finally {
      await lab.close();
    }
  });
});
