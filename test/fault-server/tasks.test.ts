// Polls, results, sessions, cancel and expiry on bare sockets: each fault is on the wire and in the journal.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventIdsOf, exchange, messagesOf, RawSession } from './raw-client.js';
import { type FaultServer, startFaultServer } from './start-fault-server.js';

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(async () => {
  await server?.stop();
});

const LONG_MS = 60_000;

test('polls play their words in order, and each is in the journal with the times of its socket', async () => {
  const label = 'polls';
  const polls = ['reset', '503:1', '503', 'cut', 'empty', 'error:-32603', 'ok', 'lose'];
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label, durationMs: LONG_MS, plan: { polls } });
  const sentAt = Date.now();
  const seen = [];
  for (let n = 0; n < 9; n += 1) seen.push(await session.raw('tasks/get', { taskId }));
  expect(seen.map((reply) => [reply.status, reply.isWhole])).toEqual([
    [null, false],
    [503, true],
    [503, true],
    [200, false],
    [200, true],
    [200, true],
    [200, true],
    [null, false],
    [200, true],
  ]);
  expect(seen[0]?.errorCode).toBe('ECONNRESET');
  expect([seen[1]?.headers['retry-after'], seen[2]?.headers['retry-after']]).toEqual(['1', undefined]);
  expect(seen[4]?.text).toBe('');
  expect(messagesOf(seen[5] as never)).toMatchObject([{ error: { code: -32603 } }]);
  for (const at of [6, 8]) {
    expect(messagesOf(seen[at] as never)).toMatchObject([{ result: { taskId, status: 'working' } }]);
  }
  const polled = server.entries('polled', label);
  expect(polled).toHaveLength(9);
  for (const { connectedAt = 0, arrivedAt = 0, at } of polled) {
    expect(connectedAt).toBeGreaterThanOrEqual(sentAt);
    expect(arrivedAt).toBeGreaterThanOrEqual(connectedAt);
    expect(at).toBeGreaterThanOrEqual(arrivedAt);
  }
});

test.each([
  ['404', -32001],
  ['400', -32000],
])(
  'a lost session is answered with %s, and another one finds the task by its id',
  async (sessionGone, code) => {
    const label = `session lost as ${sessionGone}`;
    const plan = { session: 'lose-after-create', sessionGone, taskAfterSession: 'found' };
    const session = await RawSession.open(server.url);
    const taskId = await session.createTask({ label, durationMs: LONG_MS, plan });
    await server.until((entry) => entry.kind === 'sessionLost' && entry.label === label);
    const reply = await session.raw('tasks/get', { taskId });
    expect(reply.status).toBe(Number(sessionGone));
    expect(messagesOf(reply)).toMatchObject([{ error: { code } }]);
    const other = await RawSession.open(server.url);
    expect(await other.status(taskId)).toBe('working');
    // Other operations' look-ups must not take it for theirs.
    expect(await other.ask('tasks/list', {})).toEqual({ tasks: [] });
    expect(server.executions(label)).toBe(1);
  },
);

test('a task is bound to its session, also when that is lost', async () => {
  const label = 'session lost for good';
  const plan = { session: 'lose-after-create', taskAfterSession: 'not-found' };
  const session = await RawSession.open(server.url);
  const kept = await session.createTask({ label: 'kept', durationMs: LONG_MS });
  const other = await RawSession.open(server.url);
  expect(await other.ask('tasks/get', { taskId: kept })).toMatchObject({ code: -32602 });
  expect(await other.ask('tasks/list', {})).toEqual({ tasks: [] });
  expect(await session.ask('tasks/list', {})).toMatchObject({ tasks: [{ taskId: kept }] });
  const taskId = await session.createTask({ label, durationMs: LONG_MS, plan });
  expect(await other.ask('tasks/get', { taskId })).toMatchObject({ code: -32602 });
});

test('a session that the client ended is unknown', async () => {
  const session = await RawSession.open(server.url);
  const { sessionId } = session;
  expect((await exchange(server.url, { method: 'DELETE', sessionId })).status).toBe(200);
  expect((await session.raw('tools/list', {})).status).toBe(404);
  expect(server.journal().filter((entry) => entry.kind === 'sessionEnded')).toMatchObject([
    { session: session.sessionId },
  ]);
});

test.each(['sse', 'json'])('a result cut once as %s is whole the next time', async (replies) => {
  const label = `result cut as ${replies}`;
  const session = await RawSession.open(`${server.url}?replies=${replies}`);
  const taskId = await session.createTask({ label, resultBytes: 5_000, plan: { result: ['cut', 'ok'] } });
  await session.untilStatus(taskId, 'completed');
  const cut = await session.raw('tasks/result', { taskId });
  expect(cut).toMatchObject({ status: 200, isWhole: false });
  expect(cut.text.length).toBeGreaterThan(2_000);
  expect(messagesOf(cut).filter((message) => 'result' in message)).toEqual([]);
  const whole = await session.ask('tasks/result', { taskId });
  expect(JSON.stringify(whole).length).toBeGreaterThan(5_000);
  expect(server.entries('faultPlayed', label)).toMatchObject([{ phase: 'result', word: 'cut' }]);
});

