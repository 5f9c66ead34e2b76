// The second front of the fault server on bare sockets: MCP 2026-07-28 as FastMCP 4 speaks it, the same faults, one journal.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isObject, type JsonObject } from './json.js';
import { exchange, messagesOf, MODERN_META, RawModern, RawSession } from './raw-client.js';
import { type FaultServer, startFaultServer } from './start-fault-server.js';

const LONG_MS = 60_000;

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(async () => {
  await server?.stop();
});

const at = (query = ''): RawModern => new RawModern(`${server.url}?contract=2026-07-28${query}`);

describe.each(['sse', 'json'])('as %s', (replies) => {
  const open = (): RawModern => at(`&replies=${replies}`);

  test('a task is made flat, runs once, and its status carries its result', async () => {
    const label = `modern course ${replies}`;
    const created = await open().ask('tools/call', { name: 'work', arguments: { label, durationMs: 50 } });
    expect(created).toMatchObject({
      resultType: 'task',
      taskId: expect.any(String) as string,
      status: 'working',
      ttlMs: 900_000,
      pollIntervalMs: 1_000,
    });
    const seen = await open().untilStatus(created?.['taskId'] as string, 'completed');
    expect(seen).toMatchObject({ resultType: 'complete', result: { resultType: 'complete' } });
    expect(JSON.stringify(seen['result'])).toContain(`execution 1 of ${label} is done`);
    expect(server.executions(label)).toBe(1);
    expect(server.entries('callReceived', label)).toMatchObject([{ asTask: true, session: null }]);
  });

  test.each(['lose', 'cut', 'empty', 'empty-object', 'empty-result', 'wrong-types'])(
    'the create reply suffers %s, and the work is done',
    async (word) => {
      const label = `modern ${word} ${replies}`;
      const reply = await open().call({ label, plan: { create: word } });
      const made = messagesOf(reply).filter(
        ({ result }) => isObject(result) && typeof result['taskId'] === 'string',
      );
      expect(made).toEqual([]);
      await server.until((entry) => entry.kind === 'executionEnded' && entry.label === label);
      expect(server.executions(label)).toBe(1);
    },
  );
});

test('the word for the poll is played first; the one for the result waits for a status that carries one', async () => {
  const label = 'modern words';
  const plan = { polls: ['503:1', 'ok', 'reset'], result: ['cut', 'error:-32603', 'bare', 'ok'] };
  const taskId = await at().createTask({
    label,
    durationMs: LONG_MS,
    plan: { ...plan, cancel: 'complete-after' },
  });
  const statuses = [(await at().raw('tasks/get', { taskId })).status];
  expect(await at().status(taskId)).toMatchObject({ status: 'working' });
  await at().ask('tasks/cancel', { taskId });
  await server.until((entry) => entry.kind === 'executionEnded' && entry.label === label);
  for (let n = 0; n < 2; n += 1) statuses.push((await at().raw('tasks/get', { taskId })).status);
  expect(statuses).toEqual([503, null, 200]);
  expect(await at().status(taskId)).toMatchObject({ code: -32603 });
  const bare = await at().status(taskId);
  expect([bare?.['status'], bare?.['result']]).toEqual(['completed', undefined]);
  expect(await at().status(taskId)).toMatchObject({ status: 'completed', result: { content: [{}] } });
  const played = server.entries('faultPlayed', label).map(({ phase, word }) => `${phase} ${word}`);
  expect(played).toEqual(['polls 503:1', 'polls reset', 'result cut', 'result error:-32603', 'result bare']);
});

test('a tool that says isError has completed, a JSON-RPC error has failed', async () => {
  const isError = await at().createTask({ label: 'modern isError', plan: { outcome: 'isError' } });
  expect(await at().untilStatus(isError, 'completed')).toMatchObject({ result: { isError: true } });
  const protocol = await at().createTask({ label: 'modern error', plan: { outcome: 'protocolError' } });
  expect(await at().untilStatus(protocol, 'failed')).toMatchObject({ error: { code: -32050 } });
});

