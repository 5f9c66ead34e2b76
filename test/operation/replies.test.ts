// Owns the tests of replies between arrival and verdict.
// Must never deliver one: the answer step is only a fact here.

import { describe, expect, it } from 'vitest';
import { apply } from '../../operation/apply.js';
import type { Fact, ReplyMail, Verdict } from '../../operation/facts.js';
import type { ToolOperation } from '../../operation/record.js';
import { closeWaitingReplies, verdictOf } from '../../operation/replies.js';
import type { InputRound, RowSnapshot } from '../../operation/row.js';
import { HOUR_MS, sampleRound, T0 } from './sample-row.js';
import { AT, fold, observed, opened, recordIn, ROWS, sampleFact } from './sample-facts.js';

const { INPUT_REQUIRED } = ROWS;

function mail(replyToken: string, changes: Partial<ReplyMail> = {}): Fact {
  const reply = {
    roundId: 'round-1',
    replyDigest: 'yes',
    replyToken,
    action: 'accept',
    content: {},
    ...changes,
  } as const;
  return { kind: 'replyGiven', at: AT, reply };
}

function withRound(changes: Partial<InputRound>): RowSnapshot {
  return { ...INPUT_REQUIRED, rounds: [sampleRound('round-1', changes)] };
}

const DELIVERED = withRound({
  reply: {
    replyDigest: 'yes',
    replyToken: 'a',
    action: 'accept',
    recordedAt: T0 + 5,
    sendingAt: T0 + 6,
    deliveredAt: T0 + 9,
  },
});
const UNDELIVERED = withRound({
  reply: {
    replyDigest: 'yes',
    replyToken: 'a',
    action: 'accept',
    recordedAt: T0 + 5,
    sendingAt: null,
    deliveredAt: null,
  },
});

function verdictIn(record: ToolOperation, fact: Fact): Verdict {
  return apply(record, fact).verdict;
}

describe('a reply that arrives', () => {
  it('waits while its round is open, also where another was recorded but not delivered', () => {
    const { record, verdict } = apply(recordIn('INPUT_REQUIRED'), mail('a'));
    expect(verdict).toEqual({ kind: 'waiting' });
    expect(record.waitingReplies.map((reply) => reply.replyToken)).toEqual(['a']);
    expect(verdictOf(record, 'a')).toBeNull();
    expect(verdictIn(opened(UNDELIVERED), mail('b'))).toEqual({ kind: 'waiting' });
  });

  it('to an answered round is the same one, a duplicate, or too late with the time of the first', () => {
    const answered = opened(DELIVERED);
    expect(verdictIn(answered, mail('a', { replyDigest: 'no' }))).toEqual({ kind: 'applied' });
    expect(verdictIn(answered, mail('b'))).toEqual({ kind: 'duplicate' });
    expect(verdictIn(answered, mail('b', { replyDigest: 'no' }))).toEqual({
      kind: 'alreadyAnswered',
      whenAt: T0 + 5,
    });
  });

  it('to a closed or unknown round is refused', () => {
    const closed = { kind: 'roundClosed' };
    expect(verdictIn(opened(withRound({ closedAt: T0 })), mail('a'))).toEqual(closed);
    expect(verdictIn(recordIn('INPUT_REQUIRED'), mail('a', { roundId: 'round-9' }))).toEqual(closed);
    expect(verdictIn(recordIn('SUBMITTING'), mail('a'))).toEqual(closed);
  });

  it('is refused once a cancel is asked or raised, or the end is known', () => {
    const closed = { kind: 'roundClosed' };
    const asked = fold(recordIn('INPUT_REQUIRED'), sampleFact('cancelRequested', INPUT_REQUIRED));
    expect(verdictIn(asked, mail('a'))).toEqual(closed);
    expect(verdictIn(opened({ ...INPUT_REQUIRED, cancelGeneration: 1 }), mail('a'))).toEqual(closed);
    const { terminalObservation } = ROWS.TERMINAL_OBSERVED;
    expect(verdictIn(opened({ ...INPUT_REQUIRED, terminalObservation }), mail('a'))).toEqual(closed);
    const { receipt } = ROWS.ACCEPTED;
    expect(verdictIn(opened({ ...INPUT_REQUIRED, receipt }), mail('a'))).toEqual(closed);
  });

  it('keeps its immediate verdict for whoever asks by token', () => {
    const { record } = apply(opened(DELIVERED), mail('b'));
    expect(verdictOf(record, 'b')).toEqual({ kind: 'duplicate' });
    expect(verdictOf(record, 'c')).toBeNull();
    const refused = apply(recordIn('SUBMITTING'), mail('z')).record;
    expect(verdictOf(refused, 'z')).toEqual({ kind: 'roundClosed' });
    const overtaken = fold(
      recordIn('INPUT_REQUIRED'),
      sampleFact('cancelRequested', INPUT_REQUIRED),
      mail('late'),
    );
    expect(verdictOf(overtaken, 'late')).toEqual({ kind: 'roundClosed' });
  });
});

