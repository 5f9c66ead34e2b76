// Owns the whole table of moves: every state against every kind of fact, and which moves are a legal course.
// Must never derive an expectation from the machine: the tables are literals.

import { describe, expect, it } from 'vitest';
import { apply, IllegalTransition } from '../../operation/apply.js';
import { isLegalMove, TRANSITIONS } from '../../operation/derive-state.js';
import { OPERATION_STATES } from '../../operation/names.js';
import { recordIn, ROWS, sampleFact, terminal, type SampleState } from './sample-facts.js';
import { RESULT } from './sample-row.js';

const LETTERS: Record<string, SampleState> = {
  S: 'SUBMITTING',
  U: 'SUBMISSION_UNKNOWN',
  N: 'NOT_FOUND_SAFE',
  W: 'WORKING',
  I: 'INPUT_REQUIRED',
  C: 'CANCEL_REQUESTED',
  T: 'TERMINAL_OBSERVED',
  F: 'FETCHING_RESULT',
  H: 'UNRESOLVED',
  A: 'ACCEPTED',
  K: 'CANCELLED_ACCEPTED',
  R: 'REJECTED',
};

/** Column = state before (H: a held handle), cell = state after one such fact, `!` = IllegalTransition. */
const MOVES = `
                         S U N W I C T F H A K R
opened                   S U N W I C T F H A K R
submitted, nothing       S U N W I C T F H A K R
submitted, reference     W W W W I C T F H A K R
submitted, ambiguous     U U U W I C T F H A K R
submitted, answered      F F F F F F F F F A K R
lookedUp, found          W W W W I C T F W A K R
lookedUp, absent         S N N W I C T F W A K R
lookedUp, cannot tell    S U N W I C T F H A K R
observed, input          I I I I I C T F I A K R
observed, rounds over    S U N W W C T F W A K R
observed, terminal       T T T T T T T F T A K R
observed, cancelled      T T T T T T T ! T A K R
observed, not found      S U N W I C T F H A K R
observed, session lost   S U N W I C T F H A K R
observed, violation      S U N W I C T F H A K R
observed, deadline       S U N W I C T F H A K R
answered, applied        S U N W I C T F H A K R
cancelSent, acknowledged S U N C C C T F H A K R
cancelSent, confirmed    T T T T T T T F T A K R
resultFetched, stored    S U N W I C F F H A K R
resultFetched, not yet   S U N W I C F F H A K R
resultFetched, lost      H H H H H H H F H A K R
accepted                 A A A A A A A A A A ! !
accepted, cancelled      K K K K K K K K K ! K !
accepted, rejected       R R R R R R R R R ! ! R
accepted, refused        S U N W I C T F H A K R
endRecorded, in the row  F F F F F F F F F A K R
endRecorded, overtaken   S U N W I C T F H A K R
ledgerMissing            U U U U U U U U U A K R
cancelRequested          S U N C C C T F C A K R
replyGiven               S U N W I C T F H A K R
operatorDecided          S U N W I C T F H A K R
superseded               S U N W I C T F H A K R
storeRestored            S U N W I C T F H A K R
interrupted              S U N W I C T F H A K R
timePassed               S U N W I C T F H A K R
`;

/** Row = from, column = to (order of LETTERS); x = a course allows it, in one fact. */
const LEGAL = [
  //S U N W I C T F H A K R
  'S x . x x x x x x . x x', // several pieces of news in one fact: answered and fetched, found and cancelled
  'x U x x x x x x x . x x',
  'x x N x x x x x x . x x',
  '. x . W x x x x x . x .',
  'x x x x I x x x x . x x',
  '. x . . . C x x x . x .',
  '. x . . . . T x x . x .',
  '. x . . . . . F x x . .',
  'x x x x x x x x H x x x',
  '. . . . . . . . . A . .',
  '. . . . . . . . . . K .',
  '. . . . . . . . . . . R',
];

