// Owns what an answer of a job's tools means by its declaration: tables of answers, byte for byte as a server sends them.
// Must never let a word count that is not declared, nor an error for an end.

import { describe, expect, it } from 'vitest';
import type { JobMeaning, JobSettings } from '../../operation/job-settings.js';
import type { JsonObject } from '../../operation/json.js';
import { startOf, statusOf } from '../../protocols/mcp-job-tools/decode.js';
import {
  idArgument,
  type IdKind,
  type JobSession,
  locatorOf,
} from '../../protocols/mcp-job-tools/job-session.js';

const WORDS: Readonly<Record<string, JobMeaning>> = {
  queued: 'working',
  asks: 'inputRequired',
  done: 'completed',
  error: 'failed',
  stopped: 'cancelled',
  gone: 'notFound',
  'no such job': 'notFound',
  true: 'completed',
  '3': 'failed',
};
const JOB: JobSettings = {
  idPointer: '/id',
  refusedByError: false,
  status: {
    tool: 'look',
    argument: 'id',
    pointer: '/state',
    words: WORDS,
    idPointer: null,
    messagePointer: '/note',
    interval: { kind: 'told', pointer: '/wait', unitMs: 1_000 },
  },
  result: null,
  cancel: null,
  input: null,
};
const REPLY_SCHEMA = { type: 'object', properties: { choice: { type: 'string' } } };

const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const textOf = (said: unknown, more: object = {}): Buffer =>
  bytesOf({
    content: [{ type: 'text', text: typeof said === 'string' ? said : JSON.stringify(said) }],
    ...more,
  });
const redact = (text: string): string => text.replaceAll('s3cret', '[redacted]');

const start = (bytes: Uint8Array, job: Partial<JobSettings> = {}) =>
  startOf(bytes, { ...JOB, ...job }, redact);
function status(bytes: Uint8Array, job: Partial<JobSettings> = {}, remoteId = 'job-7') {
  const session: JobSession = { job: { ...JOB, ...job }, idKind: 'asGiven', replySchema: REPLY_SCHEMA };
  return statusOf(bytes, remoteId, session, redact);
}

describe('a start answer', () => {
  it.each<[string, Buffer, string, string, boolean]>([
    ['in the JSON of its text', textOf({ id: 'job-7' }), '/id', 'job-7', false],
    ['that is a number', textOf({ id: 7 }), '/id', '7', true],
    [
      'in its structured content',
      bytesOf({ content: [], structuredContent: { a: { id: 'x' } } }),
      '/structuredContent/a/id',
      'x',
      false,
    ],
    ['that is its whole text', textOf('job 7'), '/content/0/text', 'job 7', false],
    ['in "_meta"', bytesOf({ content: [], _meta: { job: 'm' } }), '/_meta/job', 'm', false],
    ['beside resultType complete', textOf({ id: 'n' }, { resultType: 'complete' }), '/id', 'n', false],
  ])('names the job by an id %s', (_, bytes, idPointer, remoteId, isNumber) => {
    expect(start(bytes, { idPointer })).toMatchObject({
      kind: 'started',
      remoteId,
      isNumber,
      observation: { remoteStatus: 'started', meaning: 'working', statusMessage: null, intervalMs: null },
    });
  });

  it('already says how the job is, for people and for the first look, and never that it ended', () => {
    const bytes = textOf({ id: 'j', state: 'done', note: 'with s3cret', wait: 4 });
    expect(start(bytes)).toMatchObject({
      observation: {
        remoteStatus: 'done',
        meaning: 'working',
        statusMessage: 'with [redacted]',
        intervalMs: 4_000,
      },
    });
  });

  it.each<[string, Buffer, string]>([
    ['no id', textOf({ job: 'job-7' }), 'no id stands at /id'],
    ['a null for an id', textOf({ id: null }), 'no id stands at /id'],
    ['an empty id', textOf({ id: '' }), 'no id stands at /id'],
    ['an object for an id', textOf({ id: {} }), 'no id stands at /id'],
    ['a number that lost digits', textOf('{"id":9007199254740993}'), 'no id stands at /id'],
    ['half a character', textOf(String.raw`{"id":"a\ud800"}`), 'no id stands at /id'],
    ['a text that is no JSON', textOf('started job 7'), 'its first text is not JSON'],
    ['no content', bytesOf({ structuredContent: { id: 'job-7' } }), 'the reply is not a tool result'],
    ['a task', textOf({ id: 'job-7' }, { resultType: 'task' }), 'the reply is not a tool result'],
    [
      'a question',
      textOf({ id: 'job-7' }, { resultType: 'input_required' }),
      'the reply is not a tool result',
    ],
    ['a list', bytesOf([]), 'the reply is not a tool result'],
  ])('with %s says nothing', (_, bytes, why) => {
    expect(start(bytes)).toEqual({ kind: 'unreadable', why });
  });

  it('with isError names no job, whatever id it holds', () => {
    const bytes = bytesOf({
      content: [{ type: 'text', text: 'already running, s3cret' }],
      structuredContent: { id: 'other' },
      isError: true,
    });
    expect(start(bytes, { idPointer: '/structuredContent/id' })).toEqual({
      kind: 'error',
      said: 'already running, [redacted]',
    });
  });
});

