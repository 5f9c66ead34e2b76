// Owns what the row keeps about a cancel: its generation, its reason, how far it was delivered.
// Must never send one, nor rewrite an end.

import type { CancelDelivery } from '../operation/row.js';
import { patchOperation, type RowWork } from './row-work.js';

/** Raised before anything is sent, so that no zombie can claim a leg after its operation was cancelled. */
export async function raiseCancel(work: RowWork, fromGeneration: number, reason: string): Promise<void> {
  if (work.row.cancelGeneration !== fromGeneration) return;
  await patchOperation(work, {
    cancel_generation: fromGeneration + 1,
    cancel_reason: reason,
    cancel_delivery: 'unsent',
  });
}

/** A resend whose reply is lost (`sent`) does not take back what the server once answered. */
export async function writeCancelDelivery(work: RowWork, delivery: CancelDelivery): Promise<void> {
  const { cancelDelivery, cancelGeneration } = work.row;
  if (cancelGeneration === 0) return;
  const isAnswered =
    cancelDelivery === 'acknowledged' || cancelDelivery === 'refused' || cancelDelivery === 'unsupported';
  const saysLess = delivery === 'none' || delivery === 'unsent' || delivery === 'sent';
  if (isAnswered && saysLess) return;
  await patchOperation(work, { cancel_delivery: delivery });
}
