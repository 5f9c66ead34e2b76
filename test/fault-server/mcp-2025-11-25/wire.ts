// Owns the words of MCP 2025-11-25 as the fault server sends them. Must never decide what a reply says.

import { isObject } from '../json.js';
import type { Wire } from '../wire.js';

export const WIRE_2025: Wire = {
  revision: '2025-11-25',
  isSessionless: false,
  offersTask: (params) => params['task'] !== undefined,
  // "Tool-level negotiation": the client asks for a task; -32601 where the tool takes none.
  becomesTask: (params) => params['task'] !== undefined,
  taskRequired: { code: -32601 },
  lifetimeOf(params) {
    const asked = isObject(params['task']) ? params['task']['ttl'] : undefined;
    return typeof asked === 'number' ? asked : null;
  },
  objectionTo: (plan) =>
    plan.questionsBeforeTask > 0 ? '2025-11-25 does not ask before there is a task' : null,
  askFirst: () => ({ heard: [] }),
  task: (told) => ({
    taskId: told.remoteTaskId,
    status: told.status,
    statusMessage: told.statusMessage,
    createdAt: new Date(told.createdAt).toISOString(),
    lastUpdatedAt: new Date(told.updatedAt).toISOString(),
    ttl: told.ttlMs,
    ...(told.pollIntervalMs === null ? {} : { pollInterval: told.pollIntervalMs }),
  }),
  created: (task) => ({ task }),
  sealed: (answer) => answer,
  httpStatusOf: () => 200,
};