describe('a request that does not say what it must is refused before it is looked at', () => {
  const undeclared = { ...MODERN_META, 'io.modelcontextprotocol/clientCapabilities': {} };
  const args = (label: string): JsonObject => ({ name: 'work-required', arguments: { label } });
  test.each<[string, JsonObject, Readonly<Record<string, string>>, number, number]>([
    ['another version', {}, { 'mcp-protocol-version': '2025-11-25' }, 400, -32022],
    ['no _meta', { _meta: {} }, {}, 400, -32602],
    ['another method in its header', {}, { 'mcp-method': 'tools/list' }, 400, -32020],
    ['another name in its header', {}, { 'mcp-name': 'work' }, 400, -32020],
    ['no declared extension', { _meta: undeclared }, {}, 400, -32021],
  ])('%s', async (what, params, headers, status, code) => {
    const label = `modern refused ${what}`;
    const reply = await at().raw('tools/call', { ...args(label), ...params }, { headers });
    expect(reply.status).toBe(status);
    expect(messagesOf(reply)).toMatchObject([{ error: { code } }]);
    expect(server.executions(label)).toBe(0);
  });

  test('a task of a client that declares none', async () => {
    const taskId = await at().createTask({ label: 'modern undeclared', durationMs: LONG_MS });
    expect(await at().ask('tasks/get', { taskId, _meta: undeclared })).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    });
  });

  test('no list, no separate result, no session, no resumed stream', async () => {
    for (const method of ['tasks/list', 'tasks/result', 'ping']) {
      const reply = await at().raw(method, { taskId: 'x' }, { headers: { 'mcp-name': 'x' } });
      expect([reply.status, messagesOf(reply)[0]?.['error']]).toMatchObject([404, { code: -32601 }]);
    }
    for (const method of ['GET', 'DELETE'] as const) {
      const headers = { 'last-event-id': 's0-0' };
      expect((await exchange(at().url, { method, headers })).status).toBe(405);
    }
  });
});

test('a tool without tasks, and a client without the extension, are answered at once', async () => {
  const undeclared = { ...MODERN_META, 'io.modelcontextprotocol/clientCapabilities': {} };
  const plain = await at().ask('tools/call', { name: 'work-plain', arguments: { label: 'modern plain' } });
  const other = { name: 'work', arguments: { label: 'modern plain 2' }, _meta: undeclared };
  for (const result of [plain, await at().ask('tools/call', other)])
    expect(result).toMatchObject({ resultType: 'complete', content: [{ type: 'text' }] });
});

test('questions are listed by key in each status until they are answered, and longer where the plan says so', async () => {
  const label = 'modern asked';
  const plan = { questions: 2, questionReplays: 1, heldAnswerReads: 2 };
  const taskId = await at().createTask({ label, plan });
  const listed = async () => (await at().untilStatus(taskId, 'input_required'))['inputRequests'];
  expect(await listed()).toMatchObject({
    'question-1': { method: 'elicitation/create', params: { mode: 'form' } },
  });
  expect(Object.keys((await listed()) as JsonObject)).toEqual(['question-1']);
  const inputResponses = (key: string, choice: string) => ({
    [key]: { action: 'accept', content: { choice } },
  });
  const update = (key: string, choice: string) =>
    at().ask('tasks/update', { taskId, inputResponses: inputResponses(key, choice) });
  expect(await update('question-9', 'left')).toEqual({ resultType: 'complete' });
  expect(await update('question-1', 'left')).toEqual({ resultType: 'complete' });
  expect(await update('question-1', 'right')).toEqual({ resultType: 'complete' });
  expect(Object.keys((await listed()) as JsonObject)).toEqual(['question-1']);
  expect(await listed()).toEqual({});
  expect(Object.keys((await listed()) as JsonObject)).toEqual(['question-2']);
  await update('question-2', 'right');
  expect(JSON.stringify(await at().untilStatus(taskId, 'completed'))).toMatch(/left.*right/);
  expect(server.entries('questionHandedOut', label).map(({ inputKey }) => inputKey)).toEqual([
    'question-1',
    'question-2',
  ]);
  expect(server.entries('answerReceived', label).map(({ question }) => question)).toEqual([null, 1, 1, 2]);
});

