// Owns one HTTP exchange on a fresh socket, and the knowledge whether anything of it may have left this machine.
// Must never repeat a request, follow a redirect, answer a 401 by itself, or put a header or a body into an error.

import http from 'node:http';
import https from 'node:https';
import { isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { openTunnel, placeOf, ProxyFault, proxyHeaders, type Route, routeTo } from './proxy.js';

/** Node fires a longer timer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: string;
  /** May hold credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly connectTimeoutMs: number;
  /** From the start until the last byte of the reply is read. */
  readonly totalTimeoutMs: number;
  readonly maxReplyBytes: number;
  readonly signal?: AbortSignal | undefined;
  /** Awaited once the request's last byte was handed to the operating system, before the reply is looked at. */
  readonly afterSend?: (() => Promise<void>) | undefined;
}

export interface HttpReply {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs: number | null;
  /** What a person can do about a refused credential. */
  readonly advice?: string;
  header(name: string): string | null;
  /** The body as it arrives. Iterating throws HttpFault when it is cut, too large, or late. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Drops the connection and its timer. Safe to call more than once. */
  close(): void;
}

export type HttpFaultReason =
  | 'unreachable'
  | 'timeout'
  | 'aborted'
  | 'cut'
  | 'tooLarge'
  | 'encoding'
  | 'badRequest'
  /** No credential could be had, or the server has just refused it as spent: nothing ran. */
  | 'credential';

/** `isSent` false is proof that no byte of the request reached the server. */
export class HttpFault extends Error {
  override readonly name = 'HttpFault';
  readonly reason: HttpFaultReason;
  readonly isSent: boolean;

  constructor(reason: HttpFaultReason, isSent: boolean, message: string) {
    super(message);
    this.reason = reason;
    this.isSent = isSent;
  }
}

/** @throws HttpFault; an error thrown by `afterSend` passes through as it is. */
export async function exchange(request: HttpRequest): Promise<HttpReply> {
  if (request.signal?.aborted) throw new HttpFault('aborted', false, 'aborted before it was sent');
  const line = new Line(request, await wayTo(request));
  try {
    await line.flushed;
    await request.afterSend?.();
    return replyOf(request, line, await line.response);
  } catch (error) {
    line.close();
    throw error;
  }
}

/** How the first byte gets to the server, or to the proxy that passes the request on. */
interface Way {
  readonly url: URL;
  readonly route: Route;
  readonly tunnel: Duplex | null;
}

/** @throws HttpFault; nothing of the request has left. */
async function wayTo(request: HttpRequest): Promise<Way> {
  if (!URL.canParse(request.url))
    throw new HttpFault('badRequest', false, 'the request cannot be built: ERR_INVALID_URL');
  const url = new URL(request.url);
  try {
    const route = routeTo(url);
    const { connectTimeoutMs: timeoutMs, signal } = request;
    const tunnel = route.kind === 'tunnel' ? await openTunnel(route.proxy, url, { timeoutMs, signal }) : null;
    return { url, route, tunnel };
  } catch (error) {
    if (error instanceof ProxyFault) throw new HttpFault('unreachable', false, error.message);
    throw error;
  }
}

/** The socket's life: what was proved about it, and the one fault that ended it. */
class Line {
  readonly flushed: Promise<void>;
  readonly response: Promise<http.IncomingMessage>;
  fault: HttpFault | null = null;
  private isConnected = false;
  private readonly clientRequest: http.ClientRequest;
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly onAbort = (): void => this.fail('aborted', 'aborted');
  private readonly signal: AbortSignal | undefined;

  constructor(request: HttpRequest, way: Way) {
    this.clientRequest = openRequest(request, way);
    this.signal = request.signal;
    // To the next hop: a proxy that gets the whole request has got it, whatever becomes of it there.
    const isTls = (way.route.kind === 'forward' ? way.route.proxy : way.url).protocol === 'https:';
    this.response = new Promise((resolve, reject) => {
      this.clientRequest.on('response', resolve);
      this.clientRequest.on('error', (error) => {
        this.fail(this.isConnected ? 'cut' : 'unreachable', codeOf(error));
        reject(this.fault as HttpFault);
      });
      this.clientRequest.on('close', () =>
        reject(this.fault ?? this.faultOf('cut', 'closed without a reply')),
      );
    });
    // A server may answer, or hang up, before it has read everything: either ends the wait for the flush.
    this.flushed = Promise.race([
      new Promise<void>((resolve) => this.clientRequest.on('finish', resolve)),
      this.response.then(() => undefined),
    ]);
    this.response.catch(() => undefined);
    this.flushed.catch(() => undefined);
    const connectTimer = setTimeout(
      () => this.fail('timeout', `no connection within ${request.connectTimeoutMs} ms`),
      request.connectTimeoutMs,
    );
    this.timers.push(connectTimer);
    this.timers.push(
      setTimeout(
        () => this.fail('timeout', `no complete reply within ${request.totalTimeoutMs} ms`),
        Math.min(request.totalTimeoutMs, LONGEST_TIMER_MS),
      ),
    );
    this.clientRequest.on('socket', (socket: Socket) => {
      // Until this event the request's bytes wait in our process; TLS sends them only after its handshake.
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        this.isConnected = true;
        clearTimeout(connectTimer);
      });
    });
    this.signal?.addEventListener('abort', this.onAbort, { once: true });
    this.clientRequest.end(request.body ?? undefined);
  }

  faultOf(reason: HttpFaultReason, detail: string): HttpFault {
    return new HttpFault(
      reason,
      this.isConnected,
      `${this.isConnected ? 'after' : 'before'} sending: ${detail}`,
    );
  }

  fail(reason: HttpFaultReason, detail: string): void {
    this.fault ??= this.faultOf(reason, detail);
    this.close();
  }

  close(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.signal?.removeEventListener('abort', this.onAbort);
    this.clientRequest.destroy();
  }
}

