// Owns one look at an operation: the engine's word about its latest run, and the run's own record where a worker answers.
// Must never wait long for a worker.

import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { MESSAGES, workflowIdOf } from '../operation/names.js';
import type { ToolOperation } from '../operation/record.js';
import type { OperationEnd } from '../workflows/contract.js';
import { closingOf, notFound } from './await-end.js';
import { type DescribedRun, describeRun } from './described-run.js';
import { emptyView, type OperationView, viewOfEnd, viewOfRecord } from './view.js';

const QUERY_TIMEOUT_MS = 2_000;

export interface Look {
  readonly view: OperationView;
  /** The latest run is closed, with or without a receipt: nothing changes before another start. */
  readonly isClosed: boolean;
}

/** @throws ToolOperationError `OperationNotFound` */
export async function lookAtRun(client: Client, callNodeId: string): Promise<Look> {
  let described: DescribedRun;
  try {
    described = await describeRun(client, workflowIdOf(callNodeId));
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) throw notFound(callNodeId, error);
    throw error;
  }
  const view = await viewOfRun(client, callNodeId, described);
  return { view, isClosed: described.status !== 'RUNNING' };
}

export async function viewOfRun(
  client: Client,
  callNodeId: string,
  described: DescribedRun,
): Promise<OperationView> {
  const workflowId = workflowIdOf(callNodeId);
  const { runId } = described;
  const run = { callNodeId, workflowId, runId };
  if (described.status === 'COMPLETED') {
    const end = (await client.workflow.getHandle(workflowId, runId).result()) as OperationEnd;
    return viewOfEnd(end.receipt, end.resultJson, run);
  }
  const { live, waitingForWorkerSince } = described;
  const record = waitingForWorkerSince === null ? await queryRecord(client, callNodeId, runId) : null;
  const view = record
    ? viewOfRecord(record, live, run, waitingForWorkerSince)
    : viewWithoutRecord(described, run);
  if (described.status === 'RUNNING') return view;
  // Whatever the record says, nobody goes on with it.
  return { ...view, reason: (await closingOf(client, callNodeId, runId)) ?? view.reason };
}

/** The run's own record, or null where no worker answers in time. */
export async function queryRecord(
  client: Client,
  callNodeId: string,
  runId?: string,
): Promise<ToolOperation | null> {
  try {
    return await client.withDeadline(Date.now() + QUERY_TIMEOUT_MS, () =>
      client.workflow
        .getHandle(workflowIdOf(callNodeId), runId)
        .query<ToolOperation>(MESSAGES.operationQuery),
    );
  } catch {
    return null;
  }
}

function viewWithoutRecord(
  described: DescribedRun,
  run: { readonly callNodeId: string; readonly workflowId: string; readonly runId: string },
): OperationView {
  const { live } = described;
  return {
    ...emptyView(run, described.state),
    server: described.server,
    tool: described.tool,
    adapter: described.adapter,
    remoteStatus: live?.remoteStatus ?? null,
    statusMessage: live?.statusMessage ?? null,
    pendingInput: (live?.openRounds ?? []).map(({ roundId, question, deadlineAt }) => ({
      roundId,
      question,
      deadlineAt,
    })),
    lastFault: live?.lastFault ?? null,
    notice: live?.notice ?? null,
    cancelRequested: described.state === 'CANCEL_REQUESTED',
    polls: live?.cursor.observationCount ?? 0,
    waitingForWorkerSince: described.waitingForWorkerSince,
  };
}
