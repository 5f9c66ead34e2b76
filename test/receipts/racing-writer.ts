// Owns one of several processes that race for the same operations in one store file; run by sqlite.test.ts.
// Must never decide anything: it does what its parent says, and reports what the store said.

import { decideEnd, buildReceipt, presentedBy } from '../../operation/build-receipt.js';
import { openSqliteStore } from '../../receipts/open-store.js';
import { StoreError, type Fence, type ReceiptStore } from '../../receipts/store.js';
import { AT, ended, request, resultOf } from './suite-fixtures.js';

export interface RaceOrder {
  readonly step: 'open' | 'claim' | 'accept' | 'close';
  readonly file: string;
  readonly callNodeIds: readonly string[];
  readonly runId: string;
  readonly claimToken: string;
}

export interface RaceReport {
  readonly said: readonly string[];
}

let store: ReceiptStore | null = null;
const fences = new Map<string, Fence>();

async function perform(order: RaceOrder): Promise<readonly string[]> {
  store ??= await openSqliteStore(order.file);
  const racing = store;
  const said: string[] = [];
  for (const callNodeId of order.callNodeIds) said.push(await performOn(racing, order, callNodeId));
  if (order.step === 'close') await racing.close();
  return said;
}

async function performOn(racing: ReceiptStore, order: RaceOrder, callNodeId: string): Promise<string> {
  const fence = fences.get(callNodeId) ?? { callNodeId, runId: order.runId, executionEpoch: 1 };
  try {
    switch (order.step) {
      case 'open': {
        const opened = await racing.open(request({ callNodeId, runId: order.runId }));
        if (opened.kind === 'opened') {
          fences.set(callNodeId, { ...fence, executionEpoch: opened.row.executionEpoch });
        }
        return opened.kind;
      }
      case 'claim': {
        const { ruling } = await racing.claimLeg(fence, order.claimToken, AT);
        if (ruling === 'granted') {
          await racing.recordTerminal(callNodeId, ended('completed'), resultOf(callNodeId), {
            claimToken: order.claimToken,
            at: AT,
          });
        }
        return ruling;
      }
      case 'accept':
        return await acceptOn(racing, fence);
      case 'close':
        return 'closed';
    }
  } catch (error) {
    // SQLITE_BUSY would show here.
    if (error instanceof Error && 'code' in error) return String(error.code);
    throw error;
  }
}

async function acceptOn(racing: ReceiptStore, fence: Fence): Promise<string> {
  const row = await racing.read(fence.callNodeId);
  if (!row) throw new StoreError('LedgerMissing', fence.callNodeId);
  const course = {
    cursor: { observationCount: 0, transientFaults: 0, lastIntervalMs: null, nextPollNotBeforeAt: null },
    remoteStatus: null,
    statusMessage: null,
    reason: null,
  };
  const acceptance = await racing.acceptTerminal(
    fence,
    presentedBy(row),
    (held) => {
      const end = decideEnd(held, null);
      return end && { end, receipt: buildReceipt(held, end, course, AT) };
    },
    AT,
  );
  if (acceptance.kind === 'refused') return `refused ${acceptance.fact}`;
  return acceptance.isFirst ? 'first' : 'found';
}

process.on('message', (order: RaceOrder) => {
  void perform(order).then(
    (said) => process.send?.({ said } satisfies RaceReport),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.send?.({ said: ['ready'] } satisfies RaceReport);
