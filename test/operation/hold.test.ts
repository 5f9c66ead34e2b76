// Owns the tests of UNRESOLVED: what brings an operation there, what it remembers, what frees it.
// Must never wait: every time is a number in a fact.

import { describe, expect, it } from 'vitest';
import { apply } from '../../operation/apply.js';
import { nextStep } from '../../operation/next-step.js';
import type { Fact, ObserveFinding } from '../../operation/facts.js';
import type { ToolOperation } from '../../operation/record.js';
import type { RowSnapshot } from '../../operation/row.js';
import {
  CURSOR,
  HOUR_MS,
  MINUTE_MS,
  POLICY,
  REFERENCE,
  sampleLeg,
  sampleRound,
  sampleRow,
} from './sample-row.js';
import { AT, fold, observed, opened, recordIn, ROWS, sampleFact, terminal } from './sample-facts.js';

const { WORKING } = ROWS;

function looks(record: ToolOperation, ...findings: readonly ObserveFinding[]): ToolOperation {
  return findings.reduce((seen, finding) => fold(seen, observed(WORKING, finding)), record);
}

function reasonAfter(record: ToolOperation, ...facts: readonly Fact[]): string | null {
  return fold(record, ...facts).hold?.reason ?? null;
}

const time = (at: number): Fact => ({ kind: 'timePassed', at });

