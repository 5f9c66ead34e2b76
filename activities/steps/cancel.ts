// Owns the sending of a cancel: the generation is raised in the row before any byte leaves.
// Must never call anything cancelled that the reply itself did not say.

import type { CancelReply, StepFact } from '../../operation/facts.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { CancelDelivery, RowSnapshot } from '../../operation/row.js';
import { type CancelAnswer, WireFault } from '../../protocols/adapter.js';
import type { Attempt, Ports } from '../ports.js';
import type { CancelInput } from '../step-inputs.js';
import { notBefore } from './not-before.js';
import { reachOf } from './reach.js';

const DELIVERY: Readonly<Record<CancelAnswer | 'lost', CancelDelivery>> = {
  confirmed: 'acknowledged',
  acknowledged: 'acknowledged',
  refused: 'refused',
  unsupported: 'unsupported',
  lost: 'sent',
};

export async function sendCancel(input: CancelInput, ports: Ports, attempt: Attempt): Promise<StepFact> {
  const row = await ports.receipts.begin(input);
  const ended = (settled: RowSnapshot, reply: CancelReply, retryAfterMs: number | null = null): StepFact => {
    const at = ports.clock.nowMs();
    return { kind: 'cancelSent', at, row: settled, reply, ...notBefore(at, retryAfterMs) };
  };
  if (row.receipt || row.terminalObservation) return ended(row, 'neverSent');
  const reason = clip(input.reason, LIMITS.reasonChars);
  // One request is one generation, however often its message has to be sent again.
  const generation = input.generation ?? 1;
  const raised = await ports.receipts.raiseCancel(input, generation - 1, reason);
  await attempt.seam('cancel:after-raise');
  // A store from before an earlier cancel: its run sees that in the row, and nothing leaves without its generation.
  if (raised.cancelGeneration < generation) return ended(raised, 'neverSent');
  // Nothing was sent: the raised generation bars every later claim, and that is the whole cancel.
  if (!raised.remoteReference) return ended(raised, 'neverSent');
  const { answer, retryAfterMs } = await askServer(raised, ports, attempt);
  const delivered = await recordAnswer(raised, answer, ports);
  await attempt.seam('cancel:after-commit');
  return ended(delivered, answer, retryAfterMs);
}

async function askServer(
  row: RowSnapshot,
  ports: Ports,
  attempt: Attempt,
): Promise<{ answer: CancelAnswer | 'lost'; retryAfterMs: number | null }> {
  const reach = reachOf(ports, row);
  const afterSend = (): Promise<void> => attempt.seam('cancel:after-send');
  try {
    const answer = await reach.adapter.cancel(reach.server, reach.reference, afterSend);
    return { answer, retryAfterMs: null };
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    // Lost, not found, session gone: the state decides; the next look says which.
    return { answer: 'lost', retryAfterMs: error.retryAfterMs };
  }
}

async function recordAnswer(
  row: RowSnapshot,
  answer: CancelAnswer | 'lost',
  ports: Ports,
): Promise<RowSnapshot> {
  const { callNodeId, cancelGeneration } = row;
  const delivered = await ports.receipts.recordCancelDelivery(callNodeId, cancelGeneration, DELIVERY[answer]);
  if (answer !== 'confirmed') return delivered;
  // A valid tasks/cancel reply carries the task already `cancelled`: it is itself the terminal evidence.
  return ports.receipts.recordTerminal(
    row.callNodeId,
    {
      remoteStatus: 'cancelled',
      failureKind: null,
      statusMessage: null,
      observedAt: ports.clock.nowMs(),
      evidence: 'cancel-reply',
    },
    null,
  );
}
