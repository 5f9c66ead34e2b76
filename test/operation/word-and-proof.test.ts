// Owns the tests of what ends doubt about a submission from outside the course: an operator's word about where the work is,
// and proof that there is none. Must never wait: every time is a number in a fact.

import { describe, expect, it } from 'vitest';
import { apply } from '../../operation/apply.js';
import { nextStep } from '../../operation/next-step.js';
import type { Fact } from '../../operation/facts.js';
import type { ToolOperation } from '../../operation/record.js';
import type { RowSnapshot } from '../../operation/row.js';
import { MINUTE_MS, sampleLeg, sampleRow } from './sample-row.js';
import { AT, fold, observed, opened, ROWS, sampleFact, sampleReceipt } from './sample-facts.js';

const time = (at: number): Fact => ({ kind: 'timePassed', at });

describe('proof of absence', () => {
  const doubt = (legs = 1): RowSnapshot =>
    sampleRow({
      submissionPolicy: 'lookup-tool',
      legs: Array.from({ length: legs }, (_, at) => sampleLeg('ambiguous', at + 1)),
    });
  const heldAt = AT + 10 * MINUTE_MS;
  const held = (): ToolOperation => fold(opened(doubt()), time(heldAt));
  const proved: Fact = {
    kind: 'lookedUp',
    at: heldAt + 10 * MINUTE_MS,
    row: { ...doubt(), provedAbsentAtLeg: 1 },
    finding: 'provedAbsent',
    evidence: 'no such key',
  };

  it('while held leads back to a submission under the same key', () => {
    expect(held().state).toBe('UNRESOLVED');
    const freed = fold(held(), proved);
    expect(freed).toMatchObject({ state: 'NOT_FOUND_SAFE', hold: null, heldMs: 10 * MINUTE_MS });
    expect(nextStep(freed, proved.at)).toEqual({
      kind: 'submit',
      deadlineAt: proved.at + 5 * MINUTE_MS,
      notBeforeAt: null,
    });
  });

  it('while held and to be cancelled ends as cancelled: nothing is submitted in order to cancel it', () => {
    const asked = fold(held(), sampleFact('cancelRequested', doubt()), proved);
    expect(asked.state).toBe('NOT_FOUND_SAFE');
    expect(nextStep(asked, proved.at).kind).toBe('cancel');
    const row = { ...doubt(), provedAbsentAtLeg: 1, cancelGeneration: 1 };
    const raised = fold(asked, { kind: 'cancelSent', at: proved.at, row, reply: 'neverSent' });
    expect(nextStep(raised, proved.at).kind).toBe('accept');
  });

  it('that does not count yet, or covers not every leg, waits for the next look', () => {
    const early = fold(held(), { ...proved, row: doubt(), finding: 'cannotTell' } as Fact);
    expect(early.hold).toMatchObject({ reason: 'look-up-deadline', rechecks: 1 });
    const other = fold(opened(doubt(2)), time(heldAt), {
      ...proved,
      row: { ...doubt(2), provedAbsentAtLeg: 1 },
    } as Fact);
    expect(other.hold).toMatchObject({ reason: 'look-up-deadline', rechecks: 1 });
  });

  it('does not undo an operator’s word, which has decided the end', () => {
    const word = fold(held(), { ...sampleFact('operatorDecided', doubt()), at: heldAt + 5 } as Fact);
    const still = fold(word, proved);
    expect([still.state, nextStep(still, proved.at).kind]).toEqual(['UNRESOLVED', 'accept']);
  });

  it('ends the doubt: a further leg has its own time to be looked up', () => {
    const freed = fold(held(), proved);
    expect(freed.lookUpDeadlineAt).toBeNull();
    const sentAt = proved.at + 7;
    const again = fold(freed, {
      kind: 'submitted',
      at: sentAt,
      row: { ...doubt(2), provedAbsentAtLeg: 1 },
    });
    expect(again).toMatchObject({
      state: 'SUBMISSION_UNKNOWN',
      hold: null,
      lookUpDeadlineAt: sentAt + 10 * MINUTE_MS,
    });
  });

  it('holds while a later leg was not sent or refused', () => {
    const legs = [sampleLeg('ambiguous'), sampleLeg('notSent', 2)];
    const unsent = fold(fold(held(), proved), {
      kind: 'submitted',
      at: proved.at,
      row: { ...doubt(), legs, provedAbsentAtLeg: 1 },
    });
    expect([unsent.state, nextStep(unsent, proved.at).kind]).toEqual(['NOT_FOUND_SAFE', 'submit']);
  });
});

