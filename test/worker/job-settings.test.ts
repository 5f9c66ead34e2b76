/** Owns: `job` under one tool in `tool-servers.json`: what it may say, how it is pinned, and the words for what it may not. */
import { describe, expect, it } from 'vitest';
import type { JobSettings } from '../../operation/job-settings.js';
import { ConfigurationError, parseToolServers, policyOf } from '../../worker/tool-servers.js';

const STATUS = { tool: 'look', argument: 'id', pointer: '/state', words: { done: 'completed' } };
const JOB = { id: '/id', status: STATUS };
const AT = 'mcpServers.s.durable.tools.start.job';

function config(job: unknown): unknown {
  return { mcpServers: { s: { url: 'https://tools.example/mcp', durable: { tools: { start: { job } } } } } };
}

function pinned(job: unknown): JobSettings | undefined {
  const { servers } = parseToolServers(config(job), {});
  return policyOf(servers.get('s'), 'start').job;
}

function mistakes(job: unknown): readonly string[] {
  try {
    parseToolServers(config(job), {});
  } catch (error) {
    if (!ConfigurationError.isInstance(error)) throw error;
    return error.mistakes.map(({ path, message }) => `${path} ${message}`);
  }
  throw new Error('accepted');
}

describe('a job declaration', () => {
  it('is pinned in the policy of each new operation, with what is left out said', () => {
    expect(pinned(JOB)).toEqual({
      idPointer: '/id',
      refusedByError: false,
      status: {
        tool: 'look',
        argument: 'id',
        pointer: '/state',
        words: { done: 'completed' },
        idPointer: null,
        messagePointer: null,
        interval: null,
      },
      result: null,
      cancel: null,
      input: null,
    });
  });

  it('is pinned in full', () => {
    const named = (tool: string) => ({ tool, argument: 'id' });
    const job = {
      id: '/structuredContent/id',
      refusedByError: true,
      status: {
        ...STATUS,
        words: { done: 'completed', asks: 'inputRequired', gone: 'notFound' },
        id: '/id',
        message: '/a~1b',
        interval: { pointer: '/wait', unit: 's' },
      },
      result: { ...named('get'), retryErrors: true },
      cancel: named('stop'),
      input: { ...named('say'), question: '/q', schema: '/schema', key: { pointer: '/k', argument: 'key' } },
    };
    expect(pinned(job)).toEqual({
      idPointer: '/structuredContent/id',
      refusedByError: true,
      status: {
        tool: 'look',
        argument: 'id',
        pointer: '/state',
        words: { done: 'completed', asks: 'inputRequired', gone: 'notFound' },
        idPointer: '/id',
        messagePointer: '/a~1b',
        interval: { kind: 'told', pointer: '/wait', unitMs: 1_000 },
      },
      result: { ...named('get'), retryErrors: true },
      cancel: named('stop'),
      input: {
        ...named('say'),
        questionPointer: '/q',
        schemaPointer: '/schema',
        key: { pointer: '/k', argument: 'key' },
      },
    });
  });

  it.each([
    ['a duration', '5s', { kind: 'fixed', intervalMs: 5_000 }],
    ['a pointer in ms', { pointer: '/w' }, { kind: 'told', pointer: '/w', unitMs: 1 }],
    ['a pointer in seconds', { pointer: '/w', unit: 's' }, { kind: 'told', pointer: '/w', unitMs: 1_000 }],
  ])('takes %s for its interval', (_, interval, expected) => {
    expect(pinned({ ...JOB, status: { ...STATUS, interval } })?.status.interval).toEqual(expected);
  });

  it('leaves the policy of other tools as it was', () => {
    const { servers } = parseToolServers(config(JOB), {});
    expect(policyOf(servers.get('s'), 'other')).not.toHaveProperty('job');
  });

  const status = (more: object) => ({ ...JOB, status: { ...STATUS, ...more } });
  const input = (more: object) => ({
    ...status({ words: { done: 'completed', asks: 'inputRequired' } }),
    input: { tool: 'say', argument: 'id', question: '/q', ...more },
  });
  const POINTER =
    'must be a JSON pointer into the tool\'s answer, e.g. "/structuredContent/state", or "/state" in the JSON of its first text';
  const WORDS = 'must name 1 to 64 words of 1 to 80 characters, each with its meaning';
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`w${n}`, 'completed']));

  it.each<[string, unknown, string]>([
    ['no object', 'status', ' must be an object with the keys "id", "refusedByError", "status", '],
    ['a stranger', { ...JOB, results: 1 }, ' unknown key "results" (nearest: "result"); allowed: "id", '],
    ['no id', { status: STATUS }, `.id ${POINTER}`],
    ['a name for a pointer', { ...JOB, id: 'jobId' }, `.id ${POINTER}`],
    ['no status', { id: '/id' }, '.status must be an object with the keys "tool", '],
    [
      'no status tool',
      status({ tool: '' }),
      '.status.tool must be the name of the tool that tells how the job is',
    ],
    ['a status argument', status({ argument: 7 }), '.status.argument must be the name of the argument'],
    ['words of another kind', status({ words: ['done'] }), `.status.words ${WORDS}`],
    ['no words', status({ words: {} }), `.status.words ${WORDS}`],
    ['too many words', status({ words: many }), `.status.words ${WORDS}`],
    [
      'an unknown meaning',
      status({ words: { done: 'finished' } }),
      '.status.words.done must be "working", "inputRequired", "completed", "failed", "cancelled" or "notFound"',
    ],
    [
      'no word for the end',
      status({ words: { error: 'failed' } }),
      '.status.words must have a word for "completed", or no job would ever be seen to end',
    ],
    [
      'an interval without a form',
      status({ interval: 'soon' }),
      '.status.interval must be a duration such as',
    ],
    [
      'an interval in hours',
      status({ interval: { pointer: '/w', unit: 'h' } }),
      '.status.interval.unit must be "ms" or "s"',
    ],
    [
      'questions without "input"',
      { ...input({}), input: undefined },
      ' must have "input" where a word means',
    ],
    [
      '"input" without questions',
      { ...input({}), status: STATUS },
      ' has "input", but no word of "status" means',
    ],
    ['a question without a place', input({ question: 'q' }), `.input.question ${POINTER}`],
    ['a key without a place', input({ key: { argument: 'k' } }), `.input.key.pointer ${POINTER}`],
    [
      'a flag that is none',
      { ...JOB, result: { tool: 'g', argument: 'i', retryErrors: 1 } },
      '.result.retryErrors',
    ],
  ])('is refused with %s', (_, job, words) => {
    const said = mistakes(job);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(`${AT}${words}`);
  });
});
