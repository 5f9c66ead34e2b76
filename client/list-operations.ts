// Owns the list of operations as the engine's visibility knows them.
// Must never be used to decide anything: visibility lags, and forgets after the retention of its namespace.

import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import {
  callNodeIdOf,
  OPERATION_STATES,
  type OperationState,
  OUTCOMES,
  type Outcome,
  WORKFLOW_TYPE,
} from '../operation/names.js';

export interface ListOptions {
  /** Default false: only operations with a running workflow. */
  readonly includeEnded?: boolean;
}

/** The newest run of one operation. Times are epoch ms. */
export interface OperationSummary {
  readonly callNodeId: string;
  readonly server: string | null;
  readonly tool: string | null;
  /** Null where the cluster has no such search attribute. */
  readonly state: OperationState | null;
  readonly outcome: Outcome | null;
  /** False also for a run that was terminated without a receipt: the same call adopts such an operation. */
  readonly isRunning: boolean;
  readonly startedAt: number;
  readonly endedAt: number | null;
}

export async function* listOperations(
  client: Client,
  options: ListOptions,
): AsyncGenerator<OperationSummary> {
  const running = options.includeEnded ? '' : " AND ExecutionStatus = 'Running'";
  const seen = new Set<string>();
  // The newest run comes first: older ones of the same name are history.
  for await (const run of client.workflow.list({ query: `WorkflowType = '${WORKFLOW_TYPE}'${running}` })) {
    const callNodeId = callNodeIdOf(run.workflowId);
    if (callNodeId === null || seen.has(callNodeId)) continue;
    seen.add(callNodeId);
    yield summaryOf(callNodeId, run);
  }
}

function summaryOf(callNodeId: string, run: WorkflowExecutionInfo): OperationSummary {
  const memo = (run.memo ?? {}) as Record<string, unknown>;
  const attributes = (run.searchAttributes ?? {}) as Record<string, readonly unknown[] | undefined>;
  const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  return {
    callNodeId,
    server: text(memo['server']),
    tool: text(memo['tool']),
    state: wordOf(OPERATION_STATES, attributes['OperationState']?.[0]),
    outcome: wordOf(OUTCOMES, attributes['OperationOutcome']?.[0]),
    isRunning: run.status.name === 'RUNNING',
    startedAt: run.startTime.getTime(),
    endedAt: run.closeTime?.getTime() ?? null,
  };
}

function wordOf<Word extends string>(words: readonly Word[], value: unknown): Word | null {
  return words.find((word) => word === value) ?? null;
}