describe('what an operator found', () => {
  const found: Fact = {
    kind: 'operatorDecided',
    at: AT,
    decision: { kind: 'found', remoteId: 'task-9' },
    evidence: 'the log of the server',
    decidedBy: 'ops',
  };
  const row = {
    ...ROWS.SUBMISSION_UNKNOWN,
    adapter: 'mcp/2025-11-25',
    submissionPolicy: 'at-most-once',
    remoteReference: null,
  } as const;

  it('leads back to the work: recorded by a look-up, then looked at', () => {
    const held = opened(row);
    expect(held.state).toBe('UNRESOLVED');
    const { record, verdict } = apply(held, found);
    expect(verdict).toEqual({ kind: 'folded' });
    expect(nextStep(record, AT)).toEqual({
      kind: 'lookUp',
      notBeforeAt: null,
      deadlineAt: null,
      given: 'task-9',
      grounds: 'operator ops: the log of the server',
    });
    const known = { ...row, remoteReference: { remoteId: 'task-9', locator: {} } };
    const back = fold(record, { kind: 'lookedUp', at: AT, row: known, finding: 'found', evidence: null });
    expect(back).toMatchObject({ state: 'WORKING', hold: null, operator: null });
    expect(nextStep(back, AT).kind).toBe('observe');
  });

  const unseen = { remoteId: 'task-9', locator: {}, isUnseen: true } as const;
  const lookedUp = (given: string, reference: RowSnapshot['remoteReference'], at = AT): Fact => ({
    kind: 'lookedUp',
    at,
    row: { ...row, remoteReference: reference },
    finding: 'found',
    evidence: null,
    given,
  });
  const misses = (record: ToolOperation, count: number): ToolOperation =>
    Array.from({ length: count }).reduce<ToolOperation>(
      (seen) => fold(seen, observed({ ...row, remoteReference: record.remoteReference }, 'notFound')),
      record,
    );
  const neverFound = (): ToolOperation => misses(fold(opened(row), found, lookedUp('task-9', unseen)), 4);

  it('and no look has ever seen gives way to another word', () => {
    expect(neverFound().hold?.reason).toBe('handle-lost');
    const word = { ...found, decision: { kind: 'found', remoteId: 'task-8' } } as Fact;
    const { record, verdict } = apply(neverFound(), word);
    expect(verdict).toEqual({ kind: 'folded' });
    expect(nextStep(record, AT)).toMatchObject({ kind: 'lookUp', given: 'task-8' });
    const other = fold(record, lookedUp('task-8', { ...unseen, remoteId: 'task-8' }));
    // What was not found under the first name says nothing about the second.
    expect(other).toMatchObject({ state: 'WORKING', hold: null, operator: null });
    expect([other.missedReads, other.sessionsRenewed]).toEqual([0, 0]);
    expect(misses(other, 3).state).toBe('WORKING');
    expect(misses(other, 4).hold?.reason).toBe('handle-lost');
  });

  it('and no look has ever seen may be taken back: it was never created', () => {
    const word = { ...found, decision: { kind: 'neverCreated' } } as Fact;
    const { record, verdict } = apply(neverFound(), word);
    expect(verdict).toEqual({ kind: 'folded' });
    expect(nextStep(record, AT).kind).toBe('accept');
    // The store has dropped it with the acceptance: that is no older row.
    const receipt = sampleReceipt('REJECTED', 'rejected');
    const ended = fold(record, {
      kind: 'accepted',
      at: AT,
      row: { ...row, receipt },
      finding: 'accepted',
      evidence: null,
    });
    expect([ended.state, ended.ledgerBehind]).toEqual(['REJECTED', null]);
  });

  it('is followed once: the same word again brings one more look, not a loop', () => {
    const again = fold(neverFound(), found, lookedUp('task-9', unseen));
    expect(again).toMatchObject({ state: 'WORKING', hold: null, operator: null });
    expect(misses(again, 1).hold?.reason).toBe('handle-lost');
  });

  it('is another’s work: the word is void, and the hold says why', () => {
    const held = fold(opened(row), found);
    const refused = fold(held, {
      kind: 'lookedUp',
      at: AT + 9,
      row,
      finding: 'cannotTell',
      evidence: 'task-9 is the work of operation node-2',
      given: 'task-9',
    });
    expect(refused).toMatchObject({
      state: 'UNRESOLVED',
      operator: null,
      remoteReference: null,
      hold: {
        reason: 'ambiguous-submission',
        evidence: 'task-9 is the work of operation node-2',
        rechecks: 1,
      },
    });
    expect(apply(refused, found).verdict).toEqual({ kind: 'folded' });
    // A look-up that was under way when the word came is not that word's.
    const own = fold(held, { kind: 'lookedUp', at: AT, row, finding: 'cannotTell', evidence: null });
    expect(own.operator?.remoteId).toBe('task-9');
  });

  it('turns out to be another’s when a look finds it: the reference goes, and it is held', () => {
    const following = fold(opened(row), found, lookedUp('task-9', unseen));
    const dropped = fold(following, observed(row, 'notFound', AT + 5, { evidence: 'the work of node-2' }));
    expect(dropped).toMatchObject({ state: 'UNRESOLVED', remoteReference: null, ledgerBehind: null });
    expect(dropped.hold?.reason).toBe('ambiguous-submission');
  });

  it('once seen, is nobody’s to take back', () => {
    const seen = { remoteId: 'task-9', locator: {} };
    const lost = misses(fold(opened(row), found, lookedUp('task-9', seen)), 4);
    expect(lost.hold?.reason).toBe('handle-lost');
    for (const decision of [{ kind: 'neverCreated' }, { kind: 'found', remoteId: 'task-8' }] as const) {
      expect(apply(lost, { ...found, decision } as Fact).verdict).toEqual({ kind: 'ignored' });
    }
  });

  it('is no word where the work is known already, or has no name', () => {
    const known = { ...opened(row), remoteReference: { remoteId: 'task-1', locator: {} } };
    expect(apply(known, found).verdict).toEqual({ kind: 'ignored' });
    for (const adapter of ['synchronous', null] as const) {
      const held = opened({ ...row, adapter });
      expect(held.state).toBe('UNRESOLVED');
      expect(apply(held, found)).toEqual({ record: held, verdict: { kind: 'ignored' } });
      expect(apply(held, { ...found, decision: { kind: 'neverCreated' } } as Fact).verdict.kind).toBe(
        'folded',
      );
    }
  });
});
