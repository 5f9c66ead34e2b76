// Owns what a channel is, and the one over streamable HTTP: requests, replies as JSON or SSE, resuming a broken stream.
// Must never send a request twice, judge what a reply means for the operation, or leave a server's request hanging.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { backOffMs, clip } from '../../operation/policy.js';
import { LIMITS } from '../../operation/limits.js';
import type { JsonObject } from '../../operation/json.js';
import type { ToolServer } from '../adapter.js';
import { authorizedExchange, type Purpose } from '../authorized-exchange.js';
import { HttpFault, type HttpReply } from '../http.js';
import { redactorOf, type Redact } from '../redact.js';
import { eventStreamOf } from './event-stream.js';
import { readMessage, type RpcId, type RpcMessage } from './json-rpc.js';
import {
  bareStatus,
  cleanOutcome,
  lost,
  lostBy,
  outcomeOf,
  readJsonReply,
  type RpcOutcome,
} from './rpc-outcome.js';
import { COUNTS, PACE } from './pace.js';

/** A request or notification of the server, met on the way to our reply. */
export type ServerMessage = Extract<RpcMessage, { kind: 'request' | 'notification' }>;

/**
 * `taken`: somebody will answer it; `stopSoon`: likewise, and end after a short silence; `refused`: answer that nobody
 * can; `ignored`: the channel does what is right for its method.
 */
export type MessageVerdict = 'ignored' | 'refused' | 'taken' | 'stopSoon';

export interface ListenOptions {
  readonly timeoutMs: number;
  /** Of all that comes in reply; default: what a message without a result may need. */
  readonly maxReplyBytes?: number;
  readonly onMessage?: (message: ServerMessage, eventId: string | null) => Promise<MessageVerdict>;
}

export interface RequestOptions extends ListenOptions {
  readonly afterSend?: (() => Promise<void>) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Headers of this request alone. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default `other`. */
  readonly purpose?: Purpose;
  /** Default true: a stream that breaks is resumed where it carried event ids. */
  readonly isResumable?: boolean;
}

export interface ChannelSession {
  readonly sessionId: string | null;
  readonly protocolVersion: string | null;
}

/** Where a stream stands: the last event id seen, and whether the reply came with a priming event (SEP-1699). */
interface Cursor {
  lastEventId: string | null;
  retryMs: number | null;
  stopAfterQuietMs: number | null;
  hasForeignReply: boolean;
}

/** JSON-RPC with one server in one session, whatever carries it. */
export interface RpcChannel {
  /** For the server's texts inside a result or a message; the other outcomes went through it already. */
  readonly redact: Redact;
  /** True once any reply on this channel began with an event that carries an id and no data. */
  readonly hasPrimingEvents: boolean;
  /** All operations of this worker hear the same stream; what is meant for one must name it. */
  readonly isShared: boolean;
  request(method: string, params: JsonObject, options: RequestOptions): Promise<RpcOutcome>;
  /** A notification, or a response to the server's request: anything that has no reply of its own. */
  post(message: JsonObject, options: RequestOptions): Promise<RpcOutcome>;
  /** Opens `method` only to learn where its stream can be resumed from; the stream is dropped at once. */
  firstEventId(method: string, params: JsonObject, timeoutMs: number): Promise<string | null>;
  /** Replays what came after `lastEventId` until the stream is silent for `quietMs`. */
  replay(lastEventId: string, quietMs: number, options: ListenOptions): Promise<RpcOutcome>;
  /** Ends the session. Never throws. */
  end(timeoutMs: number): Promise<void>;
}

export class HttpChannel implements RpcChannel {
  private readonly server: ToolServer;
  private readonly session: ChannelSession;
  readonly redact: Redact;
  private declines = 0;
  hasPrimingEvents = false;
  readonly isShared = false;

  constructor(server: ToolServer, session: ChannelSession) {
    this.server = server;
    this.session = session;
    this.redact = redactorOf(server);
  }

