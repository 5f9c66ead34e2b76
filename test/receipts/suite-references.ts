// Owns the part of the store suite about references: the first one, a second one, another operation's, an operator's word.
// Must never know SQLite.

import { describe, expect, it } from 'vitest';

import {
  accept,
  AT,
  CALL,
  fence,
  finished,
  LOST,
  NEGOTIATION,
  POLICY,
  REFERENCE,
  request,
  working,
  type StoreHarness,
} from './suite-fixtures.js';

export function referencesSuite(harness: () => StoreHarness): void {
  describe('reference', () => {
    it('is kept byte for byte and found again by its remote id and by the submission key', async () => {
      const { store, reader } = harness();
      const odd = { remoteId: ` ${REFERENCE.remoteId}\ud800`, locator: { nested: { port: 1 } } };
      await store.open(request());
      await store.recordReference(CALL, null, odd, AT);
      await working(store, { callNodeId: 'node-2' });
      expect((await store.read(CALL))?.remoteReference).toEqual(odd);
      expect(await reader.find(REFERENCE.remoteId)).toEqual(['node-2']);
      expect(await reader.find('key-of-node-1')).toEqual([CALL]);
      expect(await reader.find('elsewhere')).toEqual([]);
    });

    it('that comes late settles its leg, though that was taken for ambiguous', async () => {
      const { store } = harness();
      await store.open(request());
      await store.claimLeg(fence(), 'claim-1', AT);
      await store.abandonOpenLegs(fence(), 'lost', AT + 1);
      const late = await store.recordReference(CALL, 'claim-1', REFERENCE, AT + 2);
      expect(late).toMatchObject({
        contradicts: false,
        row: { remoteReference: REFERENCE, legs: [{ outcome: 'referenced', closedAt: AT + 2 }] },
      });
    });

    it('found by look-up settles the last unsettled leg', async () => {
      const { store } = harness();
      await store.open(request());
      await store.recordNegotiation(fence(), { ...NEGOTIATION, submissionPolicy: 'repeatable' });
      for (const token of ['1', '2']) {
        await store.claimLeg(fence(), token, AT);
        await store.closeLeg(CALL, token, LOST);
      }
      const { row } = await store.recordReference(CALL, null, REFERENCE, AT + 9);
      expect(row.legs.map((leg) => leg.outcome)).toEqual(['ambiguous', 'referenced']);
    });

    it('recorded twice is one reference and no contradiction', async () => {
      const { store, reader } = harness();
      const row = await working(store);
      const again = await store.recordReference(CALL, 'claim-1', REFERENCE, AT + 9);
      expect(again).toEqual({ contradicts: false, row });
      expect(await reader.readEvidence(CALL)).toEqual([]);
    });

    it('that names other work contradicts: the first stays, evidence and reconciliation are kept', async () => {
      const { store, reader } = harness();
      const row = await working(store);
      const second = await store.recordReference(CALL, null, { remoteId: 'task-2', locator: {} }, AT + 9);
      expect(second).toEqual({ contradicts: true, row });
      expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'second-reference', at: AT + 9 }]);
      expect((await reader.readEvidence(CALL))[0]?.detail).toContain('task-2');
      expect(await reader.readReconciliation(CALL)).toMatchObject({ status: 'open', openedAt: AT + 9 });
    });

    it('that contradicts owes no reconciliation for a tool without side effects', async () => {
      const { store, reader } = harness();
      await working(store, { policy: { ...POLICY, sideEffects: 'none' } });
      await store.recordReference(CALL, null, { remoteId: 'task-2', locator: {} }, AT + 9);
      expect(await reader.readReconciliation(CALL)).toBeNull();
    });

    it('that comes after a receipt without one contradicts it and leaves the row as it is', async () => {
      const { store, reader } = harness();
      await store.open(request());
      await store.claimLeg(fence(), 'claim-1', AT);
      const held = await store.abandonOpenLegs(fence(), 'lost', AT);
      await accept(store, held, {
        decision: 'neverCreated',
        evidence: 'asked the provider',
        decidedBy: 'ann',
      });
      const late = await store.recordReference(CALL, 'claim-1', REFERENCE, AT + 200);
      expect(late).toMatchObject({
        contradicts: true,
        row: { remoteReference: null, legs: [{ outcome: 'referenced' }] },
      });
      expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'second-reference' }]);
    });

    it('takes a new locator only for the same remote work', async () => {
      const { store } = harness();
      await working(store);
      const renewed = { remoteId: REFERENCE.remoteId, locator: { sessionId: 'session-2' } };
      expect((await store.replaceLocator(fence(), renewed)).remoteReference).toEqual(renewed);
      const other = await store.replaceLocator(fence(), { remoteId: 'task-2', locator: {} });
      expect(other.remoteReference).toEqual(renewed);
    });
  });

  describe('a reference that another operation of the server holds', () => {
    const other = { callNodeId: 'node-2' };
    const detail = `remote id ${REFERENCE.remoteId} belongs to operation node-1`;
    async function refused(harnessed: StoreHarness, server = 'reports') {
      const { store } = harnessed;
      await working(store);
      await store.open(request({ ...other, server }));
      await store.claimLeg(fence('run-1', 1, 'node-2'), 'claim-1', AT);
      return store.recordReference('node-2', 'claim-1', REFERENCE, AT + 9);
    }

    it('is not adopted: the leg is ambiguous, the evidence says whose it is, nothing is to be cancelled', async () => {
      const { store, reader } = harness();
      const { row, contradicts, ownedBy } = await refused(harness());
      expect([row.remoteReference, contradicts, ownedBy]).toEqual([null, false, 'node-1']);
      expect(row.legs).toMatchObject([{ outcome: 'ambiguous', closedAt: AT + 9, detail }]);
      expect(await reader.readEvidence('node-2')).toMatchObject([{ kind: 'foreign-reference', detail }]);
      expect(await reader.readReconciliation('node-2')).toBeNull();
      const looked = await store.recordReference('node-2', null, REFERENCE, AT + 20);
      expect([looked.ownedBy, looked.row.legs]).toEqual(['node-1', row.legs]);
      expect(await reader.find(REFERENCE.remoteId)).toEqual(['node-1']);
    });

    it('is not adopted beside an own one either', async () => {
      const { store } = harness();
      await working(store);
      await store.open(request(other));
      const own = { remoteId: 'own', locator: {} };
      await store.claimLeg(fence('run-1', 1, 'node-2'), 'claim-1', AT);
      await store.recordReference('node-2', 'claim-1', own, AT);
      const again = await store.recordReference('node-2', 'claim-1', REFERENCE, AT + 9);
      expect(again).toMatchObject({ contradicts: false, ownedBy: 'node-1', row: { remoteReference: own } });
      expect(again.row.legs).toMatchObject([{ outcome: 'referenced' }]);
    });

    it('is its own on another server', async () => {
      const { row, ownedBy } = await refused(harness(), 'archive');
      expect([row.remoteReference, ownedBy]).toEqual([REFERENCE, undefined]);
    });

    it('stays the other’s once that operation has ended', async () => {
      const { store } = harness();
      await accept(store, await finished(store));
      await store.open(request(other));
      const late = await store.recordReference('node-2', null, REFERENCE, AT + 9);
      expect(late.ownedBy).toBe('node-1');
    });
  });

  describe('a reference that is only an operator’s word', () => {
    const unseen = { ...REFERENCE, isUnseen: true } as const;
    async function held(store: StoreHarness['store'], callNodeId = CALL): Promise<void> {
      await store.open(request({ callNodeId }));
      await store.claimLeg(fence('run-1', 1, callNodeId), 'claim-1', AT);
      await store.closeLeg(callNodeId, 'claim-1', LOST);
    }

    it('settles no leg until a look has found it', async () => {
      const { store } = harness();
      await held(store);
      const word = await store.recordReference(CALL, null, unseen, AT + 9);
      expect(word.row).toMatchObject({ remoteReference: unseen, legs: [{ outcome: 'ambiguous' }] });
      const seen = await store.recordReference(CALL, null, REFERENCE, AT + 10);
      expect(seen).toMatchObject({ contradicts: false, row: { legs: [{ outcome: 'referenced' }] } });
      expect(seen.row.remoteReference).toEqual(REFERENCE);
      expect((await store.recordReference(CALL, null, unseen, AT + 11)).row.remoteReference).toEqual(
        REFERENCE,
      );
    });

    it('gives way to another word, and to what the server names; each leaves evidence', async () => {
      const { store, reader } = harness();
      await held(store);
      await store.recordReference(CALL, null, { ...unseen, remoteId: 'wrong' }, AT + 9);
      const other = await store.recordReference(CALL, null, { ...unseen, remoteId: 'wrong too' }, AT + 10);
      expect([other.contradicts, other.row.remoteReference?.remoteId]).toEqual([false, 'wrong too']);
      expect(await reader.find('wrong')).toEqual([]);
      const late = await store.recordReference(CALL, 'claim-1', REFERENCE, AT + 11);
      expect([late.contradicts, late.row.remoteReference]).toEqual([false, REFERENCE]);
      expect(late.row.legs).toMatchObject([{ outcome: 'referenced' }]);
      expect(await reader.readEvidence(CALL)).toMatchObject([
        { kind: 'reference-replaced', detail: 'remote id wrong, never seen, gives way to wrong too' },
        { kind: 'reference-replaced', at: AT + 11 },
      ]);
      expect(await reader.readReconciliation(CALL)).toBeNull();
    });

    it('never moves what a look has found, and is no second piece of work', async () => {
      const { store, reader } = harness();
      const row = await working(store);
      const word = await store.recordReference(CALL, null, { ...unseen, remoteId: 'wrong' }, AT + 9);
      expect(word).toEqual({ contradicts: false, row });
      expect(await reader.readEvidence(CALL)).toEqual([]);
    });

    it('of the work of another operation is not taken, be that only a word too', async () => {
      const { store } = harness();
      await held(store);
      await held(store, 'node-2');
      await store.recordReference(CALL, null, unseen, AT + 9);
      const second = await store.recordReference('node-2', null, unseen, AT + 10);
      expect(second).toMatchObject({ ownedBy: CALL, row: { remoteReference: null } });
    });

    it('holds nothing against the operation that the server names it to, and is dropped when a look finds it', async () => {
      const { store, reader } = harness();
      await held(store);
      await store.recordReference(CALL, null, unseen, AT + 9);
      const owner = await working(store, { callNodeId: 'node-2' });
      expect(owner.remoteReference).toEqual(REFERENCE);
      const seen = await store.recordReference(CALL, null, REFERENCE, AT + 10);
      expect(seen).toMatchObject({
        ownedBy: 'node-2',
        row: { remoteReference: null, legs: [{ outcome: 'ambiguous' }] },
      });
      expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'foreign-reference' }]);
    });

    it('is dropped with the acceptance of "never created", and kept with any other word', async () => {
      const { store, reader } = harness();
      for (const [callNodeId, decision] of [
        [CALL, 'neverCreated'],
        ['node-2', 'close'],
      ] as const) {
        await held(store, callNodeId);
        const reference = { ...unseen, remoteId: `task of ${callNodeId}` };
        const { row } = await store.recordReference(callNodeId, null, reference, AT + 9);
        const word = { decision, evidence: 'asked the provider', decidedBy: 'ann' };
        const over = await accept(store, row, word);
        const kept = decision === 'close' ? reference : null;
        expect(over).toMatchObject({
          kind: 'accepted',
          row: { remoteReference: kept },
          receipt: { remoteReference: kept },
        });
      }
      expect(await reader.find(`task of ${CALL}`)).toEqual([]);
      expect(await reader.readEvidence(CALL)).toMatchObject([
        {
          kind: 'reference-dropped',
          detail: `remote id task of ${CALL}, never seen: operator ann: asked the provider`,
        },
      ]);
      expect(await reader.readEvidence('node-2')).toEqual([]);
    });
  });
}
