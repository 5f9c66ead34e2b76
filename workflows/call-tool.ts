// Owns `callTool`: how other Temporal workflows call a tool, as a child that may outlive them.
// Must never start a second operation under a name that has one: it attaches.

import {
  CancellationScope,
  ChildWorkflowFailure,
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
  proxyActivities,
  startChild,
  workflowInfo,
  WorkflowIdReusePolicy,
} from '@temporalio/workflow';
import {
  ApplicationFailure,
  CancelledFailure,
  defineSearchAttributeKey,
  type SearchAttributePair,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/common';
import type { AttachedCall, CallActivities, PreparedCall } from '../activities/call-inputs.js';
import type { JsonObject, JsonValue } from '../operation/json.js';
import { LIMITS } from '../operation/limits.js';
import { DEFAULT_TASK_QUEUE, type Outcome, WORKFLOW_TYPE, workflowIdOf } from '../operation/names.js';
import type { Receipt } from '../operation/receipt.js';
import { runStartOf } from '../operation/run-start.js';
import { cancelSignal, type OperationEnd, type ToolOperationInput } from './contract.js';

export interface CallToolOptions {
  /** Your name of this call, always explicit: the same name is the same operation, for ever, also after a reset. */
  readonly callNodeId: string;
  readonly server: string;
  readonly tool: string;
  readonly arguments: JsonObject;
  /** ms; its end cancels remotely. Default: the tool's, else 24 h. */
  readonly waitBudgetMs?: number;
  /** Queue of the tool operation workers; default `durable-tool-calls`. */
  readonly taskQueue?: string;
}

/** The end of the operation, whatever the outcome. */
export interface ToolCallEnd {
  readonly receipt: Receipt;
  readonly outcome: Outcome;
  /** Parsed; null where there is none or it is too large to ride along (read it by `receipt.result.digest`). */
  readonly toolResult: JsonValue;
}

/**
 * Calls a tool from workflow code and waits for its receipt. Runs as the child `tool-operation/<callNodeId>`, which goes on
 * when the parent closes; where the operation already runs or has ended, it attaches and returns the same receipt.
 * Cancelling the scope asks the operation to cancel and still returns its true end: `cancelled`, or `completed` where that won.
 * @throws ApplicationFailure `CallNodeConflict` where the name belongs to another call; CancelledFailure where the scope was
 *   cancelled before anything was started
 */
export async function callTool(options: CallToolOptions): Promise<ToolCallEnd> {
  const scope = CancellationScope.current();
  if (scope.consideredCancelled) throw new CancelledFailure(`"${options.callNodeId}" was not started`);
  const cancelled = scope.cancelRequested;
  return CancellationScope.nonCancellable(async () => {
    const activities = callActivities(options.taskQueue ?? DEFAULT_TASK_QUEUE);
    const { server, tool } = options;
    const { callNodeId } = options;
    let prepared = await activities.prepareCall({ server, tool, arguments: options.arguments, callNodeId });
    const cancel = passCancelOn(cancelled, callNodeId);
    for (;;) {
      const end = await callAsChild(options, prepared, cancel);
      if (end) return toCallEnd(end);
      const attached = await attach(activities, options, prepared);
      if (attached.kind === 'ended') return toCallEnd(attached.end);
      // The run was closed without a receipt (terminated, superseded): the next one adopts the operation.
      prepared = { ...prepared, lastRunTerminated: attached.lastRunTerminated ?? false };
    }
  });
}

function callActivities(taskQueue: string): CallActivities {
  return proxyActivities<CallActivities>({
    taskQueue,
    startToCloseTimeout: 2 * LIMITS.requestTimeoutMs,
    heartbeatTimeout: 5_000,
    retry: { initialInterval: 1_000, backoffCoefficient: 1 },
  });
}

interface PassedCancel {
  /** Sends the cancel again to a run that began after it was asked. */
  repeat(): Promise<void>;
}

/** The same for a child and for an operation attached to: a request, never an end. */
function passCancelOn(cancelled: Promise<never>, callNodeId: string): PassedCancel {
  let isAsked = false;
  const send = async (): Promise<void> => {
    const requestedBy = workflowInfo().workflowId;
    const operation = getExternalWorkflowHandle(workflowIdOf(callNodeId));
    // Not found: it has ended and its receipt is on the way, or it has not begun and `repeat` comes.
    await operation
      .signal(cancelSignal, { reason: 'calling workflow cancelled', requestedBy })
      .catch(() => {});
  };
  cancelled.catch(() => {
    isAsked = true;
    return send();
  });
  return { repeat: async () => (isAsked ? send() : undefined) };
}

/** Null where the name is taken, or where the run closed without a receipt. */
async function callAsChild(
  options: CallToolOptions,
  prepared: PreparedCall,
  cancel: PassedCancel,
): Promise<OperationEnd | null> {
  const { callNodeId, server, tool } = options;
  const { requestDigest, searchAttributes } = prepared;
  const input: ToolOperationInput = {
    callNodeId,
    requestDigest,
    server,
    tool,
    arguments: options.arguments,
    waitBudgetMs: options.waitBudgetMs ?? null,
    searchAttributes,
    ...(prepared.lastRunTerminated ? { lastRunTerminated: true } : {}),
  };
  const { attributes, ...start } = runStartOf(input);
  try {
    const child = await startChild(WORKFLOW_TYPE, {
      ...start,
      taskQueue: options.taskQueue ?? DEFAULT_TASK_QUEUE,
      args: [input],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
      ...(searchAttributes ? { typedSearchAttributes: typed(attributes) } : {}),
    });
    await cancel.repeat();
    return (await child.result()) as OperationEnd;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return null;
    if (!(error instanceof ChildWorkflowFailure) || isCancellation(error)) throw error;
    if (error.cause instanceof ApplicationFailure && error.cause.type === 'CallNodeConflict')
      throw error.cause;
    return null;
  }
}

function typed(attributes: readonly (readonly [string, string])[]): SearchAttributePair[] {
  return attributes.map(([name, value]) => ({ key: defineSearchAttributeKey(name, 'KEYWORD'), value }));
}

async function attach(
  activities: CallActivities,
  options: CallToolOptions,
  prepared: PreparedCall,
): Promise<Exclude<AttachedCall, { kind: 'conflict' }>> {
  const { callNodeId } = options;
  const attached = await activities.attachCall({ callNodeId, requestDigest: prepared.requestDigest });
  if (attached.kind === 'conflict') {
    throw ApplicationFailure.nonRetryable(
      `callNodeId "${callNodeId}" already names another call (other server, tool or arguments)`,
      'CallNodeConflict',
    );
  }
  return attached;
}

function toCallEnd(end: OperationEnd): ToolCallEnd {
  const { receipt, resultJson } = end;
  const toolResult = resultJson === null ? null : (JSON.parse(resultJson) as JsonValue);
  return { receipt, outcome: receipt.outcome, toolResult };
}
