// Owns the tests of an operator's end: which word is taken, how it becomes an observation, what is left of it afterwards.
// Must never derive an expectation from the machine: the tables are literals.

import { describe, expect, it } from 'vitest';
import { apply } from '../../operation/apply.js';
import { decideEnd, operatorWordOf } from '../../operation/build-receipt.js';
import type { Fact, OperatorEnd } from '../../operation/facts.js';
import { nextStep } from '../../operation/next-step.js';
import { objectionToWord, readOperatorResult } from '../../operation/operator-word.js';
import type { ToolOperation } from '../../operation/record.js';
import { AT, fold, opened, recordIn, ROWS, sampleFact, terminal } from './sample-facts.js';
import { REFERENCE, RESULT, sampleLeg, sampleRow } from './sample-row.js';

const OK = '{"content":[]}';
const BAD = '{"content":[],"isError":true}';
const word = (end: OperatorEnd): Fact => ({
  kind: 'operatorDecided',
  at: AT + 1,
  decision: { kind: 'ended', ...end },
  evidence: 'the log',
  decidedBy: 'Ann',
});
const completed = { outcome: 'completed', resultJson: OK } as const;
const failed = { outcome: 'failed', resultJson: OK } as const;
const unknownRow = sampleRow({ legs: [sampleLeg('ambiguous')], submissionPolicy: 'at-most-once' });
const resultLost = (remoteStatus: 'completed' | 'failed'): ToolOperation => {
  const row = { ...ROWS.WORKING, terminalObservation: terminal(remoteStatus) };
  return fold(opened(row), sampleFact('resultFetched, lost', row));
};

