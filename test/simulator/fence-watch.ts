// Owns the watch over the fence: no run decides under an epoch older than the row's, unless it owns the row.
// Must never enforce it: the store does, and this only sees whether it did.

import type { Fence, ReceiptStore } from '../../receipts/store.js';

/** All that only the owner may do, but the acceptance: that one also compares what it is presented. */
export const FENCED = [
  'begin',
  'recordNegotiation',
  'recordRejection',
  'claimLeg',
  'abandonOpenLegs',
  'replaceLocator',
  'recordAbsence',
  'recordReply',
  'raiseCancel',
  'recordOperatorEnd',
] as const satisfies readonly (keyof ReceiptStore)[];

export function watchFence(store: ReceiptStore, onBreach: (breach: string) => void): Partial<ReceiptStore> {
  const watched = FENCED.map((name) => {
    const method = store[name].bind(store) as (fence: Fence, ...rest: unknown[]) => Promise<unknown>;
    const watching = async (fence: Fence, ...rest: unknown[]): Promise<unknown> => {
      const before = await store.read(fence.callNodeId);
      const said = await method(fence, ...rest);
      const isOld =
        before && before.ownerRunId !== fence.runId && fence.executionEpoch < before.executionEpoch;
      if (isOld) onBreach(`${name} was let through under an older epoch`);
      return said;
    };
    return [name, watching];
  });
  return Object.fromEntries(watched) as Partial<ReceiptStore>;
}
