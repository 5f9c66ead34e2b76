// The faults of the fault server after the submission (submission-table.test.ts has those of it) against the real engine, on
// every contract: the end, and how often the tool really ran by its journal.

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ToolOperationError, type ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import { type Contract, CONTRACTS, type FaultCall, type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

let lab: FaultLab;
const planned: FaultCall[] = [];
const started = new Map<string, ToolOperationHandle>();

/** Starts with all others, so that their waits run side by side. */
function plan(call: FaultCall): () => Promise<Ending> {
  planned.push(call);
  return () => endOf(started.get(call.label));
}

beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker();
  const handles = await Promise.all(planned.map((call) => lab.start(call)));
  for (const handle of handles) started.set(handle.callNodeId, handle);
});
afterAll(async () => {
  await lab?.close();
});

interface Ending {
  /** An outcome, or `held: reason`. */
  readonly end: string;
  readonly resultJson: string | null;
  readonly receipt: JsonObject | null;
}

async function endOf(handle: ToolOperationHandle | undefined): Promise<Ending> {
  if (!handle) throw new Error('it was not started');
  try {
    const { outcome, receipt, resultJson } = await handle.result();
    return { end: outcome, resultJson, receipt: receipt as unknown as JsonObject };
  } catch (error) {
    if (!ToolOperationError.isInstance(error) || error.code !== 'OperationUnresolved') throw error;
    return { end: `held: ${error.view?.reason}`, resultJson: null, receipt: null };
  }
}

function expectOnePlace(label: string, ending: Ending): void {
  // One receipt with its ready row, or none and visibly held: never anything between.
  const isHeld = ending.end.startsWith('held');
  expect(lab.rows(label)).toMatchObject({ receipts: isHeld ? 0 : 1, ready: isHeld ? 0 : 1 });
  expect(lab.rows(label).advances).toBe(ending.end === 'completed' ? 1 : 0);
}

const HELD = 'held: ambiguous-submission';

describe.concurrent.each(CONTRACTS)('on %s polls', (contract) => {
  const bad = ['reset', '503:3', 'lose', 'cut', 'empty', 'empty-object', 'error:-32603', 'empty-result'];
  const label = `fault-polls ${contract}`;
  // The first one is good and tells the interval; without it the default of 5 s holds.
  const ending = plan({ label, contract, durationMs: 4_000, plan: { polls: ['ok', ...bad] } });
  test.concurrent('P1: that fail in every way cost time and nothing else', async () => {
    const seen = await ending();
    expect(seen.end).toBe('completed');
    expect(lab.faults.entries('faultPlayed', label).map(({ word }) => word)).toEqual(bad);
    expect(lab.faults.executions(label)).toBe(1);
    const at = lab.faults.entries('polled', label).map(({ connectedAt = 0 }) => connectedAt);
    const gapsMs = at.slice(1).map((time, n) => time - (at[n] ?? 0));
    for (const gapMs of gapsMs) expect(gapMs).toBeGreaterThanOrEqual(990);
    // After the 503 that said 3 s.
    expect(gapsMs[2]).toBeGreaterThanOrEqual(2_990);
    expectOnePlace(label, seen);
  });

  const hints = [2, 0, -1].map((pollIntervalMs) => {
    const hinted = `fault-hint ${pollIntervalMs} ${contract}`;
    const end = plan({ label: hinted, contract, durationMs: 3_500, plan: { pollIntervalMs } });
    return { pollIntervalMs, hinted, end };
  });
  test.concurrent.each(hints)('P2: with the hint $pollIntervalMs keep the floor', async ({ hinted, end }) => {
    expect((await end()).end).toBe('completed');
    const at = lab.faults.entries('polled', hinted).map(({ connectedAt = 0 }) => connectedAt);
    expect(at.length).toBeGreaterThan(1);
    for (const [n, time] of at.slice(1).entries()) expect(time - (at[n] ?? 0)).toBeGreaterThanOrEqual(990);
  });
});

