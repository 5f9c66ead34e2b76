// Owns who may decide about a row: its creation, its adoption by another run, and the fence.
// Must never weigh what the row holds.

import type { RowSnapshot } from '../operation/row.js';
import { compareWithRun, keepForgotten } from './give-back.js';
import { hasForgotten, readSnapshot } from './row-snapshot.js';
import { patchOperation, type RowWork } from './row-work.js';
import type { Tx } from './schema.js';
import { StoreError, type Fence, type OpenRequest } from './store.js';

export type Opening = { kind: 'opened' } | { kind: 'missing' } | { kind: 'conflict'; storedDigest: string };

export async function openRow(tx: Tx, request: OpenRequest, nowAt: number): Promise<Opening> {
  const row = await readSnapshot(tx, request.callNodeId);
  if (!row) {
    if (request.mustExist) {
      // Without its row, so that a row made anew by another run knows of it.
      await keepForgotten(tx, request);
      return { kind: 'missing' };
    }
    await createRow(tx, request, nowAt);
    await compareWithRun(tx, request, nowAt);
    return { kind: 'opened' };
  }
  if (row.requestDigest !== request.requestDigest) {
    return { kind: 'conflict', storedDigest: row.requestDigest };
  }
  if (row.ownerRunId !== request.runId) await takeOwnership({ tx, row, nowAt }, request.runId);
  await compareWithRun(tx, request, nowAt);
  return { kind: 'opened' };
}

async function createRow(tx: Tx, request: OpenRequest, nowAt: number): Promise<void> {
  // A rejection would prove that nothing was started, and this store cannot.
  const isForgotten = await hasForgotten(tx, request.callNodeId);
  await tx
    .insertInto('operation')
    .values({
      call_node_id: request.callNodeId,
      request_digest: request.requestDigest,
      server: request.server,
      tool: request.tool,
      arguments_json: request.argumentsJson,
      arguments_digest: request.argumentsDigest,
      submission_key: request.submissionKey,
      policy_json: JSON.stringify(request.policy),
      execution_epoch: 1,
      owner_run_id: request.runId,
      cancel_generation: 0,
      cancel_delivery: 'none',
      rejection_json: request.rejection && !isForgotten ? JSON.stringify(request.rejection) : null,
      created_at: request.at,
      updated_at: nowAt,
    })
    .execute();
}

/** The row this run may write to, and whether it had to be taken from another run. */
export interface Owned {
  readonly row: RowSnapshot;
  readonly isAdopted: boolean;
}

/** @throws StoreError LedgerMissing | Superseded */
export async function passFence(tx: Tx, fence: Fence, nowAt: number): Promise<Owned> {
  const row = await requireRow(tx, fence.callNodeId);
  if (row.ownerRunId === fence.runId) return { row, isAdopted: false };
  if (fence.executionEpoch < row.executionEpoch) {
    throw new StoreError(
      'Superseded',
      `Run ${fence.runId} holds epoch ${fence.executionEpoch} of ${fence.callNodeId}; run ${row.ownerRunId} owns it at epoch ${row.executionEpoch}.`,
    );
  }
  if (fence.executionEpoch > row.executionEpoch) {
    throw new StoreError(
      'LedgerMissing',
      `The row of ${fence.callNodeId} is at epoch ${row.executionEpoch}, older than epoch ${fence.executionEpoch} that run ${fence.runId} has seen.`,
    );
  }
  // Also where a receipt exists: the fold of a reset run knows by the new epoch that it took over an ended row.
  await takeOwnership({ tx, row, nowAt }, fence.runId);
  return { row: await requireRow(tx, fence.callNodeId), isAdopted: true };
}

async function takeOwnership(work: RowWork, runId: string): Promise<void> {
  await patchOperation(work, { owner_run_id: runId, execution_epoch: work.row.executionEpoch + 1 });
}

/** @throws StoreError LedgerMissing */
export async function requireRow(tx: Tx, callNodeId: string): Promise<RowSnapshot> {
  const row = await readSnapshot(tx, callNodeId);
  if (row) return row;
  throw missingRow(callNodeId);
}

export function missingRow(callNodeId: string): StoreError {
  return new StoreError('LedgerMissing', `The store holds no row for ${callNodeId}.`);
}
