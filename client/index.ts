// Owns the public entry `durable-tool-calls/client`.

export { ToolOperationClient, type StartOptions, type ToolOperationClientOptions } from './client.js';
export { ToolOperationError } from './errors.js';
export {
  type AnswerOptions,
  type OperationResult,
  type ResultReader,
  ToolOperationHandle,
} from './handle.js';
export type { ListOptions, OperationSummary } from './list-operations.js';
export type { Grounds } from './send-word.js';
export type { RestoredFinding, RestoredOptions, RestoredReport } from './store-restored.js';
export type { CancelResult, OperationView, PendingInput, ViewResult } from './view.js';
export type { OperatorDecision } from '../operation/facts.js';
export type { Receipt } from '../operation/receipt.js';
export { callNodeIdOf, workflowIdOf } from '../operation/names.js';