// 2026-07-28 has no sessions: there is none to lose.
describe.concurrent('on 2025-11-25 a lost session', () => {
  const sessions = (['404', '400'] as const).flatMap((sessionGone) =>
    (['found', 'not-found'] as const).map((taskAfterSession) => {
      const label = `fault-session ${sessionGone} ${taskAfterSession}`;
      const ending = plan({
        label,
        durationMs: 3_000,
        plan: { session: 'lose-after-create', sessionGone, taskAfterSession },
      });
      return { sessionGone, taskAfterSession, label, ending };
    }),
  );
  test.concurrent.each(sessions)(
    'R3: answered $sessionGone, its task $taskAfterSession in a new one',
    async ({ taskAfterSession, label, ending }) => {
      const seen = await ending();
      expect(seen.end).toBe(taskAfterSession === 'found' ? 'completed' : 'held: handle-lost');
      expect(lab.faults.entries('sessionLost', label)).toHaveLength(1);
      expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
      expect(lab.faults.executions(label)).toBe(1);
      expectOnePlace(label, seen);
    },
  );
});

/** What is lost with a result: on 2026-07-28 the status that carries it, so that nothing says any more that it ended. */
const LOST: Readonly<Record<Contract, Readonly<Record<string, string>>>> = {
  '2025-11-25': { gone: 'held: result-lost', lost: 'held: result-lost' },
  '2026-07-28': { gone: 'held: handle-lost', lost: 'held: expired' },
};

describe.concurrent.each(CONTRACTS)('on %s a result', (contract) => {
  const broken = ['cut', 'lose', 'empty', '503:1', 'error:-32603'].map((word) => {
    const label = `fault-result ${word} ${contract}`;
    return {
      word,
      label,
      ending: plan({ label, contract, resultBytes: 20_000, plan: { result: [word, 'ok'] } }),
    };
  });
  test.concurrent.each(broken)('R4: that suffers $word once is fetched again, whole', async (one) => {
    const seen = await one.ending();
    expect(seen.end).toBe('completed');
    expect(lab.faults.entries('faultPlayed', one.label)).toMatchObject([{ phase: 'result', word: one.word }]);
    expect(seen.resultJson?.length).toBeGreaterThan(20_000);
    const digest = createHash('sha256')
      .update(seen.resultJson ?? '')
      .digest('hex');
    expect(seen.receipt).toMatchObject({ result: { digest } });
    expect(lab.faults.executions(one.label)).toBe(1);
    expectOnePlace(one.label, seen);
  });

  const lost = [
    { word: 'gone', plan: { result: 'gone' } },
    // Without an expiry this takes the whole fetch budget, 10 min.
    { word: 'lost', plan: { result: 'lost', ttlMs: 6_000 } },
  ].map((one) => {
    const label = `fault-result ${one.word} ${contract}`;
    return { ...one, label, ending: plan({ label, contract, plan: one.plan }) };
  });
  test.concurrent.each(lost)('$word for ever is never success', async ({ word, label, ending }) => {
    const seen = await ending();
    expect(seen.end).toBe(LOST[contract][word]);
    expect(lab.faults.entries('executionEnded', label)).toMatchObject([{ how: 'completed' }]);
    expect(lab.faults.executions(label)).toBe(1);
    expectOnePlace(label, seen);
  });

  // A status that says completed has said all that there is; a `tasks/result` may be asked again.
  const bareEnd = contract === '2025-11-25' ? 'completed' : 'held: result-lost';
  const bareLabel = `fault-result bare ${contract}`;
  const bare = plan({ label: bareLabel, contract, plan: { result: ['bare', 'bare', 'bare', 'ok'] } });
  test.concurrent(`that is not there, three times: ${bareEnd}`, async () => {
    const seen = await bare();
    expect(seen.end).toBe(bareEnd);
    expect(lab.faults.executions(bareLabel)).toBe(1);
    expectOnePlace(bareLabel, seen);
  });

  const large = plan({
    label: `fault-result large ${contract}`,
    contract,
    resultBytes: 3_000_000,
    plan: { result: ['cut', 'ok'] },
  });
  test.concurrent('E1: of 3 MB is stored whole and read by its digest', async () => {
    const seen = await large();
    expect(seen.end).toBe('completed');
    expect(seen.resultJson?.length).toBeGreaterThan(3_000_000);
    const digest = createHash('sha256')
      .update(seen.resultJson ?? '')
      .digest('hex');
    expect(seen.receipt).toMatchObject({ result: { digest, sizeBytes: seen.resultJson?.length } });
  });

  const failures = (['isError', 'protocolError'] as const).flatMap((outcome) =>
    (['work-required', 'work-plain'] as const).map((tool) => {
      const label = `fault-failed ${outcome} ${tool} ${contract}`;
      return { outcome, tool, label, ending: plan({ label, contract, tool, plan: { outcome } }) };
    }),
  );
  test.concurrent.each(failures)(
    'R2: that says $outcome of $tool is kept',
    async ({ outcome, tool, label, ending }) => {
      const seen = await ending();
      expect(lab.faults.executions(label)).toBe(1);
      if (outcome === 'protocolError' && tool === 'work-plain') {
        // An error that no clause calls a refusal may come after the work: nobody knows.
        expect(seen.end).toBe(HELD);
      } else {
        expect(seen.end).toBe('failed');
        expect(seen.receipt).toMatchObject({ failureKind: outcome === 'isError' ? 'tool' : 'protocol' });
        expect(seen.resultJson).toContain(outcome === 'isError' ? 'failed' : '-32050');
      }
      expectOnePlace(label, seen);
    },
  );

  const expiring = [
    ['that it was given', { ttlMs: 2_500 }, 'held: expired'],
    ['that was shortened', { ttlMs: 600_000, ttlsMs: [3_500] }, 'held: expired'],
    ['that was extended', { ttlMs: 2_500, ttlsMs: [600_000] }, 'completed'],
  ].map(([lifetime, plan_, expected]) => {
    const label = `fault-expired ${lifetime as string} ${contract}`;
    const durationMs = expected === 'completed' ? 4_000 : 600_000;
    const ending = plan({ label, contract, durationMs, plan: plan_ as JsonObject });
    return { lifetime, expected, label, ending };
  });
  test.concurrent.each(expiring)(
    'R1: whose task outlives the lifetime $lifetime: $expected',
    async ({ expected, label, ending }) => {
      expect((await ending()).end).toBe(expected);
      expect(lab.faults.executions(label)).toBe(1);
    },
  );
});

