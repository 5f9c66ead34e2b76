// Owns what the row keeps about the remote end: the first terminal observation and the result's bytes.
// Must never let a later word replace the first, nor touch a receipt; a contradiction becomes evidence, and where work
// ended that nobody accepted, an effect reconciliation.

import { LIMITS } from '../operation/limits.js';
import type { SeenEnd, StoredResult, TerminalObservation } from '../operation/row.js';
import { mayLeaveEffects, oweReconciliation } from './effects.js';
import { sha256Hex } from './receipt-json.js';
import { keepEvidence, patchOperation, type RowWork } from './row-work.js';
import type { ResultBytes } from './store.js';
import { closeLeg } from './submission.js';

/** Observation and result in one transaction: a crash leaves both or neither, never an end without its result. */
export async function writeTerminal(
  work: RowWork,
  observation: TerminalObservation,
  result: ResultBytes | null,
  leg?: { claimToken: string; at: number },
): Promise<void> {
  const { row } = work;
  if (leg) await closeLeg(work, leg.claimToken, { outcome: 'answered', detail: null, at: leg.at });
  const known = row.terminalObservation;
  if (known ? known.remoteStatus !== observation.remoteStatus : row.receipt) {
    const held = known?.remoteStatus ?? `the receipt of an operation that ended ${row.receipt?.outcome}`;
    const digest = result ? ` with result ${result.stored.digest}` : '';
    const isNew = await keepEvidence(work.tx, {
      callNodeId: row.callNodeId,
      kind: 'terminal-contradiction',
      detail: `${observation.remoteStatus} (${observation.evidence})${digest}; the row holds ${held}`,
      at: observation.observedAt,
    });
    if (isNew && bringsEffects(work, observation)) {
      await oweReconciliation(work, `late ${observation.remoteStatus}${digest}`, observation.observedAt);
    }
    return;
  }
  if (!known) await patchOperation(work, { terminal_json: JSON.stringify(observation) });
  if (result) await writeResult(work, result, observation.observedAt);
}

/** What came to the row since the operator's word was taken overtakes it; the same end again changes nothing. */
export async function writeOperatorEnd(
  work: RowWork,
  seen: SeenEnd,
  observation: TerminalObservation,
  result: ResultBytes,
): Promise<void> {
  const { row } = work;
  if (row.result?.digest === result.stored.digest) return;
  const isAsSeen =
    (row.remoteReference?.remoteId ?? null) === seen.remoteId &&
    (row.terminalObservation?.remoteStatus ?? null) === seen.terminalStatus &&
    !row.result &&
    !row.rejection;
  if (isAsSeen) return writeTerminal(work, observation, result);
  const held = row.rejection?.code ?? row.terminalObservation?.remoteStatus ?? 'a remote reference';
  await keepEvidence(work.tx, {
    callNodeId: row.callNodeId,
    kind: 'terminal-contradiction',
    detail: `${observation.note ?? 'operator'} (${observation.remoteStatus}, result ${result.stored.digest}); meanwhile the row holds ${held}`,
    at: observation.observedAt,
  });
}

export async function writeResult(work: RowWork, result: ResultBytes, at: number): Promise<void> {
  const { row } = work;
  const { stored } = result;
  if (row.result?.digest === stored.digest) return;
  if (row.result || row.receipt) {
    const isNew = await keepEvidence(work.tx, {
      callNodeId: row.callNodeId,
      kind: 'result-contradiction',
      detail: `result ${stored.digest}; the row holds ${row.result?.digest ?? 'a receipt without a result'}`,
      at,
    });
    // Other bytes of a result that is held are no further effect; a result of work that nobody accepted is.
    if (isNew && !row.result && mayLeaveEffects(work)) {
      await oweReconciliation(work, `late result ${stored.digest}`, at);
    }
    return;
  }
  await writeBlob(work, result, row.policy.maxResultBytes ?? LIMITS.storedResultBytes);
  await patchOperation(work, { result_digest: stored.digest, result_json: JSON.stringify(stored) });
}

/** Work that ran to an end which is not the one held. A late `cancelled`, or a word against a completion, adds no effect. */
function bringsEffects(work: RowWork, late: TerminalObservation): boolean {
  const held = work.row.terminalObservation?.remoteStatus ?? work.row.receipt?.outcome;
  return late.remoteStatus !== 'cancelled' && held !== 'completed' && mayLeaveEffects(work);
}

/** Named by their digest, bytes never change: the same bytes of two operations are stored once. */
async function writeBlob(work: RowWork, { stored, bytes }: ResultBytes, maxBytes: number): Promise<void> {
  requireExact(stored, bytes, maxBytes);
  await work.tx
    .insertInto('result_blob')
    .values({ digest: stored.digest, media_type: stored.mediaType, size_bytes: bytes.byteLength, bytes })
    .onConflict((conflict) => conflict.column('digest').doNothing())
    .execute();
}

function requireExact(stored: StoredResult, bytes: Uint8Array, maxBytes: number): void {
  if (bytes.byteLength > maxBytes) {
    throw new RangeError(`a result of ${bytes.byteLength} bytes is over ${maxBytes}`);
  }
  if (stored.sizeBytes !== bytes.byteLength || stored.digest !== sha256Hex(bytes)) {
    throw new TypeError(`the bytes of result ${stored.digest} do not match their digest and size`);
  }
}
