// Owns the two ends of `tools/call` that both MCP contracts share: its parameters, and the shape of a tool's result.
// Must never decide whether a task is asked for: each contract does.

import { clip } from '../../operation/policy.js';
import { LIMITS } from '../../operation/limits.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import type { ReceivedResult, ToolCall } from '../adapter.js';
import type { Redact } from '../redact.js';
import { isObject } from './json-rpc.js';
import type { MessageVerdict, ServerMessage } from './channel.js';

/** Name, arguments, and the submission key where the policy puts it; `_meta` as given otherwise. */
export function toolCallParams(call: ToolCall, meta: JsonObject): JsonObject {
  const { submissionPolicy: policy, keyName } = call;
  const isKeyed = policy === 'key-argument' || policy === 'key-meta';
  // A broken invariant of ours, found before any byte left: policies with a key are configured with its name.
  if (isKeyed && keyName === null) throw new Error(`the submission policy ${policy} has no key name`);
  const key = keyName === null ? {} : { [keyName]: call.submissionKey };
  const args = policy === 'key-argument' ? { ...call.arguments, ...key } : call.arguments;
  const fullMeta = policy === 'key-meta' ? { ...meta, ...key } : meta;
  return {
    name: call.tool,
    arguments: args,
    ...(Object.keys(fullMeta).length === 0 ? {} : { _meta: fullMeta }),
  };
}

/**
 * A tool's result, or null where the value has not its shape. The SDK's schema is not used: it takes `{}` for an
 * empty result and refuses content kinds of later revisions; here both matter the other way round.
 */
export function toolResultOf(value: JsonValue, bytes: Uint8Array): ReceivedResult | null {
  if (!isObject(value)) return null;
  const content = value['content'];
  if (!Array.isArray(content)) return null;
  if (!content.every((block: JsonValue) => isObject(block) && typeof block['type'] === 'string')) return null;
  const isError = value['isError'];
  if (isError !== undefined && typeof isError !== 'boolean') return null;
  return {
    bytes,
    mediaType: 'application/json',
    isProtocolError: false,
    isToolError: isError === true,
    structuredContent: value['structuredContent'],
  };
}

/** A protocol error object as the end of a call. */
export function protocolErrorOf(bytes: Uint8Array): ReceivedResult {
  return {
    bytes,
    mediaType: 'application/json',
    isProtocolError: true,
    isToolError: false,
    structuredContent: undefined,
  };
}

/** Says `progress` for people, forward only: the specification demands that it increases, servers are hostile. */
export function progressListener(
  token: string,
  onProgress: (message: string) => void,
  redact: Redact,
): (message: ServerMessage) => Promise<MessageVerdict> {
  let last = Number.NEGATIVE_INFINITY;
  return async (message) => {
    // A question inside a call that has no task cannot be kept for a person: it is refused, never left hanging.
    if (message.kind === 'request') return message.method === 'elicitation/create' ? 'refused' : 'ignored';
    const { progressToken, progress, total, message: text } = message.params;
    if (message.method !== 'notifications/progress' || progressToken !== token) return 'ignored';
    if (typeof progress !== 'number' || progress <= last) return 'taken';
    last = progress;
    const share = typeof total === 'number' ? `${progress}/${total}` : `${progress}`;
    onProgress(
      clip(typeof text === 'string' ? `${share} ${redact(text)}` : share, LIMITS.statusMessageChars),
    );
    return 'taken';
  };
}
