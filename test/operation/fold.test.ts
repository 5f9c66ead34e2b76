// Owns the tests of what a fact leaves in the record: the row as it stands, what was said last, who asked what.
// Must never look at the next step.

import { describe, expect, it } from 'vitest';
import { apply } from '../../operation/apply.js';
import type { Fact } from '../../operation/facts.js';
import { foldRow, isBehind } from '../../operation/fold-row.js';
import type { InputRound, RowSnapshot } from '../../operation/row.js';
import { CURSOR, MINUTE_MS, REFERENCE, RESULT, sampleLeg, sampleRound, sampleRow, T0 } from './sample-row.js';
import type { ToolOperation } from '../../operation/record.js';
import {
  AT,
  fold,
  observed,
  opened,
  recordIn,
  ROWS,
  sampleFact,
  sampleReceipt,
  startedRecord,
  terminal,
} from './sample-facts.js';

describe('the row', () => {
  it('enters the record whole', () => {
    const row: RowSnapshot = sampleRow({
      createdAt: T0 - 7,
      executionEpoch: 3,
      ownerRunId: 'run-3',
      legs: [sampleLeg('referenced')],
      remoteReference: REFERENCE,
      rounds: [sampleRound('round-1')],
      cancelGeneration: 2,
      cancelReason: 'enough',
      cancelDelivery: 'refused',
      terminalObservation: terminal('failed'),
      rejection: { code: 'operator', message: 'no' },
      result: RESULT,
      provedAbsentAtLeg: 1,
      receipt: sampleReceipt('ACCEPTED', 'failed'),
    });
    const { legs, ...rest } = row;
    const record = foldRow(startedRecord(), row);
    expect(record).toMatchObject({ ...rest, submissionLegs: legs });
    expect(record.waitingReplies).toEqual([]);
  });

  const reply = {
    replyDigest: 'r',
    replyToken: 't',
    action: 'accept',
    recordedAt: T0,
    sendingAt: T0,
  } as const;

  it('never makes a round forget what the record knows of it', () => {
    const merged = (known: Partial<InputRound>, read: Partial<InputRound>): InputRound | undefined => {
      const record = opened({
        ...ROWS.WORKING,
        rounds: [sampleRound('other'), sampleRound('round-1', known)],
      });
      return foldRow(record, {
        ...ROWS.WORKING,
        rounds: [sampleRound('other'), sampleRound('round-1', read)],
      }).rounds[1];
    };
    const recorded = { reply: { ...reply, deliveredAt: null } };
    const delivered = { reply: { ...reply, deliveredAt: T0 + 1 } };
    expect(merged(delivered, recorded)).toMatchObject(delivered);
    expect(merged(delivered, {})).toMatchObject(delivered);
    expect(merged(recorded, delivered)).toMatchObject(delivered);
    expect(merged(recorded, {})).toMatchObject(recorded);
    expect(merged({}, recorded)).toMatchObject(recorded);
    expect(merged({ closedAt: 5 }, {})?.closedAt).toBe(5);
    expect(merged({ closedAt: 5 }, { closedAt: 6 })?.closedAt).toBe(6);
    expect(merged({}, { closedAt: 6, question: null })).toMatchObject({ closedAt: 6, question: null });
  });

  it('takes a new round as it is read', () => {
    const record = foldRow(recordIn('WORKING'), { ...ROWS.WORKING, rounds: [sampleRound('new')] });
    expect(record.rounds).toEqual([sampleRound('new')]);
  });
});

