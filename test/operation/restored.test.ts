// Owns the tests of a store that was restored from a backup: what shows it, what is never done, and how it ends.
// Must never wait: every time is a number in a fact.

import { describe, expect, it } from 'vitest';
import { apply } from '../../operation/apply.js';
import { decideEnd, buildReceipt } from '../../operation/build-receipt.js';
import type { Fact } from '../../operation/facts.js';
import { foldRow, isBehind } from '../../operation/fold-row.js';
import { nextStep } from '../../operation/next-step.js';
import { rulingOnClaim } from '../../operation/policy.js';
import { newOperation } from '../../operation/record.js';
import type { RowSnapshot } from '../../operation/row.js';
import { AT, fold, opened, recordIn, ROWS, sampleFact, startedRecord } from './sample-facts.js';
import { CURSOR, sampleLeg, sampleRound, sampleRow } from './sample-row.js';

const restored: Fact = { kind: 'storeRestored', at: AT + 5 };
const word = (decision: object): Fact => {
  const said = { kind: 'operatorDecided', at: AT + 50, decision, evidence: 'the log', decidedBy: 'Ann' };
  return said as Fact;
};
const empty = sampleRow();
const openedAt = (row: RowSnapshot, at = AT + 9): Fact => ({ kind: 'opened', at, row });

describe('news of a restored store', () => {
  it('has the row opened again before anything else, in every state that has not ended', () => {
    for (const state of [
      'SUBMITTING',
      'SUBMISSION_UNKNOWN',
      'WORKING',
      'INPUT_REQUIRED',
      'UNRESOLVED',
    ] as const) {
      const told = fold(recordIn(state), restored);
      expect([told.state, told.reopen, nextStep(told, AT + 5)]).toEqual([state, true, { kind: 'open' }]);
      const again = fold(told, openedAt(ROWS[state]));
      expect([again.state, again.reopen, again.ledgerBehind]).toEqual([state, false, null]);
    }
    const ended = recordIn('ACCEPTED');
    expect(fold(ended, restored)).toEqual(ended);
    // A run that has not had its row yet has nothing to compare.
    expect(fold(startedRecord(), restored)).toEqual(startedRecord());
  });

  it('is not forgotten over the outcome of a step that was under way', () => {
    const told = fold(recordIn('WORKING'), restored, sampleFact('observed, deadline', ROWS.WORKING));
    expect([told.reopen, nextStep(told, AT + 9)]).toEqual([true, { kind: 'open' }]);
    const missing = fold(told, { kind: 'ledgerMissing', at: AT + 9, evidence: 'lost' });
    expect([missing.state, nextStep(missing, AT + 9)]).toEqual(['SUBMISSION_UNKNOWN', { kind: 'open' }]);
    const gone = fold(told, { kind: 'ledgerMissing', at: AT + 9, evidence: 'lost', isOpening: true });
    expect([gone.reopen, nextStep(gone, AT + 9).kind]).toEqual([false, 'awaitOperator']);
  });

  it('has a row that is known to be behind opened again at once', () => {
    const behind = fold(recordIn('WORKING'), openedAt(empty));
    expect(nextStep(behind, AT + 10).kind).toBe('awaitOperator');
    expect(nextStep(fold(behind, restored), AT + 10)).toEqual({ kind: 'open' });
  });
});