describe('a status answer', () => {
  it.each<[unknown, string, string]>([
    ['queued', 'queued', 'working'],
    ['asks', 'asks', 'inputRequired'],
    ['done', 'done', 'completed'],
    ['error', 'error', 'failed'],
    ['stopped', 'stopped', 'cancelled'],
    [true, 'true', 'completed'],
    [3, '3', 'failed'],
    ['DONE', 'DONE', 'other'],
    [' done', ' done', 'other'],
    [false, 'false', 'other'],
    ['constructor', 'constructor', 'other'],
    ['__proto__', '__proto__', 'other'],
    ['s3cret', '[redacted]', 'other'],
    ['x'.repeat(90), `${'x'.repeat(79)}…`, 'other'],
  ])('with the word %j means what is declared', (state, remoteStatus, meaning) => {
    expect(status(textOf({ state }))).toMatchObject({ kind: 'seen', observation: { remoteStatus, meaning } });
  });

  it.each<[string, Buffer]>([
    ['no word', textOf({})],
    ['a null', textOf({ state: null })],
    ['an object for a word', textOf({ state: {} })],
    ['a fraction', textOf({ state: 0.5 })],
    ['a text that is no JSON', textOf('done')],
    ['no content', bytesOf({})],
    ['a task', textOf({ state: 'done' }, { resultType: 'task' })],
  ])('with %s breaks the contract', (_, bytes) => {
    expect(status(bytes)).toMatchObject({ kind: 'unreadable' });
  });

  it.each<[string, Buffer, string]>([
    ['the word in its place', textOf({ state: 'gone' }), 'gone'],
    ['the word, and isError', textOf({ state: 'gone' }, { isError: true }), '{"state":"gone"}'],
    ['the word as its whole text, and isError', textOf('no such job', { isError: true }), 'no such job'],
  ])('does not know the job by %s', (_, bytes, said) => {
    expect(status(bytes)).toEqual({ kind: 'notFound', said });
  });

  it.each<[string, Buffer]>([
    ['a word for the end', textOf({ state: 'done' }, { isError: true })],
    ['a word for the end as its text', textOf('error', { isError: true })],
    ['a sentence that holds the word', textOf('there is no such job', { isError: true })],
    ['nothing', bytesOf({ content: [], isError: true })],
  ])('with isError and %s says nothing of the job', (_, bytes) => {
    expect(status(bytes)).toMatchObject({ kind: 'error' });
  });

  it.each<[string, unknown, number | null]>([
    ['seconds', 2, 2_000],
    ['a fraction of them', 0.5, 500],
    ['zero, which the poll clamps', 0, 0],
    ['a number beyond a double', 1e308, null],
    ['a text', '2', null],
    ['nothing', undefined, null],
  ])('hints at an interval of %s', (_, wait, intervalMs) => {
    expect(status(textOf({ state: 'queued', wait }))).toMatchObject({ observation: { intervalMs } });
  });

  it('has the configured interval where that is fixed, whatever it says', () => {
    const fixed = { ...JOB.status, interval: { kind: 'fixed', intervalMs: 7_000 } } as const;
    expect(status(textOf({ state: 'queued', wait: 1 }), { status: fixed })).toMatchObject({
      observation: { intervalMs: 7_000 },
    });
  });

  const naming = { status: { ...JOB.status, idPointer: '/id' } };
  it.each<[string, unknown, string]>([
    ['another job', 'job-8', 'the reply is about another job'],
    ['no job', null, 'no id stands at /id'],
    ['a thing that is no id', [], 'no id stands at /id'],
  ])('that names %s is not taken for this one', (_, id, why) => {
    expect(status(textOf({ state: 'done', id }), naming)).toEqual({ kind: 'unreadable', why });
  });

  it('names this job as a number too', () => {
    expect(status(textOf({ state: 'done', id: 7 }), naming, '7')).toMatchObject({ kind: 'seen' });
  });

  it.each(['done', 'error'])(
    'that says the end (%s) is the result where no tool gives one: its very bytes',
    (state) => {
      const bytes = textOf({ state, big: 1 });
      const seen = status(bytes);
      if (seen.kind !== 'seen' || seen.observation.inline?.kind !== 'result') throw new Error('no result');
      expect(Buffer.from(seen.observation.inline.result.bytes).equals(bytes)).toBe(true);
      const { result } = { result: { tool: 'get', argument: 'id', retryErrors: false } };
      expect(status(bytes, { result })).not.toMatchObject({
        observation: { inline: expect.anything() as unknown },
      });
    },
  );

  it.each(['queued', 'stopped', 'asks', 'odd'])('that says %s carries no result', (state) => {
    expect(status(textOf({ state }))).not.toMatchObject({
      observation: { inline: expect.anything() as unknown },
    });
  });
});