describe('a row older than the record', () => {
  const full = sampleRow({
    executionEpoch: 2,
    legs: [sampleLeg('referenced')],
    remoteReference: REFERENCE,
    rounds: [sampleRound('round-1')],
    cancelGeneration: 1,
    terminalObservation: terminal('completed'),
    result: RESULT,
    receipt: sampleReceipt('ACCEPTED', 'completed'),
  });

  it('is told by each thing it has lost', () => {
    const record = foldRow(startedRecord(), full);
    const lost = (changes: Partial<RowSnapshot>): string | null =>
      isBehind(record, { ...full, ...changes }, false);
    expect(lost({})).toBeNull();
    expect(lost({ executionEpoch: 1 })).toBe('the row holds an older execution epoch');
    expect(lost({ legs: [] })).toBe('the row misses a submission leg');
    expect(lost({ remoteReference: null })).toBe('the row misses the remote reference');
    expect(lost({ rounds: [] })).toBe('the row misses an input round');
    expect(lost({ cancelGeneration: 0 })).toBe('the row holds an older cancel generation');
    expect(lost({ terminalObservation: null })).toBe('the row misses the terminal observation');
    expect(lost({ result: null })).toBe('the row misses the result');
    expect(lost({ receipt: null })).toBe('the row misses the receipt');
    expect(isBehind(startedRecord(), sampleRow(), true)).toBeNull();
  });

  it('flags the ledger, folds nothing, and keeps the time of the first flag', () => {
    const record = recordIn('WORKING');
    const behind = fold(record, {
      kind: 'submitted',
      at: AT,
      row: { ...sampleRow(), adapter: 'synchronous' },
    });
    expect(behind).toEqual({
      ...record,
      state: 'SUBMISSION_UNKNOWN',
      ledgerBehind: {
        at: AT,
        evidence: 'the row misses a submission leg',
        rechecks: 0,
        nextRecheckAt: AT + 30_000,
      },
    });
    const again = fold(behind, { kind: 'ledgerMissing', at: AT + 9, evidence: 'no row' });
    expect(again).toEqual({
      ...behind,
      ledgerBehind: { at: AT, evidence: 'no row', rechecks: 1, nextRecheckAt: AT + 9 + 60_000 },
    });
    const long = fold(record, { kind: 'ledgerMissing', at: AT, evidence: 'x'.repeat(900) });
    expect(long.ledgerBehind?.evidence.length).toBe(400);
  });

  it('is looked for again after 30 s, doubling to 6 h', () => {
    let record = recordIn('WORKING');
    const gaps = Array.from({ length: 12 }, (_, time) => {
      record = fold(record, { kind: 'ledgerMissing', at: AT + time, evidence: 'no row' });
      return ((record.ledgerBehind?.nextRecheckAt ?? 0) - AT - time) / 30_000;
    });
    expect(gaps).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 720, 720]);
    expect(record.ledgerBehind).toMatchObject({ at: AT, rechecks: 11 });
  });

  it('is forgotten once an opened row is behind no more, wherever that row stands on its course', () => {
    const missing: Fact = { kind: 'ledgerMissing', at: AT, evidence: 'no row' };
    const states = Object.keys(ROWS).filter((state) => state !== 'UNRESOLVED') as (keyof typeof ROWS)[];
    for (const state of states) {
      const behind = fold(recordIn('SUBMITTING'), missing);
      const found = fold(behind, { kind: 'opened', at: AT + 1, row: ROWS[state] });
      expect([found.state, found.ledgerBehind]).toEqual([state, null]);
    }
    const behind = fold(recordIn('CANCEL_REQUESTED'), missing);
    const cancelling = fold(behind, { kind: 'opened', at: AT + 1, row: ROWS.CANCEL_REQUESTED });
    expect([cancelling.state, cancelling.ledgerBehind]).toEqual(['CANCEL_REQUESTED', null]);
    const still = fold(behind, { kind: 'opened', at: AT + 1, row: ROWS.WORKING });
    expect(still.ledgerBehind).toMatchObject({
      evidence: 'the row holds an older cancel generation',
      rechecks: 1,
    });
    const other = fold(behind, { kind: 'submitted', at: AT + 1, row: ROWS.CANCEL_REQUESTED });
    expect([other.state, other.ledgerBehind]).toEqual(['SUBMISSION_UNKNOWN', behind.ledgerBehind]);
    const anew = fold(cancelling, { ...missing, at: AT + 9 });
    expect(anew.ledgerBehind).toMatchObject({ at: AT + 9, rechecks: 0, nextRecheckAt: AT + 30_009 });
  });

  it('cannot take back an end', () => {
    const over = recordIn('ACCEPTED');
    expect(fold(over, { kind: 'ledgerMissing', at: AT, evidence: 'no row' })).toBe(over);
    expect(fold(over, { kind: 'submitted', at: AT, row: sampleRow() })).toBe(over);
  });

  it('needs no more steps: neither time nor policy moves it', () => {
    const behind = fold(recordIn('SUBMISSION_UNKNOWN'), {
      kind: 'ledgerMissing',
      at: AT,
      evidence: 'no row',
    });
    const later = fold(behind, { kind: 'timePassed', at: AT + 60 * MINUTE_MS });
    expect([later.state, later.hold]).toEqual(['SUBMISSION_UNKNOWN', null]);
  });
});

