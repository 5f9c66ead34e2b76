// Owns the door for callers: start, find, execute. Needs only a Temporal client.
// Must never load a store or a native module, nor decide anything about an operation.

import type { Client } from '@temporalio/client';
import { requestDigest } from '../operation/digests.js';
import type { JsonObject } from '../operation/json.js';
import { LIMITS } from '../operation/limits.js';
import { DEFAULT_TASK_QUEUE, workflowIdOf } from '../operation/names.js';
import { digests } from '../primitives/node-primitives.js';
import type { ToolOperationInput } from '../workflows/contract.js';
import { describeRun } from './described-run.js';
import { ToolOperationError } from './errors.js';
import { type OperationResult, type ResultReader, ToolOperationHandle } from './handle.js';
import { type ListOptions, listOperations, type OperationSummary } from './list-operations.js';
import { checkDurationMs } from './pause.js';
import { checkSearchAttributes, type SearchAttributesCheck } from './search-attributes.js';
import { startRun } from './start-run.js';
import { type RestoredOptions, type RestoredReport, tellRestored } from './store-restored.js';

export interface ToolOperationClientOptions {
  readonly client: Client;
  /** Default: the client's own namespace is used; the task queue defaults to `durable-tool-calls`. */
  readonly taskQueue?: string;
  /** Reads results too large to ride with the run, by their digest (the exported receipts reader has this shape). */
  readonly results?: ResultReader;
  /** Called with advice for operators; default: standard error. */
  readonly log?: (message: string) => void;
}

export interface StartOptions {
  /** The caller's own name of this call; the same name is the same operation, for ever. */
  readonly callNodeId: string;
  readonly server: string;
  readonly tool: string;
  readonly arguments: JsonObject;
  /** ms; its end cancels remotely. Human time does not count. Default: the tool's, else 24 h. */
  readonly waitBudgetMs?: number;
}

export class ToolOperationClient {
  readonly #client: Client;
  readonly #taskQueue: string;
  readonly #results: ResultReader | null;
  readonly #log: (message: string) => void;
  #searchAttributes: Promise<SearchAttributesCheck> | null = null;

  constructor(options: ToolOperationClientOptions) {
    this.#client = options.client;
    this.#taskQueue = options.taskQueue ?? DEFAULT_TASK_QUEUE;
    this.#results = options.results ?? null;
    this.#log = options.log ?? ((message) => console.error(message));
  }

  /**
   * Starts the operation, or attaches to the one this callNodeId names, running or ended.
   * @throws ToolOperationError `InvalidRequest`, or `CallNodeConflict` where the name belongs to another call
   */
  async start(options: StartOptions): Promise<ToolOperationHandle> {
    const argumentsBytes = validateStart(options);
    if (argumentsBytes > LIMITS.argumentsBytes) {
      throw invalid(`the arguments have ${argumentsBytes} bytes, more than ${LIMITS.argumentsBytes}`);
    }
    const { callNodeId, server, tool } = options;
    const digest = requestDigest({ server, tool, arguments: options.arguments }, digests);
    const workflowId = workflowIdOf(callNodeId);
    const hasAttributes = await this.#hasSearchAttributes();
    const input: ToolOperationInput = {
      callNodeId,
      requestDigest: digest,
      server,
      tool,
      arguments: options.arguments,
      waitBudgetMs: options.waitBudgetMs ?? null,
      searchAttributes: hasAttributes,
    };
    await startRun(this.#client, this.#taskQueue, input);
    // USE_EXISTING accepts another input silently: the digest in the memo tells.
    const described = await describeRun(this.#client, workflowId);
    if (described.requestDigest !== digest) {
      throw new ToolOperationError(
        'CallNodeConflict',
        `callNodeId "${callNodeId}" already names a call of ${described.server}/${described.tool} with other arguments`,
      );
    }
    return this.#handle(callNodeId);
  }

  /** The handle of an operation by its name. Checks nothing; the first call on it does. */
  getHandle(callNodeId: string): ToolOperationHandle {
    return this.#handle(callNodeId);
  }

  /** Operations as the engine's visibility lists them, the newest first; it may lag by a second. */
  list(options: ListOptions = {}): AsyncIterable<OperationSummary> {
    return listOperations(this.#client, options);
  }

  /**
   * After a backup took the place of the store: every open run of this task queue opens its row again and compares; what the store has
   * forgotten comes back as findings. Nothing is sent meanwhile for those, and nothing is ended. Stop the workers, put the
   * file back, start them, then call this.
   * @throws ToolOperationError `InvalidRequest`
   */
  storeRestored(options: RestoredOptions = {}): Promise<RestoredReport> {
    return tellRestored(this.#client, this.#taskQueue, options);
  }

  /** `start`, then `result`. @throws as both do */
  async execute(options: StartOptions & { readonly timeoutMs?: number }): Promise<OperationResult> {
    const { timeoutMs, ...start } = options;
    checkDurationMs('timeoutMs', timeoutMs);
    const handle = await this.start(start);
    return handle.result(timeoutMs === undefined ? {} : { timeoutMs });
  }

  #handle(callNodeId: string): ToolOperationHandle {
    return new ToolOperationHandle(this.#client, callNodeId, this.#results);
  }

  async #hasSearchAttributes(): Promise<boolean> {
    this.#searchAttributes ??= checkSearchAttributes(this.#client, this.#client.options.namespace).then(
      (check) => {
        if (check.kind === 'absent') this.#log(check.advice);
        return check;
      },
    );
    return (await this.#searchAttributes).kind === 'present';
  }
}

function invalid(message: string): ToolOperationError {
  return new ToolOperationError('InvalidRequest', message);
}

/** Size of the arguments in bytes. */
function validateStart(options: StartOptions): number {
  const { callNodeId, server, tool, waitBudgetMs } = options;
  if (
    typeof callNodeId !== 'string' ||
    callNodeId.length === 0 ||
    callNodeId.length > LIMITS.callNodeIdChars
  ) {
    throw invalid(`a callNodeId has 1 to ${LIMITS.callNodeIdChars} characters`);
  }
  // oxlint-disable-next-line no-control-regex -- control characters are what is refused
  if (/[\u0000-\u001f\u007f]/.test(callNodeId)) throw invalid('a callNodeId has no control characters');
  if (!server || Buffer.byteLength(server) > LIMITS.fairnessKeyBytes) {
    throw invalid(`a server name has 1 to ${LIMITS.fairnessKeyBytes} bytes`);
  }
  if (!tool) throw invalid('a tool has a name');
  if (waitBudgetMs !== undefined && !(Number.isFinite(waitBudgetMs) && waitBudgetMs > 0)) {
    throw invalid('waitBudgetMs is a positive number of milliseconds');
  }
  const { arguments: args } = options;
  if (typeof args !== 'object' || args === null || Array.isArray(args))
    throw invalid('arguments are a JSON object');
  return Buffer.byteLength(JSON.stringify(args));
}
