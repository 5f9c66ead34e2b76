// Owns reading one JSON-RPC message out of received bytes, keeping the exact bytes of its `result` or `error`.
// Must never throw on what a server sent: what cannot be read is `garbled`.

import { isUtf8 } from 'node:buffer';
import { LIMITS } from '../../operation/limits.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import { digests } from '../../primitives/node-primitives.js';
import { isObject, memberOf, parseJson } from '../json-members.js';
import { JsonSliceError, sliceMembers } from '../json-slice.js';

export type RpcId = string | number;

/** `id: null` on an error: the server could not tell which request it answers (JSON-RPC 2.0 section 5). */
export type RpcMessage =
  | { readonly kind: 'result'; readonly id: RpcId; readonly value: JsonValue; readonly bytes: Uint8Array }
  | {
      readonly kind: 'error';
      readonly id: RpcId | null;
      readonly code: number;
      readonly message: string;
      readonly data: JsonValue;
      readonly bytes: Uint8Array;
    }
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'garbled'; readonly reason: string };

/** `bytes` are kept as they are, not copied: results may be as large as memory allows once. */
export function readMessage(bytes: Uint8Array): RpcMessage {
  let spans: ReturnType<typeof sliceMembers>;
  try {
    // The scanner runs first: it bounds the depth before anything recursive may look at the text.
    spans = sliceMembers(bytes, LIMITS.wireJsonDepth);
  } catch (error) {
    return garbled(error instanceof JsonSliceError ? error.message : 'unreadable');
  }
  if (!isUtf8(bytes)) return garbled('unreadable');
  const cut = (name: string): Uint8Array => {
    const span = spans.get(name);
    return span ? bytes.subarray(span.start, span.end) : new Uint8Array();
  };
  const read = (name: string): JsonValue => (spans.has(name) ? parseJson(cut(name)) : null);
  // Only a result may be large; whatever else is read as values.
  const isSmall = (name: string): boolean => cut(name).length <= LIMITS.wireReplyBytes;
  if (!['method', 'params', 'jsonrpc', 'id'].every(isSmall)) return garbled('a member that is too large');
  const method = read('method');
  if (typeof method === 'string')
    return readCall(method, read('params'), spans.has('id') ? read('id') : undefined);
  const hasResult = spans.has('result');
  const hasError = spans.has('error');
  if (hasResult === hasError) return garbled('neither a request nor a reply');
  const isVersion2 = read('jsonrpc') === '2.0';
  const id = read('id');
  if (hasResult) {
    if (!isVersion2 || !isRpcId(id)) return garbled('a result without version or id');
    return resultMessage(id, cut('result'));
  }
  if (!isVersion2 || (id !== null && !isRpcId(id))) return garbled('an error without version or id');
  return errorMessage(id, cut('error'));
}

function errorMessage(id: RpcId | null, bytes: Uint8Array): RpcMessage {
  const code = memberOf(bytes, 'code');
  if (!Number.isSafeInteger(code)) return garbled('an error without a code');
  const message = memberOf(bytes, 'message');
  return {
    kind: 'error',
    id,
    code: code as number,
    message: typeof message === 'string' ? message : '',
    get data() {
      return memberOf(bytes, 'data') ?? null;
    },
    bytes,
  };
}

/** The value is parsed only where somebody asks for it, once. */
function resultMessage(id: RpcId, bytes: Uint8Array): RpcMessage {
  let parsed: { readonly value: JsonValue } | null = null;
  return {
    kind: 'result',
    id,
    bytes,
    get value() {
      parsed ??= { value: parseJson(bytes) };
      return parsed.value;
    },
  };
}

function readCall(method: string, given: JsonValue, id: JsonValue | undefined): RpcMessage {
  const params = isObject(given) ? given : {};
  if (id === undefined) return { kind: 'notification', method, params };
  // An id that does not survive JSON.parse could not be echoed; nobody can answer such a request.
  return isRpcId(id) ? { kind: 'request', id, method, params } : garbled('a request with an unusable id');
}

function isRpcId(value: JsonValue): value is RpcId {
  return typeof value === 'string' || Number.isSafeInteger(value);
}

/**
 * False where the value has no canonical form (RFC 8785) and so can never be digested: it holds a number beyond a
 * double, which JSON.parse reads as Infinity, or half a character.
 */
export function isDigestible(value: JsonValue): boolean {
  try {
    digests.canonicalize(value);
    return true;
  } catch {
    return false;
  }
}

function garbled(reason: string): RpcMessage {
  return { kind: 'garbled', reason };
}