describe('an observation', () => {
  it('leaves what was said last, and never unsays it', () => {
    const said = { remoteStatus: 'working', statusMessage: 'half way', expiresAt: 77 };
    const record = fold(recordIn('WORKING'), observed(ROWS.WORKING, 'roundClosed', AT, said));
    expect(record).toMatchObject({ ...said, pollCursor: CURSOR });
    expect(fold(record, observed(ROWS.WORKING, 'roundClosed'))).toMatchObject(said);
    const long = fold(record, observed(ROWS.WORKING, 'roundClosed', AT, { statusMessage: 'x'.repeat(900) }));
    expect(long.statusMessage?.length).toBe(300);
  });

  it('that is good forgets the reads that found nothing, but not the renewed session', () => {
    const facts = ['notFound', 'sessionLost', 'notFound', 'violation'] as const;
    const doubtful = fold(recordIn('WORKING'), ...facts.map((finding) => observed(ROWS.WORKING, finding)));
    expect([doubtful.missedReads, doubtful.violations, doubtful.sessionsRenewed]).toEqual([3, 1, 1]);
    expect(doubtful.state).toBe('WORKING');
    const good = fold(doubtful, observed(ROWS.WORKING, 'deadlinePassed', AT, { remoteStatus: 'working' }));
    expect(good).toMatchObject({
      missedReads: 0,
      violations: 0,
      nextLookAt: null,
      sessionsRenewed: 1,
    });
  });

  it('whose deadline passed without one answered look changes no count, and has renewed no session', () => {
    const misses = (['notFound', 'notFound', 'notFound'] as const).map((finding) =>
      observed(ROWS.WORKING, finding),
    );
    const missed = fold(recordIn('WORKING'), ...misses, observed(ROWS.WORKING, 'deadlinePassed', AT + 1));
    expect(missed).toMatchObject({ missedReads: 3, sessionsRenewed: 0, nextLookAt: AT + 5_000, hold: null });
    expect(fold(missed, observed(ROWS.WORKING, 'notFound', AT + 2)).hold?.reason).toBe('handle-lost');
  });

  it('that is broken off leaves the next look clear of it by the interval that is known, or by the floor', () => {
    const interval = { ...CURSOR, lastIntervalMs: 20_000, nextPollNotBeforeAt: AT + 4 };
    const known = { ...recordIn('WORKING'), pollCursor: interval };
    for (const kind of ['interrupted', 'superseded'] as const) {
      const next = fold(known, { kind, at: AT + 9 });
      expect(next.pollCursor).toEqual({ ...interval, nextPollNotBeforeAt: AT + 20_009 });
      const later = { ...known, pollCursor: { ...interval, nextPollNotBeforeAt: AT + 90_000 } };
      expect(fold(later, { kind, at: AT + 9 }).pollCursor).toEqual(later.pollCursor);
      const unknown = fold(recordIn('WORKING'), { kind, at: AT + 9 });
      expect(unknown.pollCursor.nextPollNotBeforeAt).toBe(AT + 1_009);
      const unsent = recordIn('SUBMITTING');
      expect(fold(unsent, { kind, at: AT + 9 }).pollCursor).toEqual(unsent.pollCursor);
    }
  });

  it('counts a lost session and an unknown reference alike as misses, and the fresh session once', () => {
    const missed = (...findings: readonly ('notFound' | 'sessionLost')[]): (number | string)[] => {
      const record = fold(recordIn('WORKING'), ...findings.map((finding) => observed(ROWS.WORKING, finding)));
      return [record.missedReads, record.sessionsRenewed, record.state];
    };
    expect(missed('sessionLost')).toEqual([1, 0, 'WORKING']);
    expect(missed('sessionLost', 'notFound', 'sessionLost')).toEqual([3, 0, 'WORKING']);
    expect(missed('sessionLost', 'notFound', 'sessionLost', 'notFound')).toEqual([4, 1, 'UNRESOLVED']);
    const held = recordIn('UNRESOLVED');
    expect(fold(held, observed(ROWS.WORKING, 'notFound')).sessionsRenewed).toBe(1);
  });

  it('counts the answers to a cancel', () => {
    const confirmed = fold(
      { ...recordIn('WORKING'), nextCancelAt: 5 },
      sampleFact('cancelSent, confirmed', ROWS.WORKING),
    );
    expect(confirmed).toMatchObject({ cancelSends: 1, nextCancelAt: null, settleDeadlineAt: null });
  });

  it('counts look-ups', () => {
    const looked = fold(
      recordIn('SUBMISSION_UNKNOWN'),
      sampleFact('lookedUp, cannot tell', ROWS.SUBMISSION_UNKNOWN),
    );
    expect(looked.lookUps).toBe(1);
  });
});

