// Owns the wait for the end of an operation over the runs it takes, and what a run closed without a receipt means.
// Must never take the end of a run for the end of the operation: only a receipt is.

import { type Client, WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { workflowIdOf } from '../operation/names.js';
import type { OperationEnd } from '../workflows/contract.js';
import { ToolOperationError } from './errors.js';

/**
 * Waits for the receipt. A reset, or a termination and a new start, closes the awaited run and another one goes on with
 * the operation: the wait goes on with it.
 * @throws ToolOperationError `OperationUnresolved` where the latest run is closed without a receipt; `CallNodeConflict`;
 *   `OperationNotFound`
 */
export async function awaitEnd(client: Client, callNodeId: string): Promise<OperationEnd> {
  const workflowId = workflowIdOf(callNodeId);
  const latestRunId = async (): Promise<string> =>
    (await client.workflow.getHandle(workflowId).describe()).runId;
  try {
    let runId = await latestRunId();
    for (;;) {
      try {
        return (await client.workflow.getHandle(workflowId, runId).result()) as OperationEnd;
      } catch (error) {
        if (!(error instanceof WorkflowFailedError)) throw error;
        if (isConflict(error)) {
          throw new ToolOperationError('CallNodeConflict', messageOf(error), null, { cause: error });
        }
        const nextRunId = await latestRunId();
        if (nextRunId === runId) throw closedWithoutReceipt(callNodeId, error);
        runId = nextRunId;
      }
    }
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) throw notFound(callNodeId, error);
    throw error;
  }
}

/** Why a run is closed without a receipt and what to do; null where it is not. */
export async function closingOf(client: Client, callNodeId: string, runId: string): Promise<string | null> {
  try {
    await client.workflow.getHandle(workflowIdOf(callNodeId), runId).result();
    return null;
  } catch (error) {
    if (error instanceof WorkflowFailedError) return sentenceOf(error);
    if (error instanceof WorkflowNotFoundError) throw notFound(callNodeId, error);
    throw error;
  }
}

export function notFound(callNodeId: string, cause: Error): ToolOperationError {
  return new ToolOperationError('OperationNotFound', `no operation is named "${callNodeId}"`, null, {
    cause,
  });
}

function closedWithoutReceipt(callNodeId: string, error: WorkflowFailedError): ToolOperationError {
  return new ToolOperationError('OperationUnresolved', `"${callNodeId}": ${sentenceOf(error)}`, null, {
    cause: error,
  });
}

function sentenceOf(error: WorkflowFailedError): string {
  // Another call has this name: the same start would fail again.
  if (isConflict(error)) return messageOf(error);
  return `the run was closed without a receipt (${messageOf(error)}); start the same call again to adopt the operation`;
}

function isConflict({ cause }: WorkflowFailedError): boolean {
  return cause instanceof ApplicationFailure && cause.type === 'CallNodeConflict';
}

/** The innermost failure says why: around it the engine says only that an activity failed. */
function messageOf(error: WorkflowFailedError): string {
  let innermost: Error = error;
  while (innermost.cause instanceof Error) innermost = innermost.cause;
  return innermost.message;
}
