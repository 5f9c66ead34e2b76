// Owns how the activities behind `callTool` see the engine: through the worker's own connection.
// Must never start or signal a workflow.

import { Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import type { NativeConnection } from '@temporalio/worker';
import type { CallPorts, DescribedCall } from '../activities/calls.js';
import { missingSearchAttributes } from '../operation/names.js';
import type { Receipt } from '../operation/receipt.js';
import { digests } from '../primitives/node-primitives.js';

export function callPorts(
  connection: NativeConnection,
  namespace: string,
  dataConverter: DataConverter | undefined,
): CallPorts {
  const client = new Client({ connection, namespace, ...(dataConverter ? { dataConverter } : {}) });
  let hasAttributes: Promise<boolean> | null = null;
  const check = (): Promise<boolean> =>
    connection.operatorService.listSearchAttributes({ namespace }).then(
      ({ customAttributes }) => missingSearchAttributes(customAttributes).length === 0,
      // Forbidden on this cluster: the operation runs without them.
      () => false,
    );
  return {
    digests,
    hasSearchAttributes: () => (hasAttributes ??= check()),
    describe: async (workflowId) => {
      try {
        const description = await client.workflow.getHandle(workflowId).describe();
        const digest = description.memo?.['requestDigest'];
        return {
          requestDigest: typeof digest === 'string' ? digest : null,
          status: statusOf(description),
          isTerminated: description.status.name === 'TERMINATED',
          end: async () => {
            const ended = client.workflow.getHandle(workflowId, description.runId);
            return (await ended.result()) as { receipt: Receipt; resultJson: string | null };
          },
        };
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return null;
        throw error;
      }
    },
  };
}

function statusOf(description: WorkflowExecutionDescription): DescribedCall['status'] {
  if (description.status.name === 'RUNNING') return 'running';
  return description.status.name === 'COMPLETED' ? 'completed' : 'closed';
}
