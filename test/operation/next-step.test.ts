// Owns the tests of every step in full: its kind, its deadlines, its first look, its session.
// Must never perform a step.

import { describe, expect, it } from 'vitest';
import { apply } from '../../operation/apply.js';
import { nextStep, type Step } from '../../operation/next-step.js';
import type { ToolOperation } from '../../operation/record.js';
import type { RowSnapshot } from '../../operation/row.js';
import {
  HOUR_MS,
  MINUTE_MS,
  POLICY,
  REFERENCE,
  sampleLeg,
  sampleRound,
  sampleRow,
  T0,
} from './sample-row.js';
import { AT, fold, observed, opened, recordIn, ROWS, sampleFact, startedRecord } from './sample-facts.js';

const WAIT_ENDS_AT = T0 + 2 * HOUR_MS;
const LOOK = {
  kind: 'observe',
  openRoundIds: [],
  deadlineAt: WAIT_ENDS_AT,
  notBeforeAt: null,
  freshSession: false,
  once: false,
} as const;

function stepOf(record: ToolOperation, nowMs = AT): Step {
  return nextStep(record, nowMs);
}

describe('before anything is sent', () => {
  it('opens first, whatever is asked meanwhile', () => {
    expect(stepOf(startedRecord())).toEqual({ kind: 'open' });
    expect(stepOf(fold(startedRecord(), sampleFact('cancelRequested', sampleRow())))).toEqual({
      kind: 'open',
    });
    expect(stepOf({ ...recordIn('SUBMITTING'), executionEpoch: 0 })).toEqual({ kind: 'open' });
    expect(stepOf({ ...recordIn('SUBMITTING'), policy: null })).toEqual({ kind: 'open' });
  });

  it('submits until the submit deadline; after a proof of absence the deadline starts anew', () => {
    expect(stepOf(recordIn('SUBMITTING'))).toEqual({
      kind: 'submit',
      deadlineAt: T0 + 5 * MINUTE_MS,
      notBeforeAt: null,
    });
    expect(stepOf(recordIn('NOT_FOUND_SAFE'))).toEqual({
      kind: 'submit',
      deadlineAt: AT + 5 * MINUTE_MS,
      notBeforeAt: null,
    });
  });

  it('never submits in order to cancel', () => {
    for (const state of ['SUBMITTING', 'NOT_FOUND_SAFE'] as const) {
      const asked = fold(recordIn(state), sampleFact('cancelRequested', ROWS[state]));
      expect(stepOf(asked)).toEqual({ kind: 'cancel', reason: 'enough', generation: 1 });
      const row = { ...ROWS[state], cancelGeneration: 1, cancelDelivery: 'unsent' } as const;
      expect(stepOf(fold(asked, { kind: 'cancelSent', at: AT, row, reply: 'neverSent' }))).toEqual({
        kind: 'accept',
      });
    }
  });

  it('accepts a rejection, even where a cancel waits', () => {
    const row = sampleRow({ rejection: { code: 'bad-arguments', message: 'no' } });
    expect(stepOf(opened(row))).toEqual({ kind: 'accept' });
    expect(stepOf(fold(opened(row), sampleFact('cancelRequested', row)))).toEqual({ kind: 'accept' });
  });
});

