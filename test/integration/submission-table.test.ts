// Every submission policy x every end of a create request, on every contract, each row with its expected end: on the real
// engine, counted by the fault server's journal. (kill-matrix.test.ts has the killed workers.) Names S1 to S6 are the cases from the field.

import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OperationView, ToolOperationError, type ToolOperationHandle } from '../../client/index.js';
import {
  CONTRACTS,
  type Contract,
  type FaultCall,
  type FaultLab,
  LOOK_UP_POLICIES,
  openFaultLab,
  POLICIES,
} from './fault-lab.js';

const BUDGETS = { lookUpBudgetMs: 20_000 };

let lab: FaultLab;
/** What else happens to a call; runs beside all others. */
type During = (handle: ToolOperationHandle) => Promise<void>;
const planned: { readonly call: FaultCall; readonly during: During }[] = [];
const ends = new Map<string, Promise<string>>();

function plan(call: FaultCall, during: During = async () => {}): () => Promise<string> {
  planned.push({ call, during });
  return () => ends.get(call.label) ?? Promise.reject(new Error('it was not started'));
}

beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker({ budgets: BUDGETS });
  await Promise.all(
    planned.map(async ({ call, during }) => {
      const handle = await lab.start(call);
      const end = during(handle).then(() => endOf(handle));
      end.catch(() => undefined);
      ends.set(call.label, end);
    }),
  );
});
afterAll(async () => {
  await lab?.close();
});

/** An outcome, or `held: reason`. */
async function endOf(handle: ToolOperationHandle): Promise<string> {
  try {
    return (await handle.result()).outcome;
  } catch (error) {
    if (!ToolOperationError.isInstance(error) || error.code !== 'OperationUnresolved') throw error;
    // A busy worker may not tell its reason at once.
    return `held: ${(await seen(handle, ({ reason }) => reason !== null)).reason}`;
  }
}

const PACE_MS = 500;

/** As `until`, at a pace that leaves the machine to the hundred others. */
async function seen(
  handle: ToolOperationHandle,
  fits: (view: OperationView) => boolean,
): Promise<OperationView> {
  for (;;) {
    const view = await handle.status();
    if (fits(view)) return view;
    await sleep(PACE_MS);
  }
}

async function received(label: string): Promise<void> {
  while (lab.faults.entries('callReceived', label).length === 0) await sleep(PACE_MS);
}

function legsOf(callNodeId: string): readonly string[] {
  const database = new Database(lab.storeFile, { readonly: true });
  const query = 'select outcome from submission_leg where call_node_id = ? order by leg';
  const legs = database.prepare(query).all(callNodeId) as { outcome: string }[];
  database.close();
  return legs.map(({ outcome }) => outcome);
}

/** Legs, by their first letters: a(mbiguous), r(eferenced), x (refused), n (not sent), s (answered). */
const LETTERS: Readonly<Record<string, string>> = {
  ambiguous: 'a',
  referenced: 'r',
  refused: 'x',
  notSent: 'n',
  answered: 's',
  open: 'o',
};
type Expected = readonly [end: string, calls: number, executions: number, legs: string];

function expectRow(label: string, end: string, expected: Expected): void {
  const calls = lab.faults.entries('callReceived', label).length;
  const legs = legsOf(label).map((outcome) => LETTERS[outcome] ?? '?');
  expect([end, calls, lab.faults.executions(label), legs.join('')]).toEqual(expected);
  const isHeld = end.startsWith('held');
  const receipts = isHeld ? 0 : 1;
  const advances = end === 'completed' ? 1 : 0;
  expect(lab.rows(label)).toMatchObject({ receipts, ready: receipts, advances });
}

type Policy = keyof typeof POLICIES | keyof typeof LOOK_UP_POLICIES;
const ALL = [...Object.keys(POLICIES), ...Object.keys(LOOK_UP_POLICIES)] as Policy[];
const HELD = 'held: ambiguous-submission';
const SEARCHED = 'held: look-up-deadline';

