// Owns the part of the store suite about late words after an end, what is owed for them, and who settles it.
// Must never know SQLite.

import { describe, expect, it } from 'vitest';

import type { OpenRequest } from '../../receipts/store.js';
import {
  accept,
  AT,
  CALL,
  ended,
  fence,
  finished,
  POLICY,
  REFERENCE,
  request,
  resultOf,
  working,
  type StoreHarness,
} from './suite-fixtures.js';

const RESULT = resultOf('{"total":1}');
const CLOSE = { decision: 'close', evidence: 'the provider is gone', decidedBy: 'ann' } as const;
const WORD = { note: 'the booking was undone by hand', settledBy: 'Ann' };
const HARMLESS: Partial<OpenRequest> = { policy: { ...POLICY, sideEffects: 'none' } };

export function effectsSuite(harness: () => StoreHarness): void {
  /** All that was accepted: a late word may change nothing of it. */
  const acceptedOf = async (callNodeId = CALL) => ({
    receipt: await harness().reader.readReceipt(callNodeId),
    ready: await harness().reader.readReady(callNodeId),
    row: await harness().store.read(callNodeId),
  });
  const owed = (callNodeId = CALL) => harness().reader.readReconciliation(callNodeId);
  const cancelled = async (patch: Partial<OpenRequest> = {}): Promise<void> => {
    const { store } = harness();
    const row = await working(store, patch);
    await store.raiseCancel(fence('run-1', 1, row.callNodeId), 0, 'no longer needed');
    await accept(store, await store.recordTerminal(row.callNodeId, ended('cancelled'), null));
  };

  describe('a late word', () => {
    it.each(['completed', 'failed'] as const)(
      '%s after an accepted cancel changes nothing, and is evidence and a further reason of what is owed',
      async (status) => {
        const { store, reader } = harness();
        await cancelled();
        const before = await acceptedOf();
        await store.recordTerminal(CALL, ended(status, { observedAt: AT + 500 }), RESULT);
        expect(await acceptedOf()).toEqual(before);
        expect(before).toMatchObject({ receipt: { outcome: 'cancelled' }, ready: { advances: false } });
        const detail = expect.stringContaining(`${status} (status) with result ${RESULT.stored.digest}`);
        expect(await reader.readEvidence(CALL)).toEqual([
          { kind: 'terminal-contradiction', detail, at: AT + 500 },
        ]);
        expect(await owed()).toEqual({
          status: 'open',
          openedAt: AT + 100,
          note: 'cancelled: status',
          entries: [
            { kind: 'owed', at: AT + 100, note: 'cancelled: status' },
            { kind: 'owed', at: AT + 500, note: `late ${status} with result ${RESULT.stored.digest}` },
          ],
        });
        expect(await store.readResult(RESULT.stored.digest)).toBeNull();
      },
    );

    it('said again by a retried step is one reason', async () => {
      const { store } = harness();
      await cancelled();
      for (const observedAt of [AT + 800, AT + 900]) {
        await store.recordTerminal(CALL, ended('completed', { observedAt }), null);
        await store.recordResult(CALL, RESULT);
        await store.recordReference(CALL, null, { ...REFERENCE, remoteId: 'another' }, observedAt);
      }
      expect((await owed())?.entries.map(({ note }) => note)).toEqual([
        'cancelled: status',
        'late completed',
        `late result ${RESULT.stored.digest}`,
        expect.stringContaining('second reference: remote id another'),
      ]);
    });

    it('whose result comes by itself is named by its digest', async () => {
      const { store, reader } = harness();
      await cancelled();
      const before = await acceptedOf();
      await store.recordTerminal(CALL, ended('completed'), null);
      await store.recordResult(CALL, RESULT);
      expect(await acceptedOf()).toEqual(before);
      expect((await reader.readEvidence(CALL)).map(({ detail }) => detail)).toEqual([
        'completed (status); the row holds cancelled',
        expect.stringContaining(RESULT.stored.digest),
      ]);
      expect((await owed())?.entries.at(-1)).toMatchObject({ note: `late result ${RESULT.stored.digest}` });
    });

    it('before the receipt leaves the result to audit and the end as it was', async () => {
      const { store, reader } = harness();
      await working(store);
      await store.raiseCancel(fence(), 0, 'no longer needed');
      await store.recordTerminal(CALL, ended('cancelled'), null);
      await store.recordTerminal(CALL, ended('completed'), null);
      const row = await store.recordResult(CALL, RESULT);
      expect(await owed()).toMatchObject({ status: 'open', note: 'late completed' });
      await accept(store, row);
      expect(await acceptedOf()).toMatchObject({
        receipt: { outcome: 'cancelled', result: null, auditResult: RESULT.stored },
        ready: { outcome: 'cancelled', advances: false },
      });
      expect((await owed())?.entries.map(({ note }) => note)).toEqual([
        'late completed',
        'cancelled: status',
      ]);
      expect((await reader.readEvidence(CALL)).map(({ kind }) => kind)).toEqual(['terminal-contradiction']);
    });

    it.each([
      ['completed', 'an operation that was never sent', true],
      ['completed', 'a rejected operation', true],
      ['completed', 'a failed operation', true],
      ['failed', 'a completed operation', false],
      ['cancelled', 'a completed operation', false],
      ['cancelled', 'a failed operation', false],
    ] as const)('%s about %s: owed is %s', async (status, which, isOwed) => {
      const { store, reader } = harness();
      if (which === 'an operation that was never sent') {
        await store.open(request());
        await accept(store, await store.raiseCancel(fence(), 0, 'no longer needed'));
      } else if (which === 'a rejected operation') {
        await store.open(request());
        await accept(store, await store.recordRejection(fence(), { code: 'operator', message: 'no' }));
      } else {
        await working(store);
        const seen = which === 'a failed operation' ? 'failed' : 'completed';
        await accept(store, await store.recordTerminal(CALL, ended(seen), RESULT));
      }
      const before = await acceptedOf();
      expect(await owed()).toBeNull();
      await store.recordTerminal(CALL, ended(status), null);
      expect(await acceptedOf()).toEqual(before);
      expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'terminal-contradiction' }]);
      expect((await owed())?.status ?? null).toBe(isOwed ? 'open' : null);
    });

    it('about a tool without side effects is evidence alone', async () => {
      const { store, reader } = harness();
      await cancelled(HARMLESS);
      await store.recordTerminal(CALL, ended('completed'), null);
      await store.recordResult(CALL, RESULT);
      expect(await reader.readEvidence(CALL)).toHaveLength(2);
      expect(await owed()).toBeNull();
    });

    it('with other bytes of a result that is held is no further effect', async () => {
      const { store } = harness();
      await accept(store, await finished(store));
      await store.recordResult(CALL, resultOf('{"total":2}'));
      expect(await owed()).toBeNull();
    });
  });

  describe('settling', () => {
    it('keeps who said what and when, changes no receipt, and lists it no more', async () => {
      const { store, reader } = harness();
      await cancelled();
      const before = await acceptedOf();
      const settled = { kind: 'settled', at: AT + 700, ...WORD };
      expect(await store.settleReconciliation(CALL, WORD, AT + 700)).toMatchObject({
        kind: 'settled',
        reconciliation: { status: 'settled', entries: [{ kind: 'owed' }, settled] },
      });
      expect(await acceptedOf()).toEqual(before);
      expect(await owed()).toMatchObject({ status: 'settled', entries: [{ kind: 'owed' }, settled] });
      expect(await reader.listReconciliations()).toEqual([]);
      expect(await reader.listReconciliations({ includeSettled: true })).toMatchObject([
        { callNodeId: CALL, status: 'settled', outcome: 'cancelled' },
      ]);
    });

    it('twice says who settled it first, and whether by the same word', async () => {
      const { store } = harness();
      await cancelled();
      await store.settleReconciliation(CALL, WORD, AT + 700);
      const before = await owed();
      const again = { note: ` ${WORD.note} `, settledBy: WORD.settledBy };
      expect(await store.settleReconciliation(CALL, again, AT + 800)).toEqual({
        kind: 'alreadySettled',
        isSameWord: true,
        reconciliation: before,
      });
      expect(await store.settleReconciliation(CALL, { ...WORD, settledBy: 'Bob' }, AT + 900)).toMatchObject({
        kind: 'alreadySettled',
        isSameWord: false,
        reconciliation: before as object,
      });
      expect(await owed()).toEqual(before);
    });

    it('is opened again by new evidence, and not by the same again', async () => {
      const { store, reader } = harness();
      await cancelled();
      await store.recordTerminal(CALL, ended('completed'), null);
      await store.settleReconciliation(CALL, WORD, AT + 700);
      await store.recordTerminal(CALL, ended('completed', { observedAt: AT + 800 }), null);
      expect(await owed()).toMatchObject({ status: 'settled' });
      await store.recordResult(CALL, RESULT);
      expect(await owed()).toMatchObject({ status: 'open', openedAt: AT + 100 });
      await store.settleReconciliation(CALL, { ...WORD, note: 'again' }, AT + 900);
      await store.recordReference(CALL, null, { ...REFERENCE, remoteId: 'another' }, AT + 950);
      expect((await owed())?.entries.map(({ kind }) => kind)).toEqual([
        'owed',
        'owed',
        'settled',
        'owed',
        'settled',
        'owed',
      ]);
      expect(await reader.listReconciliations()).toMatchObject([{ callNodeId: CALL, status: 'open' }]);
    });

    it('of an operation that owes nothing, or that nobody knows, changes nothing', async () => {
      const { store, reader } = harness();
      await accept(store, await finished(store));
      expect(await store.settleReconciliation(CALL, WORD, AT + 700)).toEqual({ kind: 'nothingOwed' });
      expect(await store.settleReconciliation('nobody', WORD, AT + 700)).toEqual({
        kind: 'unknownOperation',
      });
      expect(await reader.listReconciliations({ includeSettled: true })).toEqual([]);
    });

    it('needs a note and a name', async () => {
      const { store } = harness();
      await cancelled();
      for (const word of [
        { ...WORD, note: ' ' },
        { ...WORD, settledBy: '' },
      ]) {
        await expect(store.settleReconciliation(CALL, word, AT + 700)).rejects.toThrow(TypeError);
      }
      expect(await owed()).toMatchObject({ status: 'open' });
    });
  });

  it('what is owed is listed with its call, the oldest first, also before its end', async () => {
    const { store, reader } = harness();
    await working(store, { callNodeId: 'doubled' });
    await store.recordReference('doubled', null, { ...REFERENCE, remoteId: 'another' }, AT + 9);
    await accept(store, await working(store, { callNodeId: 'closed' }), CLOSE);
    await cancelled();
    expect(await reader.listReconciliations()).toMatchObject([
      { callNodeId: 'doubled', outcome: null, remoteId: REFERENCE.remoteId, openedAt: AT + 9 },
      { callNodeId: 'closed', server: 'reports', tool: 'build-report', outcome: 'unresolved' },
      { callNodeId: CALL, outcome: 'cancelled' },
    ]);
  });
}
