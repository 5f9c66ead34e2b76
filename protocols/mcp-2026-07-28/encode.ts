// Owns the words of MCP 2026-07-28 and its tasks extension as we send them. Pure.
// Must never hold a credential: configured headers are the channel's.

import type { JsonObject } from '../../operation/json.js';
import type { InputReply, ToolCall } from '../adapter.js';
import { toolCallParams } from '../mcp/tool-call.js';

export const PROTOCOL_VERSION = '2026-07-28';
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/**
 * `tasks`: a call may be answered with a task or a question. `plain`: only with its result. A server must not hand out a
 * task to a request that does not declare the extension.
 */
export type AnswersTaken = 'tasks' | 'plain';

const CAPABILITIES: Readonly<Record<AnswersTaken, JsonObject>> = {
  tasks: { elicitation: { form: {}, url: {} }, extensions: { [TASKS_EXTENSION]: {} } },
  plain: {},
};

/**
 * `params` as they go out, with what every request says of itself (2026-07-28, basic protocol, `_meta`): there is no session
 * that would remember it.
 */
export function withRequestMeta(params: JsonObject, taken: AnswersTaken): JsonObject {
  const own = params['_meta'];
  const given = typeof own === 'object' && own !== null && !Array.isArray(own) ? (own as JsonObject) : {};
  const meta: JsonObject = {
    'io.modelcontextprotocol/protocolVersion': PROTOCOL_VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'durable-tool-calls', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': CAPABILITIES[taken],
  };
  return { ...params, _meta: { ...given, ...meta } };
}

/** Headers that repeat the body for proxies; a server refuses a request where they differ (-32020). */
export function requestHeaders(method: string, params: JsonObject): Readonly<Record<string, string>> {
  const name = params['name'] ?? params['taskId'];
  return {
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': headerText(name) } : {}),
  };
}

/** Names and ids outside visible ASCII travel encoded (2026-07-28, streamable HTTP, header encoding). */
function headerText(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?');
  return isPlain ? text : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
}

/** Also once more with what was asked for before a task existed (SEP-2322); `requestState` goes back untouched. */
export function callParams(call: ToolCall, progressToken: string): JsonObject {
  const params = toolCallParams(call, { progressToken });
  if (!call.continuation) return params;
  const { requestState, replies } = call.continuation;
  const inputResponses = inputResponsesOf(replies);
  return {
    ...params,
    ...(Object.keys(inputResponses).length === 0 ? {} : { inputResponses }),
    ...(requestState === null ? {} : { requestState }),
  };
}

export function taskParams(remoteId: string): JsonObject {
  return { taskId: remoteId };
}

export function updateParams(remoteId: string, key: string, reply: InputReply): JsonObject {
  return { taskId: remoteId, inputResponses: inputResponsesOf({ [key]: reply }) };
}

function inputResponsesOf(replies: Readonly<Record<string, InputReply>>): JsonObject {
  const entries = Object.entries(replies).map(([key, { action, content }]): [string, JsonObject] => {
    const hasContent = action === 'accept' && content !== null;
    return [key, { action, ...(hasContent ? { content } : {}) }];
  });
  // A key like "__proto__" is a key like any other.
  return Object.fromEntries(entries);
}
