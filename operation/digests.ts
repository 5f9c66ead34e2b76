// Owns what goes into each digest and derived key. The primitives (canonical JSON, SHA-256) come in as parameters.
// Must never import them: this file also runs where there are none.

import type { JsonObject, JsonValue } from './json.js';

export interface DigestPrimitives {
  /** RFC 8785 canonical JSON. */
  readonly canonicalize: (value: JsonValue) => string;
  /** SHA-256 of the UTF-8 text, lower-case hex. */
  readonly sha256Hex: (text: string) => string;
}

function digestOf(value: JsonValue, primitives: DigestPrimitives): string {
  return primitives.sha256Hex(primitives.canonicalize(value));
}

/** Identity of what is asked: server, tool and arguments. Same callNodeId with another digest = CallNodeConflict. */
export function requestDigest(
  request: { readonly server: string; readonly tool: string; readonly arguments: JsonObject },
  primitives: DigestPrimitives,
): string {
  const { server, tool, arguments: args } = request;
  return digestOf({ server, tool, arguments: args }, primitives);
}

export function jsonDigest(value: JsonValue, primitives: DigestPrimitives): string {
  return digestOf(value, primitives);
}

/** The idempotency key of a submission: derived from the callNodeId, never regenerated. */
export function submissionKey(callNodeId: string, primitives: DigestPrimitives): string {
  return `dtc-${primitives.sha256Hex(`submission:${callNodeId}`).slice(0, 40)}`;
}

/**
 * The request id of a submission (AIP-155): 122 bits of a hash in the form of a UUID4, because strict servers take no other
 * form and the zero UUID is invalid.
 */
export function requestId(key: string, primitives: DigestPrimitives): string {
  const hex = primitives.sha256Hex(`request-id:${key}`);
  const variant = '89ab'[Number.parseInt(hex.slice(16, 17), 16) % 4];
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

/** One question: digest of reference, wire key (session and JSON-RPC id, or input key) and the request itself. */
export function roundId(
  round: { readonly remoteId: string; readonly wireKey: string; readonly request: JsonValue },
  primitives: DigestPrimitives,
): string {
  const { remoteId, wireKey, request } = round;
  return digestOf({ remoteId, wireKey, request }, primitives).slice(0, 32);
}

export function replyDigest(
  reply: { readonly action: string; readonly content: JsonValue },
  primitives: DigestPrimitives,
): string {
  const { action, content } = reply;
  return digestOf({ action, content }, primitives);
}