  async request(method: string, params: JsonObject, options: RequestOptions): Promise<RpcOutcome> {
    // Two processes that use one id in one session hang each other: ids are random, never counted.
    const id = randomUUID();
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const deadlineAt = Date.now() + options.timeoutMs;
    let reply: HttpReply;
    try {
      reply = await this.send('POST', body, options);
    } catch (error) {
      if (!(error instanceof HttpFault)) throw error;
      return error.isSent ? lost(error.message) : { kind: 'notSent', detail: error.message };
    }
    try {
      return cleanOutcome(await this.readReply(reply, id, deadlineAt, options), this.redact);
    } finally {
      reply.close();
    }
  }

  async post(message: JsonObject, options: RequestOptions): Promise<RpcOutcome> {
    try {
      const reply = await this.send('POST', JSON.stringify({ jsonrpc: '2.0', ...message }), options);
      try {
        const bare = cleanOutcome(bareStatus(reply), this.redact);
        // A response is taken with 202; a 200 may hold a refusal. A notification has no reply that could be one.
        const mayRefuse = reply.status >= 400 || (reply.status === 200 && 'result' in message);
        if (!mayRefuse) return bare;
        const outcome = await readJsonReply(reply, 'id' in message ? (message['id'] as RpcId) : null);
        return outcome.kind === 'error' ? cleanOutcome(outcome, this.redact) : bare;
      } finally {
        reply.close();
      }
    } catch (error) {
      if (!(error instanceof HttpFault)) throw error;
      return error.isSent ? lost(error.message) : { kind: 'notSent', detail: error.message };
    }
  }

