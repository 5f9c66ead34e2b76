// Owns the proof of the structured log: one line, one JSON object, nothing lost and nothing that a terminal obeys.

import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventLine, logFileSink, noteLine, sdkLine } from '../../cli/worker-log.js';

const parsed = (line: string): Record<string, unknown> => {
  expect(line.endsWith('\n')).toBe(true);
  expect(line.trimEnd()).not.toContain('\n');
  return JSON.parse(line) as Record<string, unknown>;
};

test('an event is its own fields, with time and level', () => {
  const of = { callNodeId: 'n\n1', step: 'observe', attempt: 3 };
  const line = eventLine({ ...of, kind: 'stepFault', message: 'two\nlines' });
  expect(parsed(line)).toEqual({
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    level: 'warn',
    kind: 'stepFault',
    ...of,
    message: 'two\nlines',
  });
});

test.each([
  ['an ordinary poll', { kind: 'stepRetried', code: 'NotReady', delayMs: 1 }, 'debug'],
  ['another retry', { kind: 'stepRetried', code: 'NotSent', delayMs: 1 }, 'info'],
  [
    'an end',
    { kind: 'accepted', server: 's', tool: 't', outcome: 'completed', cancelLatencyMs: null },
    'info',
  ],
  ['a remark', { kind: 'remarked', server: 's', tool: 't', what: 'no-cancel', detail: 'd' }, 'warn'],
  ['a refusal', { kind: 'refused', server: 's', what: 'reply', reason: 'schema' }, 'warn'],
] as const)('%s has its level', (_what, event, level) => {
  const of = { callNodeId: 'n', step: 'observe', attempt: 1 };
  expect(parsed(eventLine({ ...of, ...event }))).toMatchObject({ level });
});

test('an exchange that went well is for debugging, a fault is not', () => {
  const exchange = {
    kind: 'wireCall',
    callNodeId: 'n',
    server: 's',
    call: 'observe',
    durationMs: 1,
  } as const;
  expect(parsed(eventLine({ ...exchange, result: 'ok' }))).toMatchObject({ level: 'debug' });
  expect(parsed(eventLine({ ...exchange, result: 'Transient' }))).toMatchObject({ level: 'info' });
});

test('a line of the SDK names the operation, and its error by the message alone', () => {
  const error = Object.assign(new Error('the store is busy'), { details: ['private'] });
  const meta = { workflowId: 'tool-operation/a/b', taskToken: 'opaque', attempt: 2n, error };
  const timestampNanos = 1_796_065_337_002_000_000n;
  expect(parsed(sdkLine({ level: 'WARN', message: 'Activity failed', timestampNanos, meta }))).toEqual({
    at: new Date(1_796_065_337_002).toISOString(),
    level: 'warn',
    kind: 'sdk',
    message: 'Activity failed',
    callNodeId: 'a/b',
    workflowId: 'tool-operation/a/b',
    attempt: '2',
    error: 'the store is busy',
  });
  const bare = sdkLine({ level: 'INFO', message: 'Worker state changed', timestampNanos });
  expect(parsed(bare)).not.toHaveProperty('callNodeId');
});

test('no field is longer than a thousand characters', () => {
  const { message } = parsed(noteLine('x'.repeat(5_000)));
  expect(message).toBe('x'.repeat(1_000));
});

test('what a terminal would obey is escaped, and comes back whole', () => {
  const message = '\u001b[31m \u009b2J \u202e\u2028 \u007f ü 🙂';
  const line = noteLine(message);
  // oxlint-disable-next-line no-control-regex -- control characters are what must not be there
  expect(line.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u202e]/);
  expect(parsed(line)).toMatchObject({ kind: 'note', level: 'info', message });
});

test('the file is bounded: the older half is kept beside it, and only its owner reads it', () => {
  const dir = mkdtempSync(join(tmpdir(), 'dtc-log-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'worker.log');
  const write = (line: string): void => logFileSink(file, 20)(line);
  // Each by a new sink, as after a restart.
  for (const line of ['first line of ten\n', 'second\n', 'third\n', 'fourth line of ten\n', 'fifth\n'])
    write(line);
  expect(readFileSync(`${file}.1`, 'utf8')).toBe('third\nfourth line of ten\n');
  expect(readFileSync(file, 'utf8')).toBe('fifth\n');
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('a place that cannot be written costs no error', () => {
  expect(() => logFileSink('/dev/null/worker.log')('a line\n')).not.toThrow();
});
