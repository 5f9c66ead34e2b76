// What one sweep does with each row, over a fake store and a fake engine: the shipped body, without Temporal.

import { expect, test } from 'vitest';
import { sweep, type SweepCounts, type SweepPorts, type SweptRun } from '../../activities/sweep.js';
import type { OpenRow, OpenRowsQuery } from '../../receipts/store.js';

const RUN: SweptRun = { status: 'closed', isTerminated: false, isSuperseded: false };

interface World {
  readonly rows: readonly string[];
  readonly runs?: Readonly<Record<string, SweptRun | null | Error>>;
  readonly running?: readonly string[];
  readonly receipts?: readonly string[];
  readonly lost?: readonly string[];
  readonly knownRuns?: readonly string[];
  readonly overtaken?: readonly string[];
}

function portsOf(world: World) {
  const started: string[] = [];
  const evidence: string[] = [];
  const faults: string[] = [];
  const queries: OpenRowsQuery[] = [];
  const told: SweepCounts[] = [];
  const idOf = (callNodeId: string): string => `tool-operation/${callNodeId}`;
  const rowOf = (callNodeId: string): OpenRow =>
    ({
      callNodeId,
      ownerRunId: `run of ${callNodeId}`,
      isReceiptLost: world.lost?.includes(callNodeId),
    }) as OpenRow;
  const ports: SweepPorts = {
    receipts: {
      openRows: async (query) => {
        queries.push(query);
        const from = query.after === null ? 0 : world.rows.indexOf(query.after) + 1;
        return world.rows.slice(from, from + query.limit).map(rowOf);
      },
      readReceipt: async (callNodeId) => (world.receipts?.includes(callNodeId) ? ({} as never) : null),
      addEvidence: async (callNodeId, kind) => void evidence.push(`${kind} ${callNodeId}`),
    },
    nowMs: () => 1_000_000,
    runningIds: async () => new Set((world.running ?? []).map(idOf)),
    describe: async (workflowId) => {
      const run = world.runs?.[workflowId.slice('tool-operation/'.length)] ?? null;
      if (run instanceof Error) throw run;
      return run;
    },
    knowsRun: async (_workflowId, runId) => world.knownRuns?.includes(runId) ?? false,
    start: async ({ callNodeId }, lastRunTerminated) => {
      started.push(`${callNodeId}${lastRunTerminated ? ' after a terminated run' : ''}`);
      return !world.overtaken?.includes(callNodeId);
    },
    tell: (counts) => told.push(counts),
    tellFault: (callNodeId, message) => faults.push(`${callNodeId}: ${message}`),
  };
  return { ports, started, evidence, faults, queries, told };
}

const course = (beats: string[] = [], after: string | null = null, stopAfter = Number.POSITIVE_INFINITY) => ({
  after,
  beat: (callNodeId: string) => void beats.push(callNodeId),
  isStopped: () => beats.length >= stopAfter,
});

test('rows without an open run are started again, and the start says whether a person had terminated it', async () => {
  const runs = {
    terminated: { ...RUN, isTerminated: true },
    failed: RUN,
    open: { ...RUN, status: 'running' } as const,
  };
  const made = portsOf({
    rows: ['failed', 'forgotten', 'listed', 'open', 'terminated'],
    runs,
    running: ['listed'],
  });
  const counts = await sweep(made.ports, course());
  expect(counts).toEqual({ looked: 5, started: 3, behind: 0, elsewhere: 0, failed: 0 });
  expect(made.started).toEqual(['failed', 'forgotten', 'terminated after a terminated run']);
  expect(made.told).toEqual([counts]);
  expect(made.queries[0]).toEqual({ after: null, limit: 200, createdBeforeAt: 940_000 });
});

test('a completed run is never started again: its receipt came between two looks, or was lost', async () => {
  const completed = { ...RUN, status: 'completed' } as const;
  const runs = { ended: completed, lost: completed };
  const made = portsOf({
    rows: ['ended', 'lost', 'lost before'],
    runs,
    receipts: ['ended'],
    lost: ['lost before'],
  });
  expect(await sweep(made.ports, course())).toMatchObject({ looked: 3, started: 0, behind: 2 });
  expect([made.started, made.evidence]).toEqual([[], ['receipt-lost lost']]);
});

test('a row that another engine took from our run is left alone, one that nobody owns is not', async () => {
  const superseded = { ...RUN, isSuperseded: true };
  const runs = { theirs: superseded, ours: superseded };
  const made = portsOf({ rows: ['ours', 'theirs'], runs, knownRuns: ['run of ours'] });
  expect(await sweep(made.ports, course())).toMatchObject({ started: 1, elsewhere: 1 });
  expect(made.started).toEqual(['ours']);
});

test('a start that came second is none, and a row that fails does not keep the others from their turn', async () => {
  const made = portsOf({ rows: ['a', 'b', 'c'], runs: { a: new Error('unavailable') }, overtaken: ['b'] });
  expect(await sweep(made.ports, course())).toEqual({
    looked: 3,
    started: 1,
    behind: 0,
    elsewhere: 0,
    failed: 1,
  });
  expect(made.faults).toEqual(['a: unavailable']);
});

test('it goes page by page, beats for each row, goes on after the last one beaten for, and stops when told', async () => {
  const rows = Array.from({ length: 401 }, (_, at) => `row-${String(at).padStart(3, '0')}`);
  const made = portsOf({ rows });
  const beats: string[] = [];
  expect(await sweep(made.ports, course(beats))).toMatchObject({ looked: 401, started: 401 });
  expect(beats).toEqual(rows);
  expect(made.queries.map(({ after }) => after)).toEqual([null, 'row-199', 'row-399']);
  expect(await sweep(made.ports, course([], 'row-398'))).toMatchObject({ looked: 2 });
  expect(await sweep(made.ports, course([], null, 3))).toMatchObject({ looked: 3 });
});