describe('a cancel', () => {
  const cancel: Fact = {
    kind: 'cancelRequested',
    at: AT,
    reason: 'r'.repeat(900),
    requestedBy: 'c'.repeat(900),
  };

  it('is remembered with its reason, by whom and when, in every state before the end is known', () => {
    for (const state of [
      'SUBMITTING',
      'SUBMISSION_UNKNOWN',
      'NOT_FOUND_SAFE',
      'WORKING',
      'INPUT_REQUIRED',
      'UNRESOLVED',
    ] as const) {
      const { record, verdict } = apply(recordIn(state), cancel);
      expect(verdict).toEqual({ kind: 'requested' });
      expect(record.cancelAsked).toEqual({
        reason: `${'r'.repeat(299)}…`,
        requestedBy: `${'c'.repeat(299)}…`,
        at: AT,
      });
      expect(apply(record, { ...cancel, at: AT + 1 })).toEqual({
        record,
        verdict: { kind: 'alreadyRequested' },
      });
    }
  });

  describe('asked for again', () => {
    const again: Fact = {
      kind: 'cancelRequested',
      at: AT + 5,
      reason: 'now',
      requestedBy: 'b',
      requestToken: 't2',
    };
    const raised = { cancelGeneration: 1, cancelReason: 'first', cancelDelivery: 'acknowledged' } as const;
    const cancelling = opened({ ...ROWS.WORKING, ...raised });
    const hold = {
      reason: 'cancel-never-settled',
      sinceAt: AT,
      evidence: 'e',
      rechecks: 0,
      nextRecheckAt: null,
    } as const;
    const held: ToolOperation = { ...cancelling, state: 'UNRESOLVED', hold };

    it('is taken up while held, as the next generation, for its own reason', () => {
      for (const reason of [
        'cancel-never-settled',
        'wait-budget',
        'handle-lost',
        'protocol-violation',
      ] as const) {
        const { record, verdict } = apply({ ...held, hold: { ...hold, reason } }, again);
        expect(verdict).toEqual({ kind: 'requested' });
        expect([record.state, record.hold, record.heldMs]).toEqual(['CANCEL_REQUESTED', null, 5]);
        expect(record.cancelAsked).toEqual({
          reason: 'now',
          requestedBy: 'b',
          at: AT + 5,
          generation: 2,
          requestToken: 't2',
        });
        expect(apply(record, again)).toEqual({ record, verdict: { kind: 'alreadyRequested' } });
      }
      const third = apply({ ...held, cancelGeneration: 2 }, again).record;
      expect(third.cancelAsked?.generation).toBe(3);
    });

    it.each([
      ['is on its way or watched', cancelling],
      ['is held where nothing can be named', { ...held, remoteReference: null }],
      ['is held because the store has forgotten', { ...held, hold: { ...hold, reason: 'ledger-behind' } }],
      [
        'is about to end by an operator’s word',
        { ...held, operator: { decision: 'close', remoteId: null, evidence: 'e', decidedBy: 'o' } },
      ],
      [
        'waits for its store to catch up',
        { ...held, ledgerBehind: { at: AT, evidence: 'e', rechecks: 0, nextRecheckAt: AT } },
      ],
    ] as const)('changes nothing where the operation %s', (_, record) => {
      expect(apply(record, again)).toEqual({ record, verdict: { kind: 'alreadyRequested' } });
    });

    it('begins its delivery anew, and a row that holds it is not older', () => {
      const row = { ...ROWS.WORKING, cancelGeneration: 2, cancelDelivery: 'unsent' } as const;
      const first = { generation: 1, reason: 'first', delivery: 'acknowledged' } as const;
      expect(isBehind(held, row, false)).toBeNull();
      expect(isBehind(held, { ...row, cancelGeneration: 1 }, false)).toBe(
        'the row holds an older delivery of the cancel',
      );
      expect(foldRow(held, { ...row, earlierCancels: [first] }).earlierCancels).toEqual([first]);
      expect(foldRow(held, row)).not.toHaveProperty('earlierCancels');
    });
  });

  it('is known already where another run raised it', () => {
    const record = recordIn('CANCEL_REQUESTED');
    expect(apply(record, cancel)).toEqual({ record, verdict: { kind: 'alreadyRequested' } });
  });

  it('is too late once the end was seen or accepted', () => {
    for (const state of [
      'TERMINAL_OBSERVED',
      'FETCHING_RESULT',
      'ACCEPTED',
      'CANCELLED_ACCEPTED',
      'REJECTED',
    ] as const) {
      const record = recordIn(state);
      expect(apply(record, cancel)).toEqual({ record, verdict: { kind: 'tooLate' } });
    }
  });
});