describe('a row that is older than its run', () => {
  const delivered = {
    replyDigest: 'd',
    replyToken: 't',
    action: 'accept',
    recordedAt: 1,
    sendingAt: 2,
  } as const;
  const round = sampleRound('a', { reply: { ...delivered, deliveredAt: 3 }, closedAt: 4 });
  const full = sampleRow({
    legs: [sampleLeg('refused')],
    rounds: [round],
    cancelGeneration: 1,
    cancelDelivery: 'refused',
    rejection: { code: 'refused-by-server', message: 'no' },
  });
  const lost = (changes: Partial<RowSnapshot>, isOpening = true): string | null =>
    isBehind(foldRow(startedRecord(), full), { ...full, ...changes }, isOpening);

  it('is told by each thing it has lost', () => {
    expect(lost({})).toBeNull();
    expect(lost({ rejection: null })).toBe('the row misses the rejection');
    expect(lost({ legs: [sampleLeg('open')] })).toBe('the row misses the end of a submission leg');
    expect(lost({ legs: [{ ...sampleLeg('refused'), claimToken: 'other' }] })).toBe(
      'the row misses a submission leg',
    );
    for (const cancelDelivery of ['none', 'unsent', 'sent'] as const)
      expect(lost({ cancelDelivery })).toBe('the row holds an older delivery of the cancel');
    for (const cancelDelivery of ['acknowledged', 'unsupported'] as const)
      expect(lost({ cancelDelivery })).toBeNull();
  });

  it('is told by its rounds only while it is opened: a look may run beside an answer', () => {
    const cases: [Partial<RowSnapshot>, string][] = [
      [{ rounds: [{ ...round, reply: null }] }, 'the row misses a reply'],
      [
        { rounds: [{ ...round, reply: { ...delivered, deliveredAt: null } }] },
        'the row misses the delivery of a reply',
      ],
      [{ rounds: [{ ...round, closedAt: null }] }, 'the row misses the end of an input round'],
      [{ rounds: [{ ...round, roundId: 'b' }] }, 'the row misses an input round'],
    ];
    for (const [changes, evidence] of cases) {
      expect(lost(changes)).toBe(evidence);
      expect(lost(changes, false)).toBeNull();
    }
  });

  it('may lack a reply that the server has refused: it was taken back', () => {
    const waiting = {
      ...full,
      rounds: [{ ...round, closedAt: null, reply: { ...delivered, deliveredAt: null } }],
    };
    const known = foldRow(startedRecord(), waiting);
    const none = { ...full, rounds: [{ ...round, closedAt: null, reply: null }] };
    expect(isBehind(known, none, true)).toBe('the row misses a reply');
    const refused = { replyToken: 't', verdict: { kind: 'refused', reason: 'no' } } as const;
    expect(isBehind({ ...known, replyVerdicts: [refused] }, none, true)).toBeNull();
  });

  it('may lack a reply that another run took back, but not the same reply recorded again', () => {
    const waiting = { ...round, closedAt: null, reply: { ...delivered, deliveredAt: null } };
    const seen = foldRow(startedRecord(), { ...full, rounds: [waiting] });
    const without = (recordedAt: number, replyToken = 't'): RowSnapshot => ({
      ...full,
      rounds: [{ ...waiting, reply: null, takenBack: [{ replyToken, recordedAt }] }],
    });
    expect(isBehind(seen, without(1), true)).toBeNull();
    expect(isBehind(seen, without(2), true)).toBe('the row misses a reply');
    expect(isBehind(seen, without(1, 'u'), true)).toBe('the row misses a reply');
    const arrived = foldRow(startedRecord(), full);
    const gone = { ...full, rounds: without(1).rounds.map((taken) => ({ ...taken, closedAt: 4 })) };
    expect(isBehind(arrived, gone, true)).toBe('the row misses the delivery of a reply');
    expect([foldRow(seen, without(1)).rounds[0]?.reply, foldRow(seen, without(2)).rounds[0]?.reply]).toEqual([
      null,
      waiting.reply,
    ]);
  });
});

describe('an operator’s word about a ledger that is behind', () => {
  const behind = fold(recordIn('WORKING'), openedAt(empty));

  it('may close it or say how it ended, but not name its work; a second one is void', () => {
    for (const decision of [{ kind: 'neverCreated' }, { kind: 'found', remoteId: 'x' }])
      expect(apply(behind, word(decision)).verdict).toEqual({ kind: 'ignored' });
    const heard = fold(behind, word({ kind: 'close' }));
    expect(heard.operator).toMatchObject({ decision: 'close', isAboutLedger: true });
    expect([heard.state, nextStep(heard, AT + 50)]).toEqual(['SUBMISSION_UNKNOWN', { kind: 'open' }]);
    expect(apply(heard, word({ kind: 'close' })).verdict).toEqual({ kind: 'ignored' });
  });

  it('holds the row as it is, and leads to the end and nowhere else', () => {
    const close = fold(behind, word({ kind: 'close' }), openedAt({ ...empty, executionEpoch: 2 }, AT + 60));
    expect(close.hold).toEqual({
      reason: 'ledger-behind',
      sinceAt: AT + 9,
      evidence: 'the row misses a submission leg',
      rechecks: 0,
      nextRecheckAt: null,
    });
    expect([close.state, close.ledgerBehind, nextStep(close, AT + 60)]).toEqual([
      'UNRESOLVED',
      null,
      { kind: 'accept' },
    ]);
    // Given back by the run, the row is whole again; it is a backup all the same.
    const whole = { ...ROWS.WORKING, hasForgotten: true };
    const ended = word({ kind: 'ended', outcome: 'failed', resultJson: '{}' });
    const held = fold(behind, ended, openedAt(whole, AT + 60));
    expect([held.state, held.hold?.reason, nextStep(held, AT + 60).kind]).toEqual([
      'UNRESOLVED',
      'ledger-behind',
      'recordEnd',
    ]);
    const asked = fold(held, sampleFact('cancelRequested', whole));
    expect(asked.hold?.reason).toBe('ledger-behind');
  });

  it('is void once the newer store is back', () => {
    const back = fold(behind, word({ kind: 'close' }), openedAt(ROWS.WORKING, AT + 60));
    expect([back.state, back.operator, back.hold, nextStep(back, AT + 60).kind]).toEqual([
      'WORKING',
      null,
      null,
      'observe',
    ]);
  });

  it('is another one than a word given before: that one waits', () => {
    const spoken = fold(recordIn('UNRESOLVED'), word({ kind: 'close' }));
    const lost = fold(spoken, { kind: 'ledgerMissing', at: AT + 60, evidence: 'lost' });
    expect([lost.operator?.decision, nextStep(lost, AT + 61).kind]).toEqual(['close', 'awaitOperator']);
    expect(apply(lost, word({ kind: 'close' })).record.operator?.isAboutLedger).toBe(true);
    const back = fold(lost, openedAt(ROWS.UNRESOLVED, AT + 99));
    expect([back.operator?.decision, nextStep(back, AT + 99)]).toEqual(['close', { kind: 'accept' }]);
  });
});