/** Without a list nothing can be looked up: 2026-07-28 has none, and `session-list` is at-most-once there. */
const unlisted = (expected: Readonly<Record<Policy, Expected>>): Readonly<Record<Policy, Expected>> => ({
  ...expected,
  'session-list': expected['at-most-once'],
});
type ByContract = Readonly<Record<Contract, Readonly<Record<Policy, Expected>>>>;
const BOTH = (listed: Readonly<Record<Policy, Expected>>): ByContract => ({
  '2025-11-25': listed,
  '2026-07-28': unlisted(listed),
});

/** The request was handled, its reply says nothing: the work runs. */
const HANDLED: Readonly<Record<Policy, Expected>> = {
  'session-list': ['completed', 1, 1, 'r'],
  'key-argument': ['completed', 2, 1, 'ar'],
  'key-meta': ['completed', 2, 1, 'ar'],
  'lookup-tool': ['completed', 1, 1, 'r'],
  'lookup-proof': ['completed', 1, 1, 'r'],
  'at-most-once': [HELD, 1, 1, 'a'],
  // Declared repeat-safe: the second leg runs again, and the receipt says so.
  repeatable: ['completed', 2, 2, 'ar'],
};
/** The request was not handled, but nothing proves it. */
const UNHANDLED: Readonly<Record<Policy, Expected>> = {
  'session-list': [SEARCHED, 1, 0, 'a'],
  'key-argument': ['completed', 2, 1, 'ar'],
  'key-meta': ['completed', 2, 1, 'ar'],
  'lookup-tool': [SEARCHED, 1, 0, 'a'],
  'lookup-proof': ['completed', 2, 1, 'ar'],
  'at-most-once': [HELD, 1, 0, 'a'],
  repeatable: ['completed', 2, 1, 'ar'],
};
const of = (expected: Expected): Readonly<Record<Policy, Expected>> =>
  Object.fromEntries(ALL.map((policy) => [policy, expected])) as Record<Policy, Expected>;

const TABLE: readonly (readonly [create: string, name: string, ByContract])[] = [
  ['ok', 'is answered', BOTH(of(['completed', 1, 1, 'r']))],
  ['delay:500', 'is answered late', BOTH(of(['completed', 1, 1, 'r']))],
  [
    'cut-resumable',
    'is cut, and the rest can be had where streams can be gone on with',
    // In 2026-07-28 the request in flight is lost with its stream, whatever event ids came on it.
    { '2025-11-25': of(['completed', 1, 1, 'r']), '2026-07-28': unlisted(HANDLED) },
  ],
  ['lose', 'runs, and the socket closes without a reply (S3)', BOTH(HANDLED)],
  ['cut', 'is answered with half a reply', BOTH(HANDLED)],
  ['empty', 'is answered with 200 and nothing', BOTH(HANDLED)],
  ['empty-object', 'is answered with {} (S6)', BOTH(HANDLED)],
  ['empty-result', 'is answered with an empty result', BOTH(HANDLED)],
  ['delay:31000', 'is answered after the request timeout', BOTH(HANDLED)],
  ['reset', 'is reset before it is handled', BOTH(UNHANDLED)],
  ['503:1', 'is answered 503', BOTH(UNHANDLED)],
  ['error:-32603', 'is answered -32603', BOTH(UNHANDLED)],
  ['error:-32601', 'is refused', BOTH(of(['rejected', 1, 0, 'x']))],
];
const ROWS = CONTRACTS.flatMap((contract) => TABLE.map((row) => [contract, ...row] as const));

describe.concurrent.each(ROWS)('on %s a submission (%s) that %s', (contract, create, _, expected) => {
  const rows = ALL.map((server) => {
    const label = `table ${create} ${server} ${contract}`;
    const call = { label, server, contract, plan: { create, deduplicate: true } };
    return { server, label, end: plan(call) };
  });
  test.concurrent.each(rows)('under $server', async ({ server, label, end }) => {
    expectRow(label, await end(), expected[contract][server]);
    const played = lab.faults.entries('faultPlayed', label).map(({ word }) => word);
    expect(played).toEqual(create === 'ok' ? [] : [create]);
    // S3, S6: nothing falls back to a plain call.
    expect(lab.faults.entries('callReceived', label).every(({ asTask }) => asTask)).toBe(true);
  });
});

