// Owns the words of MCP 2025-11-25 tasks as we send them. Pure.
// Must never hold a session or a credential: the channel adds what goes into headers.

import { RELATED_TASK_META_KEY } from '@modelcontextprotocol/sdk/types.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import type { InputReply, ToolCall } from '../adapter.js';
import { toolCallParams } from '../mcp/tool-call.js';

/**
 * The ttl asked for: as long as we may wait by default, and then settle and fetch. Asking none leaves the server's
 * own default, which may be a minute and counts from the creation; a server that cannot keep it so long overrides it
 * ("receivers MAY override the requested ttl"; server-everything always answers 300000). Under 2^31 ms, because
 * servers hand it to setTimeout, which would fire at once for more.
 */
const REQUESTED_TTL_MS = LIMITS.waitBudgetMs + LIMITS.settleBudgetMs + LIMITS.fetchBudgetMs;

export function createTaskParams(call: ToolCall): JsonObject {
  return { ...toolCallParams(call, {}), task: { ttl: REQUESTED_TTL_MS } };
}

export function taskParams(remoteId: string): JsonObject {
  return { taskId: remoteId };
}

/**
 * A reply to a question: the JSON-RPC response to the server's request. Content only goes with `accept`. It names its
 * task, as every message must that names none in its parameters (2025-11-25, tasks, "associating task-related messages").
 */
export function elicitationResponse(jsonRpcId: JsonValue, reply: InputReply, remoteId: string): JsonObject {
  const hasContent = reply.action === 'accept' && reply.content !== null;
  const _meta = { [RELATED_TASK_META_KEY]: { taskId: remoteId } };
  return {
    id: jsonRpcId,
    result: { action: reply.action, ...(hasContent ? { content: reply.content } : {}), _meta },
  };
}