describe('an operator’s word', () => {
  const word: Fact = {
    kind: 'operatorDecided',
    at: AT,
    decision: { kind: 'neverCreated' },
    evidence: 'e'.repeat(900),
    decidedBy: 'o'.repeat(900),
  };

  it('counts only while held, and the first word wins', () => {
    const held = { ...recordIn('UNRESOLVED'), remoteReference: null };
    const { record, verdict } = apply(held, word);
    expect(verdict).toEqual({ kind: 'folded' });
    expect(record.operator).toEqual({
      decision: 'neverCreated',
      remoteId: null,
      evidence: `${'e'.repeat(399)}…`,
      decidedBy: `${'o'.repeat(299)}…`,
    });
    const second = apply(record, { ...word, decision: { kind: 'close' } });
    expect(second).toEqual({ record, verdict: { kind: 'ignored' } });
  });

  it('that nothing was created is ignored where the server named what it created; to close is not', () => {
    const held = recordIn('UNRESOLVED');
    expect(held.remoteReference).not.toBeNull();
    expect(apply(held, word)).toEqual({ record: held, verdict: { kind: 'ignored' } });
    expect(apply(held, { ...word, decision: { kind: 'close' } }).verdict).toEqual({ kind: 'folded' });
  });

  it('is ignored in every other state, also where the ledger is behind', () => {
    const states = Object.keys(ROWS).filter((state) => state !== 'UNRESOLVED') as (keyof typeof ROWS)[];
    for (const state of states) {
      const record = recordIn(state);
      expect(apply(record, word)).toEqual({ record, verdict: { kind: 'ignored' } });
    }
    const behind = fold(recordIn('UNRESOLVED'), { kind: 'ledgerMissing', at: AT, evidence: 'no row' });
    expect(apply(behind, word).verdict).toEqual({ kind: 'ignored' });
  });
});

describe('a run that was superseded', () => {
  it('loses its epoch and nothing else, counts it, and opens the row again from every state', () => {
    for (const state of Object.keys(ROWS) as (keyof typeof ROWS)[]) {
      const record = recordIn(state);
      const { record: next, verdict } = apply(record, { kind: 'superseded', at: AT });
      expect(verdict).toEqual({ kind: 'folded' });
      expect(next).toEqual({ ...record, pollCursor: next.pollCursor, executionEpoch: 0, takeovers: 1 });
      expect(fold(next, { kind: 'superseded', at: AT }).takeovers).toBe(2);
    }
  });

  it('goes on from wherever the other run has brought the row', () => {
    const superseded = fold(recordIn('WORKING'), { kind: 'superseded', at: AT });
    const row = { ...ROWS.FETCHING_RESULT, executionEpoch: 4, ownerRunId: 'run-4' };
    const next = fold(superseded, { kind: 'opened', at: AT, row });
    expect([next.state, next.executionEpoch, next.takeovers]).toEqual(['FETCHING_RESULT', 4, 1]);
  });
});

describe('a submission', () => {
  it('that was answered with a task brings the hint of the first look, its status and its expiry', () => {
    const seen = {
      remoteStatus: 'working',
      statusMessage: 'queued',
      expiresAt: AT + 9,
      lastIntervalMs: 5,
      nextPollNotBeforeAt: AT + 5,
    };
    const record = fold(recordIn('SUBMITTING'), { kind: 'submitted', at: AT, row: ROWS.WORKING, seen });
    expect(record).toMatchObject({ remoteStatus: 'working', statusMessage: 'queued', expiresAt: AT + 9 });
    expect(record.pollCursor).toEqual({
      ...recordIn('SUBMITTING').pollCursor,
      lastIntervalMs: 5,
      nextPollNotBeforeAt: AT + 5,
    });
    const unseen = fold(recordIn('SUBMITTING'), { kind: 'submitted', at: AT, row: ROWS.WORKING });
    expect(unseen).toMatchObject({ remoteStatus: null, expiresAt: null });
  });
});

describe('steps of our own', () => {
  it('are folded, and so are an interruption and the passing of time', () => {
    for (const name of ['opened', 'interrupted', 'timePassed']) {
      const record = recordIn('WORKING');
      const { record: next, verdict } = apply(record, sampleFact(name, ROWS.WORKING));
      expect([next, verdict]).toEqual([{ ...record, pollCursor: next.pollCursor }, { kind: 'folded' }]);
    }
  });
});
