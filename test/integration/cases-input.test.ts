// Cases from the field, I2 to I5 (docs/CASES.md), and what else goes wrong around a question, on every contract: asked once, answered once,
// never a spin. Counted by the server's journal.

import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import { atOnce } from './at-once.js';
import { CONTRACTS, type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

const LEFT = { content: { choice: 'left' } };

let lab: FaultLab;
const { scenario, begin } = atOnce();
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: { settleBudgetMs: 8_000 } });
  begin();
});
afterAll(async () => {
  await lab?.close();
});

/** Answers each question once, and tells how often somebody was asked. */
async function answerAll(handle: ToolOperationHandle, questions: number): Promise<number> {
  const answered = new Set<string>();
  while (answered.size < questions) {
    const { pendingInput } = await until(handle, (view) =>
      view.pendingInput.some(({ roundId }) => !answered.has(roundId)),
    );
    for (const { roundId } of pendingInput) {
      if (answered.has(roundId)) continue;
      answered.add(roundId);
      expect(await handle.answer({ roundId, ...LEFT })).toEqual({ kind: 'applied' });
    }
  }
  return answered.size;
}

function gapsOf(label: string): readonly number[] {
  const at = lab.faults.entries('polled', label).map(({ connectedAt = 0 }) => connectedAt);
  return at.slice(1).map((time, n) => time - (at[n] ?? 0));
}

function evidenceOf(label: string): readonly string[] {
  const database = new Database(lab.storeFile, { readonly: true });
  try {
    const rows = database.prepare('select kind from evidence where call_node_id = ?').all(label);
    return (rows as { kind: string }[]).map(({ kind }) => kind);
  } finally {
    database.close();
  }
}

const answersOf = (label: string): number => lab.faults.entries('answerReceived', label).length;
const resultsAsked = (label: string): number => lab.faults.entries('resultAsked', label).length;

