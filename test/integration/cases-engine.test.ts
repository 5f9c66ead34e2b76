// Cases from the field, E2, E3 and E5 and C3 (docs/CASES.md): what the engine's history holds, and who wrote it.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { afterAll, beforeAll, expect } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import { atOnce } from './at-once.js';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

const CLI = new URL('../../dist/cli/main.js', import.meta.url).pathname;

let lab: FaultLab;
const { scenario, begin } = atOnce();
beforeAll(async () => {
  lab = await openFaultLab();
  await Promise.all([lab.startWorker(), lab.startWorker()]);
  begin();
});
afterAll(async () => {
  await lab?.close();
});

async function historyOf(handle: ToolOperationHandle) {
  const history = await lab.temporal.workflow.getHandle(handle.workflowId).fetchHistory();
  return { history, events: history.events ?? [] };
}

scenario('E2: a history after 30 polls is as long as one after 3', async () => {
  const calls = [
    { label: 'E2 few polls', durationMs: 3_000 },
    { label: 'E2 many polls', durationMs: 36_000 },
  ];
  const handles = await Promise.all(calls.map((call) => lab.start(call)));
  const ends = await Promise.all(handles.map((handle) => handle.result()));
  const polls = calls.map(({ label }) => lab.faults.entries('polled', label).length);
  expect(polls[0]).toBeLessThanOrEqual(5);
  expect(polls[1]).toBeGreaterThanOrEqual(25);
  expect(ends.map(({ outcome }) => outcome)).toEqual(['completed', 'completed']);
  const histories = await Promise.all(handles.map(historyOf));
  const lengths = histories.map(({ events }) => events.length);
  expect(lengths[1]).toBe(lengths[0]);
});

scenario('E3: a history is replayed in a cold process that knows no server and no tool', async () => {
  const handle = await lab.start({ label: 'E3 replayed', plan: { polls: ['ok', 'reset'] } });
  await handle.result();
  const { history } = await historyOf(handle);
  const dir = await mkdtemp(join(tmpdir(), 'dtc-cold-'));
  try {
    const file = join(dir, 'history.json');
    await writeFile(file, historyToJSON(history));
    // No configuration at all: the tool list is not only changed, it is gone.
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [CLI, 'replay', file], {
      cwd: dir,
    });
    expect(`${stdout}${stderr}`).toContain('replays');
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});

scenario(
  'E5: the steps of one operation run on whichever worker is free: none keeps anything to itself',
  async () => {
    const labels = Array.from({ length: 12 }, (_, n) => `E5 shared ${n}`);
    const handles = await Promise.all(labels.map((label) => lab.start({ label, durationMs: 2_500 })));
    const ends = await Promise.all(handles.map((handle) => handle.result()));
    expect(ends.map(({ outcome }) => outcome)).toEqual(labels.map(() => 'completed'));
    const workers = await Promise.all(
      handles.map(async (handle) => {
        const { events } = await historyOf(handle);
        const started = events.flatMap((event) => event.activityTaskStartedEventAttributes?.identity ?? []);
        return new Set(started).size;
      }),
    );
    // Of twelve operations some are served by both.
    expect(Math.max(...workers)).toBe(2);
    for (const label of labels) expect(lab.faults.executions(label)).toBe(1);
  },
);

scenario(
  'C3: a cancel signalled while every worker is stopped shows as requested, and is delivered by the next one',
  async () => {
    const own = await openFaultLab();
    try {
      const worker = await own.startWorker();
      const label = 'C3 no worker';
      const handle = await own.start({ label, durationMs: 600_000 });
      await until(handle, (view) => view.state === 'WORKING');
      await worker.kill();
      await handle.cancel('while nobody listens');
      const shown = await until(
        handle,
        (view) => view.waitingForWorkerSince !== null || view.cancelRequested,
      );
      expect(shown.receipt).toBeNull();
      expect(own.faults.entries('cancelReceived', label)).toEqual([]);
      await own.startWorker();
      expect((await handle.result()).outcome).toBe('cancelled');
      expect(own.faults.entries('cancelReceived', label)).toHaveLength(1);
    } finally {
      await own.close();
    }
  },
);