describe('an ambiguous submission', () => {
  const ambiguous = (
    submissionPolicy: RowSnapshot['submissionPolicy'],
    legs = 1,
    more: Partial<RowSnapshot> = {},
  ) =>
    sampleRow({
      submissionPolicy,
      legs: Array.from({ length: legs }, (_, at) => sampleLeg('ambiguous', at + 1)),
      ...more,
    });

  it('is held at once where nothing can be looked up or sent again', () => {
    for (const policy of ['at-most-once', null] as const) {
      expect(opened(ambiguous(policy)).hold).toEqual({
        reason: 'ambiguous-submission',
        sinceAt: AT,
        evidence: 'leg 1 ambiguous',
        rechecks: 0,
        nextRecheckAt: AT + 10 * MINUTE_MS,
      });
    }
    const mute = { ...ambiguous('at-most-once'), legs: [{ ...sampleLeg('ambiguous'), detail: null }] };
    expect(opened(mute).hold?.evidence).toBe('nobody knows whether the submission arrived');
  });

  it('is freed where a late word settles its last leg, whatever was decided without it', () => {
    const decided: Fact = {
      kind: 'operatorDecided',
      at: AT + 1,
      decision: { kind: 'close' },
      evidence: 'gave up',
      decidedBy: 'ops',
    };
    const held = fold(opened(ambiguous('at-most-once')), decided);
    const looked = (legs: RowSnapshot['legs'], more: Partial<RowSnapshot> = {}): Fact => ({
      kind: 'lookedUp',
      at: AT + 700,
      row: { ...ambiguous('at-most-once'), legs, ...more },
      finding: 'cannotTell',
      evidence: null,
    });
    const rejection = { code: 'refused-by-server', message: 'HTTP 401' } as const;
    const refused = fold(held, looked([sampleLeg('refused')], { rejection }));
    expect(refused).toMatchObject({ hold: null, operator: null, heldMs: 700, state: 'SUBMITTING' });
    expect(nextStep(refused, AT + 700)).toEqual({ kind: 'accept' });
    const unsent = fold(held, looked([sampleLeg('notSent')]));
    expect(nextStep(unsent, AT + 700)).toMatchObject({ kind: 'submit' });
    expect(fold(held, looked([sampleLeg('refused'), sampleLeg('ambiguous', 2)])).hold).not.toBeNull();
    const spent = reasonAfter(opened(ambiguous('key-meta')), time(AT + HOUR_MS));
    expect(spent).toBe('look-up-deadline');
    const late = fold(opened(ambiguous('key-meta')), time(AT + HOUR_MS), looked([sampleLeg('notSent')]));
    expect(late.hold).toBeNull();
  });

  it('is held where a repeatable tool has used its legs or is to be cancelled', () => {
    expect(opened(ambiguous('repeatable', 2)).state).toBe('SUBMISSION_UNKNOWN');
    expect(opened(ambiguous('repeatable', 3)).hold?.reason).toBe('ambiguous-submission');
    const asked = fold(opened(ambiguous('repeatable')), sampleFact('cancelRequested', sampleRow()));
    expect(asked.hold?.reason).toBe('ambiguous-submission');
    const keyed = fold(opened(ambiguous('key-meta', 4)), sampleFact('cancelRequested', sampleRow()));
    expect(keyed.state).toBe('SUBMISSION_UNKNOWN');
  });

  it('is looked up by a tool until the deadline, whether or not a cancel was raised', () => {
    for (const more of [{}, { cancelGeneration: 1 }]) {
      const unknown = opened(ambiguous('lookup-tool', 3, more));
      expect(unknown.state).toBe('SUBMISSION_UNKNOWN');
      expect(nextStep(unknown, AT)).toMatchObject({ kind: 'lookUp', deadlineAt: AT + 10 * MINUTE_MS });
      expect(reasonAfter(unknown, time(AT + 10 * MINUTE_MS))).toBe('look-up-deadline');
    }
  });

  it('is held where a raised generation bars the resend, while a list can still be read', () => {
    const raised = { cancelGeneration: 1 };
    for (const policy of ['key-argument', 'key-meta', 'request-id', 'repeatable'] as const) {
      expect(opened(ambiguous(policy, 1, raised)).hold?.reason).toBe('ambiguous-submission');
    }
    expect(opened(ambiguous('session-list', 1, raised)).state).toBe('SUBMISSION_UNKNOWN');
    expect(opened(ambiguous('operation-list', 1, raised)).state).toBe('SUBMISSION_UNKNOWN');
  });

  it('is held as soon as its request id may be forgotten, and is looked up from then on', () => {
    const POLICY_30S = { ...sampleRow().policy, requestIdWindowMs: 30_000 };
    const row = ambiguous('request-id', 2, { policy: POLICY_30S });
    const unknown = opened({
      ...row,
      legs: row.legs.map((leg) => ({ ...leg, claimedAt: AT - 10_000 + leg.leg })),
    });
    expect(unknown.state).toBe('SUBMISSION_UNKNOWN');
    expect(reasonAfter(unknown, time(AT + 17_000))).toBeNull();
    const held = fold(unknown, time(AT + 17_001));
    expect(held.hold).toMatchObject({
      reason: 'ambiguous-submission',
      evidence: 'the server may have forgotten the request id, so it is not sent again (leg 2 ambiguous)',
    });
    const dueAt = held.hold?.nextRecheckAt ?? 0;
    expect(nextStep(held, dueAt)).toEqual({ kind: 'lookUp', notBeforeAt: null, deadlineAt: dueAt });
    // An hour where nothing is said.
    const hour = opened(ambiguous('request-id'));
    expect(hour.hold).toBeNull();
  });

  it('is held when the look-up budget, counted from the first doubt, is spent', () => {
    for (const policy of [
      'key-argument',
      'request-id',
      'operation-list',
      'session-list',
      'repeatable',
    ] as const) {
      const unknown = fold(opened(ambiguous(policy)), time(AT + 5 * MINUTE_MS));
      expect(unknown.lookUpDeadlineAt).toBe(AT + 10 * MINUTE_MS);
      expect(reasonAfter(unknown, time(AT + 10 * MINUTE_MS - 1))).toBeNull();
      expect(fold(unknown, time(AT + 10 * MINUTE_MS)).hold).toMatchObject({
        reason: 'look-up-deadline',
        evidence: 'leg 1 ambiguous',
        nextRecheckAt: AT + 20 * MINUTE_MS,
      });
    }
  });

  it('is looked up again after 10 min, doubling to 6 h, until the work is found', () => {
    const held = [
      opened(ambiguous('at-most-once')),
      fold(opened(ambiguous('session-list')), time(AT + 10 * MINUTE_MS)),
    ];
    for (let record of held) {
      const row = { ...ambiguous(record.submissionPolicy), executionEpoch: record.executionEpoch };
      const gaps = Array.from({ length: 7 }, () => {
        const dueAt = record.hold?.nextRecheckAt ?? 0;
        expect(nextStep(record, dueAt - 1)).toEqual({ kind: 'awaitOperator', untilAt: dueAt });
        expect(nextStep(record, dueAt)).toEqual({ kind: 'lookUp', notBeforeAt: null, deadlineAt: dueAt });
        record = fold(record, { kind: 'lookedUp', at: dueAt, row, finding: 'cannotTell', evidence: null });
        return ((record.hold?.nextRecheckAt ?? 0) - dueAt) / MINUTE_MS;
      });
      expect(gaps).toEqual([20, 40, 80, 160, 320, 360, 360]);
      const known = { ...row, legs: [sampleLeg('referenced')], remoteReference: REFERENCE };
      const at = record.hold?.nextRecheckAt ?? 0;
      const found = fold(record, { kind: 'lookedUp', at, row: known, finding: 'found', evidence: null });
      expect(found.hold).toBeNull();
      expect(found.heldMs).toBe(at - (record.hold?.sinceAt ?? 0));
    }
  });

  it('goes on when the store turns out to hold the reference, and the word given before is void', () => {
    const held = fold(opened(ambiguous('at-most-once')), sampleFact('operatorDecided', sampleRow()));
    const row = { ...ambiguous('at-most-once'), legs: [sampleLeg('referenced')], remoteReference: REFERENCE };
    const freed = fold(held, {
      kind: 'accepted',
      at: AT + 500,
      row,
      finding: 'refused',
      evidence: 'remoteId',
    });
    expect([freed.state, freed.operator, freed.heldMs]).toEqual(['WORKING', null, 500]);
  });
});

