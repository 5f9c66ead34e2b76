// What a worker tells of itself: structured events with the callNodeId, and metrics that move for the right reasons.

import { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { OperationEvent } from '../../activities/events.js';
import type * as metricsEntry from '../../worker/metrics.js';
import type * as receiptsEntry from '../../receipts/index.js';
import type * as workerEntry from '../../worker/index.js';
import { quietRuntime } from '../replay/replay.js';
import { type Lab, openLab, RESEARCH, until } from './lab.js';

// The worker finds its bundle beside the compiled rooms, so it is taken from there.
const built = <T>(room: string): Promise<T> =>
  import(new URL(`../../dist/${room}.js`, import.meta.url).href) as Promise<T>;

let lab: Lab;
let stop: () => Promise<void>;
let metrics: metricsEntry.WorkerMetrics;
const events: OperationEvent[] = [];
beforeAll(async () => {
  quietRuntime();
  lab = await openLab();
  const { createToolOperationWorker, loadToolServers } = await built<typeof workerEntry>('worker/index');
  const { openReceiptsReader, openSqliteStore } = await built<typeof receiptsEntry>('receipts/index');
  const { addOperationGauges, createWorkerMetrics } = await built<typeof metricsEntry>('worker/metrics');
  metrics = createWorkerMetrics();
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') });
  const store = await openSqliteStore(lab.storeFile);
  const reader = await openReceiptsReader(lab.storeFile);
  addOperationGauges(metrics.registry, { client: lab.temporal, store: reader });
  const worker = await createToolOperationWorker({
    connection,
    taskQueue: lab.taskQueue,
    servers: await loadToolServers(lab.configFile, process.env),
    store,
    onEvent: (event) => {
      events.push(event);
      metrics.onEvent(event);
    },
  });
  const running = worker.run();
  stop = async () => {
    worker.shutdown();
    await running;
    await reader.close();
    await store.close();
    await connection.close();
  };
});
afterAll(async () => {
  await stop?.();
  await lab?.close();
});

/** A look at the gauges lasts a second, and visibility lags. */
const LOOK = { timeout: 10_000 };

async function value(line: string): Promise<number> {
  const text = await metrics.registry.metrics();
  const found = text.split('\n').find((candidate) => candidate.startsWith(`${line} `));
  return found === undefined ? Number.NaN : Number(found.split(' ').at(-1));
}

test('a completed call counts its polls and its receipt, and each event names its operation', async () => {
  await lab.client.execute({ callNodeId: 'watch-completed', ...RESEARCH });
  const labels = 'server="everything",tool="simulate-research-query",outcome="completed"';
  expect(await value(`dtc_accepted_total{${labels}}`)).toBe(1);
  expect(await value('dtc_polls_total{server="everything",result="ok"}')).toBe(lab.wire.counts().tasksGet);
  const ofCall = events.filter((event) => 'callNodeId' in event && event.callNodeId === 'watch-completed');
  const ended = ofCall.flatMap((event) => (event.kind === 'stepEnded' ? `${event.step}: ${event.said}` : []));
  expect(ended).toEqual([
    'open: epoch 1',
    'submit: referenced',
    'observe: terminal',
    'acceptTerminal: accepted',
  ]);
});

test('a fault on the wire, a rejected call and a cancelled one are told apart', async () => {
  const faulty = lab.wire.faults.answerNext('tasks/get', { httpStatus: 503, body: {} });
  const handle = await lab.client.start({ callNodeId: 'watch-cancelled', ...RESEARCH });
  await faulty.played;
  await until(handle, (view) => view.polls >= 1);
  await handle.cancel();
  await handle.result();
  await lab.client.execute({
    callNodeId: 'watch-rejected',
    server: 'everything',
    tool: 'nope',
    arguments: {},
  });
  expect(await value('dtc_polls_total{server="everything",result="Transient"}')).toBe(1);
  expect(await value('dtc_cancel_seconds_count{server="everything",outcome="cancelled"}')).toBe(1);
  const refused = 'dtc_refused_total{server="everything",what="submission",reason="unknown-tool"}';
  expect(await value(refused)).toBe(1);
});

test('a held operation shows in the gauges', async () => {
  const lost = lab.wire.faults.dropReply('tools/call');
  const before = await value('dtc_operations{state="UNRESOLVED"}');
  const echo = { server: 'everything', tool: 'echo', arguments: { message: 'once' } };
  const handle = await lab.client.start({ callNodeId: 'watch-held', ...echo });
  await lost.played;
  await until(handle, (view) => view.state === 'UNRESOLVED');
  await expect.poll(() => value('dtc_operations{state="UNRESOLVED"}'), LOOK).toBeGreaterThan(before);
  expect(await value('dtc_oldest_unresolved_seconds')).toBeGreaterThan(0);
  await handle.resolve({ kind: 'close' }, { evidence: 'a test', decidedBy: 'Ann' });
  await handle.result();
});

test('an operation whose run was terminated shows as one without a run until it is called again', async () => {
  const before = await value('dtc_operations_without_run');
  const start = () => lab.client.start({ callNodeId: 'watch-left', ...RESEARCH });
  const handle = await start();
  await until(handle, (view) => view.polls >= 1);
  await lab.temporal.workflow.getHandle(handle.workflowId).terminate('a person in the UI');
  await expect.poll(() => value('dtc_operations_without_run'), LOOK).toBe(before + 1);
  await (await start()).result();
  await expect.poll(() => value('dtc_operations_without_run'), LOOK).toBe(before);
  expect(await value('dtc_operations_readable')).toBe(1);
});

test('exchanges with the server name the operation that they were for', () => {
  const exchanges = events.flatMap((event) => (event.kind === 'wireCall' ? [event] : []));
  expect(exchanges.length).toBeGreaterThan(0);
  for (const { callNodeId } of exchanges) expect(callNodeId).toMatch(/^watch-/);
});
