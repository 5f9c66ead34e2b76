// Owns the part of the store suite about operators' ends, restored stores and what a sweep reads.
// Must never know SQLite.

import { describe, expect, it } from 'vitest';

import type { SeenByRun } from '../../operation/row.js';
import {
  accept,
  AT,
  CALL,
  codeOf,
  ended,
  fence,
  finished,
  NEGOTIATION,
  POLICY,
  REFERENCE,
  request,
  resultOf,
  type StoreHarness,
  working,
} from './suite-fixtures.js';

const NOTE = 'operator Ann: the log';
const SEEN_WORKING = { remoteId: REFERENCE.remoteId, terminalStatus: null };
const said = (remoteStatus: 'completed' | 'failed' = 'completed') =>
  ended(remoteStatus, { evidence: 'operator', note: NOTE });
const given = (text: string) => resultOf(text, { note: NOTE });

export function operatorEndSuite(harness: () => StoreHarness): void {
  describe('an operator’s end', () => {
    it('is written with its result, and accepted as every other end', async () => {
      const { store, reader } = harness();
      await working(store);
      const row = await store.recordOperatorEnd(fence(), SEEN_WORKING, said(), given('{"total":1}'));
      expect(row.terminalObservation).toMatchObject({
        remoteStatus: 'completed',
        evidence: 'operator',
        note: NOTE,
      });
      expect(row.result).toEqual(given('{"total":1}').stored);
      const accepted = await accept(store, row);
      expect(accepted).toMatchObject({
        kind: 'accepted',
        receipt: { outcome: 'completed', decision: { evidence: NOTE }, remoteSaid: { remoteStatus: null } },
      });
      expect(await reader.readReady(CALL)).toMatchObject({ advances: true });
      expect(await reader.readEvidence(CALL)).toEqual([]);
    });

    it('written again by a retried step changes nothing and is no contradiction', async () => {
      const { store, reader } = harness();
      await working(store);
      const first = await store.recordOperatorEnd(fence(), SEEN_WORKING, said(), given('{"total":1}'));
      expect(await store.recordOperatorEnd(fence(), SEEN_WORKING, said(), given('{"total":1}'))).toEqual(
        first,
      );
      expect(await reader.readEvidence(CALL)).toEqual([]);
    });

    it('is overtaken by a reference, an end or a rejection that the run had not seen', async () => {
      const { store, reader } = harness();
      await working(store);
      const unseen = { remoteId: null, terminalStatus: null };
      const row = await store.recordOperatorEnd(fence(), unseen, said(), given('{"total":1}'));
      expect([row.terminalObservation, row.result]).toEqual([null, null]);
      await store.recordTerminal(CALL, ended('failed'), null);
      const after = await store.recordOperatorEnd(fence(), SEEN_WORKING, said(), given('{"total":1}'));
      expect([after.terminalObservation?.remoteStatus, after.result]).toEqual(['failed', null]);
      expect((await reader.readEvidence(CALL)).map(({ kind }) => kind)).toEqual([
        'terminal-contradiction',
        'terminal-contradiction',
      ]);
    });

    it('gives the result that is missing to an end that the server has told, and replaces none', async () => {
      const { store } = harness();
      await working(store);
      await store.recordTerminal(CALL, ended('completed'), null);
      const seen = { ...SEEN_WORKING, terminalStatus: 'completed' };
      const row = await store.recordOperatorEnd(fence(), seen, said(), given('{"total":1}'));
      expect([row.terminalObservation, row.result?.digest]).toEqual([
        ended('completed'),
        given('{"total":1}').stored.digest,
      ]);
      const other = await store.recordOperatorEnd(fence(), seen, said(), given('{"total":2}'));
      expect(other.result?.digest).toBe(given('{"total":1}').stored.digest);
    });

    it('is fenced, and nothing once a receipt exists', async () => {
      const { store } = harness();
      const row = await working(store);
      await store.open(request({ runId: 'run-2' }));
      const old = store.recordOperatorEnd(fence(), SEEN_WORKING, said(), given('{}'));
      expect(await codeOf(old)).toBe('Superseded');
      const close = { decision: 'close', evidence: 'e', decidedBy: 'Ann' } as const;
      await accept(store, { ...row, ownerRunId: 'run-2', executionEpoch: 2 }, close);
      const late = await store.recordOperatorEnd(fence('run-2', 2), SEEN_WORKING, said(), given('{}'));
      expect([late.receipt?.outcome, late.terminalObservation]).toEqual(['unresolved', null]);
    });
  });
}

async function seenByRun(store: StoreHarness['store'], mayGiveBack: boolean): Promise<SeenByRun> {
  const row = await working(store, { callNodeId: 'elsewhere' });
  return { ...row, evidence: 'the row misses a submission leg', mayGiveBack };
}