describe('a lost handle', () => {
  it('is held after three reads and one more through a fresh session', () => {
    const four = ['notFound', 'sessionLost', 'notFound', 'notFound'] as const;
    expect(looks(recordIn('WORKING'), ...four.slice(1)).state).toBe('WORKING');
    const held = looks(recordIn('WORKING'), ...four);
    expect(held.hold).toMatchObject({
      reason: 'handle-lost',
      evidence: 'the server does not know the reference',
      nextRecheckAt: AT + 10 * MINUTE_MS,
    });
    expect(held.sessionsRenewed).toBe(1);
    expect(
      looks(recordIn('WORKING'), 'notFound', 'notFound', 'roundClosed', 'notFound', 'notFound').hold,
    ).toBeNull();
  });

  it('is held at the third read where the one fresh session is used up', () => {
    const renewed = looks(recordIn('WORKING'), 'sessionLost', 'sessionLost', 'sessionLost', 'inputRequired');
    expect([renewed.sessionsRenewed, renewed.missedReads]).toEqual([1, 0]);
    expect(looks(renewed, 'notFound', 'notFound').hold).toBeNull();
    expect(looks(renewed, 'notFound', 'sessionLost', 'notFound').hold?.reason).toBe('handle-lost');
  });

  it('is held at the fourth lost session like at the fourth unknown reference, with the evidence given', () => {
    const once = looks(recordIn('WORKING'), 'sessionLost');
    expect([once.state, once.missedReads]).toEqual(['WORKING', 1]);
    const thrice = looks(once, 'sessionLost', 'sessionLost');
    expect([thrice.state, thrice.missedReads]).toEqual(['WORKING', 3]);
    expect(looks(thrice, 'sessionLost').hold).toMatchObject({
      reason: 'handle-lost',
      evidence: 'the server does not know the reference',
    });
    const said = fold(thrice, observed(WORKING, 'sessionLost', AT, { evidence: 'HTTP 404' }));
    expect(said.hold?.evidence).toBe('HTTP 404');
  });

  it('is expired at once from its expiry on, also where a later look says nothing of it', () => {
    const dated = fold(recordIn('WORKING'), observed(WORKING, 'roundClosed', AT, { expiresAt: AT + 10 }));
    expect(dated.expiresAt).toBe(AT + 10);
    expect(reasonAfter(dated, observed(WORKING, 'notFound', AT + 9))).toBeNull();
    expect(reasonAfter(dated, observed(WORKING, 'notFound', AT + 10))).toBe('expired');
    expect(reasonAfter(dated, observed(WORKING, 'sessionLost', AT + 10))).toBe('expired');
    expect(fold(dated, observed(WORKING, 'notFound', AT + 10)).hold?.nextRecheckAt).toBeNull();
    const moved = fold(dated, observed(WORKING, 'roundClosed', AT, { expiresAt: AT + 20 }));
    expect(reasonAfter(moved, observed(WORKING, 'notFound', AT + 10))).toBeNull();
  });

  it('matters no more once the end is known', () => {
    const over = opened(ROWS.TERMINAL_OBSERVED);
    const again = observed(ROWS.TERMINAL_OBSERVED, 'sessionLost');
    expect(fold(over, again, again, again).hold).toBeNull();
    const broken = observed(ROWS.TERMINAL_OBSERVED, 'violation');
    expect(fold(over, broken, broken, broken, broken).hold).toBeNull();
  });
});