describe.concurrent.each(CONTRACTS)('on %s a cancel', (contract) => {
  const LONG_MS = 600_000;
  async function cancelled(call: FaultCall): Promise<Ending> {
    const handle = await lab.start({ contract, ...call });
    await until(handle, (view) => view.state === 'WORKING');
    await handle.cancel('fault test');
    return endOf(handle);
  }
  const cancels = (label: string): number => lab.faults.entries('cancelReceived', label).length;

  test.concurrent.each([
    // Of 2026-07-28 the reply says nothing of what comes of it.
    ['honour', contract === '2025-11-25' ? 'cancel-reply' : 'status'],
    ['delay:1500', 'status'],
  ])('that is met with %s ends as cancelled by the %s', async (cancel, evidence) => {
    const label = `fault-cancel ${cancel} ${contract}`;
    const seen = await cancelled({ label, durationMs: LONG_MS, plan: { cancel } });
    expect(seen.end).toBe('cancelled');
    expect(seen.receipt).toMatchObject({ decision: { evidence }, cancelGeneration: 1 });
    expect(lab.faults.entries('executionEnded', label)).toMatchObject([{ how: 'aborted' }]);
    expect([cancels(label), lab.rows(label).reconciliations]).toEqual([1, 1]);
    expectOnePlace(label, seen);
  });

  test.concurrent.each([
    ['refuse', 4_000],
    ['ignore', 4_000],
    ['complete-first', LONG_MS],
    ['complete-after', LONG_MS],
  ])('C1, C2: that is met with %s keeps the completion and its result', async (cancel, durationMs) => {
    const label = `fault-cancel ${cancel} ${contract}`;
    const seen = await cancelled({ label, durationMs, plan: { cancel } });
    expect(seen.end).toBe('completed');
    expect(seen.resultJson).toContain(`execution 1 of ${label} is done`);
    expect(cancels(label)).toBeGreaterThanOrEqual(1);
    // One request is one generation, however often it was sent.
    expect(seen.receipt).toMatchObject({ cancelGeneration: 1 });
    // What was acknowledged is not asked again: the state decides.
    if (cancel !== 'refuse') expect(cancels(label)).toBe(1);
    expectOnePlace(label, seen);
  });

  test.concurrent('C4: whose acknowledgement is lost ends as the state says', async () => {
    const label = `fault-cancel ack lost ${contract}`;
    const seen = await cancelled({ label, durationMs: LONG_MS, plan: { cancelReply: 'lose' } });
    expect(seen.end).toBe('cancelled');
    expect(lab.faults.entries('faultPlayed', label)).toMatchObject([{ phase: 'cancelReply', word: 'lose' }]);
    expectOnePlace(label, seen);
  });

  test.concurrent('of a server that declares none is not sent, and the true end is recorded', async () => {
    const label = `fault-cancel undeclared ${contract}`;
    const seen = await cancelled({ label, server: 'no-cancel', durationMs: 4_000 });
    expect(seen.end).toBe('completed');
    expect(cancels(label)).toBe(0);
    expectOnePlace(label, seen);
  });

  test.concurrent('asked before the handle exists is delivered once it does', async () => {
    const label = `fault-cancel early ${contract}`;
    const handle = await lab.start({ label, contract, durationMs: LONG_MS, plan: { create: 'delay:2000' } });
    await lab.faults.until((entry) => entry.kind === 'callReceived' && entry.label === label);
    await handle.cancel('fault test');
    const seen = await endOf(handle);
    expect(seen.end).toBe('cancelled');
    expect([lab.faults.executions(label), cancels(label)]).toEqual([1, 1]);
    expectOnePlace(label, seen);
  });
});

