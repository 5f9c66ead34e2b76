// Owns the two ends of `tools/call` that both MCP contracts share: its parameters, and the shape of a tool's result.
// Must never decide whether a task is asked for: each contract does.

import { clip, keyPlaceOf } from '../../operation/policy.js';
import { LIMITS } from '../../operation/limits.js';
import type { JsonObject } from '../../operation/json.js';
import {
  type ReceivedResult,
  type Submission,
  type SubmitHooks,
  type ToolCall,
  WireFault,
} from '../adapter.js';
import { bytesWithResult } from '../reply-bounds.js';
import type { Redact } from '../redact.js';
import { sliceElements, type Span } from '../json-slice.js';
import { membersOf, parseJson } from '../json-members.js';
import type { MessageVerdict, RequestOptions, ServerMessage } from './channel.js';

/** Name, arguments, and the submission key where the policy puts it; `_meta` as given otherwise. */
export function toolCallParams(call: ToolCall, meta: JsonObject): JsonObject {
  const { submissionPolicy: policy, keyName } = call;
  const place = keyPlaceOf(policy, call.lookUp);
  // A broken invariant of ours, found before any byte left: policies with a key are configured with its name.
  if ((place !== null || policy === 'lookup-tool') && keyName === null)
    throw new Error(`the submission policy ${policy} has no key name`);
  const key = keyName === null ? {} : { [keyName]: call.submissionKey };
  const args = place === 'argument' ? { ...call.arguments, ...key } : call.arguments;
  const fullMeta = place === 'meta' ? { ...meta, ...key } : meta;
  return {
    name: call.tool,
    arguments: args,
    ...(Object.keys(fullMeta).length === 0 ? {} : { _meta: fullMeta }),
  };
}

/** Of a call whose own reply may be the whole operation: bounded in time, its progress shown, its result of any size taken. */
export function plainCallOptions(
  call: ToolCall,
  hooks: SubmitHooks,
  progressToken: string,
  redact: Redact,
): RequestOptions {
  return {
    timeoutMs: call.synchronousBoundMs,
    afterSend: hooks.afterSend,
    purpose: 'submission',
    onMessage: progressListener(progressToken, hooks.onProgress, redact),
    maxReplyBytes: bytesWithResult(call.maxResultBytes),
  };
}

/**
 * A tool's result, or null where the value has not its shape. Read off the bytes, so that a large result is never made
 * into values. The SDK's schema is not used: it takes `{}` for an empty result and refuses content kinds of later
 * revisions; here both matter the other way round.
 */
export function toolResultOf(bytes: Uint8Array): ReceivedResult | null {
  const members = membersOf(bytes);
  const content = members?.get('content');
  if (!members || !content || !isContent(cut(bytes, content))) return null;
  const isError = members.get('isError');
  const isErrorText = isError ? Buffer.from(cut(bytes, isError)).toString('latin1', 0, 6) : 'false';
  if (isErrorText !== 'true' && isErrorText !== 'false') return null;
  const structured = members.get('structuredContent');
  return {
    bytes,
    mediaType: 'application/json',
    isProtocolError: false,
    isToolError: isErrorText === 'true',
    get structuredContent() {
      return structured && parseJson(cut(bytes, structured));
    },
  };
}

function isContent(bytes: Uint8Array): boolean {
  if (bytes[0] !== OPEN_ARRAY) return false;
  for (const block of sliceElements(bytes, LIMITS.wireJsonDepth)) {
    const blockBytes = cut(bytes, block);
    const type = membersOf(blockBytes)?.get('type');
    if (!type || blockBytes[type.start] !== QUOTE) return false;
  }
  return true;
}

const OPEN_ARRAY = 0x5b;
const QUOTE = 0x22;

function cut(bytes: Uint8Array, span: Span): Uint8Array {
  return bytes.subarray(span.start, span.end);
}

/** @throws WireFault Ambiguous where the result is larger than what may be taken: the work was done, and is lost to us */
export function answeredWith(result: ReceivedResult, call: ToolCall): Submission {
  const sizeBytes = result.bytes.byteLength;
  if (sizeBytes <= (call.maxResultBytes ?? LIMITS.storedResultBytes)) return { kind: 'answered', result };
  const message = `tools/call: the result has ${sizeBytes} bytes`;
  throw new WireFault('Ambiguous', message, { isTooLarge: true });
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