describe('a broken contract', () => {
  it('is held at the third violation in a row', () => {
    expect(looks(recordIn('WORKING'), 'violation', 'violation').hold).toBeNull();
    expect(looks(recordIn('WORKING'), 'violation', 'violation', 'roundClosed', 'violation').hold).toBeNull();
    expect(looks(recordIn('WORKING'), 'violation', 'violation', 'violation').hold).toMatchObject({
      reason: 'protocol-violation',
      evidence: 'a reply broke the contract',
      nextRecheckAt: AT + 10 * MINUTE_MS,
    });
    const said = fold(
      looks(recordIn('WORKING'), 'violation', 'violation'),
      observed(WORKING, 'violation', AT, { evidence: 'no id' }),
    );
    expect(said.hold?.evidence).toBe('no id');
  });

  it('by a status too large to be read is held for its size at the third one, and never looked at again', () => {
    const unread = { ...observed(WORKING, 'violation'), tooLarge: 'more than 7 bytes' } as Fact;
    expect(fold(recordIn('WORKING'), unread, unread).hold).toBeNull();
    expect(fold(recordIn('WORKING'), unread, unread, unread).hold).toMatchObject({
      reason: 'result-too-large',
      evidence: 'more than 7 bytes',
      nextRecheckAt: null,
    });
  });
});