describe.concurrent('questions', () => {
  async function answered(call: FaultCall, questions: number): Promise<Ending> {
    const handle = await lab.start({ ...call, plan: { questions } });
    const rounds = new Set<string>();
    while (rounds.size < questions) {
      const view = await until(handle, ({ pendingInput }) =>
        pendingInput.some(({ roundId }) => !rounds.has(roundId)),
      );
      const open = view.pendingInput.find(({ roundId }) => !rounds.has(roundId));
      if (!open) continue;
      rounds.add(open.roundId);
      const choice = rounds.size === 1 ? 'left' : 'right';
      expect(await handle.answer({ roundId: open.roundId, content: { choice } })).toEqual({
        kind: 'applied',
      });
    }
    return endOf(handle);
  }

  test.concurrent.each([
    ['2025-11-25', 'session-list', 1],
    ['2025-11-25', 'session-list', 2],
    ['2025-11-25', 'no-event-ids', 1],
    ['2025-11-25', 'no-event-ids', 2],
    ['2025-11-25', 'json', 1],
    // Questions ride in the status there: event ids make no difference.
    ['2026-07-28', 'session-list', 2],
    ['2026-07-28', 'json', 1],
  ] as const)('I1: on %s, a server that speaks %s, %i: asked once, answered once', async (...row) => {
    const [contract, server, questions] = row;
    const label = `fault-questions ${server} ${questions} ${contract}`;
    // Longer than a look apart, so that the anchor is kept before the first question.
    const seen = await answered({ label, server, contract, durationMs: 3_000 }, questions);
    expect(seen.end).toBe('completed');
    const heard = JSON.stringify(JSON.parse(seen.resultJson ?? 'null'));
    expect(heard).toContain('left');
    if (questions === 2) expect(heard).toMatch(/left.*right/);
    const expected = Array.from({ length: questions }, (_, n) => n + 1);
    const asked = lab.faults.entries('questionHandedOut', label).map(({ question }) => question);
    expect(asked).toEqual(expected);
    expect(lab.faults.entries('answerReceived', label).map(({ question }) => question)).toEqual(expected);
    expect(lab.faults.executions(label)).toBe(1);
    expectOnePlace(label, seen);
  });
});

test.concurrent('R3: a server that was killed and came back without memory leaves the operations held, run once', async () => {
  const own = await openFaultLab();
  try {
    await own.startWorker();
    const calls = CONTRACTS.map((contract) => ({ label: `fault-server restarted ${contract}`, contract }));
    const handles = await Promise.all(calls.map((call) => own.start({ ...call, durationMs: 600_000 })));
    for (const handle of handles) await until(handle, (view) => view.polls >= 1);
    await own.faults.restart();
    for (const handle of handles) {
      const label = handle.callNodeId;
      expect((await endOf(handle)).end).toBe('held: handle-lost');
      expect(own.faults.executions(label)).toBe(1);
      expect(own.faults.entries('callReceived', label)).toHaveLength(1);
      expect(own.rows(label).receipts).toBe(0);
    }
  } finally {
    await own.close();
  }
});
