// Cases from the field, R1 and R4 and E1 (docs/CASES.md): results that are late, broken, other or large, on the real engine
// and on every contract.

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect } from 'vitest';
import { MESSAGES, workflowIdOf } from '../../operation/names.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { atOnce } from './at-once.js';
import { CONTRACTS, type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

let lab: FaultLab;
/** Takes no result over a megabyte. */
let strict: FaultLab;
const { scenario, begin } = atOnce();
beforeAll(async () => {
  [lab, strict] = await Promise.all([openFaultLab(), openFaultLab({ maxResultBytes: 1_000_000 })]);
  await Promise.all([lab.startWorker(), strict.startWorker()]);
  begin();
});
afterAll(async () => {
  await Promise.all([lab?.close(), strict?.close()]);
});

const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

for (const contract of CONTRACTS) {
  scenario(
    `on ${contract} R1: a ttl of 2 s and a first look at 3 s: held as expired, neither failed nor cancelled`,
    async () => {
      const label = `R1 expired ${contract}`;
      const handle = await lab.start({ label, contract, plan: { ttlMs: 2_000, pollIntervalMs: 3_000 } });
      const view = await until(handle, (seen) => seen.state === 'UNRESOLVED' || seen.receipt !== null);
      expect([view.receipt, view.reason]).toEqual([null, 'expired']);
      expect(lab.faults.entries('executionEnded', label)).toMatchObject([{ how: 'completed' }]);
      expect(lab.rows(label)).toMatchObject({ receipts: 0, ready: 0 });
    },
  );

  for (const word of [
    'wrong-json',
    'deep-json',
    'wrong-types',
    'foreign-task',
    'empty-result',
    'html',
    'duplicate',
    'reorder',
  ]) {
    scenario(`on ${contract} R4: a result that is ${word} once comes whole in the end`, async () => {
      const label = `R4 ${word} ${contract}`;
      const handle = await lab.start({
        label,
        contract,
        resultBytes: 20_000,
        plan: { result: [word, 'ok'] },
      });
      const { outcome, resultJson, receipt } = await handle.result();
      expect(outcome).toBe('completed');
      expect(resultJson).toContain(`execution 1 of ${label} is done`);
      expect(receipt.result?.digest).toBe(sha256(resultJson ?? ''));
      expect(lab.faults.entries('faultPlayed', label)).toMatchObject([{ phase: 'result', word }]);
    });
  }

  scenario(
    `on ${contract} R4: a worker killed with the result in hand: the next fetch says otherwise, and that is the result`,
    async () => {
      const own = await openFaultLab();
      try {
        const first = await own.startWorker({ killAt: 'observe:result-fetched' });
        const label = `R4 said otherwise ${contract}`;
        const handle = await own.start({ label, contract, plan: { result: ['ok', 'other-bytes'] } });
        await first.ended;
        await own.startWorker();
        const { outcome, resultJson, receipt } = await handle.result();
        expect(outcome).toBe('completed');
        expect(resultJson).toContain('said otherwise');
        expect(receipt.result?.digest).toBe(sha256(resultJson ?? ''));
        expect(own.rows(label)).toMatchObject({ receipts: 1, ready: 1, advances: 1 });
      } finally {
        await own.close();
      }
    },
  );

  for (const megabytes of [2.1, 40]) {
    scenario(
      `on ${contract} E1: a result of ${megabytes} MB is stored whole, by reference: history holds its digest`,
      async () => {
        const label = `E1 ${megabytes} MB ${contract}`;
        const resultBytes = megabytes * 1_000_000;
        const handle = await lab.start({ label, contract, resultBytes });
        const { outcome, receipt, resultJson } = await handle.result();
        expect(outcome).toBe('completed');
        const { digest, sizeBytes } = receipt.result ?? {};
        expect(sizeBytes).toBeGreaterThan(resultBytes);
        expect([resultJson?.length, sha256(resultJson ?? '')]).toEqual([sizeBytes, digest]);
        const reader = await openReceiptsReader(lab.storeFile);
        const stored = await reader.readResult(digest ?? '');
        await reader.close();
        expect([stored?.byteLength, sha256(stored ?? '')]).toEqual([sizeBytes, digest]);
        const { historyLength } = await lab.temporal.workflow.getHandle(handle.workflowId).describe();
        const history = await lab.temporal.workflow.getHandle(handle.workflowId).fetchHistory();
        expect(historyLength).toBeLessThan(40);
        expect(JSON.stringify(history).length).toBeLessThan(200_000);
      },
    );
  }

  scenario(
    `on ${contract} E1: a result past the configured limit is refused once, with the cause named, and never asked for again`,
    async () => {
      const label = `E1 refused ${contract}`;
      const handle = await strict.start({ label, contract, resultBytes: 1_200_000 });
      const view = await until(handle, (seen) => seen.state === 'UNRESOLVED' || seen.receipt !== null);
      expect(view).toMatchObject({ receipt: null, reason: 'result-too-large' });
      expect(view.evidence).toMatch(
        /^the result has 12\d{5} bytes; the limit of this operation is 1000000 bytes \(durable\.maxResultBytes\)/,
      );
      const polls = strict.faults.entries('polled', label).length;
      const asked = strict.faults.entries('resultAsked', label).length;
      const since = Date.now();
      await until(handle, () => Date.now() > since + 6_000);
      expect(strict.faults.entries('polled', label)).toHaveLength(polls);
      expect(strict.faults.entries('resultAsked', label)).toHaveLength(asked);
      expect(strict.rows(label)).toMatchObject({ receipts: 0, ready: 0 });
      await strict.temporal.workflow
        .getHandle(workflowIdOf(label))
        .signal(MESSAGES.operatorSignal, { decision: 'close', evidence: 'not needed', decidedBy: 'Ann' });
      const { outcome, receipt } = await handle.result();
      expect([outcome, receipt.result, receipt.effects]).toEqual([
        'unresolved',
        null,
        'EFFECT_RECONCILIATION_REQUIRED',
      ]);
    },
  );

  for (const server of ['at-most-once', 'repeatable'] as const) {
    scenario(
      `on ${contract} E1: a tool without tasks whose answer is too large is held, never run again (${server})`,
      async () => {
        const label = `E1 plain ${server} ${contract}`;
        const handle = await strict.start({
          label,
          contract,
          server,
          tool: 'work-plain',
          resultBytes: 3_000_000,
        });
        const view = await until(handle, (seen) => seen.state === 'UNRESOLVED' || seen.receipt !== null);
        expect(view).toMatchObject({ receipt: null, reason: 'result-too-large' });
        expect(view.evidence).toContain('durable.maxResultBytes');
        expect(strict.faults.executions(label)).toBe(1);
        expect(strict.faults.entries('callReceived', label)).toHaveLength(1);
      },
    );
  }

  scenario(
    `on ${contract} E4: a tool that says isError has failed with its content, in one execution and no failed activity`,
    async () => {
      const label = `E4 isError ${contract}`;
      const handle = await lab.start({ label, contract, plan: { outcome: 'isError' } });
      const { outcome, receipt, resultJson } = await handle.result();
      expect([outcome, receipt.failureKind]).toEqual(['failed', 'tool']);
      expect(resultJson).toContain(`execution 1 of ${label} failed`);
      expect(lab.faults.executions(label)).toBe(1);
      const { events } = await lab.temporal.workflow.getHandle(handle.workflowId).fetchHistory();
      const failures = (events ?? []).filter((event) => event.activityTaskFailedEventAttributes);
      expect(failures).toEqual([]);
    },
  );
}
