// Owns what can become of one JSON-RPC request, and reading it from a reply that is not a stream.
// Must never say what that means for an operation: faults.ts does.

import { clip } from '../../operation/policy.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { HttpFault, type HttpReply } from '../http.js';
import type { Redact } from '../redact.js';
import { Gatherer } from '../gather.js';
import { isObject } from '../json-members.js';
import { readMessage, type RpcId, type RpcMessage } from './json-rpc.js';

/** What became of one request. Every way it can go is data; only a caller's own hook may throw. */
export type RpcOutcome =
  | {
      readonly kind: 'result';
      /** Parsed where it is asked for. */
      readonly value: JsonValue;
      readonly bytes: Uint8Array;
      readonly sessionId: string | null;
    }
  /** A JSON-RPC error. `isOurs` false: it came without an id. */
  | {
      readonly kind: 'error';
      readonly status: number;
      readonly code: number;
      readonly message: string;
      /** What a person has to open first (-32042, URL elicitation required). */
      readonly link: string | null;
      /** All of that, as sent. */
      readonly elicitations: readonly JsonObject[];
      readonly bytes: Uint8Array;
      readonly isOurs: boolean;
      readonly retryAfterMs: number | null;
      /** What a person can do about a refused credential. */
      readonly advice?: string;
    }
  /** An HTTP reply that holds no JSON-RPC reply. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly retryAfterMs: number | null;
      readonly advice?: string;
    }
  /** Proof that nothing ran. `isSessionGone`: because the session's process is no more. */
  | { readonly kind: 'notSent'; readonly detail: string; readonly isSessionGone?: boolean }
  /** Cut, late, unparseable, or another's reply. */
  | {
      readonly kind: 'lost';
      readonly detail: string;
      readonly isContractBreach: boolean;
      /** It was larger than what was to be taken of it. */
      readonly isTooLarge?: boolean;
    }
  /** The caller's `onMessage` had enough. */
  | { readonly kind: 'stopped' };

export async function readJsonReply(
  reply: HttpReply,
  id: RpcId | null,
  maxBytes: number = LIMITS.wireReplyBytes,
): Promise<RpcOutcome> {
  const nothing = bareStatus(reply);
  if (reply.contentType !== 'application/json') {
    if (reply.status !== 200) return nothing;
    return lost(`HTTP 200 with ${reply.contentType === '' ? 'no type' : reply.contentType} instead of JSON`);
  }
  let bytes: Uint8Array;
  try {
    const whole = new Gatherer(maxBytes);
    for await (const chunk of reply.body) whole.add(chunk);
    bytes = whole.take();
  } catch (error) {
    if (!(error instanceof HttpFault)) throw error;
    return reply.status === 200 ? lostBy(error) : nothing;
  }
  const outcome = outcomeOf(readMessage(bytes), id, reply);
  if (reply.status === 200) return outcome;
  return outcome.kind === 'error' ? outcome : nothing;
}

/** A reply of which nothing but its head counts. */
export function bareStatus({ status, retryAfterMs, advice }: HttpReply): RpcOutcome {
  return { kind: 'status', status, retryAfterMs, ...(advice === undefined ? {} : { advice }) };
}

/** What of a reply stands around its message; a transport without heads makes one up. */
export type ReplyHead = Pick<HttpReply, 'status' | 'retryAfterMs' | 'header' | 'advice'>;

export function outcomeOf(message: RpcMessage, id: RpcId | null, reply: ReplyHead): RpcOutcome {
  if (message.kind === 'result' && message.id === id) {
    return {
      kind: 'result',
      get value() {
        return message.value;
      },
      bytes: message.bytes,
      sessionId: reply.header('mcp-session-id'),
    };
  }
  if (message.kind === 'error' && (message.id === id || message.id === null)) {
    const { code, bytes } = message;
    const { status, retryAfterMs, advice } = reply;
    return {
      kind: 'error',
      ...(advice === undefined ? {} : { advice }),
      status,
      code,
      message: message.message,
      link: code === -32042 ? linkOf(message.data) : null,
      elicitations: code === -32042 ? elicitationsIn(message.data) : [],
      bytes,
      isOurs: message.id !== null,
      retryAfterMs,
    };
  }
  if (message.kind === 'garbled') return lost(message.reason);
  return { kind: 'lost', detail: 'the reply is to another request', isContractBreach: true };
}

/**
 * Without the credentials that a server may quote in words which become evidence, and then short. The bytes of a
 * result or an error stay: they are the tool's own data.
 */
export function cleanOutcome(outcome: RpcOutcome, redact: Redact): RpcOutcome {
  switch (outcome.kind) {
    case 'error': {
      const { message, link } = outcome;
      const clean = { message: clip(redact(message), 200), link: link === null ? null : redact(link) };
      return { ...outcome, ...clean, ...cleanAdvice(outcome.advice, redact) };
    }
    case 'status':
      return { ...outcome, ...cleanAdvice(outcome.advice, redact) };
    case 'lost':
    case 'notSent':
      return { ...outcome, detail: clip(redact(outcome.detail), DETAIL_CHARS) };
    case 'result':
    case 'stopped':
      return outcome;
  }
}

/** Room for the longest sentence on how a credential can be mended. */
const DETAIL_CHARS = 300;

function cleanAdvice(advice: string | undefined, redact: Redact): { readonly advice?: string } {
  return advice === undefined ? {} : { advice: redact(advice) };
}

/** A person has to open this link, so it belongs into the evidence. */
function linkOf(data: JsonValue): string | null {
  const url = elicitationsIn(data)[0]?.['url'];
  return typeof url === 'string' ? url : null;
}

function elicitationsIn(data: JsonValue): readonly JsonObject[] {
  const asked = isObject(data) ? data['elicitations'] : undefined;
  return Array.isArray(asked) ? (asked as readonly JsonValue[]).filter(isObject) : [];
}

/** A reply without end or measure breaks the contract: asking again brings the same. */
export function lostBy(fault: HttpFault): RpcOutcome {
  const isTooLarge = fault.reason === 'tooLarge';
  return { kind: 'lost', detail: fault.message, isContractBreach: isTooLarge, isTooLarge };
}

export function lost(detail: string): RpcOutcome {
  return { kind: 'lost', detail, isContractBreach: false };
}
