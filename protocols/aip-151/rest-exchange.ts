// Owns one JSON request to an AIP-151 server and what came back, keeping the exact bytes received.
// Must never decide what a reply means, follow a redirect, or put a header or a body into a text.

import { isUtf8 } from 'node:buffer';
import { LIMITS } from '../../operation/limits.js';
import type { ToolServer } from '../adapter.js';
import { Gatherer } from '../gather.js';
import { authorizedExchange, type Purpose } from '../authorized-exchange.js';
import { HttpFault, type HttpReply } from '../http.js';
import { membersOf, parseJson } from '../json-members.js';
import { JsonSliceError } from '../json-slice.js';
import { type Redact, redactorOf } from '../redact.js';
import { errorBodyOf, NO_ERROR_BODY } from './decode.js';
import type { RestRequest } from './encode.js';

export type RestOutcome =
  | {
      /** 2xx with one JSON object. */
      readonly kind: 'object';
      readonly status: number;
      /** Whole JSON of an object, its depth bounded; values are made only of the members that somebody asks for. */
      readonly bytes: Uint8Array;
      readonly retryAfterMs: number | null;
      /** The server's own clock, where it told it. */
      readonly serverNowMs: number | null;
    }
  | {
      readonly kind: 'error';
      readonly status: number;
      /** A word of google.rpc.Code; null where the body has none. */
      readonly word: string | null;
      readonly message: string;
      readonly retryAfterMs: number | null;
      /** What a person can do about a refused credential. */
      readonly advice?: string;
    }
  /** 2xx without one whole JSON object. */
  | { readonly kind: 'garbled'; readonly status: number; readonly detail: string }
  /** `isTooLarge`: it was larger than what was to be taken of it, and asking again brings the same. */
  | { readonly kind: 'lost'; readonly detail: string; readonly isTooLarge?: boolean }
  | { readonly kind: 'notSent'; readonly detail: string };

export interface ExchangeOptions {
  readonly timeoutMs: number;
  /** The tool whose headers go with the request, where it is still configured. */
  readonly tool: string | null;
  /** Of a success; default: what a reply without a result may need. */
  readonly maxReplyBytes?: number;
  readonly afterSend?: () => Promise<void>;
  /** Default `other`. */
  readonly purpose?: Purpose;
}

/** Never throws for what the server does. An error thrown by `afterSend` passes through as it is. */
export async function exchangeJson(
  server: ToolServer,
  request: RestRequest,
  options: ExchangeOptions,
): Promise<RestOutcome> {
  const { methods } = server;
  const { tool } = options;
  const ofTool = tool !== null && methods && Object.hasOwn(methods, tool) ? methods[tool]?.headers : {};
  let reply: HttpReply;
  try {
    const sent = {
      method: request.verb,
      url: request.url,
      headers: {
        accept: 'application/json',
        ...(request.body === null ? {} : { 'content-type': 'application/json' }),
        ...server.headers,
        ...ofTool,
      },
      body: request.body,
      connectTimeoutMs: LIMITS.connectTimeoutMs,
      totalTimeoutMs: options.timeoutMs,
      maxReplyBytes: maxReplyBytesOf(options),
      afterSend: options.afterSend,
    };
    reply = await authorizedExchange(server, sent, options.purpose ?? 'other');
  } catch (error) {
    if (!(error instanceof HttpFault)) throw error;
    return { kind: error.isSent ? 'lost' : 'notSent', detail: error.message };
  }
  try {
    return isSuccess(reply)
      ? await readSuccess(reply, maxReplyBytesOf(options))
      : await readRefusal(reply, redactorOf(server));
  } finally {
    reply.close();
  }
}

function maxReplyBytesOf({ maxReplyBytes }: ExchangeOptions): number {
  return maxReplyBytes ?? LIMITS.wireReplyBytes;
}

function isSuccess({ status }: HttpReply): boolean {
  return status >= 200 && status < 300;
}

async function readSuccess(reply: HttpReply, maxBytes: number): Promise<RestOutcome> {
  const { status, retryAfterMs } = reply;
  let body: Uint8Array;
  try {
    body = await readWhole(reply, maxBytes);
  } catch (error) {
    if (!(error instanceof HttpFault)) throw error;
    const isTooLarge = error.reason === 'tooLarge';
    return { kind: 'lost', detail: error.message, ...(isTooLarge ? { isTooLarge } : {}) };
  }
  const bytes = objectIn(body);
  if (bytes === null) return { kind: 'garbled', status, detail: 'the reply is not one JSON object' };
  const serverNowMs = Date.parse(reply.header('date') ?? '');
  return {
    kind: 'object',
    status,
    bytes,
    retryAfterMs,
    serverNowMs: Number.isFinite(serverNowMs) ? serverNowMs : null,
  };
}

/** The status alone says enough of a refusal whose body broke off, or has no end. */
async function readRefusal(reply: HttpReply, redact: Redact): Promise<RestOutcome> {
  const { status } = reply;
  const body = await readWhole(reply, LIMITS.wireReplyBytes).catch((error: unknown) => {
    if (error instanceof HttpFault || error instanceof RangeError) return null;
    throw error;
  });
  const bytes = body && objectIn(body);
  const { word, message, retryDelayMs } = bytes ? errorBodyOf(parseJson(bytes)) : NO_ERROR_BODY;
  const delaysMs = [reply.retryAfterMs, retryDelayMs].filter((delayMs) => delayMs !== null);
  const retryAfterMs = delaysMs.length === 0 ? null : Math.max(...delaysMs);
  const advice = reply.advice === undefined ? {} : { advice: redact(reply.advice) };
  return { kind: 'error', status, word, message: redact(message), retryAfterMs, ...advice };
}

/** @throws HttpFault; RangeError past `maxBytes`, where the exchange would take more */
async function readWhole(reply: HttpReply, maxBytes: number): Promise<Uint8Array> {
  const whole = new Gatherer(maxBytes);
  for await (const chunk of reply.body) whole.add(chunk);
  return whole.take();
}

/** From the object's first byte on, or null where there is no whole one. */
function objectIn(body: Uint8Array): Uint8Array | null {
  const start = body.findIndex((byte) => !SPACE.includes(byte));
  const bytes = start > 0 ? body.subarray(start) : body;
  try {
    // The scanner runs first: it bounds the depth before anything recursive may look at the text.
    return membersOf(bytes) !== null && isUtf8(bytes) ? bytes : null;
  } catch (error) {
    if (error instanceof JsonSliceError) return null;
    throw error;
  }
}

const SPACE: readonly number[] = [0x20, 0x09, 0x0a, 0x0d];