/** 2026-07-28 publishes nothing of which tools have tasks: what was found is looked for there, as if it were one. */
const STARTED_SOMEWHERE: Readonly<Record<Contract, Expected>> = {
  '2025-11-25': [SEARCHED, 1, 1, 'a'],
  '2026-07-28': ['held: handle-lost', 1, 1, 'r'],
};

describe.concurrent.each(CONTRACTS)('on %s a plain call', (contract) => {
  const rows: readonly (readonly [string, Policy, Expected])[] = [
    ['lose', 'session-list', [HELD, 1, 1, 'a']],
    ['lose', 'key-argument', ['completed', 2, 1, 'as']],
    // Its look-up says that it was started; there is no way back to its result.
    ['lose', 'lookup-proof', STARTED_SOMEWHERE[contract]],
    ['reset', 'lookup-proof', ['completed', 2, 1, 'as']],
    ['reset', 'at-most-once', [HELD, 1, 0, 'a']],
    ['error:-32601', 'key-meta', ['rejected', 1, 0, 'x']],
  ];
  const calls = rows.map(([create, server, expected]) => {
    const label = `table plain ${create} ${server} ${contract}`;
    const call = { label, server, contract, tool: 'work-plain', plan: { create, deduplicate: true } };
    return { create, server, label, expected, end: plan(call) };
  });
  test.concurrent.each(calls)('that suffers $create under $server', async ({ label, end, expected }) => {
    expectRow(label, await end(), expected);
  });
});

describe.concurrent.each(CONTRACTS)('on %s a look-up by tool', (contract) => {
  const late = { create: 'lose', lateLookUps: 2 };
  const rows: readonly (readonly [string, Policy | 'lookup-settling', object, Expected])[] = [
    ['that lags finds the work all the same', 'lookup-tool', late, ['completed', 1, 1, 'r']],
    // "Absent" was said, but not late enough to count.
    ['that lags proves nothing before it has settled', 'lookup-settling', late, ['completed', 1, 1, 'r']],
    [
      'that never settles within its time is held, not sent again',
      'lookup-settling',
      { create: 'reset' },
      [SEARCHED, 1, 0, 'a'],
    ],
    [
      'that fails is not absence',
      'lookup-proof',
      { create: 'lose', failedLookUps: 3 },
      ['completed', 1, 1, 'r'],
    ],
    [
      'that finds nothing after each of three legs ends as rejected',
      'lookup-proof',
      { create: ['reset', '503:1', 'error:-32603', 'ok'] },
      ['rejected', 3, 0, 'aaa'],
    ],
    [
      'that finds nothing, and then a refusal, is rejected',
      'lookup-proof',
      { create: ['reset', 'error:-32601'] },
      ['rejected', 2, 0, 'ax'],
    ],
    [
      'that finds nothing lets the second leg be looked up in its own session',
      'lookup-proof',
      { create: ['reset', 'lose'] },
      ['completed', 2, 1, 'ar'],
    ],
  ];
  const calls = rows.map(([name, server, plan_, expected]) => {
    const label = `table ${name} ${server} ${contract}`;
    return { name, server, label, expected, end: plan({ label, server, contract, plan: { ...plan_ } }) };
  });
  test.concurrent.each(calls)('$name ($server)', async ({ label, end, expected }) => {
    expectRow(label, await end(), expected);
    const looks = lab.faults.entries('workLookedUp', label);
    expect(looks.length).toBeGreaterThan(0);
    expect(new Set(looks.map(({ key }) => key)).size).toBe(1);
    if (contract !== '2025-11-25') return;
    // A read has a session of its own: it is never the one of the submission.
    const sessions = lab.faults.entries('callReceived', label).map(({ session }) => session);
    expect(looks.filter(({ session }) => sessions.includes(session))).toEqual([]);
  });
});

