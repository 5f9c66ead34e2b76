// Owns the start of a run by a caller: a new one, or none where one goes on or has brought the receipt.
// Must never replace a running one, nor begin an ended operation anew.

import { type Client, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import { WORKFLOW_TYPE } from '../operation/names.js';
import { runStartOf } from '../operation/run-start.js';
import type { ToolOperationInput } from '../workflows/contract.js';

export async function startRun(client: Client, taskQueue: string, input: ToolOperationInput): Promise<void> {
  const { attributes, workflowId, ...start } = runStartOf(input);
  const begin = (
    workflowIdReusePolicy: 'REJECT_DUPLICATE' | 'ALLOW_DUPLICATE_FAILED_ONLY',
    more: Pick<ToolOperationInput, 'lastRunTerminated'> = {},
  ) =>
    client.workflow.start(WORKFLOW_TYPE, {
      ...start,
      workflowId,
      taskQueue,
      args: [{ ...input, ...more }],
      workflowIdReusePolicy,
      workflowIdConflictPolicy: 'USE_EXISTING',
      ...(input.searchAttributes ? { typedSearchAttributes: typed(attributes) } : {}),
    });
  // The usual case is a new name, and costs one request: only where there was a run before, its end is asked for.
  if (await isTaken(begin('REJECT_DUPLICATE'))) {
    const last = await statusOf(client, workflowId);
    // A run completes only with a receipt: so a completed one is the end, any other may be begun anew.
    if (last === 'COMPLETED') return;
    await isTaken(begin('ALLOW_DUPLICATE_FAILED_ONLY', { lastRunTerminated: last === 'TERMINATED' }));
  }
}

async function isTaken(started: Promise<unknown>): Promise<boolean> {
  try {
    await started;
    return false;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return true;
    throw error;
  }
}

async function statusOf(client: Client, workflowId: string): Promise<string | null> {
  try {
    return (await client.workflow.getHandle(workflowId).describe()).status.name;
  } catch (error) {
    // Forgotten between the two requests.
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

function typed(attributes: readonly (readonly [string, string])[]): TypedSearchAttributes {
  return new TypedSearchAttributes(
    attributes.map(([name, value]) => ({ key: defineSearchAttributeKey(name, 'KEYWORD'), value })),
  );
}
