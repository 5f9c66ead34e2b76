// Owns reading one JSON-RPC message out of received bytes, keeping the exact bytes of its `result` or `error`.
// Must never throw on what a server sent: what cannot be read is `garbled`.

import { LIMITS } from '../../operation/limits.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import { digests } from '../../primitives/node-primitives.js';
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

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function readMessage(bytes: Uint8Array): RpcMessage {
  let envelope: JsonObject;
  let spans: ReturnType<typeof sliceMembers>;
  try {
    // The scanner runs first: it bounds the depth before anything recursive may look at the text.
    spans = sliceMembers(bytes, LIMITS.wireJsonDepth);
    envelope = JSON.parse(decoder.decode(bytes)) as JsonObject;
  } catch (error) {
    return garbled(error instanceof JsonSliceError ? error.message : 'unreadable');
  }
  const cut = (name: string): Uint8Array => {
    const span = spans.get(name) as { start: number; end: number };
    return bytes.slice(span.start, span.end);
  };
  if (typeof envelope['method'] === 'string') return readCall(envelope, envelope['method']);
  const hasResult = spans.has('result');
  const hasError = spans.has('error');
  if (hasResult === hasError) return garbled('neither a request nor a reply');
  const id = envelope['id'] ?? null;
  if (hasResult) {
    if (envelope['jsonrpc'] !== '2.0' || !isRpcId(id)) return garbled('a result without version or id');
    return { kind: 'result', id, value: envelope['result'] as JsonValue, bytes: cut('result') };
  }
  const error = envelope['error'];
  if (!isObject(error) || !Number.isSafeInteger(error['code'])) return garbled('an error without a code');
  if (envelope['jsonrpc'] !== '2.0' || (id !== null && !isRpcId(id)))
    return garbled('an error without version or id');
  const message = typeof error['message'] === 'string' ? error['message'] : '';
  const code = error['code'] as number;
  return { kind: 'error', id, code, message, data: error['data'] ?? null, bytes: cut('error') };
}

function readCall(envelope: JsonObject, method: string): RpcMessage {
  const params = isObject(envelope['params']) ? envelope['params'] : {};
  if (!('id' in envelope)) return { kind: 'notification', method, params };
  const id = envelope['id'] ?? null;
  // An id that does not survive JSON.parse could not be echoed; nobody can answer such a request.
  return isRpcId(id) ? { kind: 'request', id, method, params } : garbled('a request with an unusable id');
}

function isRpcId(value: JsonValue): value is RpcId {
  return typeof value === 'string' || Number.isSafeInteger(value);
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