describe('budgets', () => {
  const cancelling = (reply: 'acknowledged' | 'unsupported'): ToolOperation => {
    const row = { ...WORKING, cancelGeneration: 1, cancelDelivery: reply } as const;
    return fold(recordIn('WORKING'), sampleFact('cancelRequested', WORKING), {
      kind: 'cancelSent',
      at: AT,
      row,
      reply,
    });
  };

  it('ask for a cancel themselves when the wait budget is spent', () => {
    const dueAt = WORKING.createdAt + 2 * HOUR_MS;
    expect(fold(recordIn('WORKING'), time(dueAt - 1)).cancelAsked).toBeNull();
    const asked = fold(recordIn('WORKING'), time(dueAt));
    expect(asked.cancelAsked).toEqual({ reason: 'wait-budget', requestedBy: 'executor', at: dueAt });
    expect(asked.state).toBe('CANCEL_REQUESTED');
  });

  it('ask for a cancel when a question’s deadline has passed', () => {
    const dueAt = ROWS.INPUT_REQUIRED.rounds[0]?.deadlineAt ?? 0;
    expect(fold(recordIn('INPUT_REQUIRED'), time(dueAt - 1)).cancelAsked).toBeNull();
    const asked = fold(recordIn('INPUT_REQUIRED'), time(dueAt));
    expect(asked.cancelAsked).toEqual({ reason: 'input-deadline', requestedBy: 'executor', at: dueAt });
  });

  it('ask for a cancel when the first of several open questions has passed its deadline', () => {
    const rounds = [sampleRound('a', { deadlineAt: AT + 5 }), sampleRound('b', { deadlineAt: AT + 9 })];
    const asked = fold(opened({ ...WORKING, rounds }), time(AT + 5));
    expect(asked.cancelAsked?.reason).toBe('input-deadline');
  });

  it('hold a cancel that never settles', () => {
    const told = fold(
      cancelling('acknowledged'),
      observed({ ...WORKING, cancelGeneration: 1, cancelDelivery: 'acknowledged' }, 'deadlinePassed', AT, {
        remoteStatus: 'working',
      }),
    );
    expect(reasonAfter(told, time(AT + 12 * MINUTE_MS - 1))).toBeNull();
    expect(fold(told, time(AT + 12 * MINUTE_MS)).hold).toMatchObject({
      reason: 'cancel-never-settled',
      evidence: 'cancel acknowledged, still working',
      nextRecheckAt: AT + 22 * MINUTE_MS,
    });
  });

  it('hold what cannot be cancelled at the end of the wait budget', () => {
    const dueAt = WORKING.createdAt + 2 * HOUR_MS;
    expect(reasonAfter(cancelling('unsupported'), time(dueAt - 1))).toBeNull();
    expect(fold(cancelling('unsupported'), time(dueAt)).hold).toMatchObject({
      reason: 'wait-budget',
      evidence: 'the wait budget is spent and the server cannot cancel',
      nextRecheckAt: dueAt + 10 * MINUTE_MS,
    });
  });

  it('hold a result that never comes, and one that is lost', () => {
    const seen = recordIn('TERMINAL_OBSERVED');
    expect(seen.fetchDeadlineAt).toBe(AT + 7 * MINUTE_MS);
    const tried = fold(seen, sampleFact('resultFetched, not yet', ROWS.TERMINAL_OBSERVED));
    expect(reasonAfter(tried, time(AT + 7 * MINUTE_MS - 1))).toBeNull();
    expect(fold(tried, time(AT + 7 * MINUTE_MS)).hold).toMatchObject({
      reason: 'result-lost',
      evidence: 'the fetch budget is spent without a whole result',
      nextRecheckAt: null,
    });
    const lost = sampleFact('resultFetched, lost', ROWS.TERMINAL_OBSERVED);
    expect(fold(seen, lost).hold).toMatchObject({
      reason: 'result-lost',
      evidence: 'the server no longer holds the result',
    });
    expect(fold(seen, { ...lost, evidence: 'gone' } as Fact).hold?.evidence).toBe('gone');
    expect(reasonAfter(recordIn('FETCHING_RESULT'), time(AT + HOUR_MS))).toBeNull();
    const cancelled = { ...WORKING, terminalObservation: terminal('cancelled') };
    expect(reasonAfter(opened(cancelled), time(AT + HOUR_MS))).toBeNull();
  });

  it('hold a result that is too large at once, whichever step met it, and never look again', () => {
    const row = ROWS.TERMINAL_OBSERVED;
    const hold = { reason: 'result-too-large', evidence: 'more than 7 bytes', nextRecheckAt: null };
    const fetched = fold(recordIn('TERMINAL_OBSERVED'), sampleFact('resultFetched, too large', row));
    expect([fetched.state, fetched.hold]).toMatchObject(['UNRESOLVED', hold]);
    const tooLarge = { tooLarge: 'more than 7 bytes' };
    const seen = fold(recordIn('WORKING'), { ...observed(row, 'terminal'), ...tooLarge } as Fact);
    expect([seen.state, seen.hold]).toMatchObject(['UNRESOLVED', hold]);
    // The result is there after all, or the end is accepted: nothing is held.
    const stored = { ...observed(ROWS.FETCHING_RESULT, 'terminal'), ...tooLarge } as Fact;
    expect(fold(recordIn('WORKING'), stored).hold).toBeNull();
    const nothing = { ...sampleFact('resultFetched, too large', row), evidence: null } as Fact;
    expect(fold(recordIn('TERMINAL_OBSERVED'), nothing).hold?.evidence).toBe('');
  });

  it('hold a submission whose reply was too large, unless its work is found', () => {
    const row = sampleRow({ legs: [sampleLeg('ambiguous')], submissionPolicy: 'repeatable' });
    const fact: Fact = { kind: 'submitted', at: AT, row, tooLarge: 'more than 7 bytes' };
    expect(fold(recordIn('SUBMITTING'), fact)).toMatchObject({
      state: 'UNRESOLVED',
      hold: { reason: 'result-too-large', evidence: 'more than 7 bytes', nextRecheckAt: null },
    });
    const found: Fact = { ...fact, row: { ...ROWS.WORKING, legs: row.legs } };
    expect(fold(recordIn('SUBMITTING'), found)).toMatchObject({ state: 'WORKING', hold: null });
    const ended: Fact = { ...fact, row: { ...row, terminalObservation: terminal('completed') } };
    expect(fold(recordIn('SUBMITTING'), ended).hold).toBeNull();
  });

  it('fetch at least once, and never past the expiry', () => {
    const row = ROWS.TERMINAL_OBSERVED;
    const expiring = { ...recordIn('WORKING'), expiresAt: AT + MINUTE_MS };
    const seen = fold(expiring, { ...observed(row, 'terminal'), expiresAt: null } as Fact);
    expect(seen.fetchDeadlineAt).toBe(AT + MINUTE_MS);
    expect(reasonAfter(seen, time(AT + HOUR_MS))).toBeNull();
    const tried = fold(seen, sampleFact('resultFetched, not yet', row));
    expect(reasonAfter(tried, time(AT + MINUTE_MS - 1))).toBeNull();
    expect(reasonAfter(tried, time(AT + MINUTE_MS))).toBe('result-lost');
    const expired = fold({ ...expiring, expiresAt: AT - 1 }, {
      ...observed(row, 'terminal'),
      expiresAt: null,
    } as Fact);
    expect(expired.fetchDeadlineAt).toBe(AT);
  });

  it('fall back to the limits where a record has no policy', () => {
    const bare = (state: 'TERMINAL_OBSERVED' | 'SUBMISSION_UNKNOWN'): ToolOperation =>
      fold({ ...recordIn(state), policy: null, fetchDeadlineAt: null, lookUpDeadlineAt: null }, time(AT));
    expect(bare('TERMINAL_OBSERVED').fetchDeadlineAt).toBe(AT + 10 * MINUTE_MS);
    expect(bare('SUBMISSION_UNKNOWN').lookUpDeadlineAt).toBe(AT + 10 * MINUTE_MS);
    expect(fold({ ...recordIn('WORKING'), policy: null }, time(AT + 99 * HOUR_MS)).state).toBe('WORKING');
  });
});

