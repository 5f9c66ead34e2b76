// Owns every name the outside can see: states, outcomes, contracts, messages, queues, search attributes.
// Must never hold a rule; rules live in apply.ts, next-step.ts and policy.ts.

export const WORKFLOW_TYPE = 'toolOperation';
/** Starts open operations again whose run is gone; run by a schedule. */
export const SWEEP_WORKFLOW_TYPE = 'sweepOperations';
export const RECORD_SCHEMA = 'toolOperation.v1';
export const RECEIPT_SCHEMA = 'terminalReceipt.v1';
export const VIEW_SCHEMA = 'operationView.v1';

export const OPERATION_STATES = [
  'SUBMITTING',
  'SUBMISSION_UNKNOWN',
  'NOT_FOUND_SAFE',
  'WORKING',
  'INPUT_REQUIRED',
  'CANCEL_REQUESTED',
  'TERMINAL_OBSERVED',
  'FETCHING_RESULT',
  'UNRESOLVED',
  'ACCEPTED',
  'CANCELLED_ACCEPTED',
  'REJECTED',
] as const;
export type OperationState = (typeof OPERATION_STATES)[number];

export const TERMINAL_STATES = ['ACCEPTED', 'CANCELLED_ACCEPTED', 'REJECTED'] as const;
export type TerminalState = (typeof TERMINAL_STATES)[number];

export const OUTCOMES = ['completed', 'failed', 'cancelled', 'rejected', 'unresolved'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** `tool`: the tool itself said it failed (`isError`); `protocol`: the far side answered a protocol error. */
export type FailureKind = 'tool' | 'protocol';

/** Wire contracts; an operation is pinned to one when it is submitted. */
export const ADAPTERS = [
  'mcp/2025-11-25',
  'mcp/2026-07-28',
  'mcp/job-tools',
  'aip-151',
  'synchronous',
] as const;
export type AdapterName = (typeof ADAPTERS)[number];

/** How a submission may be repeated or looked up after an ambiguous send (DESIGN section 5). */
export const SUBMISSION_POLICIES = [
  'key-argument',
  'key-meta',
  'lookup-tool',
  'request-id',
  'operation-list',
  'session-list',
  'repeatable',
  'at-most-once',
] as const;
export type SubmissionPolicyName = (typeof SUBMISSION_POLICIES)[number];

export const ACTIVITIES = {
  open: 'open',
  submit: 'submit',
  lookUp: 'lookUp',
  observe: 'observe',
  answer: 'deliverAnswer',
  cancel: 'sendCancel',
  fetchResult: 'fetchResult',
  recordEnd: 'recordOperatorEnd',
  accept: 'acceptTerminal',
} as const;

export const MESSAGES = {
  answerUpdate: 'answer',
  answerSignal: 'answerOperation',
  cancelSignal: 'cancelOperation',
  operatorSignal: 'decideOperation',
  restoredSignal: 'storeRestored',
  operationQuery: 'operation',
} as const;

export const SEARCH_ATTRIBUTES = [
  'ToolServer',
  'ToolName',
  'OperationState',
  'OperationOutcome',
  'ProtocolAdapter',
] as const;
export type SearchAttributeName = (typeof SEARCH_ATTRIBUTES)[number];

/** Value of Keyword in the engine's table of search attribute types. */
const KEYWORD = 2;

/** Ours that a cluster lacks or holds with another type: adding one again with another type is silently accepted there. */
export function missingSearchAttributes(
  types: Readonly<Record<string, unknown>> | null | undefined,
): readonly SearchAttributeName[] {
  return SEARCH_ATTRIBUTES.filter((name) => Number(types?.[name]) !== KEYWORD);
}

export const DEFAULT_TASK_QUEUE = 'durable-tool-calls';

/** Polls have their own queue: its rate limits must not hold up submits, cancels or answers. */
export function pollQueueOf(taskQueue: string): string {
  return `${taskQueue}-poll`;
}

export function workflowIdOf(callNodeId: string): string {
  return `tool-operation/${callNodeId}`;
}

/** Null where the workflow is no tool operation's. */
export function callNodeIdOf(workflowId: string): string | null {
  const prefix = workflowIdOf('');
  return workflowId.startsWith(prefix) ? workflowId.slice(prefix.length) : null;
}

/** Of the schedule that sweeps, and the beginning of its runs' ids: one per task queue. */
export function sweeperIdOf(taskQueue: string): string {
  return `tool-operation-sweeper/${taskQueue}`;
}

/** Named places where a test may kill the process (crash windows of the step bodies). */
export const SEAMS = [
  'submit:before-claim',
  'submit:after-claim',
  'submit:after-send',
  'submit:after-reply',
  'submit:after-commit',
  'lookUp:after-found',
  'observe:after-reply',
  'observe:question-read',
  'observe:question-stored',
  'observe:result-fetched',
  'answer:after-record',
  'answer:after-send',
  'answer:after-commit',
  'cancel:after-raise',
  'cancel:after-send',
  'cancel:after-commit',
  'fetchResult:after-reply',
  'fetchResult:after-commit',
  'recordEnd:before-commit',
  'recordEnd:after-commit',
  'accept:before-commit',
  'accept:after-commit',
] as const;
export type SeamName = (typeof SEAMS)[number];
