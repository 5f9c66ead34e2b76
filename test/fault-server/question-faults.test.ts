// What goes wrong around a question: answers that move nothing, questions sent again, questions of nobody, acks lost.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonObject } from './json.js';
import { messagesOf, type RawReply, RawSession } from './raw-client.js';
import { type FaultServer, startFaultServer } from './start-fault-server.js';

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(async () => {
  await server?.stop();
});

interface Asked {
  readonly session: RawSession;
  readonly taskId: string;
  readonly reply: RawReply;
  readonly answer: JsonObject;
}

/** A task that waits for the answer to its question, which was read from a stream that was then dropped. */
async function asked(label: string, plan: JsonObject, times = 1): Promise<Asked> {
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label, plan: { questions: 1, ...plan } });
  const hangUpWhen = (text: string): boolean => text.split('elicitation/create').length > times;
  const reply = await session.raw('tasks/result', { taskId }, { hangUpWhen });
  const id = questionsIn(reply).at(-1)?.['id'] ?? null;
  const result = { action: 'accept', content: { choice: 'left' } };
  return { session, taskId, reply, answer: { jsonrpc: '2.0', id, result } };
}

function questionsIn(reply: RawReply): readonly JsonObject[] {
  return messagesOf(reply).filter((message) => message['method'] === 'elicitation/create');
}

test('heldAnswerReads: the answer is taken, and so many status reads still say input_required', async () => {
  const { session, taskId, answer } = await asked('held', { heldAnswerReads: 2 });
  expect((await session.send(answer)).status).toBe(202);
  expect([await session.status(taskId), await session.status(taskId)]).toEqual([
    'input_required',
    'input_required',
  ]);
  await session.untilStatus(taskId, 'completed');
  expect(server.entries('answerReceived', 'held')).toHaveLength(1);
});

test('heldAnswerReads -1: stuck for ever, until a cancel', async () => {
  const { session, taskId, answer } = await asked('stuck', { heldAnswerReads: -1 });
  await session.send(answer);
  for (let n = 0; n < 20; n += 1) expect(await session.status(taskId)).toBe('input_required');
  expect(await session.ask('tasks/cancel', { taskId })).toMatchObject({ status: 'cancelled' });
});

test('questionReplays: after its answer the question is sent again under its own id, and a second answer moves nothing', async () => {
  const { session, taskId, answer } = await asked('replayed', { questionReplays: 2, heldAnswerReads: -1 });
  await session.send(answer);
  const again = await session.raw('tasks/result', { taskId }, { hangUpWhen: () => true });
  expect(questionsIn(again)).toEqual([]);
  const [first] = [...(again.text.matchAll(/^id: (s\d+)-\d+$/gm) ?? [])];
  expect(first).toBeDefined();
  // The dropped stream still carries: there the replays are.
  const resumed = await session.resume('s2-0', {
    hangUpWhen: (text) => text.split('elicitation/create').length > 3,
  });
  expect(questionsIn(resumed).map(({ id }) => id)).toEqual([0, 0, 0]);
  await session.send(answer);
  expect(await session.status(taskId)).toBe('input_required');
  expect(server.entries('answerReceived', 'replayed')).toHaveLength(2);
  expect(server.entries('questionHandedOut', 'replayed')).toHaveLength(1);
});

test('foreignQuestion: a question of a task that is not this one comes first, under an id of its own', async () => {
  const { session, taskId, reply, answer } = await asked('foreign', { foreignQuestion: true }, 2);
  const [foreign, ours] = questionsIn(reply);
  const related = (message: JsonObject | undefined): unknown => JSON.stringify(message?.['params']);
  expect([foreign?.['id'], ours?.['id']]).toEqual([0, 1]);
  expect(related(foreign)).not.toContain(taskId);
  expect(related(ours)).toContain(taskId);
  await session.send({ ...answer, id: 0 });
  expect(await session.status(taskId)).toBe('input_required');
  await session.send(answer);
  await session.untilStatus(taskId, 'completed');
});

test.each([
  ['lose', null, 'completed'],
  ['reset', null, 'input_required'],
  ['503:3', 503, 'input_required'],
  ['error:-32602', 400, 'input_required'],
])('answers %s: HTTP %s, and the task is then %s', async (word, status, then) => {
  const label = `answers ${word}`;
  const { session, taskId, answer } = await asked(label, { answers: word });
  expect((await session.send(answer)).status).toBe(status);
  await session.untilStatus(taskId, then);
  expect(server.entries('faultPlayed', label)).toMatchObject([{ phase: 'answers', word }]);
  await session.send(answer);
  await session.untilStatus(taskId, 'completed');
});