describe('a refused acceptance', () => {
  const refused = (record: ToolOperation, times: number, evidence: string | null = null): ToolOperation =>
    Array.from({ length: times }).reduce<ToolOperation>(
      (seen) =>
        fold(seen, { kind: 'accepted', at: AT + 5, row: ROWS.FETCHING_RESULT, finding: 'refused', evidence }),
      record,
    );

  it('is tried again twice, then held', () => {
    const accepted = fold(recordIn('FETCHING_RESULT'), sampleFact('accepted', ROWS.FETCHING_RESULT));
    expect(accepted.acceptRefusals).toBe(0);
    expect(refused(recordIn('FETCHING_RESULT'), 2).state).toBe('FETCHING_RESULT');
    const held = refused(recordIn('FETCHING_RESULT'), 3);
    expect(held.hold).toMatchObject({
      reason: 'acceptance-refused',
      evidence: 'the store holds other facts',
      nextRecheckAt: null,
    });
    expect(refused(recordIn('FETCHING_RESULT'), 3, 'resultDigest').hold?.evidence).toBe('resultDigest');
  });

  it('voids the word that led to it, so that nobody retries without end', () => {
    const word = fold(refused(recordIn('FETCHING_RESULT'), 3), sampleFact('operatorDecided', WORKING));
    expect(nextStep(word, AT).kind).toBe('accept');
    const again = refused(word, 1);
    expect([again.operator, nextStep(again, AT).kind]).toEqual([null, 'awaitOperator']);
    const verdict = apply(again, sampleFact('operatorDecided', WORKING)).verdict;
    expect(verdict).toEqual({ kind: 'folded' });
  });
});