const STUCK = [
  { cancel: 'honour', end: 'cancelled' },
  { cancel: 'ignore', end: 'held: cancel-never-settled' },
] as const;
for (const contract of CONTRACTS) {
  scenario(
    `on ${contract} I2: input_required without a question is listened to, never a spin, and ended by the wait budget`,
    async () => {
      const label = `I2 no question ${contract}`;
      const call: FaultCall = {
        label,
        contract,
        durationMs: 600_000,
        plan: { workingStatus: 'input_required' },
      };
      const handle = await lab.start({ ...call, waitBudgetMs: 25_000 });
      const { outcome, receipt } = await handle.result();
      expect([outcome, receipt.decision.reason]).toEqual(['cancelled', 'wait-budget']);
      // On 2025-11-25 each look listens for 20 s; what is said of it meanwhile: test/activities/notice.test.ts. Where the status
      // lists its questions there is nothing to listen to: looks slow down, by 2, 4, 8 s and more.
      const most = contract === '2025-11-25' ? 3 : 9;
      expect(lab.faults.entries('polled', label).length).toBeLessThanOrEqual(most);
      expect(resultsAsked(label)).toBeLessThanOrEqual(3);
    },
  );

  scenario(
    `on ${contract} I3: a question that is listed again after its answer is asked once and answered once`,
    async () => {
      const label = `I3 replayed ${contract}`;
      const handle = await lab.start({
        label,
        contract,
        durationMs: 3_000,
        plan: { questions: 1, questionReplays: 2, heldAnswerReads: 2 },
      });
      await answerAll(handle, 1);
      const asked = new Set<string>();
      await until(handle, (view) => {
        for (const { roundId } of view.pendingInput) asked.add(roundId);
        return view.receipt !== null;
      });
      expect(asked.size).toBe(0);
      expect((await handle.result()).outcome).toBe('completed');
      expect(lab.faults.entries('questionHandedOut', label)).toHaveLength(1);
      expect(answersOf(label)).toBe(1);
    },
  );

  for (const { cancel, end } of STUCK) {
    scenario(
      `on ${contract} I4: a status stuck at input_required after the answer is flagged and bounded; cancel: ${cancel}`,
      async () => {
        const label = `I4 stuck ${cancel} ${contract}`;
        const handle = await lab.start({
          label,
          contract,
          durationMs: 3_000,
          waitBudgetMs: 25_000,
          plan: { questions: 1, heldAnswerReads: -1, cancel },
        });
        await answerAll(handle, 1);
        const flagged = await until(handle, (view) => view.notice !== null || view.receipt !== null);
        expect(flagged.notice).toBe(
          'the server says input_required although every question it asked has its answer',
        );
        expect([flagged.state, flagged.remoteStatus]).toEqual(['WORKING', 'input_required']);
        const view = await until(handle, (seen) => seen.receipt !== null || seen.state === 'UNRESOLVED');
        expect(view.receipt?.outcome ?? `held: ${view.reason}`).toBe(end);
        if (view.receipt) expect(view.receipt.decision.reason).toBe('wait-budget');
        expect(lab.faults.entries('questionHandedOut', label)).toHaveLength(1);
        expect(answersOf(label)).toBe(1);
        const [answer] = lab.faults.entries('answerReceived', label);
        const after = lab.faults.entries('polled', label).filter(({ at }) => at > (answer?.at ?? 0));
        const looks = after.length;
        const cancelledAt = lab.faults.entries('cancelReceived', label)[0]?.at ?? Number.POSITIVE_INFINITY;
        const asked = after.filter(({ at }) => at < cancelledAt).length;
        // Evidence at the fourth look; from then on they slow down, by 2, 4, 8 s and more: never a spin. A cancel begins anew; on
        // 2025-11-25 each look listens for a while besides.
        expect(evidenceOf(label)).toEqual(asked > 4 ? ['question-lost'] : expect.any(Array));
        expect(looks).toBeLessThanOrEqual(contract === '2025-11-25' ? 12 : 18);
        expect(resultsAsked(label)).toBeLessThanOrEqual(looks + 3);
        if (looks > 5) expect(Math.max(...gapsOf(label))).toBeGreaterThanOrEqual(4_000);
      },
    );
  }

  for (const workingStatus of ['auth_required', 'rejected', 'no such word']) {
    scenario(
      `on ${contract} I5: the unknown status "${workingStatus}" is no end, is said, and goes on as paced as any other`,
      async () => {
        const label = `I5 ${workingStatus} ${contract}`;
        const handle = await lab.start({ label, contract, durationMs: 5_000, plan: { workingStatus } });
        const seen = await until(handle, (view) => view.notice !== null || view.receipt !== null);
        expect(seen).toMatchObject({ state: 'WORKING', remoteStatus: workingStatus });
        expect(seen.notice).toContain(`"${workingStatus}"`);
        expect((await handle.result()).outcome).toBe('completed');
        for (const gapMs of gapsOf(label)) expect(gapMs).toBeGreaterThanOrEqual(990);
      },
    );
  }

  scenario(`on ${contract} I5: an unknown status that never ends is ended by the wait budget`, async () => {
    const label = `I5 for ever ${contract}`;
    const handle = await lab.start({
      label,
      contract,
      durationMs: 600_000,
      waitBudgetMs: 6_000,
      plan: { workingStatus: 'rejected' },
    });
    const { outcome, receipt } = await handle.result();
    expect([outcome, receipt.decision.reason]).toEqual(['cancelled', 'wait-budget']);
    expect(lab.faults.entries('polled', label).length).toBeLessThanOrEqual(7);
  });

  // 2026-07-28 lists questions in the status of their own task: none of another could come.
  if (contract === '2025-11-25')
    scenario('a question of another task is neither asked nor answered', async () => {
      const label = 'input foreign question';
      const handle = await lab.start({
        label,
        durationMs: 3_000,
        plan: { questions: 1, foreignQuestion: true },
      });
      expect(await answerAll(handle, 1)).toBe(1);
      expect((await handle.result()).outcome).toBe('completed');
      const [handedOut] = lab.faults.entries('questionHandedOut', label);
      const answers = lab.faults
        .journal()
        .filter((entry) => entry.kind === 'answerReceived' && entry.session === handedOut?.session);
      expect(answers).toMatchObject([{ label, question: 1 }]);
    });

  scenario(
    `on ${contract} two questions in a row, the first one met before anything could be anchored: both are asked`,
    async () => {
      const label = `input no anchor ${contract}`;
      // Questions at once: every look before them fails, so that no anchor is kept.
      const handle = await lab.start({
        label,
        contract,
        durationMs: 2_000,
        plan: { questions: 2, lagReads: 1, heldAnswerReads: 1 },
      });
      expect(await answerAll(handle, 2)).toBe(2);
      expect((await handle.result()).outcome).toBe('completed');
      expect(lab.faults.entries('questionHandedOut', label).map(({ question }) => question)).toEqual([1, 2]);
    },
  );

  for (const word of ['lose', 'reset', '503:1', 'hang']) {
    scenario(
      `on ${contract} an answer whose delivery suffers ${word} moves the work once, and nobody is asked again`,
      async () => {
        const label = `input answer ${word} ${contract}`;
        const plan = { questions: 1, answers: word };
        const handle = await lab.start({ label, contract, durationMs: 3_000, plan });
        await answerAll(handle, 1);
        expect((await handle.result()).resultJson).toContain('left');
        expect(lab.faults.entries('questionHandedOut', label)).toHaveLength(1);
        expect(lab.faults.entries('faultPlayed', label)).toMatchObject([{ phase: 'answers', word }]);
        expect(lab.faults.executions(label)).toBe(1);
      },
    );
  }
}
