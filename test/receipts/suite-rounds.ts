// Owns the part of the store suite about input rounds and cancels.
// Must never know SQLite.

import { describe, expect, it } from 'vitest';

import {
  accept,
  AT,
  CALL,
  ended,
  fence,
  newRound,
  reply,
  request,
  working,
  type StoreHarness,
} from './suite-fixtures.js';

export function roundsSuite(harness: () => StoreHarness): void {
  describe('round', () => {
    it('is recorded once, in order of arrival, with its question while it is open', async () => {
      const { store } = harness();
      await working(store);
      await store.recordRound(CALL, newRound('z-first'));
      await store.recordRound(CALL, newRound('a-second', { openedAt: AT }));
      const row = await store.recordRound(CALL, newRound('z-first', { deadlineAt: AT + 9_999 }));
      expect(row.rounds).toEqual([
        {
          roundId: 'z-first',
          schemaDigest: 'schema-of-z-first',
          openedAt: AT + 10,
          deadlineAt: AT + 1_000,
          question: newRound('z-first').question,
          reply: null,
          closedAt: null,
        },
        expect.objectContaining({ roundId: 'a-second' }),
      ]);
    });

    it('gives the answer step its wire, its question and the reply', async () => {
      const { store } = harness();
      await working(store);
      await store.recordRound(CALL, newRound('round-1'));
      await store.recordReply(fence(), 'round-1', reply('yes'), '{"content":{"year":2024}}');
      expect((await store.wireState(CALL)).rounds).toEqual({
        'round-1': {
          wireKey: 'session-1/0/round-1',
          wire: { id: 0 },
          question: newRound('round-1').question,
          replyJson: '{"content":{"year":2024}}',
          leg: null,
        },
      });
    });

    it('closed by the server loses its question in the row, keeps it in the store, and takes no reply', async () => {
      const { store, reader } = harness();
      await working(store);
      await store.recordRound(CALL, newRound('round-1'));
      await store.closeRound(CALL, 'round-1', AT + 30);
      await store.closeRound(CALL, 'round-1', AT + 40);
      const row = await store.recordReply(fence(), 'round-1', reply('yes'), '{}');
      expect(row.rounds).toMatchObject([{ closedAt: AT + 30, question: null, reply: null }]);
      expect(await reader.readQuestions(CALL)).toEqual({ 'round-1': newRound('round-1').question });
    });
  });

  describe('reply', () => {
    it('to a round is the first one, whoever comes second', async () => {
      const { store } = harness();
      await working(store);
      await store.recordRound(CALL, newRound('round-1'));
      await store.recordReply(fence(), 'round-1', reply('yes'), '"yes"');
      const other = await store.recordReply(fence(), 'round-1', reply('no'), '"no"');
      expect(other.rounds[0]?.reply).toEqual(reply('yes'));
      const same = await store.recordReply(fence(), 'round-1', reply('yes', 'another-token'), '"yes, again"');
      expect(same.rounds[0]?.reply).toEqual(reply('yes'));
      expect((await store.wireState(CALL)).rounds['round-1']?.replyJson).toBe('"yes"');
    });

    it('two at once leave one reply and one text that belong together', async () => {
      const { store } = harness();
      await working(store);
      await store.recordRound(CALL, newRound('round-1'));
      await Promise.all(
        ['a', 'b', 'c'].map((digest) => store.recordReply(fence(), 'round-1', reply(digest), digest)),
      );
      const row = await store.read(CALL);
      const { rounds } = await store.wireState(CALL);
      expect(row?.rounds[0]?.reply?.replyDigest).toBe(rounds['round-1']?.replyJson);
    });

    it('marks that it may have left, once, and that it arrived, once', async () => {
      const { store } = harness();
      await working(store);
      await store.recordRound(CALL, newRound('round-1'));
      await store.recordReply(fence(), 'round-1', reply('yes'), '{}');
      await store.recordSending(CALL, 'round-1', 'no', AT + 29);
      await store.recordSending(CALL, 'round-1', 'yes', AT + 30);
      const sending = await store.recordSending(CALL, 'round-1', 'yes', AT + 31);
      expect(sending.rounds).toMatchObject([{ reply: { sendingAt: AT + 30, deliveredAt: null } }]);
      expect(sending.rounds[0]?.question).not.toBeNull();
      await store.recordDelivery(CALL, 'round-1', 'no', AT + 39);
      await store.recordDelivery(CALL, 'round-1', 'yes', AT + 40);
      const delivered = await store.recordDelivery(CALL, 'round-1', 'yes', AT + 41);
      expect(delivered.rounds).toMatchObject([{ question: null, reply: { deliveredAt: AT + 40 } }]);
    });

    it('that was delivered is never replaced', async () => {
      const { store } = harness();
      await working(store);
      await store.recordRound(CALL, newRound('round-1'));
      await store.recordReply(fence(), 'round-1', reply('yes'), '{}');
      const delivered = await store.recordDelivery(CALL, 'round-1', 'yes', AT + 40);
      expect(await store.recordReply(fence(), 'round-1', reply('no'), '{}')).toEqual(delivered);
    });

    it('that the server refused is taken back whole, and another one may come', async () => {
      const { store } = harness();
      await working(store);
      const asked = await store.recordRound(CALL, newRound('round-1'));
      await store.recordReply(fence(), 'round-1', reply('yes'), '"yes"');
      await store.recordSending(CALL, 'round-1', 'yes', AT + 30);
      // The row remembers which one it was: a run that has seen it must not take the row for an older one.
      const { replyToken, recordedAt } = reply('yes');
      const takenBack = [{ replyToken, recordedAt }];
      const open = { ...asked, rounds: asked.rounds.map((round) => ({ ...round, takenBack })) };
      expect(await store.retractReply(CALL, 'round-1', 'yes')).toEqual(open);
      expect(await store.retractReply(CALL, 'round-1', 'yes')).toEqual(open);
      expect((await store.wireState(CALL)).rounds['round-1']?.replyJson).toBeNull();
      const other = await store.recordReply(fence(), 'round-1', reply('no'), '"no"');
      expect(other.rounds[0]?.reply).toEqual(reply('no'));
    });

    it.each(['another digest', 'delivered', 'closed'])('is not taken back when it is: %s', async (why) => {
      const { store } = harness();
      await working(store);
      await store.recordRound(CALL, newRound('round-1'));
      await store.recordReply(fence(), 'round-1', reply('yes'), '"yes"');
      if (why === 'delivered') await store.recordDelivery(CALL, 'round-1', 'yes', AT + 40);
      if (why === 'closed') await store.closeRound(CALL, 'round-1', AT + 40);
      const before = await store.read(CALL);
      const digest = why === 'another digest' ? 'no' : 'yes';
      expect(await store.retractReply(CALL, 'round-1', digest)).toEqual(before);
      expect((await store.wireState(CALL)).rounds['round-1']?.replyJson).toBe('"yes"');
    });

    it('to an unknown round changes nothing', async () => {
      const { store } = harness();
      const row = await working(store);
      expect(await store.recordReply(fence(), 'round-9', reply('yes'), '{}')).toEqual(row);
    });
  });

  describe('cancel', () => {
    it('raises the generation once from where the run saw it', async () => {
      const { store } = harness();
      await working(store);
      const raised = await store.raiseCancel(fence(), 0, 'no longer needed');
      expect(raised).toMatchObject({
        cancelGeneration: 1,
        cancelReason: 'no longer needed',
        cancelDelivery: 'unsent',
      });
      await store.recordCancelDelivery(CALL, 1, 'sent');
      const again = await store.raiseCancel(fence(), 0, 'wait-budget');
      expect(again).toMatchObject({
        cancelGeneration: 1,
        cancelReason: 'no longer needed',
        cancelDelivery: 'sent',
      });
      expect(again).not.toHaveProperty('earlierCancels');
    });

    it('keeps what became of each one before the last', async () => {
      const { store } = harness();
      await working(store);
      await store.raiseCancel(fence(), 0, 'first');
      await store.recordCancelDelivery(CALL, 1, 'acknowledged');
      const second = await store.raiseCancel(fence(), 1, 'second');
      const first = { generation: 1, reason: 'first', delivery: 'acknowledged' };
      expect(second).toMatchObject({
        cancelGeneration: 2,
        cancelReason: 'second',
        cancelDelivery: 'unsent',
        earlierCancels: [first],
      });
      expect(await store.raiseCancel(fence(), 1, 'a retry of the same')).toEqual(second);
      // The reply to the first comes home late: it says nothing about the second.
      expect(await store.recordCancelDelivery(CALL, 1, 'refused')).toEqual(second);
      await store.recordCancelDelivery(CALL, 2, 'sent');
      const third = await store.raiseCancel(fence(), 2, 'third');
      expect(third.earlierCancels).toEqual([first, { generation: 2, reason: 'second', delivery: 'sent' }]);
      const acceptance = await accept(store, await store.recordTerminal(CALL, ended('cancelled'), null));
      expect(acceptance).toMatchObject({
        kind: 'accepted',
        receipt: {
          cancelGeneration: 3,
          earlierCancels: third.earlierCancels,
          decision: { reason: 'third' },
        },
      });
    });

    it('keeps the answer of the server when a resend is lost', async () => {
      const { store } = harness();
      await working(store);
      await store.raiseCancel(fence(), 0, 'no longer needed');
      expect((await store.recordCancelDelivery(CALL, 1, 'acknowledged')).cancelDelivery).toBe('acknowledged');
      expect((await store.recordCancelDelivery(CALL, 1, 'sent')).cancelDelivery).toBe('acknowledged');
      expect((await store.recordCancelDelivery(CALL, 1, 'refused')).cancelDelivery).toBe('refused');
    });

    it('that nobody asked for has no delivery', async () => {
      const { store } = harness();
      await working(store);
      expect((await store.recordCancelDelivery(CALL, 1, 'sent')).cancelDelivery).toBe('none');
    });
  });

  describe('after the receipt', () => {
    it('nothing in the row changes', async () => {
      const { store } = harness();
      await working(store);
      await store.recordRound(CALL, newRound('round-1'));
      await store.recordReply(fence(), 'round-1', reply('yes'), '{}');
      await store.recordRound(CALL, newRound('round-2'));
      await store.raiseCancel(fence(), 0, 'no longer needed');
      await accept(store, await store.recordTerminal(CALL, ended('cancelled'), null));
      const row = await store.read(CALL);
      const wire = await store.wireState(CALL);
      const writes = [
        store.recordNegotiation(fence(), { ...negotiationOfAnother }),
        store.recordRejection(fence(), { code: 'operator', message: 'no' }),
        store.replaceLocator(fence(), { remoteId: 'task/ä+/=\u{1F600}', locator: {} }),
        store.recordAbsence(fence(), 'gone', AT),
        store.recordRound(CALL, newRound('round-3')),
        store.closeRound(CALL, 'round-2', AT),
        store.recordReply(fence(), 'round-2', reply('yes'), '{}'),
        store.recordSending(CALL, 'round-1', 'yes', AT),
        store.recordDelivery(CALL, 'round-1', 'yes', AT),
        store.retractReply(CALL, 'round-1', 'yes'),
        store.raiseCancel(fence(), 1, 'again'),
        store.recordCancelDelivery(CALL, 1, 'acknowledged'),
      ];
      for (const write of writes) expect(await write).toEqual(row);
      await store.recordAnchor(CALL, { eventId: '9' });
      expect(await store.wireState(CALL)).toEqual(wire);
      expect(await store.open(request())).toEqual({ kind: 'opened', row });
    });
  });
}

const negotiationOfAnother = {
  adapter: 'synchronous',
  submissionPolicy: 'repeatable',
  toolVersion: '9',
  descriptorDigest: 'other',
  outputSchema: null,
  session: {},
} as const;
