// Owns the part of the store suite about terminal observations, results and the single acceptance.
// Must never know SQLite.

import { describe, expect, it } from 'vitest';

import { PRESENTED_FACTS, presentedBy, type Presented } from '../../operation/build-receipt.js';
import type { OpenRequest } from '../../receipts/store.js';
import {
  accept,
  AT,
  CALL,
  codeOf,
  deciding,
  ended,
  fence,
  finished,
  POLICY,
  request,
  resultOf,
  working,
  type StoreHarness,
} from './suite-fixtures.js';

const RESULT = resultOf('{"total":1}');
const OTHER = resultOf('{"total":2}');

export function terminalSuite(harness: () => StoreHarness): void {
  describe('terminal observation', () => {
    it('is kept with its result, and the leg it answered is closed', async () => {
      const { store } = harness();
      await store.open(request());
      await store.claimLeg(fence(), 'claim-1', AT);
      const seen = ended('completed', { evidence: 'submit-reply' });
      const row = await store.recordTerminal(CALL, seen, RESULT, { claimToken: 'claim-1', at: AT + 3 });
      expect(row).toMatchObject({
        terminalObservation: seen,
        result: RESULT.stored,
        legs: [{ outcome: 'answered', closedAt: AT + 3 }],
      });
      expect(await store.readResult(RESULT.stored.digest)).toEqual(RESULT.bytes);
    });

    it('is the first one; the same end later may only add the missing result', async () => {
      const { store, reader } = harness();
      await working(store);
      await store.recordTerminal(CALL, ended('completed'), null);
      const later = await store.recordTerminal(CALL, ended('completed', { observedAt: AT + 99 }), RESULT);
      expect(later).toMatchObject({ terminalObservation: { observedAt: AT + 50 }, result: RESULT.stored });
      expect(await reader.readEvidence(CALL)).toEqual([]);
    });

    it('of another kind is a contradiction: kept as evidence, its result not taken', async () => {
      const { store, reader } = harness();
      await working(store);
      await store.recordTerminal(CALL, ended('cancelled'), null);
      const row = await store.recordTerminal(CALL, ended('completed'), RESULT);
      expect(row).toMatchObject({ terminalObservation: { remoteStatus: 'cancelled' }, result: null });
      expect(await reader.readEvidence(CALL)).toMatchObject([
        { kind: 'terminal-contradiction', at: AT + 50 },
      ]);
    });

    it('that comes after a receipt without one is evidence and nothing else', async () => {
      const { store, reader } = harness();
      const held = await working(store);
      await accept(store, held, { decision: 'close', evidence: 'gone', decidedBy: 'ann' });
      const row = await store.recordTerminal(CALL, ended('completed'), RESULT);
      expect(row).toMatchObject({ terminalObservation: null, result: null });
      expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'terminal-contradiction' }]);
    });
  });

  describe('result', () => {
    it('is the first one; other bytes are a contradiction', async () => {
      const { store, reader } = harness();
      await finished(store);
      expect((await store.recordResult(CALL, RESULT)).result).toEqual(RESULT.stored);
      expect(await reader.readEvidence(CALL)).toEqual([]);
      expect((await store.recordResult(CALL, OTHER)).result).toEqual(RESULT.stored);
      expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'result-contradiction' }]);
      expect(await store.readResult(OTHER.stored.digest)).toBeNull();
    });

    it('may be added after its observation', async () => {
      const { store } = harness();
      await working(store);
      await store.recordTerminal(CALL, ended('failed'), null);
      expect((await store.recordResult(CALL, RESULT)).result).toEqual(RESULT.stored);
    });

    it('of two operations with the same bytes is stored once for both', async () => {
      const { store } = harness();
      await finished(store);
      await finished(store, { callNodeId: 'node-2' });
      expect((await store.read('node-2'))?.result).toEqual(RESULT.stored);
    });

    it('is refused where digest or size do not belong to the bytes, and nothing is kept', async () => {
      const { store } = harness();
      await working(store);
      for (const patch of [{ digest: OTHER.stored.digest }, { sizeBytes: 1 }]) {
        const forged = { bytes: RESULT.bytes, stored: { ...RESULT.stored, ...patch } };
        await expect(store.recordTerminal(CALL, ended('completed'), forged)).rejects.toThrow(TypeError);
      }
      expect(await store.read(CALL)).toMatchObject({ terminalObservation: null, result: null });
    });

    it('damaged in the store is not given out', async () => {
      const { store, damageResult } = harness();
      await finished(store);
      damageResult(RESULT.stored.digest);
      expect(await codeOf(store.readResult(RESULT.stored.digest))).toBe('StoreUnusable');
    });
  });
}

