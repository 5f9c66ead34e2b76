// What a plan does over several reads of one task: lag, stale reads, changing hints, sessions lost later, flips.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { drawPlan } from './draw-plan.js';
import { messagesOf, RawSession } from './raw-client.js';
import { type FaultServer, startFaultServer } from './start-fault-server.js';

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(async () => {
  await server?.stop();
});

const LONG_MS = 60_000;

test('lagReads: right after the creation so many reads do not know the task, and the next one does', async () => {
  const session = await RawSession.open(server.url);
  const args = { label: 'lag', durationMs: LONG_MS, plan: { lagReads: 3 } };
  const taskId = await session.createTask(args);
  expect(await session.ask('tasks/get', { taskId })).toMatchObject({ code: -32602 });
  expect(await session.ask('tasks/list', {})).toEqual({ tasks: [] });
  expect(await session.ask('tasks/result', { taskId })).toMatchObject({ code: -32602 });
  expect(await session.status(taskId)).toBe('working');
});

test('staleReads: after the end was told once, so many reads say working again', async () => {
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label: 'stale', plan: { staleReads: 2 } });
  await session.untilStatus(taskId, 'completed');
  const seen = [];
  for (let n = 0; n < 3; n += 1) seen.push(await session.status(taskId));
  expect(seen).toEqual(['working', 'working', 'completed']);
});

test('pollIntervals: the hint changes with each read, null is absent, and the last one stays', async () => {
  const session = await RawSession.open(server.url);
  const plan = { pollIntervals: [2, 0, -1, 1e12, null, 700] };
  const taskId = await session.createTask({ label: 'hints', durationMs: LONG_MS, plan });
  const hints = [];
  for (let n = 0; n < 7; n += 1) hints.push((await session.ask('tasks/get', { taskId }))?.['pollInterval']);
  expect(hints).toEqual([2, 0, -1, 1e12, undefined, 700, 700]);
});

test('workingStatus: status reads say that word while the work runs', async () => {
  const session = await RawSession.open(server.url);
  const plan = { workingStatus: 'auth_required' };
  const taskId = await session.createTask({ label: 'odd word', durationMs: 200, plan });
  expect(await session.status(taskId)).toBe('auth_required');
  await session.untilStatus(taskId, 'completed');
});

test('sessionLossMs: the session is lost so much later', async () => {
  const label = 'lost later';
  const session = await RawSession.open(server.url);
  const plan = { sessionLossMs: 200, taskAfterSession: 'found' };
  const taskId = await session.createTask({ label, durationMs: LONG_MS, plan });
  expect(await session.status(taskId)).toBe('working');
  await server.until((entry) => entry.kind === 'sessionLost' && entry.label === label);
  expect((await session.raw('tasks/get', { taskId })).status).toBe(404);
  expect(await (await RawSession.open(server.url)).status(taskId)).toBe('working');
});

test('lists: the lists of a session suffer what its call planned, and none before the call', async () => {
  const label = 'lists';
  const session = await RawSession.open(server.url);
  expect(await session.ask('tasks/list', {})).toEqual({ tasks: [] });
  await session.createTask({ label, durationMs: LONG_MS, plan: { lists: ['503', 'lose'] } });
  const statuses = [];
  for (let n = 0; n < 3; n += 1) statuses.push((await session.raw('tasks/list', {})).status);
  expect(statuses).toEqual([503, null, 200]);
  expect(server.entries('faultPlayed', label).map(({ phase, word }) => [phase, word])).toEqual([
    ['lists', '503'],
    ['lists', 'lose'],
  ]);
});

test('flip: a cancel is confirmed, and the work completes all the same', async () => {
  const label = 'flip';
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label, durationMs: LONG_MS, plan: { cancel: 'flip:200' } });
  expect(await session.ask('tasks/cancel', { taskId })).toMatchObject({ status: 'cancelled' });
  expect(await session.status(taskId)).toBe('cancelled');
  expect(await session.ask('tasks/cancel', { taskId })).toMatchObject({ code: -32602 });
  await session.untilStatus(taskId, 'completed');
  expect(server.entries('executionEnded', label)).toMatchObject([{ how: 'completed' }]);
  expect(JSON.stringify(await session.ask('tasks/result', { taskId }))).toContain('is done');
});

test('ignore:1: the first cancel is ignored, the second is honoured', async () => {
  const label = 'ignored once';
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label, durationMs: LONG_MS, plan: { cancel: 'ignore:1' } });
  expect(await session.ask('tasks/cancel', { taskId })).toMatchObject({ status: 'working' });
  expect(await session.status(taskId)).toBe('working');
  expect(await session.ask('tasks/cancel', { taskId })).toMatchObject({ status: 'cancelled' });
  expect(server.entries('executionEnded', label)).toHaveLength(1);
});

test('a plan of a seed is the plan that is drawn from it', async () => {
  const session = await RawSession.open(server.url);
  const mixed = { label: 'seed and more', plan: { seed: 7, polls: 'lose' } };
  expect(messagesOf(await session.call(mixed))).toMatchObject([{ error: { code: -32602 } }]);
  const odd = { label: 'odd seed', plan: { seed: 1.5 } };
  expect(messagesOf(await session.call(odd))).toMatchObject([{ error: { code: -32602 } }]);
  await session.call({ label: 'seeded', plan: { seed: 1 } });
  const [first] = drawPlan(1).plan['create'] as readonly string[];
  expect(first).toBeDefined();
  expect(server.entries('faultPlayed', 'seeded')).toMatchObject([{ phase: 'create', word: first }]);
});
