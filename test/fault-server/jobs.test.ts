// Jobs on a bare socket: what a plain start tool gives out, and what the tools that look after it say and do, as planned.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from './json.js';
import { RawSession } from './raw-client.js';
import { type FaultServer, startFaultServer } from './start-fault-server.js';
import { KEY_ARGUMENT } from './tools.js';

let server: FaultServer;
let session: RawSession;
beforeAll(async () => {
  server = await startFaultServer();
  session = await RawSession.open(server.url);
});
afterAll(async () => {
  await server?.stop();
});

async function call(name: string, args: JsonObject): Promise<JsonObject> {
  return (await session.ask('tools/call', { name, arguments: args })) as JsonObject;
}

const saidBy = (answer: JsonObject): JsonObject => answer['structuredContent'] as JsonObject;
const failure = (text: string) => ({ content: [{ type: 'text', text }], isError: true });

async function start(label: string, plan: JsonObject = {}, durationMs = 0): Promise<JsonValue | undefined> {
  return saidBy(await call('start_job', { label, durationMs, plan }))['jobId'];
}

async function untilState(jobId: JsonValue | undefined, state: string): Promise<JsonObject> {
  for (;;) {
    const told = saidBy(await call('job_status', { jobId }));
    if (told['state'] === state) return told;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('a job is started, told of, and its result is the work of one execution', async () => {
  const jobId = await start('whole', { pollIntervals: [7] });
  expect(await untilState(jobId, 'done')).toEqual({
    jobId,
    state: 'done',
    note: 'whole: done',
    pollAfterMs: 7,
  });
  expect(await call('job_result', { jobId })).toMatchObject({
    content: [{ text: 'execution 1 of whole is done' }],
  });
  expect(server.executions('whole')).toBe(1);
  expect(server.entries('resultAsked', 'whole')).toHaveLength(1);
});

test('a text job has a number for its id, says all in text, and is found by that number alone', async () => {
  const answer = await call('start_text_job', { label: 'text' });
  expect(answer).toEqual({
    content: [{ type: 'text', text: expect.stringContaining('"jobId":1') as string }],
  });
  expect(await call('job_status', { jobId: 1 })).not.toHaveProperty('structuredContent');
  expect(await call('job_status', { jobId: '1' })).toEqual(failure('no such job'));
});

test('a question moves on by its answer alone, once', async () => {
  const jobId = await start('asks', { questions: 1 });
  expect(await untilState(jobId, 'needs_input')).toMatchObject({
    questionId: 1,
    question: 'Question 1 of asks',
  });
  const reply = { jobId, questionId: 1, choice: 'left' };
  expect(await call('answer_job', { ...reply, choice: 'up' })).toMatchObject({ isError: true });
  expect(await call('answer_job', { ...reply, questionId: 2 })).toEqual(failure('that question is not open'));
  expect(await call('answer_job', reply)).toMatchObject({ structuredContent: { taken: true } });
  expect(await call('answer_job', reply)).toEqual(failure('that question is not open'));
  await untilState(jobId, 'done');
  expect(JSON.stringify(await call('job_result', { jobId }))).toContain(String.raw`answers [\"left\"]`);
});

test('an answer that is held moves nothing for so many reads', async () => {
  const jobId = await start('held', { questions: 1, heldAnswerReads: 2 });
  await untilState(jobId, 'needs_input');
  await call('answer_job', { jobId, questionId: 1, choice: 'right' });
  const states = [];
  for (let n = 0; n < 2; n += 1) states.push(saidBy(await call('job_status', { jobId }))['state']);
  expect(states).toEqual(['needs_input', 'needs_input']);
  await untilState(jobId, 'done');
});

test.each([
  ['honour', 'cancelled', false],
  ['refuse', 'running', true],
  ['ignore', 'running', false],
  ['complete-first', 'done', true],
  ['complete-after', 'done', false],
])('a cancel under "%s" leads to "%s"', async (cancel, state, isRefused) => {
  const jobId = await start(`cancel ${cancel}`, { cancel }, 60_000);
  const answer = await call('cancel_job', { jobId });
  expect('isError' in answer).toBe(isRefused);
  await untilState(jobId, state);
});

test.each([
  ['isError', 'done'],
  ['protocolError', 'error'],
])('the outcome %s is told as "%s", and its result says isError', async (outcome, state) => {
  const jobId = await start(`ends ${outcome}`, { outcome });
  await untilState(jobId, state);
  expect(await call('job_result', { jobId })).toMatchObject({ isError: true });
});

test('the same key starts one job, from any session; its words are played in turn', async () => {
  const plan = { deduplicate: true, create: ['lose'], polls: ['tool-error', 'foreign-task'] };
  const args = { label: 'keyed', [KEY_ARGUMENT]: 'job-key', plan };
  expect(await call('start_job', args)).toBeUndefined();
  session = await RawSession.open(server.url);
  const { jobId } = saidBy(await call('start_job', args));
  expect(server.executions('keyed')).toBe(1);
  expect(await call('job_status', { jobId })).toEqual(failure('the tool failed, as planned'));
  expect(saidBy(await call('job_status', { jobId }))['jobId']).not.toBe(jobId);
  expect(saidBy(await call('job_status', { jobId }))['jobId']).toBe(jobId);
});

test('what is not known yet, is past its time or went with its session is no job', async () => {
  const lagging = await start('lags', { lagReads: 1 });
  expect(await call('job_status', { jobId: lagging })).toEqual(failure('no such job'));
  await untilState(lagging, 'done');
  expect(await call('job_status', { jobId: await start('expired', { ttlMs: 0 }) })).toEqual(
    failure('no such job'),
  );
  const lost = await start('lost', { session: 'lose-after-create', taskAfterSession: 'not-found' });
  session = await RawSession.open(server.url);
  expect(await call('job_status', { jobId: lost })).toEqual(failure('no such job'));
});
