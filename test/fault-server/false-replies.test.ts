// Words that answer too much, too late, falsely or never, seen on bare sockets: each is on the wire as it says.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchange, messagesOf, type RawReply, RawSession } from './raw-client.js';
import { type FaultServer, startFaultServer } from './start-fault-server.js';

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(async () => {
  await server?.stop();
});

const LONG_MS = 60_000;
const resultsOf = (reply: RawReply) => messagesOf(reply).filter((message) => 'result' in message);

describe.each(['sse', 'json'])('as %s', (replies) => {
  const open = (): Promise<RawSession> => RawSession.open(`${server.url}?replies=${replies}`);
  async function poll(word: string): Promise<{ reply: RawReply; taskId: string; session: RawSession }> {
    const label = `${word} as ${replies}`;
    const session = await open();
    const taskId = await session.createTask({ label, durationMs: LONG_MS, plan: { polls: word } });
    const reply = await session.raw('tasks/get', { taskId });
    expect(server.entries('faultPlayed', label)).toMatchObject([{ phase: 'polls', word }]);
    return { reply, taskId, session };
  }

  test('duplicate: on a stream the reply comes twice, the very same', async () => {
    const { reply } = await poll('duplicate');
    const results = resultsOf(reply);
    expect(results).toHaveLength(replies === 'sse' ? 2 : 1);
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1);
  });

  test('reorder: a notification and a reply to another request come before ours', async () => {
    const { reply, taskId } = await poll('reorder');
    const messages = messagesOf(reply);
    expect(messages.at(-1)).toMatchObject({ id: 2, result: { taskId, status: 'working' } });
    if (replies === 'json') return;
    expect(messages).toHaveLength(3);
    expect(messages[0]).toMatchObject({ method: 'notifications/message' });
    expect(messages[1]).toMatchObject({ id: expect.any(String), result: { status: 'completed' } });
    expect(messages[1]).not.toMatchObject({ result: { taskId } });
  });

  test('wrong-id: the reply is under an id that nobody asked under', async () => {
    const { reply, taskId } = await poll('wrong-id');
    expect(messagesOf(reply)).toMatchObject([{ id: expect.any(String), result: { taskId } }]);
  });

  test('foreign-task: the reply is ours, about a task that is not, and says that it has ended', async () => {
    const { reply, taskId, session } = await poll('foreign-task');
    const [message] = messagesOf(reply);
    expect(message).toMatchObject({ id: 2, result: { status: 'completed' } });
    expect(message).not.toMatchObject({ result: { taskId } });
    expect(await session.status(taskId)).toBe('working');
  });

  test('wrong-types: every value is of another type', async () => {
    const { reply } = await poll('wrong-types');
    expect(messagesOf(reply)).toMatchObject([{ result: { taskId: 7, status: 7, pollInterval: '7' } }]);
  });

  test('wrong-json and deep-json: a reply that is whole on the wire and that nobody can read', async () => {
    const hole = (await poll('wrong-json')).reply;
    expect(hole).toMatchObject({ status: 200, isWhole: true });
    expect([messagesOf(hole), hole.text.includes('"jsonrpc""2.0"')]).toEqual([[], true]);
    const deep = (await poll('deep-json')).reply;
    expect(deep.text).toContain('['.repeat(200_000));
  });

  test('huge: the reply is so much larger', async () => {
    const { reply, taskId } = await poll('huge:3');
    expect(reply.text.length).toBeGreaterThan(3_000_000);
    expect(resultsOf(reply)).toMatchObject([{ result: { taskId } }]);
  });

  test.each(['endless', 'flood', 'drip'])('%s: bytes come until the client hangs up', async (word) => {
    const label = `${word} as ${replies}`;
    const session = await open();
    const taskId = await session.createTask({ label, durationMs: LONG_MS, plan: { polls: word } });
    const most = word === 'drip' ? 60 : 2_000_000;
    const more = { hangUpWhen: (text: string) => text.length > most };
    const reply = await session.raw('tasks/get', { taskId }, more);
    expect(reply).toMatchObject({ status: 200, isWhole: false });
    expect(messagesOf(reply).filter((message) => 'result' in message)).toEqual([]);
    // The server lives on.
    expect(await session.status(taskId)).toBe('working');
  });

  test('html: 200 with a page', async () => {
    const { reply } = await poll('html');
    expect(reply.headers['content-type']).toContain('text/html');
    expect(reply).toMatchObject({ status: 200, isWhole: true });
  });

  test('redirect: 307 to a path where everything is in the journal', async () => {
    const { reply } = await poll('redirect');
    expect(reply.status).toBe(307);
    const before = server.journal().filter((entry) => entry.kind === 'redirectFollowed').length;
    await exchange(new URL(reply.headers.location ?? '', server.url).href, { body: {} });
    const followed = server.journal().filter((entry) => entry.kind === 'redirectFollowed');
    expect(followed.slice(before)).toMatchObject([{ method: 'POST' }]);
  });

  test.each([
    ['429:7', 429, '7'],
    ['429', 429, undefined],
    ['504:3', 504, '3'],
    ['504', 504, undefined],
  ])('%s: a bare status, and nothing was handled', async (word, status, retryAfter) => {
    const { reply } = await poll(word);
    expect([reply.status, reply.headers['retry-after']]).toEqual([status, retryAfter]);
  });

  test('hang: the work is done, and no byte ever comes', async () => {
    const label = `hang as ${replies}`;
    const session = await open();
    const call = session.call({ label, plan: { create: 'hang' } });
    await server.until((entry) => entry.kind === 'executionEnded' && entry.label === label);
    const settled = await Promise.race([call, new Promise((resolve) => setTimeout(resolve, 300, 'silence'))]);
    expect(settled).toBe('silence');
    expect(await session.ask('tasks/list', {})).toMatchObject({ tasks: [{ status: 'completed' }] });
  });
});

