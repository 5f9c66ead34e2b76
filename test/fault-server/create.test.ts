// Faults of the reply to `tools/call`, seen on bare sockets: each is on the wire, and the journal says what was done.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventIdsOf, messagesOf, RawSession } from './raw-client.js';
import { type FaultServer, startFaultServer } from './start-fault-server.js';

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(async () => {
  await server?.stop();
});

const ENDED = (label: string) => (entry: { kind: string; label?: unknown }) =>
  entry.kind === 'executionEnded' && entry.label === label;

describe.each(['sse', 'json'])('as %s', (replies) => {
  const open = (): Promise<RawSession> => RawSession.open(`${server.url}?replies=${replies}`);

  test('without a plan the task is created, runs once and gives its result', async () => {
    const label = `plain course as ${replies}`;
    const session = await open();
    const taskId = await session.createTask({ label, durationMs: 50 });
    const result = await session.ask('tasks/result', { taskId });
    expect(JSON.stringify(result)).toContain(`execution 1 of ${label} is done`);
    expect(await session.status(taskId)).toBe('completed');
    expect(server.executions(label)).toBe(1);
    expect(server.entries('executionEnded', label)).toMatchObject([{ how: 'completed' }]);
  });

  test('lose: the work is done, the socket closes without a byte', async () => {
    const label = `lose as ${replies}`;
    const session = await open();
    const reply = await session.call({ label, plan: { create: 'lose' } });
    expect(reply).toMatchObject({ status: null, text: '', errorCode: 'socket hang up' });
    await server.until(ENDED(label));
    expect(server.executions(label)).toBe(1);
    expect(await session.ask('tasks/list', {})).toMatchObject({ tasks: [{ status: 'completed' }] });
  });

  test('cut: the first half comes, and the rest is never to be had', async () => {
    const label = `cut as ${replies}`;
    const session = await open();
    const reply = await session.call({ label, plan: { create: 'cut' } });
    expect(reply).toMatchObject({ status: 200, isWhole: false });
    expect(reply.text).toContain('"jsonrpc"');
    expect(messagesOf(reply).filter((message) => 'result' in message)).toEqual([]);
    const [eventId] = eventIdsOf(reply);
    if (replies === 'sse') expect(await session.resume(eventId ?? '')).toMatchObject({ status: 400 });
    expect(server.executions(label)).toBe(1);
  });

  test.each([
    ['empty', ''],
    ['empty-object', '{}'],
  ])('%s: 200 with the body "%s", the work is done', async (word, text) => {
    const label = `${word} as ${replies}`;
    const reply = await (await open()).call({ label, plan: { create: word } });
    expect(reply).toMatchObject({ status: 200, text, isWhole: true });
    expect(server.executions(label)).toBe(1);
  });

  test('empty-result: a JSON-RPC result without a task', async () => {
    const label = `empty-result as ${replies}`;
    const reply = await (await open()).call({ label, plan: { create: 'empty-result' } });
    expect(messagesOf(reply)).toMatchObject([{ result: {} }]);
    expect(messagesOf(reply)[0]?.['result']).toEqual({});
    expect(server.executions(label)).toBe(1);
  });

  test('delay: the reply comes later, the work began at once', async () => {
    const label = `delay as ${replies}`;
    const beganAt = Date.now();
    await (await open()).createTask({ label, plan: { create: 'delay:300' } });
    expect(Date.now() - beganAt).toBeGreaterThanOrEqual(300);
    const [began] = server.entries('executionBegan', label);
    expect((began?.at ?? 0) - beganAt).toBeLessThan(300);
  });

  test('reset: the connection is reset and nothing runs', async () => {
    const label = `reset as ${replies}`;
    const reply = await (await open()).call({ label, plan: { create: 'reset' } });
    expect(reply).toMatchObject({ status: null, errorCode: 'ECONNRESET' });
    expect(server.entries('callReceived', label)).toHaveLength(1);
    expect(server.executions(label)).toBe(0);
  });

  test('503: says when to come again, and nothing runs', async () => {
    const label = `503 as ${replies}`;
    const reply = await (await open()).call({ label, plan: { create: '503:7' } });
    expect(reply).toMatchObject({ status: 503, headers: { 'retry-after': '7' } });
    expect(server.executions(label)).toBe(0);
  });
});

test('cut-resumable: the rest is had with Last-Event-ID, from the event that came whole', async () => {
  const label = 'cut-resumable';
  const session = await RawSession.open(server.url);
  const reply = await session.call({ label, plan: { create: 'cut-resumable' } });
  expect(reply.isWhole).toBe(false);
  const resumed = await session.resume(eventIdsOf(reply)[0] ?? '');
  expect(messagesOf(resumed)).toMatchObject([{ result: { task: { status: expect.any(String) } } }]);
  expect(server.executions(label)).toBe(1);
});

test('each word is played once, in order, by calls of one label', async () => {
  const label = 'in order';
  const args = { label, plan: { create: ['lose', '503', 'ok'] } };
  const session = await RawSession.open(server.url);
  const statuses = [];
  for (let n = 0; n < 4; n += 1) statuses.push((await session.call(args)).status);
  expect(statuses).toEqual([null, 503, 200, 200]);
  expect(server.entries('faultPlayed', label).map(({ word }) => word)).toEqual(['lose', '503']);
  expect(server.executions(label)).toBe(3);
});

