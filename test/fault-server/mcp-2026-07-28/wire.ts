// Owns the words of MCP 2026-07-28 and its tasks extension as the fault server sends them.
// Must never decide what a reply says.

import { isObject, type JsonObject } from '../json.js';
import type { Plan } from '../plan.js';
import type { WorkResult } from '../executions.js';
import type { Told, Wire } from '../wire.js';
import { askFirst } from './ask-first.js';

export const REVISION = '2026-07-28';
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
/** As FastMCP 4 keeps its tasks. */
const LIFETIME_MS = 900_000;

/** HTTP statuses as FastMCP 4 sends them with its errors; any other code comes with 200. */
const STATUSES: Readonly<Record<number, number>> = {
  [-32601]: 404,
  [-32602]: 400,
  [-32600]: 400,
  [-32700]: 400,
  [-32020]: 400,
  [-32021]: 400,
  [-32022]: 400,
};

export const UNDECLARED = {
  code: -32021,
  data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
} as const;

/** Each request declares anew what its client can do. */
export function declaresTasks(params: JsonObject): boolean {
  const meta = isObject(params['_meta']) ? params['_meta'] : {};
  const capabilities = meta['io.modelcontextprotocol/clientCapabilities'];
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined;
  return isObject(extensions) && isObject(extensions[TASKS_EXTENSION]);
}

export const WIRE_2026: Wire = {
  revision: REVISION,
  isSessionless: true,
  offersTask: declaresTasks,
  // The server decides, but only for a client that declared the extension.
  becomesTask: (params, support) => support !== 'forbidden' && declaresTasks(params),
  taskRequired: UNDECLARED,
  lifetimeOf: () => LIFETIME_MS,
  objectionTo,
  askFirst,
  task: (told) => ({
    taskId: told.remoteTaskId,
    status: told.status,
    statusMessage: told.statusMessage,
    createdAt: new Date(told.createdAt).toISOString(),
    lastUpdatedAt: new Date(told.updatedAt).toISOString(),
    ttlMs: told.ttlMs,
    ...(told.pollIntervalMs === null ? {} : { pollIntervalMs: told.pollIntervalMs }),
  }),
  created: (task) => ({ resultType: 'task', ...task }),
  sealed: (answer) =>
    'result' in answer ? { result: { resultType: 'complete', ...answer.result } } : answer,
  httpStatusOf: (code) => STATUSES[code] ?? 200,
};

/** What only sessions, lists and streams can suffer. */
function objectionTo(plan: Plan): string | null {
  const hasSession = plan.session !== 'keep' || plan.sessionLossMs !== null;
  if (hasSession) return '2026-07-28 has no session that could be lost';
  if (plan.words.lists.length > 0) return '2026-07-28 has no list of tasks';
  if (plan.foreignQuestion) return '2026-07-28 lists questions in the status of their own task';
  return null;
}

/** The end of a task with what it came to, flat, as its status carries it. */
export function endedTask(told: Told, status: string, work: WorkResult): JsonObject {
  const task = WIRE_2026.task({ ...told, status });
  switch (work.kind) {
    case 'completed':
    case 'isError':
      // A tool that says isError has completed: only a JSON-RPC error is a failed task.
      return { ...task, status: 'completed', result: { resultType: 'complete', ...work.result } };
    case 'protocolError':
      return { ...task, status: 'failed', error: work.error };
    case 'aborted':
      return { ...task, status: 'cancelled' };
  }
}