describe('while the submission is unknown', () => {
  const unknown = (submissionPolicy: NonNullable<ToolOperation['submissionPolicy']>): ToolOperation =>
    opened({ ...ROWS.SUBMISSION_UNKNOWN, submissionPolicy });

  it('sends the key again or looks up, until the look-up deadline', () => {
    for (const policy of ['key-argument', 'key-meta', 'request-id', 'repeatable'] as const) {
      expect(stepOf(unknown(policy))).toEqual({
        kind: 'submit',
        deadlineAt: AT + 10 * MINUTE_MS,
        notBeforeAt: null,
      });
    }
    for (const policy of ['session-list', 'operation-list'] as const) {
      expect(stepOf(unknown(policy))).toEqual({
        kind: 'lookUp',
        notBeforeAt: null,
        deadlineAt: AT + 10 * MINUTE_MS,
      });
    }
    expect(stepOf({ ...unknown('key-meta'), lookUpDeadlineAt: null }, 77)).toEqual({
      kind: 'submit',
      deadlineAt: 77,
      notBeforeAt: null,
    });
  });

  it('spaces its resends the same way', () => {
    let record = unknown('key-meta');
    const gaps: (number | null)[] = [];
    for (let send = 0; send < 7; send += 1) {
      record = fold(record, {
        kind: 'submitted',
        at: AT,
        row: { ...ROWS.SUBMISSION_UNKNOWN, submissionPolicy: 'key-meta' },
      });
      const step = stepOf(record);
      gaps.push(step.kind === 'submit' && step.notBeforeAt !== null ? step.notBeforeAt - AT : null);
    }
    expect(gaps).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  it('looks up at once after the first doubt, and paces nothing once nothing is in doubt', () => {
    for (const submissionPolicy of ['session-list', 'operation-list'] as const) {
      const row = { ...ROWS.SUBMISSION_UNKNOWN, submissionPolicy };
      expect(fold(opened(ROWS.SUBMITTING), { kind: 'submitted', at: AT, row }).nextLookUpAt).toBeNull();
    }
    const found = fold(opened(ROWS.SUBMITTING), { kind: 'submitted', at: AT, row: ROWS.WORKING });
    expect(found).toMatchObject({ nextLookUpAt: null, lookUps: 0 });
  });

  it('spaces its look-ups: 2 s, 4 s, … 60 s', () => {
    let record = unknown('session-list');
    const gaps: (number | null)[] = [];
    for (let look = 0; look < 7; look += 1) {
      record = fold(record, { ...sampleFact('lookedUp, cannot tell', ROWS.SUBMISSION_UNKNOWN), at: AT });
      const step = stepOf(record);
      gaps.push(step.kind === 'lookUp' && step.notBeforeAt !== null ? step.notBeforeAt - AT : null);
    }
    expect(gaps).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  it('sends nothing where the ledger is behind, in whatever state, and opens again when that is due', () => {
    const missingAt = AT + 1_000;
    const missing = sampleFact('ledgerMissing', ROWS.SUBMISSION_UNKNOWN);
    const states = ['SUBMITTING', 'SUBMISSION_UNKNOWN', 'WORKING', 'INPUT_REQUIRED', 'UNRESOLVED'] as const;
    for (const state of states) {
      const behind = fold(recordIn(state), missing);
      const untilAt = missingAt + 30_000;
      expect(stepOf(behind, missingAt)).toEqual({ kind: 'awaitOperator', untilAt });
      expect(stepOf(behind, untilAt - 1)).toEqual({ kind: 'awaitOperator', untilAt });
      expect(stepOf(behind, untilAt)).toEqual({ kind: 'open' });
      const again = fold(behind, { kind: 'ledgerMissing', at: untilAt, evidence: 'no row' });
      expect(stepOf(again, untilAt)).toEqual({ kind: 'awaitOperator', untilAt: untilAt + 60_000 });
      const superseded = fold(behind, { kind: 'superseded', at: missingAt });
      expect(stepOf(superseded, missingAt)).toEqual({ kind: 'awaitOperator', untilAt });
    }
    const found = fold(fold(recordIn('WORKING'), missing), { kind: 'opened', at: AT, row: ROWS.WORKING });
    expect(stepOf(found)).toEqual(LOOK);
  });

  it('is over where there is a receipt, whatever the ledger', () => {
    const ledgerBehind = { at: AT, evidence: 'no row', rechecks: 0, nextRecheckAt: AT };
    expect(stepOf({ ...recordIn('ACCEPTED'), ledgerBehind })).toEqual({ kind: 'done' });
  });
});

describe('a run that was superseded', () => {
  it('opens the row again in every state that is no end', () => {
    for (const state of Object.keys(ROWS) as (keyof typeof ROWS)[]) {
      const superseded = fold(recordIn(state), sampleFact('superseded', ROWS[state]));
      const isOver = ['ACCEPTED', 'CANCELLED_ACCEPTED', 'REJECTED'].includes(state);
      expect([state, stepOf(superseded)]).toEqual([state, { kind: isOver ? 'done' : 'open' }]);
    }
    const superseded = fold(recordIn('WORKING'), sampleFact('superseded', ROWS.WORKING));
    const row = { ...ROWS.WORKING, executionEpoch: 3 };
    expect(stepOf(fold(superseded, { kind: 'opened', at: AT, row }))).toEqual(LOOK);
    const word = fold(recordIn('UNRESOLVED'), sampleFact('operatorDecided', ROWS.WORKING));
    expect(stepOf(fold(word, sampleFact('superseded', ROWS.WORKING)))).toEqual({ kind: 'open' });
  });
});

describe('while the far side works', () => {
  it('looks until the wait budget ends', () => {
    expect(stepOf(recordIn('WORKING'))).toEqual(LOOK);
  });

  it('keeps looking, slowly, while people are asked, until the earliest deadline of the open rounds', () => {
    const rounds = [
      sampleRound('a', { deadlineAt: T0 + 40 * MINUTE_MS }),
      sampleRound('b', { deadlineAt: T0 + 30 * MINUTE_MS }),
      sampleRound('c', { deadlineAt: T0 + MINUTE_MS, closedAt: T0 }),
    ];
    expect(stepOf(opened({ ...ROWS.WORKING, rounds }))).toEqual({
      ...LOOK,
      kind: 'askHuman',
      openRoundIds: ['a', 'b'],
      deadlineAt: T0 + 30 * MINUTE_MS,
    });
  });

  it('delivers the oldest reply that waits, until the earliest deadline of the open rounds', () => {
    const rounds = [
      sampleRound('round-1', { deadlineAt: T0 + 40 * MINUTE_MS }),
      sampleRound('b', { deadlineAt: T0 + 30 * MINUTE_MS }),
      sampleRound('c', { deadlineAt: T0 + MINUTE_MS, closedAt: T0 }),
    ];
    const row = { ...ROWS.WORKING, rounds };
    const asked = fold(opened(row), sampleFact('replyGiven', row));
    const later = {
      roundId: 'round-1',
      replyDigest: 'r2',
      replyToken: 't2',
      action: 'decline',
      content: null,
    } as const;
    const step = stepOf(fold(asked, { kind: 'replyGiven', at: AT, reply: later }));
    expect(step).toMatchObject({ kind: 'answer', reply: { replyToken: 't1', replyDigest: 'r1' } });
    expect(step).toMatchObject({ deadlineAt: T0 + 30 * MINUTE_MS });
  });

  it('spaces reads of an unknown reference, and turns to a fresh session after three', () => {
    const missing = (reads: number): ToolOperation =>
      Array.from({ length: reads }).reduce<ToolOperation>(
        (record) => fold(record, observed(ROWS.WORKING, 'notFound')),
        recordIn('WORKING'),
      );
    expect(stepOf(missing(1))).toEqual({ ...LOOK, notBeforeAt: AT + 5_000 });
    expect(stepOf(missing(2))).toEqual({ ...LOOK, notBeforeAt: AT + 5_000 });
    expect(stepOf(missing(3))).toEqual({ ...LOOK, notBeforeAt: AT + 5_000, freshSession: true });
  });

  it('keeps its session at the first lost one, and spaces looks after it and after a violation', () => {
    const once = fold(recordIn('WORKING'), observed(ROWS.WORKING, 'sessionLost'));
    expect(stepOf(once)).toEqual({ ...LOOK, notBeforeAt: AT + 5_000 });
    const thrice = fold(once, observed(ROWS.WORKING, 'notFound'), observed(ROWS.WORKING, 'sessionLost'));
    expect(stepOf(thrice)).toEqual({ ...LOOK, notBeforeAt: AT + 5_000, freshSession: true });
    const broken = fold(recordIn('WORKING'), observed(ROWS.WORKING, 'violation'));
    expect(stepOf(broken)).toEqual({ ...LOOK, notBeforeAt: AT + 5_000 });
    expect(stepOf(fold(broken, observed(ROWS.WORKING, 'roundClosed')))).toEqual(LOOK);
  });
});

describe('while a cancel is under way', () => {
  const asked = fold(recordIn('WORKING'), sampleFact('cancelRequested', ROWS.WORKING));
  const raised = (
    cancelDelivery: 'sent' | 'acknowledged' | 'refused' | 'unsupported' | 'unsent',
  ): typeof ROWS.WORKING => {
    return {
      ...ROWS.WORKING,
      cancelGeneration: 1,
      cancelReason: 'enough',
      cancelDelivery,
    } as typeof ROWS.WORKING;
  };
  const sent = (
    record: ToolOperation,
    reply: 'lost' | 'refused' | 'acknowledged' | 'unsupported',
    at = AT,
  ) => {
    const delivery = reply === 'lost' ? 'sent' : reply;
    return fold(record, { kind: 'cancelSent', at, row: raised(delivery), reply });
  };

  it('sends it at once, and again where nothing was sent', () => {
    expect(stepOf(asked)).toEqual({ kind: 'cancel', reason: 'enough', generation: 1 });
    const unsent = fold(asked, { kind: 'cancelSent', at: AT, row: raised('unsent'), reply: 'neverSent' });
    expect(stepOf(unsent)).toEqual({ kind: 'cancel', reason: 'enough', generation: 1 });
    expect(unsent).toMatchObject({ cancelSends: 0, nextCancelAt: null, settleDeadlineAt: null });
  });

  it('looks, then sends again with back-off after a refusal or a lost reply', () => {
    for (const reply of ['refused', 'lost'] as const) {
      const once = sent(asked, reply);
      expect(stepOf(once)).toEqual({ ...LOOK, deadlineAt: AT + 2_000 });
      expect(stepOf(once, AT + 1_999)).toEqual({ ...LOOK, deadlineAt: AT + 2_000 });
      expect(stepOf(once, AT + 2_000)).toEqual({ kind: 'cancel', reason: 'enough', generation: 1 });
      const twice = sent(once, reply, AT + 2_000);
      expect(stepOf(twice)).toEqual({ ...LOOK, deadlineAt: AT + 6_000 });
    }
    let often = asked;
    for (let send = 0; send < 9; send += 1) often = sent(often, 'lost');
    expect(stepOf(often)).toEqual({ ...LOOK, deadlineAt: AT + 120_000 });
  });

  it('never looks past the settle budget', () => {
    const late = sent(sent(asked, 'lost'), 'lost', AT + 12 * MINUTE_MS - 1);
    expect(stepOf(late)).toEqual({ ...LOOK, deadlineAt: AT + 12 * MINUTE_MS });
  });

  it('waits for the state after an acknowledgement, without asking again', () => {
    expect(stepOf(sent(asked, 'acknowledged'), AT + MINUTE_MS)).toEqual({
      ...LOOK,
      deadlineAt: AT + 12 * MINUTE_MS,
    });
    const afterLost = sent(sent(asked, 'lost'), 'acknowledged', AT + 5);
    expect(stepOf(afterLost, AT + MINUTE_MS)).toEqual({ ...LOOK, deadlineAt: AT + 12 * MINUTE_MS });
  });

  it('waits for the end of the wait budget where the server cannot cancel', () => {
    expect(stepOf(sent(asked, 'unsupported'))).toEqual(LOOK);
    expect(stepOf(sent(sent(asked, 'lost'), 'unsupported'), AT + MINUTE_MS)).toEqual(LOOK);
  });

  it('sends one that is asked for again once more, whatever became of the one before, and lets it settle anew', () => {
    const heldAt = AT + 3 * HOUR_MS;
    for (const reply of ['acknowledged', 'refused', 'unsupported'] as const) {
      const held = fold(sent(asked, reply), { kind: 'timePassed', at: heldAt });
      expect(held.state).toBe('UNRESOLVED');
      const again = fold(held, { kind: 'cancelRequested', at: heldAt + 5, reason: 'now', requestedBy: 'b' });
      expect([again.state, again.hold]).toEqual(['CANCEL_REQUESTED', null]);
      for (const record of [again, fold(again, { kind: 'timePassed', at: heldAt + HOUR_MS })]) {
        expect(stepOf(record, heldAt + HOUR_MS)).toEqual({ kind: 'cancel', reason: 'now', generation: 2 });
      }
      const row = { ...raised('acknowledged'), cancelGeneration: 2, cancelReason: 'now' };
      const told = fold(again, { kind: 'cancelSent', at: heldAt + 9, row, reply: 'acknowledged' });
      expect(stepOf(told, heldAt + 9)).toEqual({ ...LOOK, deadlineAt: heldAt + 9 + 12 * MINUTE_MS });
      expect(told).toMatchObject({ cancelSends: 1, cancelGeneration: 2, ledgerBehind: null });
      const heldAgain = fold(told, { kind: 'timePassed', at: heldAt + 9 + 12 * MINUTE_MS });
      expect(heldAgain.hold?.reason).toBe('cancel-never-settled');
    }
  });

  it('sends a further one that never arrived with its own back-off, from the beginning', () => {
    const lost = (record: ToolOperation, at: number): ToolOperation => {
      const row = { ...raised('sent'), cancelGeneration: 2 };
      return fold(record, { kind: 'cancelSent', at, row, reply: 'lost' });
    };
    const held = fold(sent(sent(asked, 'lost'), 'lost'), { kind: 'timePassed', at: AT + HOUR_MS });
    const again = fold(held, { kind: 'cancelRequested', at: AT + HOUR_MS, reason: 'now', requestedBy: 'b' });
    expect(stepOf(lost(again, AT + HOUR_MS))).toEqual({ ...LOOK, deadlineAt: AT + HOUR_MS + 2_000 });
  });

  it('sends once itself in a run that adopted a raised generation, unless the server cannot cancel', () => {
    for (const delivery of ['unsent', 'sent', 'refused', 'acknowledged'] as const) {
      expect(stepOf(opened(raised(delivery)))).toEqual({ kind: 'cancel', reason: 'enough', generation: 1 });
    }
    expect(stepOf(opened(raised('unsupported')))).toEqual(LOOK);
    const unnamed = { ...raised('sent'), cancelReason: null };
    expect(stepOf(opened(unnamed))).toEqual({ kind: 'cancel', reason: 'cancelled', generation: 1 });
  });
});

describe('at the end', () => {
  it('fetches the result with back-off, then accepts', () => {
    const seen = recordIn('TERMINAL_OBSERVED');
    expect(stepOf(seen)).toEqual({ kind: 'fetchResult', notBeforeAt: null });
    let tried = seen;
    const gaps = [2, 4, 8].map((seconds) => {
      tried = fold(tried, { ...sampleFact('resultFetched, not yet', ROWS.TERMINAL_OBSERVED), at: AT });
      expect(stepOf(tried)).toEqual({ kind: 'fetchResult', notBeforeAt: AT + seconds * 1_000 });
      return seconds;
    });
    expect(gaps).toEqual([2, 4, 8]);
    for (let look = 0; look < 9; look += 1) {
      tried = fold(tried, { ...sampleFact('resultFetched, not yet', ROWS.TERMINAL_OBSERVED), at: AT });
    }
    expect(stepOf(tried)).toEqual({ kind: 'fetchResult', notBeforeAt: AT + 5 * MINUTE_MS });
    expect(stepOf(recordIn('FETCHING_RESULT'))).toEqual({ kind: 'accept' });
  });

  it('accepts what was cancelled without a result', () => {
    const row = { ...ROWS.WORKING, terminalObservation: { ...ROWS.TERMINAL_OBSERVED.terminalObservation } };
    const cancelled = {
      ...row,
      terminalObservation: { ...row.terminalObservation, remoteStatus: 'cancelled' },
    } as const;
    expect(stepOf(opened(cancelled))).toEqual({ kind: 'accept' });
  });

  it('does nothing more once there is a receipt', () => {
    for (const state of ['ACCEPTED', 'CANCELLED_ACCEPTED', 'REJECTED'] as const) {
      expect(stepOf(recordIn(state))).toEqual({ kind: 'done' });
    }
  });
});

describe('while held', () => {
  const held = recordIn('UNRESOLVED');

  it('waits until the next look is due, then looks once, through a fresh session for a lost handle', () => {
    expect(stepOf(held)).toEqual({ kind: 'awaitOperator', untilAt: AT + 10 * MINUTE_MS });
    expect(stepOf(held, AT + 10 * MINUTE_MS - 1).kind).toBe('awaitOperator');
    const unknown = [1, 2, 3, 4].reduce(
      (record) => fold(record, observed(ROWS.WORKING, 'notFound')),
      recordIn('WORKING'),
    );
    expect(stepOf(unknown, AT + 10 * MINUTE_MS)).toMatchObject({ freshSession: true, once: true });
    expect(stepOf(held, AT + 10 * MINUTE_MS)).toEqual({
      ...LOOK,
      deadlineAt: null,
      freshSession: true,
      once: true,
    });
    const again = fold(unknown, observed(ROWS.WORKING, 'notFound', AT + 10 * MINUTE_MS));
    expect(stepOf(again, AT + 60 * MINUTE_MS)).toMatchObject({ freshSession: false, once: true });
  });

  it('looks for a lost handle in turns: through a fresh session, then where the work was made', () => {
    let record = held;
    const fresh = Array.from({ length: 4 }, () => {
      const dueAt = record.hold?.nextRecheckAt ?? 0;
      const step = stepOf(record, dueAt);
      record = fold(record, observed(ROWS.WORKING, 'notFound', dueAt));
      return step.kind === 'observe' && step.freshSession;
    });
    expect(fresh).toEqual([true, false, true, false]);
  });

  it('keeps the session for other holds, unless it was lost while held', () => {
    const broken = [1, 2, 3].reduce(
      (record) => fold(record, observed(ROWS.WORKING, 'violation')),
      recordIn('WORKING'),
    );
    const dueAt = AT + 10 * MINUTE_MS;
    expect(stepOf(broken, dueAt)).toEqual({ ...LOOK, deadlineAt: null, once: true });
    const once = fold(broken, observed(ROWS.WORKING, 'sessionLost', dueAt));
    expect(stepOf(once, dueAt)).toEqual({ kind: 'awaitOperator', untilAt: dueAt + 20 * MINUTE_MS });
    expect(stepOf(once, dueAt + 20 * MINUTE_MS)).toMatchObject({ kind: 'observe', freshSession: false });
    for (const finding of ['notFound', 'sessionLost'] as const) {
      const missed = [1, 2, 3].reduce(
        (record) => fold(record, observed(ROWS.WORKING, finding, dueAt)),
        broken,
      );
      expect(stepOf(missed, dueAt + 24 * HOUR_MS)).toMatchObject({ kind: 'observe', freshSession: true });
    }
  });

  it('never looks where there is nothing to look at', () => {
    const lost = fold(
      recordIn('TERMINAL_OBSERVED'),
      sampleFact('resultFetched, lost', ROWS.TERMINAL_OBSERVED),
    );
    const refusal = sampleFact('accepted, refused', ROWS.FETCHING_RESULT);
    const refused = fold(recordIn('FETCHING_RESULT'), refusal, refusal, refusal);
    const dated = { ...recordIn('WORKING'), expiresAt: AT };
    const expired = fold(dated, observed(ROWS.WORKING, 'notFound'));
    const tooLarge = fold(
      recordIn('TERMINAL_OBSERVED'),
      sampleFact('resultFetched, too large', ROWS.TERMINAL_OBSERVED),
    );
    const held = [lost, refused, expired, tooLarge];
    const reasons = held.map((record) => record.hold?.reason);
    expect(reasons).toEqual(['result-lost', 'acceptance-refused', 'expired', 'result-too-large']);
    for (const record of held) {
      expect(stepOf(record, AT + 24 * HOUR_MS)).toEqual({ kind: 'awaitOperator', untilAt: null });
    }
  });

  it('looks up whether the work has become known where it is not', () => {
    const row = sampleRow({ legs: [sampleLeg('ambiguous')], submissionPolicy: 'at-most-once' });
    const unknown = opened(row);
    const dueAt = AT + 10 * MINUTE_MS;
    expect(stepOf(unknown, dueAt - 1)).toEqual({ kind: 'awaitOperator', untilAt: dueAt });
    expect(stepOf(unknown, dueAt + 7)).toEqual({ kind: 'lookUp', notBeforeAt: null, deadlineAt: dueAt + 7 });
  });

  it('accepts on an operator’s word', () => {
    expect(stepOf(fold(held, sampleFact('operatorDecided', ROWS.WORKING)))).toEqual({ kind: 'accept' });
  });

  it('wakes for the standing decision of the configuration', () => {
    const policy = { ...POLICY, onUnresolved: { kind: 'closeAfter', afterMs: 4 * MINUTE_MS } } as const;
    const row = { ...ROWS.WORKING, policy };
    const missed = (of: RowSnapshot): ToolOperation =>
      [1, 2, 3, 4].reduce((record) => fold(record, observed(of, 'sessionLost')), opened(of));
    const closing = missed(row);
    expect(stepOf(closing)).toEqual({ kind: 'awaitOperator', untilAt: AT + 4 * MINUTE_MS });
    const later = {
      ...row,
      policy: { ...policy, onUnresolved: { kind: 'closeAfter', afterMs: HOUR_MS } },
    } as const;
    const patient = missed(later);
    expect(stepOf(patient)).toEqual({ kind: 'awaitOperator', untilAt: AT + 10 * MINUTE_MS });
    const bare = sampleRow({ policy, legs: [sampleLeg('ambiguous')], submissionPolicy: 'at-most-once' });
    expect(stepOf(opened(bare))).toEqual({ kind: 'awaitOperator', untilAt: AT + 4 * MINUTE_MS });
    const early = apply(closing, { kind: 'timePassed', at: AT + 4 * MINUTE_MS - 1 }).record;
    expect([early.operator, stepOf(early).kind]).toEqual([null, 'awaitOperator']);
    const due = apply(closing, { kind: 'timePassed', at: AT + 4 * MINUTE_MS }).record;
    expect(stepOf(due)).toEqual({ kind: 'accept' });
    const byHand = fold(closing, sampleFact('operatorDecided', row), {
      kind: 'timePassed',
      at: AT + HOUR_MS,
    });
    expect(byHand.operator?.decidedBy).toBe('ops');
    const evidence = 'standing decision of the configuration: close after 240000 ms';
    expect(due.operator).toEqual({ decision: 'close', remoteId: null, evidence, decidedBy: 'onUnresolved' });
  });

  it('has a reference to look at in these tests', () => {
    expect(held.remoteReference).toEqual(REFERENCE);
  });
});