function openRequest(request: HttpRequest, way: Way): http.ClientRequest {
  const body = request.body === null ? null : Buffer.byteLength(request.body);
  const options: RequestHead = {
    method: request.method,
    // `agent: false`: a pooled socket may be closing under us, and Node then cannot say whether bytes were read.
    agent: false,
    headers: {
      ...request.headers,
      'accept-encoding': 'identity',
      ...(body === null ? {} : { 'content-length': String(body) }),
    },
  };
  try {
    return requestOn(way, options);
  } catch (error) {
    way.tunnel?.destroy();
    // Bad URL or header characters. Node names the header, never its value.
    throw new HttpFault('badRequest', false, `the request cannot be built: ${codeOf(error)}`);
  }
}

interface RequestHead {
  readonly method: string;
  readonly agent: false;
  readonly headers: Readonly<Record<string, string>>;
}

function requestOn({ url, route, tunnel }: Way, options: RequestHead): http.ClientRequest {
  if (route.kind === 'forward') {
    const client = route.proxy.protocol === 'https:' ? https : http;
    const headers = { ...options.headers, host: url.host, ...proxyHeaders(route.proxy) };
    const path = `${url.origin}${url.pathname}${url.search}`;
    return client.request({ ...options, ...placeOf(route.proxy), path, headers });
  }
  if (tunnel === null) return (url.protocol === 'https:' ? https : http).request(url, options);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const servername = isIP(host) === 0 ? host : '';
  const { agent: _, ...onTunnel } = options;
  return https.request(url, {
    ...onTunnel,
    createConnection: () => connectTls({ socket: tunnel, host, servername }),
  });
}

function replyOf(request: HttpRequest, line: Line, response: http.IncomingMessage): HttpReply {
  const header = (name: string): string | null => {
    const value = response.headers[name];
    return typeof value === 'string' ? value : (value?.[0] ?? null);
  };
  const encoding = header('content-encoding');
  if (encoding !== null && encoding.toLowerCase() !== 'identity') {
    throw new HttpFault('encoding', true, 'the reply is compressed although identity was asked for');
  }
  return {
    status: response.statusCode ?? 0,
    contentType: (header('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '',
    retryAfterMs: retryAfterMsOf(header('retry-after'), Date.now()),
    header,
    body: readBody(request, line, response),
    close: () => line.close(),
  };
}

async function* readBody(
  request: HttpRequest,
  line: Line,
  response: http.IncomingMessage,
): AsyncGenerator<Uint8Array> {
  let received = 0;
  const declared = Number(response.headers['content-length'] ?? 0);
  try {
    // Not read at all where its length is told.
    if (declared > request.maxReplyBytes) throw tooLarge(`has ${declared} bytes, more than`, request);
    for await (const chunk of response) {
      received += (chunk as Uint8Array).byteLength;
      if (received > request.maxReplyBytes) {
        throw tooLarge('has more than', request);
      }
      yield chunk as Uint8Array;
    }
    if (!response.complete) throw new HttpFault('cut', true, 'the reply was cut');
  } catch (error) {
    if (error instanceof HttpFault) throw error;
    throw line.fault ?? new HttpFault('cut', true, `the reply was cut: ${codeOf(error)}`);
  } finally {
    line.close();
  }
}

function tooLarge(what: string, { maxReplyBytes }: HttpRequest): HttpFault {
  return new HttpFault('tooLarge', true, `the reply ${what} ${maxReplyBytes} bytes`);
}

/** Retry-After (RFC 9110 section 10.2.3) as ms from now, or null. */
export function retryAfterMsOf(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isFinite(at) ? Math.max(0, at - nowMs) : null;
}

/** The error's code only: messages of strangers may quote what we sent. */
function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return error instanceof Error ? error.name : 'unknown error';
}
