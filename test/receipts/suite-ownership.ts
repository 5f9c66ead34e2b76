// Owns the part of the store suite about rows, owners and fences.
// Must never know SQLite.

import { describe, expect, it } from 'vitest';

import { StoreError } from '../../receipts/store.js';
import {
  accept,
  AT,
  CALL,
  codeOf,
  fence,
  finished,
  NEGOTIATION,
  POLICY,
  reply,
  request,
  working,
  type StoreHarness,
} from './suite-fixtures.js';

export function ownershipSuite(harness: () => StoreHarness): void {
  describe('open', () => {
    it('creates the row with epoch 1 and the run as owner', async () => {
      const opened = await harness().store.open(request());
      expect(opened).toEqual({
        kind: 'opened',
        row: {
          callNodeId: CALL,
          requestDigest: 'digest-of-request',
          server: 'reports',
          tool: 'build-report',
          argumentsDigest: 'digest-of-arguments',
          submissionKey: 'key-of-node-1',
          createdAt: AT,
          policy: POLICY,
          executionEpoch: 1,
          ownerRunId: 'run-1',
          adapter: null,
          submissionPolicy: null,
          toolVersion: null,
          descriptorDigest: null,
          legs: [],
          remoteReference: null,
          rounds: [],
          cancelGeneration: 0,
          cancelReason: null,
          cancelDelivery: 'none',
          terminalObservation: null,
          rejection: null,
          result: null,
          provedAbsentAtLeg: null,
          receipt: null,
        },
      });
    });

    it('opened twice by the same run changes nothing', async () => {
      const first = await harness().store.open(request());
      expect(await harness().store.open(request({ at: AT + 9 }))).toEqual(first);
    });

    it('opened by another run gives that run the next epoch and keeps the first request', async () => {
      await harness().store.open(request());
      const adopted = await harness().store.open(
        request({ runId: 'run-2', argumentsJson: '{}', at: AT + 9 }),
      );
      expect(adopted).toMatchObject({
        kind: 'opened',
        row: { executionEpoch: 2, ownerRunId: 'run-2', createdAt: AT },
      });
      expect((await harness().store.wireState(CALL)).argumentsJson).toBe('{"year":2024}');
    });

    it('refuses another request under the same callNodeId and leaves the owner alone', async () => {
      await harness().store.open(request());
      const other = await harness().store.open(request({ requestDigest: 'other', runId: 'run-2' }));
      expect(other).toEqual({ kind: 'conflict', storedDigest: 'digest-of-request' });
      expect(await harness().store.read(CALL)).toMatchObject({ executionEpoch: 1, ownerRunId: 'run-1' });
    });

    it('bears a new row rejected and leaves an adopted one alone', async () => {
      const rejection = { code: 'unknown-server', message: 'no such server' } as const;
      const born = await harness().store.open(request({ rejection }));
      expect(born).toMatchObject({ row: { rejection } });
      await harness().store.open(request({ callNodeId: 'node-2' }));
      const adopted = await harness().store.open(
        request({ callNodeId: 'node-2', runId: 'run-2', rejection }),
      );
      expect(adopted).toMatchObject({ row: { rejection: null } });
    });
  });

  describe('fence', () => {
    it('lets the owner pass whatever epoch it believes in', async () => {
      await harness().store.open(request());
      await harness().store.open(request({ runId: 'run-2' }));
      expect(await harness().store.begin(fence('run-2', 1))).toMatchObject({ executionEpoch: 2 });
    });

    it('gives another run of the same epoch the next epoch', async () => {
      await harness().store.open(request());
      expect(await harness().store.begin(fence('run-2', 1))).toMatchObject({
        executionEpoch: 2,
        ownerRunId: 'run-2',
      });
      expect(await harness().store.read(CALL)).toMatchObject({ executionEpoch: 2, ownerRunId: 'run-2' });
    });

    it('refuses an older epoch with Superseded, at every fenced write, and writes nothing', async () => {
      const { store } = harness();
      await working(store);
      const after = await store.begin(fence('run-2', 1));
      const old = fence('run-1', 1);
      const writes = [
        store.begin(old),
        store.recordNegotiation(old, NEGOTIATION),
        store.recordRejection(old, { code: 'operator', message: 'no' }),
        store.claimLeg(old, 'claim-9', AT),
        store.abandonOpenLegs(old, 'lost', AT),
        store.replaceLocator(old, { remoteId: 'task', locator: {} }),
        store.recordAbsence(old, 'nothing listed', AT),
        store.recordReply(old, 'round-1', reply('yes'), '{}'),
        store.raiseCancel(old, 0, 'no longer needed'),
        accept(store, { ...after, ownerRunId: 'run-1', executionEpoch: 1 }),
      ];
      expect(await Promise.all(writes.map(codeOf))).toEqual(writes.map(() => 'Superseded'));
      expect(await store.read(CALL)).toEqual(after);
    });

    it('takes a row that is older than the run has seen for a lost ledger', async () => {
      await harness().store.open(request());
      const failing = harness().store.begin(fence('run-2', 7));
      expect(await codeOf(failing)).toBe('LedgerMissing');
      await failing.catch((error: unknown) => expect(StoreError.isInstance(error)).toBe(true));
      expect(await harness().store.read(CALL)).toMatchObject({ executionEpoch: 1, ownerRunId: 'run-1' });
    });

    it('gives a reset run the next epoch of an ended row and changes nothing else', async () => {
      const { store } = harness();
      await accept(store, await finished(store));
      const row = await store.read(CALL);
      expect(await store.begin(fence('run-2', 1))).toEqual({
        ...row,
        executionEpoch: 2,
        ownerRunId: 'run-2',
      });
    });
  });

  describe('missing row', () => {
    it('is null to a reader', async () => {
      expect(await harness().store.read(CALL)).toBeNull();
      expect(await harness().store.readReceipt(CALL)).toBeNull();
      expect(await harness().store.readResult('absent')).toBeNull();
    });

    it('is LedgerMissing to every write, and none of them creates it', async () => {
      const { store } = harness();
      const writes = [
        store.begin(fence()),
        store.wireState(CALL),
        store.claimLeg(fence(), 'claim-1', AT),
        store.closeLeg(CALL, 'claim-1', { outcome: 'notSent', detail: null, at: AT }),
        store.recordReference(CALL, 'claim-1', { remoteId: 'task', locator: {} }, AT),
        store.recordAnchor(CALL, {}),
        store.closeRound(CALL, 'round-1', AT),
        store.raiseCancel(fence(), 0, 'no longer needed'),
        store.recordTerminal(
          CALL,
          {
            remoteStatus: 'cancelled',
            failureKind: null,
            statusMessage: null,
            observedAt: AT,
            evidence: 'status',
          },
          null,
        ),
        store.acceptTerminal(
          fence(),
          {
            callNodeId: CALL,
            requestDigest: 'digest-of-request',
            remoteId: null,
            toolVersion: null,
            executionEpoch: 1,
            cancelGeneration: 0,
            terminalStatus: null,
            resultDigest: null,
          },
          () => null,
          AT,
        ),
      ];
      expect(await Promise.all(writes.map(codeOf))).toEqual(writes.map(() => 'LedgerMissing'));
      expect(await store.read(CALL)).toBeNull();
    });

    it('still takes evidence', async () => {
      await harness().store.addEvidence(CALL, 'protocol-violation', 'a reply without an id', AT);
      expect(await harness().reader.readEvidence(CALL)).toEqual([
        { kind: 'protocol-violation', detail: 'a reply without an id', at: AT },
      ]);
    });
  });

  describe('evidence', () => {
    it('is kept once however often it is brought, in order, and clipped', async () => {
      const { store, reader } = harness();
      await store.open(request());
      await store.addEvidence(CALL, 'question-lost', 'first', AT);
      await store.addEvidence(CALL, 'question-lost', 'first', AT + 1);
      await store.addEvidence(CALL, 'question-lost', 'x'.repeat(5_000), AT + 2);
      const kept = await reader.readEvidence(CALL);
      expect(kept.map((evidence) => [evidence.detail.length, evidence.at])).toEqual([
        [5, AT],
        [400, AT + 2],
      ]);
    });
  });
}