test('bomb: a MB of gzip that unpacks to a thousand times as much', async () => {
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label: 'bomb', durationMs: LONG_MS, plan: { polls: 'bomb' } });
  const response = await fetch(server.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': session.sessionId,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { taskId } }),
  });
  expect(response.headers.get('content-encoding')).toBe('gzip');
  let unpacked = 0;
  for await (const chunk of response.body ?? []) {
    unpacked += chunk.length;
    if (unpacked > 100_000_000) break;
  }
  expect(unpacked).toBeGreaterThan(100_000_000);
});

test('reused-id: the reply names the task of another call, and that one is found in this session', async () => {
  const first = await RawSession.open(server.url);
  const other = await first.createTask({ label: 'reused: other', durationMs: LONG_MS });
  const session = await RawSession.open(server.url);
  const named = await session.createTask({
    label: 'reused: ours',
    durationMs: LONG_MS,
    plan: { create: 'reused-id' },
  });
  expect(named).toBe(other);
  const [created] = server.entries('taskCreated', 'reused: ours');
  expect(created?.remoteTaskId).not.toBe(other);
  expect(await session.ask('tasks/get', { taskId: named })).toMatchObject({
    statusMessage: 'reused: other: working',
  });
});

test('other-bytes: a second fetch says something else', async () => {
  const session = await RawSession.open(server.url);
  const plan = { result: ['ok', 'other-bytes'] };
  const taskId = await session.createTask({ label: 'other bytes', plan });
  await session.untilStatus(taskId, 'completed');
  const seen = [];
  for (let n = 0; n < 3; n += 1) seen.push(JSON.stringify(await session.ask('tasks/result', { taskId })));
  expect(seen[1]).toContain('(said otherwise)');
  expect(seen[0]).not.toBe(seen[1]);
  expect(seen[0]).toBe(seen[2]);
});