test('what is asked before there is a task goes on with the state and the answers, and runs once all is said', async () => {
  const label = 'modern asked first';
  const args = { label, plan: { questionsBeforeTask: 2, create: ['ok', 'lose', 'ok', 'ok'] } };
  const ask = async (more: JsonObject) =>
    messagesOf(await at().call(args, more))[0]?.['result'] as JsonObject;
  const first = await ask({});
  expect(first).toMatchObject({ resultType: 'input_required', inputRequests: { 'before-1': {} } });
  const answer = (key: string) => ({ [key]: { action: 'accept', content: { choice: 'left' } } });
  const on = { requestState: first['requestState'] as string, inputResponses: answer('before-1') };
  expect((await at().call(args, on)).status).toBeNull();
  const second = await ask(on);
  expect(second).toMatchObject({ inputRequests: { 'before-2': {} } });
  // Without its answer it is asked again.
  expect(await ask({ requestState: second['requestState'] as string })).toEqual(second);
  expect(server.executions(label)).toBe(0);
  const stranger = await at().call(
    { ...args, label: 'another' },
    { requestState: second['requestState'] as string },
  );
  expect(messagesOf(stranger)).toMatchObject([{ error: { code: -32602 } }]);
  const made = await ask({
    requestState: second['requestState'] as string,
    inputResponses: answer('before-2'),
  });
  expect(made).toMatchObject({ resultType: 'task' });
  expect(JSON.stringify(await at().untilStatus(made['taskId'] as string, 'completed'))).toMatch(/left.*left/);
  expect(server.executions(label)).toBe(1);
});

test.each([
  ['honour', 'cancelled', 'aborted'],
  ['delay:150', 'cancelled', 'aborted'],
  ['complete-first', 'completed', 'completed'],
  ['complete-after', 'completed', 'completed'],
])('a cancel that meets %s is acknowledged, and the state decides', async (cancel, status, how) => {
  const label = `modern cancel ${cancel}`;
  const taskId = await at().createTask({ label, durationMs: LONG_MS, plan: { cancel } });
  expect(await at().ask('tasks/cancel', { taskId })).toEqual({ resultType: 'complete' });
  await at().untilStatus(taskId, status);
  // Of what is over: acknowledged just the same.
  expect(await at().ask('tasks/cancel', { taskId })).toEqual({ resultType: 'complete' });
  expect(server.entries('executionEnded', label)).toMatchObject([{ how }]);
});

test('a refused cancel, one that is not served, and one of nobody’s task', async () => {
  const taskId = await at().createTask({
    label: 'modern refuse',
    durationMs: LONG_MS,
    plan: { cancel: 'refuse' },
  });
  expect(await at().ask('tasks/cancel', { taskId })).toMatchObject({ code: -32602 });
  const none = await at('&cancel=no').raw('tasks/cancel', { taskId });
  expect([none.status, messagesOf(none)[0]?.['error']]).toMatchObject([404, { code: -32601 }]);
  expect(await at().ask('tasks/cancel', { taskId: 'nobody' })).toMatchObject({ code: -32602 });
});

test('lifetime and interval change as the plan says, and past the lifetime the task is unknown', async () => {
  const plan = { ttlMs: 60_000, ttlsMs: [50_000, 1], pollIntervals: [7, null] };
  const taskId = await at().createTask({ label: 'modern ttl', durationMs: LONG_MS, plan });
  expect(await at().status(taskId)).toMatchObject({ ttlMs: 50_000, pollIntervalMs: 7 });
  const second = await at().status(taskId);
  expect([second?.['ttlMs'], second && 'pollIntervalMs' in second]).toEqual([1, false]);
  expect(await at().status(taskId)).toMatchObject({ code: -32602 });
});

test.each([
  ['a session', { session: 'lose-after-create' }],
  ['a list', { lists: '503' }],
  ['a stream of questions', { foreignQuestion: true }],
])('a plan that needs %s is refused; a drawn one plays what there is', async (what, plan) => {
  const label = `modern plan ${what}`;
  expect(messagesOf(await at().call({ label, plan }))).toMatchObject([{ error: { code: -32602 } }]);
  expect(server.executions(label)).toBe(0);
});

test('one endpoint speaks both where it is asked to, and the tasks of the one are the other’s too', async () => {
  const url = `${server.url}?contract=both`;
  const label = 'modern both';
  const taskId = await new RawModern(url).createTask({ label, durationMs: LONG_MS });
  const session = await RawSession.open(url);
  expect(await session.status(taskId)).toBe('working');
  const reply = await RawSession.open(`${server.url}?contract=2026-07-28`);
  expect(messagesOf(await reply.raw('tools/list', {}))).toMatchObject([
    { error: { code: -32022, data: { supported: ['2026-07-28'] } } },
  ]);
});