describe('a store that was restored from before a submission', () => {
  const forgotten = { ...empty, hasForgotten: true };

  it('claims nothing, whatever the policy, and is held at once', () => {
    for (const submissionPolicy of [
      'key-argument',
      'key-meta',
      'session-list',
      'repeatable',
      null,
    ] as const) {
      expect(rulingOnClaim({ ...forgotten, submissionPolicy })).toBe('ambiguous');
      expect(opened({ ...forgotten, submissionPolicy }).hold).toMatchObject({
        reason: 'ambiguous-submission',
        evidence:
          'the store was restored from before the submission: nobody knows from it whether it was sent',
      });
    }
    const proved = { ...forgotten, legs: [sampleLeg('ambiguous')], provedAbsentAtLeg: 1 };
    expect([rulingOnClaim(proved), opened(proved).state]).toEqual(['ambiguous', 'UNRESOLVED']);
  });

  it('proves no cancel that was never sent, and owes a reconciliation', () => {
    expect(decideEnd({ ...empty, cancelGeneration: 1 }, null)?.evidence).toBe('never sent');
    expect(decideEnd({ ...forgotten, cancelGeneration: 1 }, null)).toBeNull();
    const close = { decision: 'close', evidence: 'e', decidedBy: 'Ann' } as const;
    const end = decideEnd(forgotten, close);
    const course = { cursor: CURSOR, remoteStatus: null, statusMessage: null, reason: null };
    expect(end && buildReceipt(forgotten, end, course, AT).effects).toBe('EFFECT_RECONCILIATION_REQUIRED');
  });
});

describe('a run after one that a person terminated', () => {
  const { callNodeId, requestDigest, server, tool } = empty;
  const after = newOperation({
    callNodeId,
    requestDigest,
    server,
    tool,
    startedAt: AT,
    lastRunTerminated: true,
  });

  it('is cancelled where nothing was ever claimed', () => {
    const first = fold(after, openedAt(empty));
    expect(first.cancelAsked).toEqual({ reason: 'terminated', requestedBy: 'engine', at: AT + 9 });
    expect([first.lastRunTerminated, nextStep(first, AT + 9)]).toEqual([
      false,
      { kind: 'cancel', reason: 'terminated', generation: 1 },
    ]);
  });

  it.each([
    ['a leg, even one that was not sent', { legs: [sampleLeg('notSent')] }],
    ['a reference', { remoteReference: { remoteId: 'x', locator: {} } }],
    ['a rejection', { rejection: { code: 'unknown-tool', message: '' } as const }],
    ['a raised generation', { cancelGeneration: 1 }],
    ['a store that may have forgotten', { hasForgotten: true }],
  ])('goes on where the row has %s', (_what, changes) => {
    expect(fold(after, openedAt({ ...empty, ...changes })).cancelAsked).toBeNull();
  });

  it('is cancelled by its first opening only', () => {
    const again = fold(after, openedAt({ ...empty, legs: [sampleLeg('notSent')] }));
    expect(
      fold(again, restored, openedAt({ ...empty, legs: [sampleLeg('notSent')] })).cancelAsked,
    ).toBeNull();
  });
});

describe('a row that has forgotten the reply to a question that came before any work', () => {
  const reply = { replyDigest: 'd', replyToken: 't', action: 'accept', recordedAt: 1, sendingAt: 2 } as const;
  const answered = sampleRound('a', { leg: 1, reply: { ...reply, deliveredAt: 3 } });
  const asked = { legs: [sampleLeg('asked')], submissionPolicy: 'key-meta' } as const;
  const older = sampleRow({ ...asked, rounds: [sampleRound('a', { leg: 1 })] });

  it('is behind its run: the submission does not go round and round, granted nothing', () => {
    const record = opened(sampleRow({ ...asked, rounds: [answered] }));
    expect(nextStep(record, AT).kind).toBe('submit');
    const told = fold(record, { kind: 'submitted', at: AT + 5, row: older });
    expect(told.ledgerBehind?.evidence).toBe('the row misses a reply');
    expect(nextStep(told, AT + 5).kind).toBe('awaitOperator');
  });

  it('is held once where it has forgotten the submission too, and looked at ever more slowly', () => {
    const row = { ...older, submissionPolicy: 'session-list', hasForgotten: true } as const;
    const held = opened(row);
    expect([held.state, held.hold?.reason]).toEqual(['UNRESOLVED', 'ambiguous-submission']);
    const dueAt = held.hold?.nextRecheckAt ?? 0;
    const looked = fold(held, { kind: 'lookedUp', at: dueAt, row, finding: 'cannotTell', evidence: null });
    expect(looked.hold).toMatchObject({ sinceAt: AT, rechecks: 1 });
  });
});