test('a lost result is lost every time, a gone one is answered -32602 although completed', async () => {
  const session = await RawSession.open(server.url);
  const lost = await session.createTask({ label: 'result lost', plan: { result: 'lost' } });
  const gone = await session.createTask({ label: 'result gone', plan: { result: 'gone' } });
  await session.untilStatus(lost, 'completed');
  await session.untilStatus(gone, 'completed');
  for (let n = 0; n < 3; n += 1) {
    expect(await session.raw('tasks/result', { taskId: lost })).toMatchObject({ status: null, text: '' });
    expect(await session.ask('tasks/result', { taskId: gone })).toMatchObject({ code: -32602 });
  }
});

test('a word for the result waits for a reader: a stream that was dropped early does not use it up', async () => {
  const label = 'result word kept';
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label, durationMs: 300, plan: { result: ['503', 'ok'] } });
  await session.raw('tasks/result', { taskId }, { hangUpWhen: (text) => text.includes('id: ') });
  await session.untilStatus(taskId, 'completed');
  expect(server.entries('faultPlayed', label)).toEqual([]);
  expect((await session.raw('tasks/result', { taskId })).status).toBe(503);
});

test.each([
  ['isError', { isError: true }],
  ['protocolError', { code: -32050 }],
])('a task that ends as %s has failed and keeps what it said', async (outcome, answer) => {
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label: `failed: ${outcome}`, plan: { outcome } });
  await session.untilStatus(taskId, 'failed');
  expect(await session.ask('tasks/result', { taskId })).toMatchObject(answer);
});

test('past its ttl a task is unknown', async () => {
  const session = await RawSession.open(server.url);
  const args = { label: 'expired', durationMs: LONG_MS, plan: { ttlMs: 100 } };
  const taskId = await session.createTask(args);
  await server.until(
    (entry) => Date.now() > entry.at + 150 && entry.kind === 'taskCreated' && entry.label === 'expired',
  );
  expect(await session.ask('tasks/get', { taskId })).toMatchObject({ code: -32602 });
});

const CANCELS: readonly [string, object, string, string][] = [
  ['honour', { status: 'cancelled' }, 'cancelled', 'aborted'],
  ['delay:150', { status: 'working' }, 'cancelled', 'aborted'],
  ['complete-first', { code: -32602 }, 'completed', 'completed'],
  ['complete-after', { status: 'working' }, 'completed', 'completed'],
];
test.each(CANCELS)('cancel %s answers and ends as planned', async (cancel, answer, status, how) => {
  const label = `cancel ${cancel}`;
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label, durationMs: LONG_MS, plan: { cancel } });
  expect(await session.ask('tasks/cancel', { taskId })).toMatchObject(answer);
  await session.untilStatus(taskId, status);
  expect(server.entries('cancelReceived', label)).toMatchObject([{ remoteTaskId: taskId }]);
  expect(server.entries('executionEnded', label)).toMatchObject([{ how }]);
});

test.each([
  ['refuse', { code: -32602 }],
  ['ignore', { status: 'working' }],
])('cancel %s lets the work run on', async (cancel, answer) => {
  const label = `cancel ${cancel}`;
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label, durationMs: 300, plan: { cancel } });
  expect(await session.ask('tasks/cancel', { taskId })).toMatchObject(answer);
  await session.untilStatus(taskId, 'completed');
  expect(server.entries('executionEnded', label)).toMatchObject([{ how: 'completed' }]);
});

test('the acknowledgement of a cancel can be lost although the cancel was honoured', async () => {
  const session = await RawSession.open(server.url);
  const plan = { cancelReply: 'lose' };
  const taskId = await session.createTask({ label: 'ack lost', durationMs: LONG_MS, plan });
  expect(await session.raw('tasks/cancel', { taskId })).toMatchObject({ status: null });
  expect(await session.status(taskId)).toBe('cancelled');
  expect(await session.ask('tasks/cancel', { taskId })).toMatchObject({ code: -32602 });
});

test('a style without list and cancel declares neither and serves neither', async () => {
  const session = await RawSession.open(`${server.url}?list=no&cancel=no`);
  const taskId = await session.createTask({ label: 'poor style', durationMs: LONG_MS });
  expect(await session.ask('tasks/list', {})).toMatchObject({ code: -32601 });
  expect(await session.ask('tasks/cancel', { taskId })).toMatchObject({ code: -32601 });
});

test('without event ids nothing can be resumed', async () => {
  const session = await RawSession.open(`${server.url}?eventIds=no`);
  const reply = await session.call({ label: 'no ids' });
  expect(messagesOf(reply)).toHaveLength(1);
  expect(eventIdsOf(reply)).toEqual([]);
  expect((await session.resume('s0-0')).status).toBe(400);
});

test('after a kill the journal counts on, and sessions and tasks are gone', async () => {
  const mortal = await startFaultServer({ faults: { create: 'empty-object' } });
  try {
    const before = await RawSession.open(mortal.url);
    expect((await before.call({ label: 'mortal', durationMs: LONG_MS })).text).toBe('{}');
    const firstPid = mortal.pid;
    await mortal.restart();
    expect(mortal.pid).not.toBe(firstPid);
    expect((await before.raw('tasks/list', {})).status).toBe(404);
    const after = await RawSession.open(mortal.url);
    await after.call({ label: 'mortal', durationMs: 0 });
    await mortal.until((entry) => entry.kind === 'executionEnded' && entry.label === 'mortal');
    expect(mortal.entries('executionBegan', 'mortal').map(({ execution }) => execution)).toEqual([1, 2]);
    // The first one was killed in the midst of it.
    expect(mortal.entries('executionEnded', 'mortal').map(({ execution }) => execution)).toEqual([2]);
  } finally {
    await mortal.stop();
  }
});