test.each(['argument', 'meta'])('deduplicate: one key by %s is one task, in every session', async (place) => {
  const label = `deduplicated by ${place}`;
  const args = { label, durationMs: 60_000, plan: { deduplicate: true, create: 'lose' } };
  const key = `key of ${label}`;
  const keyed = place === 'argument' ? { ...args, idempotencyKey: key } : args;
  const more = place === 'meta' ? { _meta: { 'faultserver.test/idempotencyKey': key } } : {};
  const session = await RawSession.open(server.url);
  expect((await session.call(keyed, more)).status).toBeNull();
  const second = messagesOf(await session.call(keyed, more))[0];
  const other = await RawSession.open(server.url);
  const third = messagesOf(await other.call(keyed, more))[0];
  expect(second?.['result']).toMatchObject({ task: { taskId: expect.any(String) } });
  expect(third?.['result']).toEqual(second?.['result']);
  expect(server.executions(label)).toBe(1);
  expect(server.entries('callDeduplicated', label)).toHaveLength(2);
  expect(server.entries('callReceived', label)[0]).toMatchObject(
    place === 'argument' ? { keyArgument: key, keyMeta: null } : { keyArgument: null, keyMeta: key },
  );
});

test('deduplicate: one key with other arguments is a typed conflict, and nothing runs', async () => {
  const session = await RawSession.open(server.url);
  const plan = { deduplicate: true };
  await session.createTask({ label: 'conflict', idempotencyKey: 'conflicting', plan });
  const args = { label: 'conflict', idempotencyKey: 'conflicting', durationMs: 1, plan };
  expect(messagesOf(await session.call(args))).toMatchObject([
    { error: { code: -32009, data: { reason: 'idempotency-key-conflict' } } },
  ]);
  expect(server.executions('conflict')).toBe(1);
  expect(server.entries('callRefused', 'conflict')).toMatchObject([{ code: -32009 }]);
});

test('a key without deduplicate is ignored: every call runs', async () => {
  const session = await RawSession.open(server.url);
  await session.createTask({ label: 'ignored key', idempotencyKey: 'ignored' });
  await session.createTask({ label: 'ignored key', idempotencyKey: 'ignored' });
  expect(server.executions('ignored key')).toBe(2);
});

test.each([
  ['an unknown word', { create: 'loose' }],
  ['a word without its number', { polls: ['delay'] }],
  ['an unknown field', { crate: 'lose' }],
  ['an unknown choice', { session: 'lose-now' }],
  ['an unknown cancel', { cancel: 'perhaps' }],
  ['too many questions', { questions: 3 }],
])('%s in the plan is refused with -32602 before anything runs', async (what, plan) => {
  const label = `refused: ${what}`;
  const session = await RawSession.open(server.url);
  expect(messagesOf(await session.call({ label, plan }))).toMatchObject([{ error: { code: -32602 } }]);
  expect(server.entries('callReceived', label)).toHaveLength(1);
  expect(server.entries('callRefused', label)).toMatchObject([{ code: -32602 }]);
  expect(server.executions(label)).toBe(0);
});

test('a tool that requires tasks, and one that takes none, refuse the other kind of call', async () => {
  const session = await RawSession.open(server.url);
  const args = { label: 'wrong kind' };
  const plain = await session.ask('tools/call', { name: 'work-required', arguments: args });
  const task = await session.ask('tools/call', { name: 'work-plain', arguments: args, task: {} });
  expect([plain?.['code'], task?.['code']]).toEqual([-32601, -32601]);
  expect(server.executions('wrong kind')).toBe(0);
});

test.each([
  ['completed', { content: [{ type: 'text' }] }],
  ['isError', { isError: true }],
  ['protocolError', { code: -32050 }],
])('a plain call that ends as %s answers when its body has ended', async (outcome, answer) => {
  const label = `plain ${outcome}`;
  const session = await RawSession.open(server.url);
  const args = { label, durationMs: 60, plan: { outcome } };
  expect(await session.ask('tools/call', { name: 'work-plain', arguments: args })).toMatchObject(answer);
  expect(server.entries('executionEnded', label)).toMatchObject([{ execution: 1, how: outcome }]);
});

test('a plain call that loses its reply has run to its end', async () => {
  const label = 'plain lose';
  const session = await RawSession.open(server.url);
  const args = { label, durationMs: 60, plan: { create: 'lose' } };
  expect(await session.raw('tools/call', { name: 'work-plain', arguments: args })).toMatchObject({
    status: null,
  });
  expect(server.entries('executionEnded', label)).toHaveLength(1);
});

test('the published schema knows every word that the plan knows', async () => {
  const session = await RawSession.open(server.url);
  const listed = await session.ask('tools/list', {});
  expect(listed).toMatchObject({
    tools: [
      { name: 'work', execution: { taskSupport: 'optional' } },
      { name: 'work-required', execution: { taskSupport: 'required' } },
      { name: 'work-plain', execution: { taskSupport: 'forbidden' } },
      { name: 'start_job', execution: { taskSupport: 'forbidden' } },
      { name: 'start_text_job', execution: { taskSupport: 'forbidden' } },
      { name: 'find_work' },
      { name: 'job_status' },
      { name: 'job_result' },
      { name: 'cancel_job' },
      { name: 'answer_job' },
    ],
  });
  const text = JSON.stringify(listed);
  for (const word of [
    'lose',
    'cut-resumable',
    'empty-result',
    'lost',
    'gone',
    'deduplicate',
    'complete-first',
  ])
    expect(text).toContain(word);
});