describe('the table of moves', () => {
  for (const line of MOVES.trim().split('\n').slice(1)) {
    const name = line.slice(0, 25).trim();
    it(`${name} leads from every state where the table says`, () => {
      const expected = line.slice(25).split(' ');
      const got = Object.values(LETTERS).map((state) => {
        const record = recordIn(state);
        expect(record.state).toBe(state);
        try {
          const { record: next } = apply(record, sampleFact(name, ROWS[state]));
          return Object.keys(LETTERS).find((letter) => LETTERS[letter] === next.state);
        } catch (error) {
          expect(error).toBeInstanceOf(IllegalTransition);
          return '!';
        }
      });
      expect(got).toEqual(expected);
    });
  }

  it('names the operation and both states when a move is illegal', () => {
    const illegal = (): unknown =>
      apply(recordIn('FETCHING_RESULT'), sampleFact('observed, cancelled', ROWS.FETCHING_RESULT));
    expect(illegal).toThrow('observed moved graph/node-1 from FETCHING_RESULT to TERMINAL_OBSERVED');
    expect(new IllegalTransition('x').name).toBe('IllegalTransition');
  });

  it('lets a step that took the row over find it anywhere, and only such a step', () => {
    const before = recordIn('FETCHING_RESULT');
    const row = { ...ROWS.WORKING, terminalObservation: terminal('cancelled'), result: RESULT };
    const found = apply(before, { kind: 'submitted', at: 1, row: { ...row, executionEpoch: 2 } }).record;
    expect(found.state).toBe('TERMINAL_OBSERVED');
    const same = { ...row, executionEpoch: 1 };
    expect(() => apply(before, { kind: 'submitted', at: 1, row: same })).toThrow(IllegalTransition);
  });

  it('lets every step find the row ended, whatever the state before', () => {
    for (const state of ['SUBMITTING', 'WORKING', 'CANCEL_REQUESTED', 'TERMINAL_OBSERVED'] as const) {
      for (const name of ['submitted, nothing', 'observed, deadline', 'answered, applied'] as const) {
        const { receipt } = ROWS.ACCEPTED;
        const { record } = apply(recordIn(state), sampleFact(name, { ...ROWS[state], receipt }));
        expect([record.state, record.receipt]).toEqual(['ACCEPTED', receipt]);
      }
    }
  });

  // Known to fail (DESIGN section 4: an end is final): a row with another receipt moves one end to another.
  it('never leads from one end to another', () => {
    for (const state of ['ACCEPTED', 'CANCELLED_ACCEPTED', 'REJECTED'] as const) {
      for (const name of ['accepted', 'accepted, cancelled', 'accepted, rejected']) {
        const fact = sampleFact(name, ROWS[state]);
        if ('row' in fact && fact.row.receipt?.state === state) continue;
        expect(() => apply(recordIn(state), fact)).toThrow(IllegalTransition);
      }
    }
  });

  it('knows exactly the legal moves', () => {
    const letters = Object.keys(LETTERS);
    const got = letters.map((from) =>
      letters
        .map((to) => {
          const isLegal = isLegalMove(LETTERS[from] as SampleState, LETTERS[to] as SampleState);
          return from === to && isLegal ? from : isLegal ? 'x' : '.';
        })
        .join(' '),
    );
    expect(got).toEqual(LEGAL);
    expect(Object.values(LETTERS)).toEqual([...OPERATION_STATES]);
  });

  it('pins the single moves of DESIGN section 4', () => {
    expect(TRANSITIONS).toEqual({
      SUBMITTING: [
        'WORKING',
        'INPUT_REQUIRED',
        'TERMINAL_OBSERVED',
        'REJECTED',
        'SUBMISSION_UNKNOWN',
        'CANCELLED_ACCEPTED',
        'UNRESOLVED',
      ],
      SUBMISSION_UNKNOWN: ['WORKING', 'INPUT_REQUIRED', 'TERMINAL_OBSERVED', 'NOT_FOUND_SAFE', 'UNRESOLVED'],
      NOT_FOUND_SAFE: [
        'SUBMITTING',
        'INPUT_REQUIRED',
        'CANCELLED_ACCEPTED',
        'REJECTED',
        'SUBMISSION_UNKNOWN',
        'UNRESOLVED',
      ],
      WORKING: [
        'INPUT_REQUIRED',
        'CANCEL_REQUESTED',
        'TERMINAL_OBSERVED',
        'SUBMISSION_UNKNOWN',
        'UNRESOLVED',
      ],
      INPUT_REQUIRED: [
        'SUBMITTING',
        'NOT_FOUND_SAFE',
        'WORKING',
        'CANCEL_REQUESTED',
        'TERMINAL_OBSERVED',
        'SUBMISSION_UNKNOWN',
        'UNRESOLVED',
      ],
      CANCEL_REQUESTED: ['TERMINAL_OBSERVED', 'CANCELLED_ACCEPTED', 'SUBMISSION_UNKNOWN', 'UNRESOLVED'],
      TERMINAL_OBSERVED: ['FETCHING_RESULT', 'CANCELLED_ACCEPTED', 'SUBMISSION_UNKNOWN', 'UNRESOLVED'],
      FETCHING_RESULT: ['ACCEPTED', 'SUBMISSION_UNKNOWN', 'UNRESOLVED'],
      UNRESOLVED: [
        'WORKING',
        'INPUT_REQUIRED',
        'TERMINAL_OBSERVED',
        'NOT_FOUND_SAFE',
        'CANCEL_REQUESTED',
        'ACCEPTED',
        'REJECTED',
        'SUBMISSION_UNKNOWN',
      ],
      ACCEPTED: [],
      CANCELLED_ACCEPTED: [],
      REJECTED: [],
    });
  });
});