describe('a question in a status', () => {
  const input = { tool: 'say', argument: 'id', questionPointer: '/q', schemaPointer: '/schema', key: null };
  const keyed = { ...input, key: { pointer: '/key', argument: 'key' } };
  const asked = (said: JsonObject, declared: JobSettings['input'] = input) => {
    const seen = status(textOf({ state: 'asks', ...said }), { input: declared });
    if (seen.kind !== 'seen') throw new Error(seen.kind);
    return seen.observation.questions ?? [];
  };

  it('is its text, with the schema of the reply, else that of the answer tool', () => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } } };
    expect(asked({ q: 'How many?', schema })[0]?.question).toEqual({
      mode: 'form',
      message: 'How many?',
      schema,
      url: null,
    });
    expect(asked({ q: 'Which?' })[0]?.question.schema).toEqual(REPLY_SCHEMA);
  });

  it('without a key is known by what it asks: the same text is the same question', () => {
    const [first] = asked({ q: 'Which?' });
    expect(asked({ q: 'Which?' })[0]?.wireKey).toBe(first?.wireKey);
    expect(asked({ q: 'Which one?' })[0]?.wireKey).not.toBe(first?.wireKey);
  });

  it('with a key is known by that, a number apart from its text', () => {
    expect(asked({ q: 'a', key: 1 }, keyed)[0]).toMatchObject({ wireKey: '1', wire: { key: 1 } });
    expect(asked({ q: 'b', key: '1' }, keyed)[0]).toMatchObject({ wireKey: '"1"', wire: { key: '1' } });
  });

  it.each<[string, JsonObject, JobSettings['input']]>([
    ['no text', {}, input],
    ['a text that is none', { q: 7 }, input],
    ['no key where one is declared', { q: 'Which?' }, keyed],
    ['a text larger than a question', { q: 'x'.repeat(40_000) }, input],
  ])('that nobody could be asked is left out: %s', (_, said, declared) => {
    expect(asked(said, declared)).toEqual([]);
  });

  it('carries no credential of ours', () => {
    expect(asked({ q: 'Use s3cret?' })[0]?.question.message).toBe('Use [redacted]?');
  });
});

describe('an id as an argument', () => {
  const session = (idKind: IdKind): JsonObject => ({ job: JOB as unknown as JsonObject, idKind });
  const back = (idKind: IdKind, remoteId: string, isNumber: boolean) => {
    const locator = locatorOf(session(idKind), isNumber);
    return idArgument(remoteId, { job: JOB, idKind: locator['idKind'] as IdKind, replySchema: null });
  };

  it.each<[IdKind, string, boolean, string | number]>([
    ['asGiven', '7', true, 7],
    ['asGiven', '7', false, '7'],
    ['asGiven', '007', false, '007'],
    ['string', '7', true, '7'],
    ['number', '7', false, 7],
    // An operator's word, or a server that contradicts its schema: never another id than the one that was said.
    ['number', '007', false, '007'],
    ['number', 'job-7', false, 'job-7'],
    ['number', '9007199254740993', false, '9007199254740993'],
  ])('under "%s" goes back: %s (a number: %s) as %j', (idKind, remoteId, isNumber, argument) => {
    expect(back(idKind, remoteId, isNumber)).toBe(argument);
  });
});