describe('an operator’s end', () => {
  it('is taken only while held, of what was sent, and never against what is known', () => {
    const objections = (record: ToolOperation): (string | null)[] =>
      [completed, failed, { ...completed, resultJson: BAD }, { ...failed, resultJson: BAD }].map((end) =>
        objectionToWord(record, { kind: 'ended', ...end }),
      );
    const isError = 'the result says isError: that is a failure of the tool';
    const saidCompleted = 'the server said that it completed';
    const saidFailed = 'the server said that it failed';
    expect(objections(opened(unknownRow))).toEqual([null, null, isError, null]);
    expect(objections(recordIn('UNRESOLVED'))).toEqual([null, null, isError, null]);
    expect(objections(resultLost('completed'))).toEqual([null, saidCompleted, isError, null]);
    expect(objections(resultLost('failed'))).toEqual([saidFailed, null, saidFailed, null]);
    const held = (record: ToolOperation): ToolOperation => ({ ...record, hold: resultLost('failed').hold });
    const all = (why: string): string[] => [why, why, why, why];
    const state = (record: ToolOperation): ToolOperation =>
      fold(held(record), { kind: 'timePassed', at: AT });
    expect(objections(recordIn('WORKING'))).toEqual(all('it is not held, it is WORKING'));
    expect(objections(recordIn('ACCEPTED'))).toEqual(all('it has ended: completed'));
    expect(objections(state(opened(sampleRow())))).toEqual(
      all('nothing was sent, so nothing can have ended'),
    );
    const notSent = sampleRow({ legs: [sampleLeg('notSent')] });
    expect(objections(state(opened(notSent)))).toEqual(all('nothing was sent, so nothing can have ended'));
    const rejected = sampleRow({
      legs: [sampleLeg('refused')],
      rejection: { code: 'unknown-tool', message: '' },
    });
    expect(objections(state(opened(rejected)))).toEqual(
      all('the call was rejected (unknown-tool): nothing was started'),
    );
    expect(objections(state(opened(ROWS.FETCHING_RESULT)))).toEqual(all('its result is stored already'));
    const cancelled = { ...ROWS.WORKING, terminalObservation: terminal('cancelled') };
    expect(objections(state(opened(cancelled))).slice(0, 2)).toEqual(
      all('the server said that it was cancelled').slice(2),
    );
    const spoken = fold(opened(unknownRow), word(completed));
    expect(objections(spoken)).toEqual(
      all('an operator has spoken about it already; its end is being written'),
    );
  });

  it('that is no valid result is no word at all', () => {
    const held = opened(unknownRow);
    for (const resultJson of [
      '',
      '{',
      'undefined',
      `"${'x'.repeat(524_288)}"`,
      '['.repeat(513) + ']'.repeat(513),
    ]) {
      expect(apply(held, word({ outcome: 'completed', resultJson }))).toEqual({
        record: held,
        verdict: { kind: 'ignored' },
      });
    }
    const whys = ['{', `"${'ü'.repeat(262_144)}"`, '['.repeat(513) + ']'.repeat(513)].map(readOperatorResult);
    expect(whys).toEqual([
      { kind: 'unfit', why: 'the result is not valid JSON' },
      { kind: 'unfit', why: 'the result is larger than 524288 bytes' },
      { kind: 'unfit', why: 'the result is nested deeper than 512 levels' },
    ]);
    for (const fits of [
      'null',
      '7',
      '"[[[["',
      '["\\"[", "}"]',
      `"${'x'.repeat(524_286)}"`,
      '['.repeat(512) + ']'.repeat(512),
    ]) {
      expect(readOperatorResult(fits), fits.slice(0, 20)).toEqual({ kind: 'fits', isToolError: false });
    }
    expect(readOperatorResult(BAD)).toEqual({ kind: 'fits', isToolError: true });
  });

  it('is recorded first, with its result and its grounds; only the row then decides', () => {
    const heard = fold(opened(unknownRow), word(completed));
    expect(heard.state).toBe('UNRESOLVED');
    expect(heard.operator).toEqual({
      decision: 'ended',
      remoteId: null,
      end: completed,
      evidence: 'the log',
      decidedBy: 'Ann',
    });
    expect(nextStep(heard, AT)).toEqual({ kind: 'recordEnd', end: completed, note: 'operator Ann: the log' });
    expect(operatorWordOf(heard)).toBeNull();
  });

  it('leaves the record once it is in the row, and is accepted like every other end', () => {
    const heard = fold(opened(unknownRow), word(completed));
    const note = 'operator Ann: the log';
    const seen = { ...terminal('completed'), statusMessage: null, evidence: 'operator', note } as const;
    const row = { ...unknownRow, terminalObservation: seen, result: { ...RESULT, note } };
    const recorded = fold(heard, { kind: 'endRecorded', at: AT + 9, row });
    expect([recorded.state, recorded.operator, recorded.hold, recorded.heldMs]).toEqual([
      'FETCHING_RESULT',
      null,
      null,
      9,
    ]);
    expect(nextStep(recorded, AT + 9)).toEqual({ kind: 'accept' });
    expect(decideEnd(row, null)).toEqual({
      state: 'ACCEPTED',
      outcome: 'completed',
      failureKind: null,
      evidence: note,
    });
    const ofServer = { ...row, terminalObservation: terminal('completed') };
    expect(decideEnd(ofServer, null)?.evidence).toBe(`status; result by ${note}`);
    const unsigned = { ...seen, note: undefined } as never;
    expect(decideEnd({ ...row, terminalObservation: unsigned }, null)?.evidence).toBe('operator');
  });

  it('gives the result that was lost, and the status stays', () => {
    const heard = fold(resultLost('completed'), word(completed));
    const row = { ...ROWS.TERMINAL_OBSERVED, result: RESULT };
    const recorded = fold(heard, { kind: 'endRecorded', at: AT + 9, row });
    expect([recorded.state, recorded.operator, recorded.hold]).toEqual(['FETCHING_RESULT', null, null]);
  });

  it('is overtaken by evidence that comes first', () => {
    const heard = fold(opened(unknownRow), word(completed));
    const found = { ...unknownRow, legs: [sampleLeg('referenced')], remoteReference: REFERENCE };
    const back = fold(heard, { kind: 'endRecorded', at: AT + 9, row: found });
    expect([back.state, back.operator, back.hold]).toEqual(['WORKING', null, null]);
    const still = fold(heard, { kind: 'endRecorded', at: AT + 9, row: unknownRow });
    expect([still.state, still.operator]).toEqual(['UNRESOLVED', null]);
  });
});