describe.concurrent.each(CONTRACTS)('on %s a cancel while the submission is under way', (contract) => {
  const rows = ALL.map((server) => {
    const label = `table cancel submitting ${server} ${contract}`;
    const plan_ = { create: 'delay:4000', deduplicate: true };
    const call = { label, server, contract, durationMs: 600_000, plan: plan_ };
    const end = plan(call, async (handle) => {
      await received(label);
      await handle.cancel('table');
    });
    return { server, label, end };
  });
  test.concurrent.each(rows)('under $server is delivered to what it made', async ({ server, label, end }) => {
    expectRow(label, await end(), ['cancelled', 1, 1, 'r']);
    expect(lab.faults.entries('cancelReceived', label)).toHaveLength(1);
    expect(lab.rows(label).reconciliations).toBe(server === 'repeatable' ? 0 : 1);
  });
});

describe.concurrent.each(CONTRACTS)(
  'on %s a cancel while nobody knows whether the submission arrived',
  (contract) => {
    const EXPECTED = BOTH({
      'session-list': [SEARCHED, 1, 0, 'a'],
      'lookup-tool': [SEARCHED, 1, 0, 'a'],
      // Proved absent: nothing is submitted in order to cancel it.
      'lookup-proof': ['cancelled', 1, 0, 'a'],
      // The same key again is the look-up, and what it finds or makes is cancelled.
      'key-argument': ['cancelled', 2, 1, 'ar'],
      'key-meta': ['cancelled', 2, 1, 'ar'],
      'at-most-once': [HELD, 1, 0, 'a'],
      repeatable: [HELD, 1, 0, 'a'],
    });
    const rows = ALL.map((server) => {
      const label = `table cancel unknown ${server} ${contract}`;
      // Answered as soon as it is received, and nothing is sent again for long enough that the cancel comes first.
      const plan_ = { create: '503:14', deduplicate: true };
      const call = { label, server, contract, durationMs: 600_000, plan: plan_ };
      const end = plan(call, async (handle) => {
        await received(label);
        await handle.cancel('table');
      });
      return { server, label, end };
    });
    test.concurrent.each(rows)('under $server', async ({ server, label, end }) => {
      expectRow(label, await end(), EXPECTED[contract][server]);
      expect((await lab.client.getHandle(label).status()).cancelRequested).toBe(true);
    });
  },
);

describe.concurrent.each(CONTRACTS)('on %s the key', (contract) => {
  const PLACES = {
    'key-argument': 'keyArgument',
    'lookup-tool': 'keyArgument',
    'key-meta': 'keyMeta',
    'lookup-proof': 'keyMeta',
  } as const;
  const rows = (Object.keys(PLACES) as (keyof typeof PLACES)[]).map((server) => {
    const label = `table key ${server} ${contract}`;
    const plan_ = { create: ['503:1', 'ok'], deduplicate: true };
    return { server, place: PLACES[server], label, end: plan({ label, server, contract, plan: plan_ }) };
  });
  test.concurrent.each(rows)(
    'of $server is in its one place, the same every time (S5)',
    async ({ place, label, end }) => {
      await end();
      const calls = lab.faults.entries('callReceived', label);
      expect(new Set(calls.map((call) => call[place]))).toEqual(new Set([calls[0]?.[place]]));
      expect(calls[0]?.[place]).toEqual(expect.any(String));
      const other = place === 'keyMeta' ? 'keyArgument' : 'keyMeta';
      expect(calls.map((call) => call[other])).toEqual(calls.map(() => null));
      for (const { key } of lab.faults.entries('workLookedUp', label)) expect(key).toBe(calls[0]?.[place]);
    },
  );

  test.concurrent('of one name with other arguments is a conflict, with the same ones the same effect (S2)', async () => {
    const label = `table twice ${contract}`;
    const first = await lab.start({ label, contract, server: 'key-argument' });
    const second = await lab.start({ label, contract, server: 'key-argument' });
    expect([await endOf(first), await endOf(second)]).toEqual(['completed', 'completed']);
    const other = lab.start({ label, contract, server: 'key-argument', durationMs: 301 });
    await expect(other).rejects.toMatchObject({ code: 'CallNodeConflict' });
    expectRow(label, 'completed', ['completed', 1, 1, 'r']);
  });
});
