// Questions on the stream of `tasks/result`, on bare sockets: handed out once, replayed by event id, answered once.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { isObject, type JsonObject } from './json.js';
import { eventIdsOf, messagesOf, type RawReply, RawSession } from './raw-client.js';
import { type FaultServer, startFaultServer } from './start-fault-server.js';

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(async () => {
  await server?.stop();
});

const isAsking = (text: string): boolean => text.includes('elicitation/create');
const accept = (id: unknown, choice: string): JsonObject => ({
  jsonrpc: '2.0',
  id: id as number,
  result: { action: 'accept', content: { choice } },
});

function questionIn(reply: RawReply): JsonObject {
  const question = messagesOf(reply).find((message) => message['method'] === 'elicitation/create');
  if (!question) throw new Error(`no question in ${reply.text}`);
  return question;
}

test.each(['sse', 'json'])(
  'as %s nobody is asked until somebody opens tasks/result, then once',
  async (replies) => {
    const label = `asked as ${replies}`;
    const session = await RawSession.open(`${server.url}?replies=${replies}`);
    const taskId = await session.createTask({ label, plan: { questions: 1 } });
    await session.untilStatus(taskId, 'input_required');
    expect(server.entries('questionHandedOut', label)).toEqual([]);
    const read = await session.raw('tasks/result', { taskId }, { hangUpWhen: isAsking });
    const question = questionIn(read);
    expect(question).toMatchObject({
      id: 0,
      params: { mode: 'form', _meta: { 'io.modelcontextprotocol/related-task': { taskId } } },
    });
    expect((await session.send(accept(question['id'], 'left'))).status).toBe(202);
    await session.untilStatus(taskId, 'completed');
    expect(JSON.stringify(await session.ask('tasks/result', { taskId }))).toContain('left');
    expect(server.entries('questionHandedOut', label)).toHaveLength(1);
    expect(server.entries('answerReceived', label)).toMatchObject([
      { question: 1, answer: { action: 'accept', content: { choice: 'left' } } },
    ]);
  },
);

test('two questions are asked one after the other, with ids of their own', async () => {
  const label = 'asked twice';
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label, plan: { questions: 2 } });
  const read = await session.raw('tasks/result', { taskId }, { hangUpWhen: isAsking });
  await session.send(accept(questionIn(read)['id'], 'left'));
  // The dropped stream is still the oldest reader: the second question goes to it, and is had by resuming it.
  const resumed = await session.resume(eventIdsOf(read)[0] ?? '', {
    hangUpWhen: (text) => text.split('elicitation/create').length > 2,
  });
  const asked = messagesOf(resumed).filter((message) => message['method'] === 'elicitation/create');
  expect(asked.map((message) => message['id'])).toEqual([0, 1]);
  await session.send(accept(1, 'right'));
  await session.untilStatus(taskId, 'completed');
  const result = await session.ask('tasks/result', { taskId });
  expect(JSON.stringify(result)).toMatch(/left.*right/);
  expect(server.entries('answerReceived', label).map(({ question }) => question)).toEqual([1, 2]);
});

test('a question that went to a dropped stream is replayed by Last-Event-ID as often as wanted', async () => {
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label: 'replayed', durationMs: 400, plan: { questions: 1 } });
  const anchor = await session.raw(
    'tasks/result',
    { taskId },
    { hangUpWhen: (text) => text.includes('id: ') },
  );
  await session.untilStatus(taskId, 'input_required');
  const [eventId = ''] = eventIdsOf(anchor);
  for (let n = 0; n < 2; n += 1) {
    const replay = await session.resume(eventId, { hangUpWhen: isAsking });
    expect(questionIn(replay)['id']).toBe(0);
  }
  expect(server.entries('questionHandedOut', 'replayed')).toHaveLength(1);
});

test('without event ids a question comes on the open stream, and so does the result', async () => {
  const session = await RawSession.open(`${server.url}?eventIds=no`);
  const args = { label: 'not replayed', durationMs: 300, plan: { questions: 1 } };
  const taskId = await session.createTask(args);
  const early = session.raw('tasks/result', { taskId });
  await session.untilStatus(taskId, 'input_required');
  const question = server.until(
    (entry) => entry.kind === 'questionHandedOut' && entry.label === 'not replayed',
  );
  expect(await question).toMatchObject({ jsonRpcId: 0, session: session.sessionId });
  await session.send(accept(0, 'right'));
  const messages = messagesOf(await early);
  expect(messages).toHaveLength(2);
  expect(JSON.stringify(messages[1])).toContain('right');
});

test('an answer that nobody waits for is accepted, and the journal says so', async () => {
  const session = await RawSession.open(server.url);
  expect((await session.send(accept(77, 'left'))).status).toBe(202);
  const stray = server
    .journal()
    .find((entry) => entry.kind === 'answerReceived' && entry.session === session.sessionId);
  expect(stray).toMatchObject({ label: null, question: null });
});

test('a cancel ends a task that waits for an answer', async () => {
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label: 'cancelled question', plan: { questions: 1 } });
  await session.untilStatus(taskId, 'input_required');
  const answer = await session.ask('tasks/cancel', { taskId });
  expect(isObject(answer) && answer['status']).toBe('cancelled');
  expect(await session.status(taskId)).toBe('cancelled');
});