export function acceptanceSuite(harness: () => StoreHarness): void {
  const writtenFor = async (callNodeId = CALL) => ({
    receipt: await harness().reader.readReceipt(callNodeId),
    ready: await harness().reader.readReady(callNodeId),
    reconciliation: await harness().reader.readReconciliation(callNodeId),
  });
  const NOTHING = { receipt: null, ready: null, reconciliation: null };

  describe('acceptance', () => {
    it('of a completion writes one receipt and a ready row that advances', async () => {
      const { store, reader } = harness();
      const acceptance = await accept(store, await finished(store));
      expect(acceptance).toMatchObject({
        kind: 'accepted',
        isFirst: true,
        receipt: { outcome: 'completed', result: RESULT.stored },
        row: { receipt: { outcome: 'completed' } },
      });
      expect(acceptance.kind === 'accepted' && (await reader.readReceipt(CALL))).toEqual(
        acceptance.row.receipt,
      );
      expect(await reader.readReady(CALL)).toMatchObject({
        advances: true,
        outcome: 'completed',
        createdAt: AT + 100,
      });
      expect(await reader.readReconciliation(CALL)).toBeNull();
    });

    it('twice gives the same receipt, whatever the second presents', async () => {
      const { store } = harness();
      const row = await finished(store);
      const first = await accept(store, row);
      const before = await writtenFor();
      const other: Presented = {
        ...presentedBy(row),
        remoteId: 'other',
        executionEpoch: 9,
        resultDigest: null,
      };
      const second = await store.acceptTerminal(fence('run-9', 0), other, () => null, AT + 500);
      expect(second).toEqual({ ...first, isFirst: false });
      expect(await writtenFor()).toEqual(before);
    });

    it('three times at once is first once', async () => {
      const { store } = harness();
      const row = await finished(store);
      const all = await Promise.all([accept(store, row), accept(store, row), accept(store, row)]);
      const firsts = all.filter((acceptance) => acceptance.kind === 'accepted' && acceptance.isFirst);
      expect(firsts).toHaveLength(1);
      expect(all.map((acceptance) => acceptance.kind)).toEqual(['accepted', 'accepted', 'accepted']);
    });

    it('does not hand an existing receipt to another request', async () => {
      const { store, reader } = harness();
      const row = await finished(store);
      await accept(store, row);
      for (const fact of ['callNodeId', 'requestDigest'] as const) {
        const other = { ...presentedBy(row), [fact]: 'other' };
        const refused = await store.acceptTerminal(fence(), other, deciding(), AT + 500);
        expect(refused).toMatchObject({ kind: 'refused', fact });
      }
      expect((await reader.readEvidence(CALL)).map((evidence) => evidence.kind)).toEqual([
        'acceptance-refused',
        'acceptance-refused',
      ]);
    });

    it.each(PRESENTED_FACTS)('is refused and recorded where only %s differs', async (fact) => {
      const { store, reader } = harness();
      const row = await finished(store);
      const held = presentedBy(row);
      const other = { ...held, [fact]: typeof held[fact] === 'number' ? held[fact] + 1 : 'other' };
      const refused = await store.acceptTerminal(fence(), other, deciding(), AT + 100);
      expect(refused).toMatchObject({ kind: 'refused', fact, row });
      expect(await reader.readEvidence(CALL)).toEqual([
        { kind: 'acceptance-refused', detail: expect.stringContaining(`${fact}: presented`), at: AT + 100 },
      ]);
      expect(await writtenFor()).toEqual(NOTHING);
      expect(await accept(store, row)).toMatchObject({ kind: 'accepted', isFirst: true });
    });

    it('by a run that takes the row over in this very call may present the epoch before', async () => {
      const { store } = harness();
      const row = await finished(store);
      const accepted = await store.acceptTerminal(fence('run-2', 1), presentedBy(row), deciding(), AT + 100);
      expect(accepted).toMatchObject({ kind: 'accepted', receipt: { executionEpoch: 2 } });
    });

    it('by the owner may not present the epoch before', async () => {
      const { store } = harness();
      const row = await finished(store);
      await store.open(request({ runId: 'run-2' }));
      const refused = await store.acceptTerminal(fence('run-2', 2), presentedBy(row), deciding(), AT + 100);
      expect(refused).toMatchObject({ kind: 'refused', fact: 'executionEpoch' });
    });

    it('by a run under an older epoch is superseded, and recorded: the owner accepts, and then all have its receipt', async () => {
      const { store, reader } = harness();
      const row = await finished(store);
      await store.open(request({ runId: 'run-2' }));
      const old = () => store.acceptTerminal(fence('run-1', 1), presentedBy(row), deciding(), AT + 90);
      expect(await codeOf(old())).toBe('Superseded');
      expect(await writtenFor()).toEqual(NOTHING);
      const [refusal, ...others] = await reader.readEvidence(CALL);
      expect(others).toEqual([]);
      expect(refusal).toMatchObject({ kind: 'acceptance-refused', at: AT + 90 });
      expect(refusal?.detail).toBe('owner: Run run-1 holds epoch 1 of node-1; run run-2 owns it at epoch 2.');
      const current = await store.read(CALL);
      if (!current) throw new Error('no row');
      expect(current.ownerRunId).toBe('run-2');
      const accepted = await accept(store, current);
      expect(accepted).toMatchObject({ kind: 'accepted', isFirst: true });
      expect(await old()).toMatchObject({ kind: 'accepted', isFirst: false, receipt: accepted.row.receipt });
    });

    it('by an old attempt, from before the result was known, is refused; the next attempt is accepted', async () => {
      const { store, reader } = harness();
      const before = await working(store);
      const row = await store.recordTerminal(CALL, ended('completed'), RESULT);
      const old = await store.acceptTerminal(fence(), presentedBy(before), deciding(), AT + 90);
      expect(old).toMatchObject({ kind: 'refused', fact: 'terminalStatus', row });
      expect(await writtenFor()).toEqual(NOTHING);
      expect(await accept(store, row)).toMatchObject({ kind: 'accepted', isFirst: true });
      expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'acceptance-refused' }]);
    });

    it('of a reset run beside its old one, both at once: one receipt, which both get', async () => {
      const { store } = harness();
      const row = await finished(store);
      const all = await Promise.all([
        store.acceptTerminal(fence('run-1', 1), presentedBy(row), deciding(), AT + 100),
        store.acceptTerminal(fence('run-2', 1), presentedBy(row), deciding(), AT + 100),
        store.acceptTerminal(fence('run-3', 1), presentedBy(row), deciding(), AT + 100),
      ]);
      expect(all.map((each) => each.kind === 'accepted' && each.isFirst)).toEqual([true, false, false]);
      expect(new Set(all.map((each) => JSON.stringify(each.row.receipt))).size).toBe(1);
    });

    it('is refused where the row proves no end', async () => {
      const { store, reader } = harness();
      const refused = await accept(store, await working(store));
      expect(refused).toMatchObject({ kind: 'refused', fact: 'end' });
      expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'acceptance-refused' }]);
      expect(await writtenFor()).toEqual(NOTHING);
    });

    it('is refused where the result is not in the store', async () => {
      const { store, forgetResult } = harness();
      const row = await finished(store);
      forgetResult(RESULT.stored.digest);
      expect(await accept(store, row)).toMatchObject({ kind: 'refused', fact: 'resultDigest' });
      expect(await writtenFor()).toEqual(NOTHING);
    });

    it('is refused where a completion is built without its result', async () => {
      const { store } = harness();
      const row = await finished(store);
      const stripped = (held: typeof row) => {
        const decided = deciding()(held);
        return decided && { ...decided, receipt: { ...decided.receipt, result: null } };
      };
      const refused = await store.acceptTerminal(fence(), presentedBy(row), stripped, AT + 100);
      expect(refused).toMatchObject({ kind: 'refused', fact: 'resultDigest' });
    });

    it('that dies before its ready row leaves no receipt, and can be done again', async () => {
      const { store, refuseReadyRows } = harness();
      await working(store);
      await store.raiseCancel(fence(), 0, 'no longer needed');
      const row = await store.recordTerminal(CALL, ended('cancelled'), null);
      const undo = refuseReadyRows();
      await expect(accept(store, row)).rejects.toThrow('ready rows are refused');
      expect(await writtenFor()).toEqual(NOTHING);
      expect(await store.read(CALL)).toEqual(row);
      undo();
      expect(await accept(store, row)).toMatchObject({ kind: 'accepted', isFirst: true });
      expect(await writtenFor()).not.toMatchObject(NOTHING);
    });

    it('keeps a text cut in mid-character rather than failing for ever', async () => {
      const { store, reader } = harness();
      await working(store);
      await store.recordTerminal(CALL, ended('completed', { statusMessage: 'done \ud83d' }), RESULT);
      const row = await store.read(CALL);
      if (!row) throw new Error('no row');
      expect(await accept(store, row)).toMatchObject({ kind: 'accepted' });
      expect((await reader.readReceipt(CALL))?.remoteSaid.statusMessage).toBe('done \uFFFD');
    });

    it('leaves a receipt that is not read once it was changed', async () => {
      const { store, damageReceipt } = harness();
      await accept(store, await finished(store));
      damageReceipt(CALL);
      expect(await codeOf(store.readReceipt(CALL))).toBe('StoreUnusable');
    });
  });

  describe('ready row and reconciliation', () => {
    const CLOSE = { decision: 'close', evidence: 'the provider is gone', decidedBy: 'ann' } as const;
    const harmless: Partial<OpenRequest> = { policy: { ...POLICY, sideEffects: 'none' } };

    it('of a failure does not advance and owes nothing', async () => {
      const { store } = harness();
      await working(store);
      const row = await store.recordTerminal(CALL, ended('failed'), resultOf('{}', { isToolError: true }));
      await accept(store, row);
      expect(await writtenFor()).toMatchObject({
        ready: { advances: false, outcome: 'failed' },
        reconciliation: null,
      });
    });

    it('of a cancelled operation does not advance and owes reconciliation', async () => {
      const { store } = harness();
      await working(store);
      await store.raiseCancel(fence(), 0, 'no longer needed');
      await accept(store, await store.recordTerminal(CALL, ended('cancelled'), RESULT));
      expect(await writtenFor()).toMatchObject({
        receipt: { effects: 'EFFECT_RECONCILIATION_REQUIRED', result: null, auditResult: RESULT.stored },
        ready: { advances: false, outcome: 'cancelled' },
        reconciliation: { status: 'open', openedAt: AT + 100, note: 'cancelled: status' },
      });
    });

    it('of an unresolved operation owes reconciliation, unless its tool has no side effects', async () => {
      const { store } = harness();
      await accept(store, await working(store), CLOSE);
      await accept(store, await working(store, { ...harmless, callNodeId: 'node-2' }), CLOSE);
      expect(await writtenFor()).toMatchObject({
        ready: { advances: false, outcome: 'unresolved' },
        reconciliation: { status: 'open' },
      });
      expect(await writtenFor('node-2')).toMatchObject({
        ready: { advances: false, outcome: 'unresolved' },
        reconciliation: null,
      });
    });

    it('of a cancel before anything was sent owes nothing', async () => {
      const { store } = harness();
      await store.open(request());
      await accept(store, await store.raiseCancel(fence(), 0, 'no longer needed'));
      expect(await writtenFor()).toMatchObject({
        receipt: { outcome: 'cancelled', decision: { evidence: 'never sent' } },
        ready: { advances: false },
        reconciliation: null,
      });
    });

    it('of a rejection does not advance', async () => {
      const { store } = harness();
      await store.open(request());
      await accept(
        store,
        await store.recordRejection(fence(), { code: 'bad-arguments', message: 'no year' }),
      );
      expect(await writtenFor()).toMatchObject({
        ready: { advances: false, outcome: 'rejected' },
        reconciliation: null,
      });
    });
  });
}
