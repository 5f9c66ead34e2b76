// Owns what the row keeps about a cancel: its generation, its reason, how far it was delivered, and those before it.
// Must never send one, nor rewrite an end.

import type { CancelDelivery, EarlierCancel } from '../operation/row.js';
import { patchOperation, type RowWork } from './row-work.js';

/** Raised before anything is sent, so that no zombie can claim a leg after its operation was cancelled. */
export async function raiseCancel(work: RowWork, fromGeneration: number, reason: string): Promise<void> {
  const { cancelGeneration, cancelReason, cancelDelivery } = work.row;
  if (cancelGeneration !== fromGeneration) return;
  if (fromGeneration > 0) {
    const before = { generation: fromGeneration, reason: cancelReason ?? '', delivery: cancelDelivery };
    await keepEarlierCancels(work, [before]);
  }
  await patchOperation(work, {
    cancel_generation: fromGeneration + 1,
    cancel_reason: reason,
    cancel_delivery: 'unsent',
  });
}

/** A resend whose reply is lost (`sent`) does not take back what the server once answered. */
export async function writeCancelDelivery(
  work: RowWork,
  generation: number,
  delivery: CancelDelivery,
): Promise<void> {
  const { cancelDelivery, cancelGeneration } = work.row;
  if (cancelGeneration === 0 || cancelGeneration !== generation) return;
  const isAnswered =
    cancelDelivery === 'acknowledged' || cancelDelivery === 'refused' || cancelDelivery === 'unsupported';
  const saysLess = delivery === 'none' || delivery === 'unsent' || delivery === 'sent';
  if (isAnswered && saysLess) return;
  await patchOperation(work, { cancel_delivery: delivery });
}

export async function keepEarlierCancels(
  { tx, row }: RowWork,
  cancels: readonly EarlierCancel[],
): Promise<void> {
  const { callNodeId: call_node_id } = row;
  for (const cancel of cancels)
    await tx
      .insertInto('earlier_cancel')
      .values({ call_node_id, ...cancel })
      .execute();
}