describe('a held operation', () => {
  const held = recordIn('UNRESOLVED');

  it('looks again after 10 min, doubling to 6 h, whatever the look finds short of news', () => {
    const kinds = ['notFound', 'sessionLost', 'violation', 'deadlinePassed'] as const;
    for (const finding of kinds) {
      const row = { ...WORKING, cancelGeneration: 1, cancelDelivery: 'unsupported' } as const;
      let record = fold(opened(row), time(WORKING.createdAt + 2 * HOUR_MS));
      expect(record.hold?.reason).toBe('wait-budget');
      const gaps = Array.from({ length: 7 }, () => {
        record = fold(record, observed(row, finding, AT + 3 * HOUR_MS));
        return ((record.hold?.nextRecheckAt ?? 0) - AT - 3 * HOUR_MS) / MINUTE_MS;
      });
      expect(gaps).toEqual([20, 40, 80, 160, 320, 360, 360]);
      expect(record.hold).toMatchObject({ reason: 'wait-budget', rechecks: 7 });
    }
  });

  it('is freed by a terminal observation, whatever the finding that came with it', () => {
    const row = { ...WORKING, terminalObservation: terminal('completed') };
    for (const finding of ['terminal', 'notFound', 'violation', 'sessionLost'] as const) {
      expect(fold(held, observed(row, finding, AT + 700))).toMatchObject({
        state: 'TERMINAL_OBSERVED',
        heldMs: 700,
      });
    }
  });

  it('is freed by a good sighting only where its handle was lost', () => {
    expect(fold(held, observed(WORKING, 'deadlinePassed', AT + 1)).state).toBe('UNRESOLVED');
    const seen = observed(WORKING, 'deadlinePassed', AT + 700, { remoteStatus: 'working' });
    expect(fold(held, seen)).toMatchObject({ state: 'WORKING', heldMs: 700 });
    const broken = looks(recordIn('WORKING'), 'violation', 'violation', 'violation');
    expect(fold(broken, seen).state).toBe('UNRESOLVED');
  });

  it('counts held time out of the wait budget, and never counts backwards', () => {
    const freed = fold(held, observed(WORKING, 'roundClosed', AT + HOUR_MS));
    const step = nextStep(freed, AT + HOUR_MS);
    expect(step).toMatchObject({ kind: 'observe', deadlineAt: WORKING.createdAt + 3 * HOUR_MS });
    expect(fold(held, observed(WORKING, 'roundClosed', AT - HOUR_MS)).heldMs).toBe(0);
    const missed = ['sessionLost', 'notFound', 'sessionLost'] as const;
    const twice = looks(fold(held, observed(WORKING, 'roundClosed', AT + 30)), ...missed);
    expect(fold(twice, observed(WORKING, 'roundClosed', AT + 70)).heldMs).toBe(30 + 70);
  });

  it('leaves its hold to be cancelled where the remote work can be named', () => {
    const freed = fold(held, { kind: 'cancelRequested', at: AT + 60, reason: 'x', requestedBy: 'y' });
    expect([freed.state, freed.hold, freed.heldMs]).toEqual(['CANCEL_REQUESTED', null, 60]);
    const bare = opened(sampleRow({ legs: [sampleLeg('ambiguous')], submissionPolicy: 'at-most-once' }));
    const asked = fold(bare, sampleFact('cancelRequested', sampleRow()));
    expect([asked.state, asked.cancelAsked?.reason]).toEqual(['UNRESOLVED', 'enough']);
    expect([asked.hold, asked.heldMs]).toEqual([bare.hold, 0]);
  });

  it('keeps the first reason, and clips what it remembers', () => {
    const long = fold(
      looks(recordIn('WORKING'), 'violation', 'violation'),
      observed(WORKING, 'violation', AT, { evidence: 'x'.repeat(900) }),
    );
    expect(long.hold?.evidence.length).toBe(400);
    const lost = fold(long, sampleFact('resultFetched, lost', WORKING));
    expect(lost.hold).toMatchObject({ reason: 'protocol-violation', rechecks: 1 });
    expect(POLICY.onUnresolved.kind).toBe('hold');
  });
});

