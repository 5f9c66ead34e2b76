// Owns the part of the store suite about negotiation, legs, rejection and absence.
// Must never know SQLite.

import { describe, expect, it } from 'vitest';

import type { SubmissionPolicyName } from '../../operation/names.js';
import type { LegOutcome } from '../../operation/row.js';
import {
  accept,
  AT,
  CALL,
  ended,
  fence,
  finished,
  LOST,
  NEGOTIATION,
  newRound,
  POLICY,
  reply,
  request,
  working,
  type StoreHarness,
} from './suite-fixtures.js';

const LOOK_UP = {
  keyPlace: 'argument',
  tool: 'find',
  argument: 'key',
  idPointer: '/id',
  provesAbsence: true,
} as const;

export function submissionSuite(harness: () => StoreHarness): void {
  describe('negotiation', () => {
    it('is replaced by a newer one until bytes may have left, then never', async () => {
      const { store } = harness();
      await store.open(request());
      await store.recordNegotiation(fence(), NEGOTIATION);
      const newer = { ...NEGOTIATION, toolVersion: '1.3.0', session: { sessionId: 'session-2' } };
      await store.claimLeg(fence(), 'claim-1', AT);
      await store.closeLeg(CALL, 'claim-1', { outcome: 'notSent', detail: null, at: AT });
      expect(await store.recordNegotiation(fence(), newer)).toMatchObject({ toolVersion: '1.3.0' });
      expect(await store.wireState(CALL)).toMatchObject({
        session: { sessionId: 'session-2' },
        outputSchema: { type: 'object' },
      });
      await store.claimLeg(fence(), 'claim-2', AT);
      expect(await store.recordNegotiation(fence(), NEGOTIATION)).toMatchObject({ toolVersion: '1.3.0' });
      expect((await store.wireState(CALL)).session).toEqual({ sessionId: 'session-2' });
    });
  });

  describe('a leg that was asked before there was any work', () => {
    const ask = {
      requestState: 's-1',
      needsConsent: false,
      rounds: [newRound('round-1'), newRound('round-2')],
      at: AT + 5,
    };

    async function asked(): Promise<StoreHarness['store']> {
      const { store } = harness();
      await store.open(request());
      await store.claimLeg(fence(), 'claim-1', AT);
      await store.recordAsked(CALL, 'claim-1', ask);
      return store;
    }
    const answer = async (store: StoreHarness['store'], roundId: string): Promise<void> => {
      await store.recordReply(fence(), roundId, reply(`to ${roundId}`), `{"action":"${roundId}"}`);
      await store.recordSending(CALL, roundId, `to ${roundId}`, AT + 21);
      await store.recordDelivery(CALL, roundId, `to ${roundId}`, AT + 22);
    };

    it('is over with its questions, and no further leg is claimed before each has its reply', async () => {
      const store = await asked();
      const row = await store.read(CALL);
      expect(row?.legs).toMatchObject([{ outcome: 'asked', closedAt: AT + 5 }]);
      expect(row?.rounds).toMatchObject([
        { roundId: 'round-1', leg: 1 },
        { roundId: 'round-2', leg: 1 },
      ]);
      expect((await store.claimLeg(fence(), 'claim-2', AT)).ruling).toBe('asked');
      await answer(store, 'round-1');
      expect((await store.claimLeg(fence(), 'claim-2', AT)).ruling).toBe('asked');
      await answer(store, 'round-2');
      expect((await store.claimLeg(fence(), 'claim-2', AT)).ruling).toBe('granted');
    });

    it('is gone on from with the state of the server and the replies, by key, until a later one was asked', async () => {
      const store = await asked();
      expect(await store.continuation(CALL)).toEqual({
        requestState: 's-1',
        needsConsent: false,
        replies: [],
      });
      await answer(store, 'round-1');
      await answer(store, 'round-2');
      await store.claimLeg(fence(), 'claim-2', AT + 30);
      await store.closeLeg(CALL, 'claim-2', LOST);
      expect(await store.continuation(CALL)).toEqual({
        requestState: 's-1',
        needsConsent: false,
        replies: [
          { wireKey: 'session-1/0/round-1', replyJson: '{"action":"round-1"}' },
          { wireKey: 'session-1/0/round-2', replyJson: '{"action":"round-2"}' },
        ],
      });
      await store.recordAsked(CALL, 'claim-2', {
        requestState: null,
        needsConsent: true,
        rounds: [],
        at: AT + 40,
      });
      expect(await store.continuation(CALL)).toEqual({
        requestState: null,
        needsConsent: true,
        replies: [],
      });
      expect((await store.wireState(CALL)).rounds['round-1']).toMatchObject({ leg: 1 });
    });

    it('says so once: a second word about it changes nothing', async () => {
      const store = await asked();
      const other = { requestState: 's-9', needsConsent: true, rounds: [newRound('round-9')], at: AT + 9 };
      const row = await store.recordAsked(CALL, 'claim-1', other);
      expect(row.rounds.map(({ roundId }) => roundId)).toEqual(['round-1', 'round-2']);
      expect((await store.continuation(CALL))?.requestState).toBe('s-1');
      await store.closeLeg(CALL, 'claim-1', LOST);
      expect((await store.read(CALL))?.legs).toMatchObject([{ outcome: 'asked' }]);
    });

    it('asks nobody where the row has moved past it: another leg, the work, its end, or a cancel', async () => {
      const { store } = harness();
      const beginning = async (callNodeId: string): Promise<void> => {
        await store.open(request({ callNodeId }));
        await store.recordNegotiation(fence('run-1', 1, callNodeId), {
          ...NEGOTIATION,
          submissionPolicy: 'key-argument',
        });
        await store.claimLeg(fence('run-1', 1, callNodeId), 'claim-1', AT);
        await store.closeLeg(callNodeId, 'claim-1', LOST);
      };
      const late = async (callNodeId: string): Promise<void> => {
        const row = await store.recordAsked(callNodeId, 'claim-1', ask);
        expect([row.legs[0]?.outcome, row.rounds], callNodeId).toEqual(['asked', []]);
      };
      await beginning('later-leg');
      await store.claimLeg(fence('run-1', 1, 'later-leg'), 'claim-2', AT + 6);
      await late('later-leg');
      await beginning('cancelled');
      await store.raiseCancel(fence('run-1', 1, 'cancelled'), 0, 'changed my mind');
      await late('cancelled');
      await beginning('ended');
      await store.recordTerminal('ended', ended('failed'), null);
      await late('ended');
    });

    it('is refused as little as it is started: a refusal of the next one is a rejection', async () => {
      const store = await asked();
      const rejection = { code: 'refused-by-server', message: 'no' } as const;
      expect((await store.recordRejection(fence(), rejection)).rejection).toBeNull();
      await answer(store, 'round-1');
      await answer(store, 'round-2');
      await store.claimLeg(fence(), 'claim-2', AT + 30);
      await store.closeLeg(CALL, 'claim-2', { outcome: 'refused', detail: 'no', at: AT + 31 });
      expect((await store.recordRejection(fence(), rejection)).rejection).toEqual(rejection);
    });
  });

  describe('rejection', () => {
    const first = { code: 'bad-arguments', message: 'year is missing' } as const;

    it('is recorded once and never replaced', async () => {
      await harness().store.open(request());
      await harness().store.recordRejection(fence(), first);
      const again = await harness().store.recordRejection(fence(), {
        code: 'submit-deadline',
        message: 'late',
      });
      expect(again.rejection).toEqual(first);
    });

    it.each<[LegOutcome, boolean]>([
      ['notSent', true],
      ['refused', true],
      ['ambiguous', false],
      ['answered', false],
      ['open', false],
    ])('after a leg that ended %s is recorded: %s', async (outcome, isRecorded) => {
      const { store } = harness();
      await store.open(request());
      await store.claimLeg(fence(), 'claim-1', AT);
      if (outcome !== 'open') await store.closeLeg(CALL, 'claim-1', { outcome, detail: null, at: AT });
      const row = await store.recordRejection(fence(), first);
      expect(row.rejection).toEqual(isRecorded ? first : null);
    });

    it('never follows a terminal observation', async () => {
      const { store } = harness();
      await store.open(request());
      await store.recordTerminal(CALL, ended('cancelled'), null);
      expect((await store.recordRejection(fence(), first)).rejection).toBeNull();
    });
  });

  describe('claim', () => {
    it('is granted on a fresh row and leaves an open leg', async () => {
      await harness().store.open(request());
      const claim = await harness().store.claimLeg(fence(), 'claim-1', AT + 1);
      expect(claim.ruling).toBe('granted');
      expect(claim.row.legs).toEqual([
        { leg: 1, claimToken: 'claim-1', claimedAt: AT + 1, closedAt: null, outcome: 'open', detail: null },
      ]);
    });

    it('made twice at once is granted once', async () => {
      await harness().store.open(request());
      const claims = await Promise.all(
        ['a', 'b', 'c'].map((token) => harness().store.claimLeg(fence(), token, AT)),
      );
      expect(claims.map((claim) => claim.ruling).sort()).toEqual(['ambiguous', 'ambiguous', 'granted']);
      expect((await harness().store.read(CALL))?.legs).toHaveLength(1);
    });

    it('over a leg left open is ambiguous, even where the key may be sent again', async () => {
      const { store } = harness();
      await store.open(request());
      await store.recordNegotiation(fence(), { ...NEGOTIATION, submissionPolicy: 'key-argument' });
      await store.claimLeg(fence(), 'claim-1', AT);
      expect((await store.claimLeg(fence(), 'claim-2', AT)).ruling).toBe('ambiguous');
      const abandoned = await store.abandonOpenLegs(fence(), 'the worker was lost', AT + 3);
      expect(abandoned.legs).toMatchObject([
        { outcome: 'ambiguous', detail: 'the worker was lost', closedAt: AT + 3 },
      ]);
      expect((await store.claimLeg(fence(), 'claim-2', AT)).ruling).toBe('granted');
    });

    it.each<[SubmissionPolicyName, string[]]>([
      ['key-argument', ['granted', 'granted', 'granted', 'granted']],
      ['key-meta', ['granted', 'granted', 'granted', 'granted']],
      ['request-id', ['granted', 'granted', 'granted', 'granted']],
      ['operation-list', ['granted', 'ambiguous', 'ambiguous', 'ambiguous']],
      ['repeatable', ['granted', 'granted', 'granted', 'ambiguous']],
      ['session-list', ['granted', 'ambiguous', 'ambiguous', 'ambiguous']],
      ['at-most-once', ['granted', 'ambiguous', 'ambiguous', 'ambiguous']],
    ])('after ambiguous legs under %s is ruled %s', async (submissionPolicy, expected) => {
      const { store } = harness();
      await store.open(request());
      await store.recordNegotiation(fence(), { ...NEGOTIATION, submissionPolicy });
      const rulings: string[] = [];
      for (const token of ['1', '2', '3', '4']) {
        rulings.push((await store.claimLeg(fence(), token, AT)).ruling);
        await store.closeLeg(CALL, token, LOST);
      }
      expect(rulings).toEqual(expected);
    });

    it('under a request id is ruled by the time of the claim', async () => {
      const { store } = harness();
      await store.open(request());
      await store.recordNegotiation(fence(), { ...NEGOTIATION, submissionPolicy: 'request-id' });
      await store.claimLeg(fence(), '1', AT);
      await store.closeLeg(CALL, '1', LOST);
      expect((await store.claimLeg(fence(), '2', AT + 54 * 60_000)).ruling).toBe('ambiguous');
      expect((await store.claimLeg(fence(), '2', AT + 54 * 60_000 - 1)).ruling).toBe('granted');
    });

    it('is refused once the operation is cancelled, referenced, rejected or ended', async () => {
      const { store } = harness();
      const rulingOf = async (callNodeId: string) =>
        (await store.claimLeg(fence('run-1', 1, callNodeId), 'late', AT)).ruling;
      await store.open(request({ callNodeId: 'cancelled' }));
      await store.raiseCancel(fence('run-1', 1, 'cancelled'), 0, 'no longer needed');
      await working(store, { callNodeId: 'referenced' });
      await store.open(
        request({ callNodeId: 'rejected', rejection: { code: 'unknown-tool', message: 'no' } }),
      );
      await accept(store, await finished(store, { callNodeId: 'ended' }));
      const rulings = await Promise.all(['cancelled', 'referenced', 'rejected', 'ended'].map(rulingOf));
      expect(rulings).toEqual(['cancelled', 'settled', 'settled', 'settled']);
      expect((await store.read('cancelled'))?.legs).toEqual([]);
    });
  });

  describe('leg', () => {
    it('closes once by its own token only', async () => {
      const { store } = harness();
      await store.open(request());
      await store.claimLeg(fence(), 'claim-1', AT);
      await store.closeLeg(CALL, 'claim-of-another', { outcome: 'refused', detail: null, at: AT + 1 });
      expect((await store.read(CALL))?.legs).toMatchObject([{ outcome: 'open' }]);
      await store.closeLeg(CALL, 'claim-1', { outcome: 'refused', detail: '-32601', at: AT + 2 });
      const row = await store.closeLeg(CALL, 'claim-1', LOST);
      expect(row.legs).toMatchObject([{ outcome: 'refused', detail: '-32601', closedAt: AT + 2 }]);
    });

    it('left ambiguous is settled by a late word', async () => {
      const { store } = harness();
      await store.open(request());
      await store.claimLeg(fence(), 'claim-1', AT);
      await store.closeLeg(CALL, 'claim-1', LOST);
      const row = await store.closeLeg(CALL, 'claim-1', {
        outcome: 'notSent',
        detail: 'no route',
        at: AT + 9,
      });
      expect(row.legs).toMatchObject([{ outcome: 'notSent', detail: 'no route' }]);
    });

    it('that is already closed is not abandoned', async () => {
      const { store } = harness();
      await working(store);
      expect((await store.abandonOpenLegs(fence(), 'lost', AT)).legs).toMatchObject([
        { outcome: 'referenced' },
      ]);
    });
  });

  describe('absence', () => {
    it('proves nothing while a leg is open, and once proved allows one further leg', async () => {
      const { store, reader } = harness();
      await store.open(request());
      await store.recordNegotiation(fence(), NEGOTIATION);
      await store.claimLeg(fence(), 'claim-1', AT);
      expect((await store.recordAbsence(fence(), 'not listed', AT)).provedAbsentAtLeg).toBeNull();
      await store.closeLeg(CALL, 'claim-1', LOST);
      expect((await store.recordAbsence(fence(), 'not listed', LOST.at)).provedAbsentAtLeg).toBe(1);
      expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'absence-proved' }]);
      expect((await store.claimLeg(fence(), 'claim-2', AT)).ruling).toBe('granted');
      await store.closeLeg(CALL, 'claim-2', LOST);
      expect((await store.claimLeg(fence(), 'claim-3', AT)).ruling).toBe('ambiguous');
    });

    const settling = { ...POLICY, lookUp: { ...LOOK_UP, settleAfterMs: 1_000 } };
    async function lost(store: StoreHarness['store'], legs = 1): Promise<void> {
      await store.open(request({ policy: settling }));
      await store.recordNegotiation(fence(), { ...NEGOTIATION, submissionPolicy: 'lookup-tool' });
      for (let leg = 1; leg <= legs; leg += 1) {
        if (leg > 1) await store.recordAbsence(fence(), 'no such key', LOST.at + 1_000);
        await store.claimLeg(fence(), `claim-${leg}`, AT);
        await store.closeLeg(CALL, `claim-${leg}`, LOST);
      }
    }

    it('counts from the close of the last leg on, by when the look was sent', async () => {
      const { store } = harness();
      await lost(store);
      const early = await store.recordAbsence(fence(), 'no such key', LOST.at + 999);
      expect(early.provedAbsentAtLeg).toBeNull();
      const proved = await store.recordAbsence(fence(), 'no such key', LOST.at + 1_000);
      expect(proved.provedAbsentAtLeg).toBe(1);
      await store.claimLeg(fence(), 'claim-2', AT);
      await store.closeLeg(CALL, 'claim-2', { ...LOST, at: LOST.at + 5_000 });
      // A look that came home late: it was sent before the second leg was closed.
      const late = await store.recordAbsence(fence(), 'no such key', LOST.at + 2_000);
      expect(late.provedAbsentAtLeg).toBe(1);
    });

    it('proved, lets a further leg have a session of its own', async () => {
      const { store } = harness();
      await lost(store);
      const newer = { ...NEGOTIATION, session: { sessionId: 'session-2' } };
      await store.recordNegotiation(fence(), newer);
      expect((await store.wireState(CALL)).session).toEqual(NEGOTIATION.session);
      await store.recordAbsence(fence(), 'no such key', LOST.at + 1_000);
      await store.recordNegotiation(fence(), newer);
      expect((await store.wireState(CALL)).session).toEqual(newer.session);
    });

    it('proved after the third leg leaves a rejection, and grants no fourth', async () => {
      const { store } = harness();
      await lost(store, 3);
      const spent = { code: 'submit-deadline', message: 'absent three times' } as const;
      expect((await store.recordRejection(fence(), spent)).rejection).toBeNull();
      await store.recordAbsence(fence(), 'no such key', LOST.at + 1_000);
      expect((await store.claimLeg(fence(), 'claim-4', AT)).ruling).toBe('spent');
      expect((await store.recordRejection(fence(), spent)).rejection).toEqual(spent);
    });

    it('is not recorded where the work is known', async () => {
      await working(harness().store);
      expect((await harness().store.recordAbsence(fence(), 'gone', AT)).provedAbsentAtLeg).toBeNull();
    });
  });

  describe('anchor', () => {
    it('moves on', async () => {
      await working(harness().store);
      await harness().store.recordAnchor(CALL, { eventId: '1' });
      await harness().store.recordAnchor(CALL, { eventId: '2' });
      expect((await harness().store.wireState(CALL)).anchor).toEqual({ eventId: '2' });
    });
  });
}