  async firstEventId(method: string, params: JsonObject, timeoutMs: number): Promise<string | null> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params });
    try {
      const reply = await this.send('POST', body, { timeoutMs });
      try {
        if (reply.status !== 200 || reply.contentType !== 'text/event-stream') return null;
        const event = await eventStreamOf(reply.body, LIMITS.wireReplyBytes).next(timeoutMs);
        // Only an event without data may be skipped by a replay; any other would be lost by anchoring on it.
        return typeof event === 'object' && event.data.length === 0 ? event.id : null;
      } finally {
        reply.close();
      }
    } catch {
      return null;
    }
  }

  async replay(lastEventId: string, quietMs: number, options: ListenOptions): Promise<RpcOutcome> {
    const cursor: Cursor = { lastEventId, retryMs: null, stopAfterQuietMs: quietMs, hasForeignReply: false };
    try {
      const reply = await this.send('GET', null, options, lastEventId);
      try {
        if (reply.status !== 200 || reply.contentType !== 'text/event-stream')
          return cleanOutcome(await readJsonReply(reply, null), this.redact);
        const outcome = await this.readEvents(reply, null, cursor, options);
        return outcome === null ? { kind: 'stopped' } : cleanOutcome(outcome, this.redact);
      } finally {
        reply.close();
      }
    } catch (error) {
      if (!(error instanceof HttpFault)) throw error;
      return error.isSent ? lost(error.message) : { kind: 'notSent', detail: error.message };
    }
  }

  async end(timeoutMs: number): Promise<void> {
    if (this.session.sessionId === null) return;
    try {
      (await this.send('DELETE', null, { timeoutMs })).close();
    } catch {
      // Best effort: an abandoned session expires by the server's own clock.
    }
  }

  private send(
    method: 'POST' | 'GET' | 'DELETE',
    body: string | null,
    options: RequestOptions,
    lastEventId?: string,
  ) {
    const own: Record<string, string> = {
      ...options.headers,
      accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
    };
    if (body !== null) own['content-type'] = 'application/json';
    if (this.session.sessionId !== null) own['mcp-session-id'] = this.session.sessionId;
    if (this.session.protocolVersion !== null) own['mcp-protocol-version'] = this.session.protocolVersion;
    if (lastEventId !== undefined) own['last-event-id'] = lastEventId;
    const configured = Object.entries(this.server.headers).filter(([name]) => !(name.toLowerCase() in own));
    const request = {
      method,
      url: this.server.url,
      headers: { ...Object.fromEntries(configured), ...own },
      body,
      connectTimeoutMs: Math.min(LIMITS.connectTimeoutMs, options.timeoutMs),
      totalTimeoutMs: options.timeoutMs,
      maxReplyBytes: maxReplyBytesOf(options),
      signal: options.signal,
      afterSend: options.afterSend,
    };
    return authorizedExchange(this.server, request, options.purpose ?? 'other');
  }

  private async readReply(
    reply: HttpReply,
    id: string,
    deadlineAt: number,
    options: RequestOptions,
  ): Promise<RpcOutcome> {
    if (reply.status !== 200 || reply.contentType !== 'text/event-stream')
      return readJsonReply(reply, id, maxReplyBytesOf(options));
    const cursor: Cursor = {
      lastEventId: null,
      retryMs: null,
      stopAfterQuietMs: null,
      hasForeignReply: false,
    };
    const outcome = await this.readEventsSafely(reply, id, cursor, options);
    const isResumable = options.isResumable !== false && cursor.lastEventId !== null;
    if (outcome.kind !== 'lost' || outcome.isTooLarge || !isResumable) return outcome;
    return (await this.resume(id, cursor, deadlineAt, options)) ?? outcome;
  }

  /**
   * The stream ended before the reply. Where it carried event ids the reply can be had by GET (2025-11-25,
   * "resumability"): nothing is sent again, so a lost reply need not become an ambiguous one.
   */
  private async resume(
    id: string,
    cursor: Cursor,
    deadlineAt: number,
    options: RequestOptions,
  ): Promise<RpcOutcome | null> {
    let failures = 0;
    for (let attempt = 1; failures < COUNTS.resumeFailures; attempt += 1) {
      const backOff = backOffMs(PACE.resumeDelayMs, PACE.resumeDelayCeilingMs, attempt);
      const delayMs = Math.max(backOff, Math.min(cursor.retryMs ?? 0, PACE.resumeDelayCeilingMs));
      const leftMs = deadlineAt - Date.now() - delayMs;
      if (leftMs <= 0 || options.signal?.aborted || cursor.lastEventId === null) return null;
      await pause(delayMs, options.signal);
      const seenId = cursor.lastEventId;
      const outcome = await this.resumeOnce(id, cursor, {
        ...options,
        timeoutMs: leftMs,
        afterSend: undefined,
      });
      if (outcome === 'gone') return null;
      if (outcome === 'failed') failures += 1;
      else if (outcome.kind !== 'lost') return outcome;
      if (cursor.lastEventId !== seenId) attempt = 1;
    }
    return null;
  }

  private async resumeOnce(
    id: string,
    cursor: Cursor,
    options: RequestOptions,
  ): Promise<RpcOutcome | 'failed' | 'gone'> {
    let reply: HttpReply;
    try {
      reply = await this.send('GET', null, options, cursor.lastEventId ?? undefined);
    } catch (error) {
      if (error instanceof HttpFault) return 'failed';
      throw error;
    }
    try {
      if (reply.status >= 500 || reply.status === 409 || reply.status === 429) return 'failed';
      if (reply.status !== 200 || reply.contentType !== 'text/event-stream') return 'gone';
      return await this.readEventsSafely(reply, id, cursor, options, PACE.resumeQuietMs);
    } finally {
      reply.close();
    }
  }

  private async readEventsSafely(
    reply: HttpReply,
    id: string,
    cursor: Cursor,
    options: ListenOptions,
    quietMs: number | null = null,
  ): Promise<RpcOutcome> {
    try {
      const outcome = await this.readEvents(reply, id, cursor, options, quietMs);
      if (outcome) return outcome;
      if (cursor.hasForeignReply)
        return { kind: 'lost', detail: 'the reply is to another request', isContractBreach: true };
      return lost('the stream ended before the reply');
    } catch (error) {
      if (error instanceof HttpFault) return lostBy(error);
      throw error;
    }
  }

  /** Until the reply to `id`, the end of the stream (null), or a silence. */
  private async readEvents(
    reply: HttpReply,
    id: string | null,
    cursor: Cursor,
    options: ListenOptions,
    quietMs: number | null = null,
  ): Promise<RpcOutcome | null> {
    const events = eventStreamOf(reply.body, maxReplyBytesOf(options));
    for (;;) {
      const event = await nextOf(events, cursor.stopAfterQuietMs ?? quietMs);
      cursor.retryMs = events.retryMs ?? cursor.retryMs;
      if (event === 'quiet') return cursor.stopAfterQuietMs === null ? null : { kind: 'stopped' };
      if (event === 'end') return null;
      if (event.id !== null) cursor.lastEventId = event.id;
      if (event.data.length === 0) {
        if (event.id !== null) this.hasPrimingEvents = true;
        continue;
      }
      const message = readMessage(event.data);
      if (message.kind === 'request' || message.kind === 'notification') {
        const verdict = await this.hand(message, event.id, options);
        if (verdict === 'stopSoon') cursor.stopAfterQuietMs = PACE.moreQuestionsMs;
      } else if (id !== null) {
        const outcome = outcomeOf(message, id, reply);
        if (outcome.kind !== 'lost') return outcome;
        if (message.kind === 'garbled') return outcome;
        // A replay may bring replies to other requests of the session.
        cursor.hasForeignReply = true;
      }
    }
  }

  private async hand(
    message: ServerMessage,
    eventId: string | null,
    options: ListenOptions,
  ): Promise<MessageVerdict> {
    const verdict = (await options.onMessage?.(message, eventId)) ?? 'ignored';
    if (message.kind !== 'request') return verdict;
    // A question met in passing is left for the one who picks up questions: refusing it would answer for a person.
    const isLeft = verdict === 'ignored' && message.method === 'elicitation/create';
    if (!isLeft && (verdict === 'ignored' || verdict === 'refused')) this.decline(message);
    return verdict;
  }

  /** Sampling and roots were not declared, ping is answered, and nothing is left hanging. Not awaited: advisory. */
  private decline(message: Extract<ServerMessage, { kind: 'request' }>): void {
    if (this.declines >= COUNTS.declines) return;
    this.declines += 1;
    const answer = answerToStray(message);
    void this.post(answer, { timeoutMs: PACE.declineMs }).catch(() => undefined);
  }
}

/** To a request of the server that nobody here serves. */
export function answerToStray({
  id,
  method,
  params,
}: Extract<ServerMessage, { kind: 'request' }>): JsonObject {
  if (method === 'ping') return { id, result: {} };
  const { mode } = params;
  const isDeclaredMode = mode === undefined || mode === 'form' || mode === 'url';
  // To ask in a mode that we did not declare is a fault of the parameters (2025-11-25, elicitation, error handling).
  const code = method === 'elicitation/create' && !isDeclaredMode ? -32602 : -32601;
  return { id, error: { code, message: clip(`${method}: not available here`, 200) } };
}

function maxReplyBytesOf({ maxReplyBytes }: ListenOptions): number {
  return maxReplyBytes ?? LIMITS.wireReplyBytes;
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(ms, undefined, signal ? { signal } : {}).catch(() => undefined);
}

async function nextOf(events: ReturnType<typeof eventStreamOf>, quietMs: number | null) {
  try {
    return await events.next(quietMs);
  } catch (error) {
    if (error instanceof HttpFault) throw error;
    // An event id that is no UTF-8.
    throw new HttpFault('cut', true, 'the event stream cannot be read');
  }
}
