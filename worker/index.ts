// Owns the public entry `durable-tool-calls/worker`.

export { bundleWorkflows, PREBUILT_BUNDLE } from './bundle.js';
export { ConfigurationError, loadToolServers, parseToolServers } from './tool-servers.js';
export type { ToolServersConfig } from './tool-servers.js';
export {
  createToolOperationActivities,
  createToolOperationWorker,
  type ToolOperationWorker,
  type ToolOperationWorkerOptions,
} from './worker.js';
export type { ExportedHistory } from './read-history.js';
export { type RecordedRun, replayHistories, type ReplayedRun, type ReplayOptions } from './replay.js';
export { type HistoryEventName, ReplayError, type ReplayErrorCode } from './replay-error.js';