export function restoredSuite(harness: () => StoreHarness): void {
  describe('a row that is older than its run', () => {
    it('says so for ever: no leg is claimed on it, whoever opens it later', async () => {
      const { store, reader } = harness();
      const seen = await seenByRun(store, false);
      await store.open(request());
      await store.recordNegotiation(fence(), { ...NEGOTIATION, submissionPolicy: 'repeatable' });
      const opened = await store.open(request({ seen }));
      expect(opened).toMatchObject({ kind: 'opened', row: { hasForgotten: true, legs: [] } });
      expect((await store.claimLeg(fence(), 'claim-2', AT)).ruling).toBe('ambiguous');
      await store.open(request({ runId: 'run-2' }));
      expect((await store.claimLeg(fence('run-2', 2), 'claim-2', AT)).ruling).toBe('ambiguous');
      const rejection = { code: 'submit-deadline', message: 'late' } as const;
      expect((await store.recordRejection(fence('run-2', 2), rejection)).rejection).toBeNull();
      expect(await reader.readEvidence(CALL)).toMatchObject([
        { kind: 'ledger-behind', detail: 'the row misses a submission leg' },
      ]);
    });

    it('that is missing leaves its evidence to a row that another run makes anew', async () => {
      const { store } = harness();
      const seen = await seenByRun(store, false);
      expect(await codeOf(store.open(request({ mustExist: true, seen })))).toBe('LedgerMissing');
      const rejection = { code: 'unknown-server', message: 'none' } as const;
      const anew = await store.open(request({ runId: 'run-2', rejection }));
      expect(anew).toMatchObject({ row: { hasForgotten: true, rejection: null, executionEpoch: 1 } });
    });

    it('that knows all its run has seen is not marked', async () => {
      const { store } = harness();
      const row = await working(store);
      const opened = await store.open(request({ seen: { ...row, evidence: 'x', mayGiveBack: true } }));
      expect(opened).toEqual({ kind: 'opened', row });
    });

    it('gets back the cancels that came before the last, and those once', async () => {
      const { store } = harness();
      const seen = await seenByRun(store, true);
      const cancelled = { cancelGeneration: 3, cancelReason: 'third', cancelDelivery: 'sent' } as const;
      const [first, second] = [
        { generation: 1, reason: 'no longer needed', delivery: 'unsent' },
        { generation: 2, reason: 'second', delivery: 'acknowledged' },
      ] as const;
      await store.open(request());
      await store.raiseCancel(fence(), 0, 'no longer needed');
      await store.raiseCancel(fence(), 1, 'second');
      const lost = { ...seen, ...cancelled, earlierCancels: [first, second] };
      const opened = await store.open(request({ seen: lost }));
      expect(opened).toMatchObject({ row: { ...cancelled, earlierCancels: [first, second] } });
    });

    it('gets back what is missing, and only that, on an operator’s word', async () => {
      const { store } = harness();
      const seen = await seenByRun(store, true);
      const anew = await store.open(request({ seen }));
      expect(anew).toMatchObject({
        row: {
          hasForgotten: true,
          legs: [{ leg: 1, claimToken: 'claim-1', outcome: 'referenced' }],
          remoteReference: REFERENCE,
          adapter: NEGOTIATION.adapter,
          toolVersion: NEGOTIATION.toolVersion,
        },
      });
      const again = await store.open(request({ seen }));
      expect(again).toEqual(anew);
    });

    it('keeps the legs it has beside those that come back, an open one as ambiguous', async () => {
      const { store } = harness();
      const seen = await seenByRun(store, true);
      await store.open(request());
      await store.recordNegotiation(fence(), NEGOTIATION);
      await store.claimLeg(fence(), 'other', AT);
      const [leg] = seen.legs;
      if (!leg) throw new Error('no leg');
      const legs = [{ ...leg, outcome: 'open', closedAt: null, claimToken: 'mine' } as const];
      const opened = await store.open(request({ seen: { ...seen, legs, remoteReference: null } }));
      expect(opened).toMatchObject({
        row: {
          legs: [
            { leg: 1, claimToken: 'other', outcome: 'open' },
            { leg: 2, claimToken: 'mine', outcome: 'ambiguous' },
          ],
        },
      });
    });
  });
}

export function openRowsSuite(harness: () => StoreHarness): void {
  describe('open rows', () => {
    const page = (more: object = {}) => ({ after: null, limit: 10, createdBeforeAt: AT, ...more });

    it('are those without a receipt, old enough, page by page, with the request as it was made', async () => {
      const { store } = harness();
      for (const callNodeId of ['c', 'a', 'b'])
        await working(store, { callNodeId, runId: `run-${callNodeId}` });
      await store.open(request({ callNodeId: 'young', at: AT + 1 }));
      await accept(store, await finished(store, { callNodeId: 'ended' }));
      const all = await store.openRows(page());
      expect(all.map(({ callNodeId }) => callNodeId)).toEqual(['a', 'b', 'c']);
      expect(all[0]).toEqual({
        callNodeId: 'a',
        requestDigest: 'digest-of-request',
        server: 'reports',
        tool: 'build-report',
        argumentsJson: '{"year":2024}',
        waitBudgetMs: null,
        ownerRunId: 'run-a',
        isReceiptLost: false,
      });
      expect(await store.openRows(page({ limit: 2 }))).toEqual(all.slice(0, 2));
      expect(await store.openRows(page({ after: 'b' }))).toEqual(all.slice(2));
    });

    it('know the wait budget that a caller named, and whether their receipt was lost', async () => {
      const { store } = harness();
      await store.open(request({ policy: { ...POLICY, waitBudgetMs: 7, waitBudgetExplicit: true } }));
      await store.addEvidence(CALL, 'receipt-lost', 'its run has completed', AT);
      expect(await store.openRows(page())).toMatchObject([{ waitBudgetMs: 7, isReceiptLost: true }]);
      expect(await store.read(CALL)).toMatchObject({ hasForgotten: true });
    });
  });
}