describe('waiting replies', () => {
  const three = fold(recordIn('INPUT_REQUIRED'), mail('a'), mail('b'), mail('c', { replyDigest: 'no' }));

  it('all get their verdict when one of them was delivered', () => {
    const answered: Fact = {
      kind: 'answered',
      at: AT,
      row: DELIVERED,
      replyToken: 'a',
      verdict: { kind: 'applied' },
    };
    const record = fold(three, answered);
    expect(record.waitingReplies).toEqual([]);
    expect(record.replyVerdicts).toEqual([
      { replyToken: 'a', verdict: { kind: 'applied' } },
      { replyToken: 'b', verdict: { kind: 'duplicate' } },
      { replyToken: 'c', verdict: { kind: 'alreadyAnswered', whenAt: T0 + 5 } },
    ]);
    expect(record.state).toBe('WORKING');
  });

  it('leave the round open where one was refused', () => {
    const verdict = { kind: 'refused', reason: 'not a number' } as const;
    const record = fold(three, { kind: 'answered', at: AT, row: INPUT_REQUIRED, replyToken: 'a', verdict });
    expect(record.waitingReplies.map((reply) => reply.replyToken)).toEqual(['b', 'c']);
    expect(verdictOf(record, 'a')).toEqual(verdict);
    expect(record.state).toBe('INPUT_REQUIRED');
  });

  it('keep waiting when a cancel is asked, for one may be in flight: the next fact decides', () => {
    const asked = fold(three, sampleFact('cancelRequested', INPUT_REQUIRED));
    expect(asked.waitingReplies).toEqual(three.waitingReplies);
    expect(asked.replyVerdicts).toEqual([]);
    const answered = {
      kind: 'answered',
      at: AT,
      row: DELIVERED,
      replyToken: 'a',
      verdict: { kind: 'applied' },
    } as const;
    const delivered = fold(asked, answered);
    expect(delivered.waitingReplies).toEqual([]);
    expect(delivered.replyVerdicts.map((kept) => kept.verdict.kind)).toEqual([
      'applied',
      'duplicate',
      'alreadyAnswered',
    ]);
    const late = fold(asked, { ...answered, row: INPUT_REQUIRED, verdict: { kind: 'roundClosed' } });
    for (const token of ['a', 'b', 'c']) expect(verdictOf(late, token)).toEqual({ kind: 'roundClosed' });
    const passed = fold(asked, { kind: 'timePassed', at: AT });
    expect(passed.waitingReplies).toEqual([]);
    for (const token of ['a', 'b', 'c']) expect(verdictOf(passed, token)).toEqual({ kind: 'roundClosed' });
  });

  it('are closed by the server, a deadline, a cancel and an end alike', () => {
    const closing: readonly (readonly Fact[])[] = [
      [observed(withRound({ closedAt: AT }), 'roundClosed')],
      [{ kind: 'timePassed', at: T0 + HOUR_MS }],
      [sampleFact('cancelRequested', INPUT_REQUIRED), sampleFact('interrupted', INPUT_REQUIRED)],
      [
        observed(
          { ...INPUT_REQUIRED, terminalObservation: ROWS.TERMINAL_OBSERVED.terminalObservation },
          'terminal',
        ),
      ],
    ];
    for (const facts of closing) {
      const record = fold(three, ...facts);
      expect(record.waitingReplies).toEqual([]);
      for (const token of ['a', 'b', 'c']) expect(verdictOf(record, token)).toEqual({ kind: 'roundClosed' });
    }
  });

  it('go on waiting for their own round when another is over', () => {
    const row = {
      ...INPUT_REQUIRED,
      rounds: [sampleRound('round-1'), sampleRound('round-2', { closedAt: AT })],
    };
    const record = fold(three, mail('d', { roundId: 'round-2' }), observed(row, 'deadlinePassed'));
    expect(record.waitingReplies.map((reply) => reply.replyToken)).toEqual(['a', 'b', 'c']);
    expect(verdictOf(record, 'd')).toEqual({ kind: 'roundClosed' });
  });

  it('whose round the store has forgotten are closed with it', () => {
    const lone = closeWaitingReplies({ ...three, rounds: [] });
    expect(lone.waitingReplies).toEqual([]);
    for (const { replyToken } of three.waitingReplies)
      expect(verdictOf(lone, replyToken)).toEqual({ kind: 'roundClosed' });
  });
});

describe('verdicts', () => {
  it('are kept once per token, the newest last, and not without bound', () => {
    let record = opened(DELIVERED);
    for (let token = 0; token < 70; token += 1) record = fold(record, mail(`t${token}`));
    expect(record.replyVerdicts.length).toBe(64);
    expect(verdictOf(record, 't5')).toBeNull();
    expect(verdictOf(record, 't6')).toEqual({ kind: 'duplicate' });
    record = fold(record, mail('t9', { replyDigest: 'no' }));
    expect(record.replyVerdicts.at(-1)?.replyToken).toBe('t9');
    expect(record.replyVerdicts.filter((kept) => kept.replyToken === 't9').length).toBe(1);
    expect(record.replyVerdicts.length).toBe(64);
  });
});

describe('a crowd of replies', () => {
  it('is refused past 32 that wait, and every one of the waiting gets its verdict', () => {
    let record = opened(INPUT_REQUIRED);
    for (let n = 0; n < 32; n += 1) {
      const { record: next, verdict } = apply(record, mail(`t${n}`, { replyDigest: `d${n}` }));
      expect(verdict).toEqual({ kind: 'waiting' });
      record = next;
    }
    const crowded = apply(record, mail('late'));
    expect(crowded.verdict).toMatchObject({ kind: 'refused' });
    expect(verdictOf(crowded.record, 'late')).toEqual(crowded.verdict);
    const ended = fold(
      crowded.record,
      sampleFact('cancelRequested', INPUT_REQUIRED),
      sampleFact('timePassed', INPUT_REQUIRED),
    );
    for (let n = 0; n < 32; n += 1) expect(verdictOf(ended, `t${n}`)).toEqual({ kind: 'roundClosed' });
  });
});
