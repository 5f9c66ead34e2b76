/**
 * Owns: making a task of a real 2025-11-25 server look failed, because server-everything has no tool whose task
 * fails. Must never touch another task, nor a reply in which the server does not know the task.
 */
import type { Exchange, WholeReply } from './exchange.js';
import { defer, type Deferred } from './pass-through-ledger.js';
import { isObject, readReply, type JsonObject, type JsonRpcId } from './wire-messages.js';

/** What `tasks/result` of the failed task answers. */
export type TaskFailure =
  /** A CallToolResult; `isError: true` is set. */
  | { readonly kind: 'toolError'; readonly statusMessage?: string; readonly result: JsonObject }
  /** A JSON-RPC error. */
  | {
      readonly kind: 'protocolError';
      readonly statusMessage?: string;
      readonly code: number;
      readonly message: string;
    };

export interface FailedTasks {
  readonly fail: (remoteTaskId: string, failure: TaskFailure) => void;
  readonly failNext: (failure: TaskFailure) => Promise<string>;
  /** False where the exchange is no business of a failed task: nothing was forwarded then. */
  play(exchange: Exchange): Promise<boolean>;
  clear(): void;
  close(error: Error): void;
}

/** Tasks 2025-11-25, "Related Task Metadata": a result that is not nested in a task names its task here. */
const RELATED_TASK = 'io.modelcontextprotocol/related-task';
const INVALID_PARAMS = -32602;

export function createFailedTasks(): FailedTasks {
  const failures = new Map<string, TaskFailure>();
  let next: { readonly failure: TaskFailure; readonly created: Deferred<string> }[] = [];

  async function playCreation(exchange: Exchange): Promise<void> {
    const reply = await exchange.collect();
    if (!reply) return exchange.hangUp();
    const remoteTaskId = createdTaskId(reply);
    const waiting = next[0];
    if (remoteTaskId !== undefined && waiting) {
      next = next.slice(1);
      failures.set(remoteTaskId, waiting.failure);
      waiting.created.resolve(remoteTaskId);
    }
    await exchange.send(reply);
  }

  return {
    fail(remoteTaskId, failure) {
      failures.set(remoteTaskId, failure);
    },
    failNext(failure) {
      const created = defer<string>();
      next.push({ failure, created });
      return created.promise;
    },
    async play(exchange) {
      const [message, ...more] = exchange.messages;
      if (!message || more.length > 0) return false;
      const { method, params, jsonRpcId } = message;
      if (method === 'tools/call' && next.length > 0) {
        await playCreation(exchange);
        return true;
      }
      if (method === 'tasks/list' && failures.size > 0) {
        await playRewritten(exchange, failures);
        return true;
      }
      const remoteTaskId = params['taskId'];
      const failure = typeof remoteTaskId === 'string' ? failures.get(remoteTaskId) : undefined;
      if (typeof remoteTaskId !== 'string' || !failure) return false;
      switch (method) {
        case 'tasks/get':
          await playRewritten(exchange, failures);
          return true;
        case 'tasks/result':
          await exchange.sendPlayed(jsonReply(jsonRpcId, resultOf(remoteTaskId, failure)));
          return true;
        case 'tasks/cancel':
          // A terminal task cannot be cancelled.
          await exchange.sendPlayed(
            jsonReply(jsonRpcId, { error: { code: INVALID_PARAMS, message: 'Task has failed' } }),
          );
          return true;
        default:
          return false;
      }
    },
    clear() {
      failures.clear();
      next = [];
    },
    close(error) {
      for (const { created } of next) created.reject(error);
    },
  };
}

function resultOf(remoteTaskId: string, failure: TaskFailure): JsonObject {
  if (failure.kind === 'protocolError') return { error: { code: failure.code, message: failure.message } };
  const { _meta: meta, ...result } = failure.result;
  const related = { [RELATED_TASK]: { taskId: remoteTaskId } };
  return { result: { ...result, isError: true, _meta: { ...(isObject(meta) && meta), ...related } } };
}

/** Forwards, so that session, times and interval are the server's own; only status and message are ours. */
async function playRewritten(exchange: Exchange, failures: ReadonlyMap<string, TaskFailure>): Promise<void> {
  const reply = await exchange.collect();
  if (!reply) return exchange.hangUp();
  const answer = readReply(reply.body, contentTypeOf(reply)).find((message) => isObject(message['result']));
  if (!answer || !isObject(answer['result'])) return exchange.send(reply);
  const body = Buffer.from(JSON.stringify({ ...answer, result: rewritten(answer['result'], failures) }));
  const { 'content-length': _replaced, ...headers } = reply.headers;
  await exchange.send({ ...reply, headers: { ...headers, 'content-type': 'application/json' }, body });
}

function rewritten(result: JsonObject, failures: ReadonlyMap<string, TaskFailure>): JsonObject {
  if (Array.isArray(result['tasks'])) {
    const tasks = result['tasks'].map((task: unknown) => (isObject(task) ? rewritten(task, failures) : task));
    return { ...result, tasks };
  }
  const failure = typeof result['taskId'] === 'string' ? failures.get(result['taskId']) : undefined;
  if (!failure) return result;
  const { statusMessage } = failure;
  return { ...result, status: 'failed', ...(statusMessage !== undefined && { statusMessage }) };
}

function createdTaskId(reply: WholeReply): string | undefined {
  for (const { result } of readReply(reply.body, contentTypeOf(reply))) {
    const task = isObject(result) ? result['task'] : undefined;
    if (isObject(task) && typeof task['taskId'] === 'string') return task['taskId'];
  }
  return undefined;
}

function contentTypeOf(reply: WholeReply): string | undefined {
  const contentType = reply.headers['content-type'];
  return Array.isArray(contentType) ? contentType[0] : contentType;
}

function jsonReply(jsonRpcId: JsonRpcId, answer: JsonObject): WholeReply {
  return {
    httpStatus: 200,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: jsonRpcId, ...answer })),
  };
}