describe('Retry-After of a server', () => {
  it('and its interval space the look after a miss or a violation, never under our own 3 s', () => {
    const nextLook = (
      finding: ObserveFinding,
      lastIntervalMs: number | null,
      notBeforeAt?: number,
    ): number | null => {
      const cursor = { ...CURSOR, lastIntervalMs };
      const seen = observed(WORKING, finding, AT, { cursor });
      const fact: Fact = notBeforeAt === undefined ? seen : { ...seen, notBeforeAt };
      return (fold(recordIn('WORKING'), fact).nextLookAt ?? 0) - AT;
    };
    for (const finding of ['notFound', 'sessionLost', 'violation'] as const) {
      expect(nextLook(finding, null)).toBe(3_000);
      expect(nextLook(finding, 1_000)).toBe(3_000);
      expect(nextLook(finding, 60_000)).toBe(60_000);
      expect(nextLook(finding, 60_000, AT + 90_000)).toBe(90_000);
      expect(nextLook(finding, 60_000, AT + 1)).toBe(60_000);
    }
  });

  it('is kept by resends, cancels and fetches where it is longer than our own spacing', () => {
    const unknown = { ...ROWS.SUBMISSION_UNKNOWN, submissionPolicy: 'key-meta' } as const;
    const submitted = (notBeforeAt: number): Fact => ({
      kind: 'submitted',
      at: AT,
      row: unknown,
      notBeforeAt,
    });
    expect(fold(recordIn('SUBMITTING'), submitted(AT + 8_000)).nextLookUpAt).toBe(AT + 8_000);
    expect(fold(recordIn('SUBMITTING'), submitted(AT + 1)).nextLookUpAt).toBe(AT + 2_000);
    const cancelling = { ...WORKING, cancelGeneration: 1, cancelDelivery: 'acknowledged' } as const;
    const lost: Fact = {
      kind: 'cancelSent',
      at: AT,
      row: cancelling,
      reply: 'lost',
      notBeforeAt: AT + 7_000,
    };
    expect(fold(recordIn('CANCEL_REQUESTED'), lost).nextCancelAt).toBe(AT + 7_000);
    const seen: Fact = { ...observed(ROWS.TERMINAL_OBSERVED, 'terminal'), notBeforeAt: AT + 6_000 };
    const ended = fold(recordIn('WORKING'), seen);
    expect(nextStep(ended, AT)).toEqual({ kind: 'fetchResult', notBeforeAt: AT + 6_000 });
  });
});
