// Owns the proof that replies reach the questions they were meant for, each at most once.
// Must never wait by sleeping: each step is awaited by what it brings about.

import { expect, test } from 'vitest';
import type { HumanReply, LeftOpen } from '../../cli/ask-human.js';
import type { Progress } from '../../cli/progress.js';
import { createQuestionDesk, type QuestionDeskOptions } from '../../cli/question-desk.js';
import { type AnswerOptions, ToolOperationError } from '../../client/index.js';
import { emptyView, type OperationView } from '../../client/view.js';
import type { ReplyVerdict } from '../../operation/facts.js';

function viewWith(...roundIds: string[]): OperationView {
  const question = { mode: 'form' as const, message: 'Which?', schema: null, url: null };
  const run = { callNodeId: 'n', workflowId: 'w', runId: 'r' };
  const pendingInput = roundIds.map((roundId) => ({ roundId, question, deadlineAt: 0 }));
  return { ...emptyView(run, 'INPUT_REQUIRED'), pendingInput };
}

function createWorld(options: Partial<QuestionDeskOptions> & { verdicts?: (ReplyVerdict | Error)[] } = {}) {
  const given: AnswerOptions[] = [];
  const notes: string[] = [];
  const waiting: { text: string; seen: () => void }[] = [];
  const counting: { count: number; seen: () => void }[] = [];
  const progress: Progress = {
    show: () => {},
    note: (line) => {
      notes.push(line);
      for (const waiter of waiting) if (line.includes(waiter.text)) waiter.seen();
    },
    pause: () => {},
    resume: () => {},
    end: () => {},
  };
  const verdicts = options.verdicts ?? [];
  const desk = createQuestionDesk({
    answer: (reply) => {
      given.push(reply);
      for (const waiter of counting) if (given.length >= waiter.count) waiter.seen();
      const verdict = verdicts.shift() ?? { kind: 'applied' };
      return verdict instanceof Error ? Promise.reject(verdict) : Promise.resolve(verdict);
    },
    progress,
    prepared: [],
    ask: null,
    onLeft: () => {},
    onError: (error) => notes.push(`error: ${String(error)}`),
    ...options,
  });
  const noted = (text: string): Promise<void> =>
    notes.some((line) => line.includes(text))
      ? Promise.resolve()
      : new Promise((seen) => waiting.push({ text, seen }));
  const givenTimes = (count: number): Promise<void> =>
    given.length >= count ? Promise.resolve() : new Promise((seen) => counting.push({ count, seen }));
  return { desk, given, notes, noted, givenTimes };
}

const reply = (word: string) => ({ action: 'accept' as const, content: { word } });

test('prepared answers go to the questions in order, one each, however often a question is listed', async () => {
  const { desk, given, givenTimes } = createWorld({ prepared: [reply('first'), reply('second')] });
  desk.consider(viewWith('a'));
  desk.consider(viewWith('a'));
  // Listed while the first is being answered, and no further view comes.
  desk.consider(viewWith('a', 'b'));
  await givenTimes(2);
  expect(given.map(({ roundId, content }) => [roundId, content])).toEqual([
    ['a', { word: 'first' }],
    ['b', { word: 'second' }],
  ]);
});

test('without an answer and without a terminal the question is told and left open', async () => {
  const { desk, given, noted } = createWorld();
  desk.consider(viewWith('a'));
  await noted('waits for an answer');
  expect(given).toEqual([]);
});

test('a refused answer is told, and the person is asked instead', async () => {
  const { desk, given, notes, noted } = createWorld({
    prepared: [reply('bad')],
    verdicts: [{ kind: 'refused', reason: 'no such word' }],
    ask: () => Promise.resolve({ kind: 'reply', ...reply('good') }),
  });
  desk.consider(viewWith('a'));
  await noted('answered');
  expect(notes).toContain('the answer was refused: no such word');
  expect(given.map(({ content }) => content)).toEqual([{ word: 'bad' }, { word: 'good' }]);
});

test('a refused answer without a terminal leaves the question open', async () => {
  const { desk, given, noted } = createWorld({
    prepared: [reply('bad')],
    verdicts: [{ kind: 'refused', reason: 'no' }],
  });
  desk.consider(viewWith('a'));
  await noted('waits for an answer');
  expect(given).toHaveLength(1);
});

test('a late verdict is waited for by giving the very same reply again', async () => {
  const late = new ToolOperationError('LocalTimeout', 'no verdict');
  const { desk, given, noted } = createWorld({ prepared: [reply('x')], verdicts: [late] });
  desk.consider(viewWith('a'));
  await noted('answered');
  expect(given).toHaveLength(2);
  expect(given[1]).toEqual(given[0]);
});

test('a question that the server has closed is taken away from the person', async () => {
  const asked: AbortSignal[] = [];
  const { desk, given, noted } = createWorld({
    ask: (_round, signal) => {
      asked.push(signal);
      return new Promise<HumanReply | LeftOpen | null>((resolve) => {
        signal.addEventListener('abort', () => resolve(null));
      });
    },
  });
  desk.consider(viewWith('a'));
  desk.consider(viewWith());
  await noted('moved on');
  expect(asked).toHaveLength(1);
  expect(given).toEqual([]);
});

test('a question left with Ctrl-C is not answered', async () => {
  let left = false;
  const done = new Promise<void>((resolve) => {
    const { desk, given } = createWorld({
      ask: () => Promise.resolve({ kind: 'left' }),
      onLeft: () => {
        left = given.length === 0;
        resolve();
      },
    });
    desk.consider(viewWith('a'));
  });
  await done;
  expect(left).toBe(true);
});
