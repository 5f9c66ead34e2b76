/**
 * Owns: one HTTP request and its reply on their way through: forwarding, streaming, and the few things that a fault
 * may do to them. Must never decide which fault plays.
 */
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { LedgerLine } from './pass-through-ledger.js';
import type { WireMessage } from './wire-messages.js';

export interface WholeReply {
  readonly httpStatus: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: Buffer;
}

/** One HTTP request and its reply, as the pass-through offers it to a fault. */
export interface Exchange {
  readonly messages: readonly WireMessage[];
  /** Forwards, and streams the reply back. A client that leaves takes the forwarded request with it. */
  stream(): Promise<void>;
  /** The same, but the server gets to finish even if the client leaves. */
  streamRegardless(): Promise<void>;
  /** Forwards, and gives the whole reply, whether or not the client stays; null where the server gave none. */
  collect(): Promise<WholeReply | null>;
  /** Sends what `collect` gave. */
  send(reply: WholeReply): Promise<void>;
  /** Sends the head and the first half of the body, then closes the client's socket. */
  sendHalf(reply: WholeReply): Promise<void>;
  /** Sends a reply that no server gave, and counts it as one. */
  sendPlayed(reply: WholeReply): Promise<void>;
  /** Closes the client's socket. */
  hangUp(): void;
}

export interface ExchangeParts {
  readonly target: URL;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly body: Buffer;
  readonly messages: readonly WireMessage[];
  readonly line: LedgerLine;
  readonly upstreams: Set<{ destroy(): void }>;
}

export function createExchange(parts: ExchangeParts): Exchange {
  const { outgoing, line, messages } = parts;
  return {
    messages,
    hangUp: () => outgoing.destroy(),

    async stream() {
      const gone = new AbortController();
      outgoing.once('close', () => gone.abort());
      try {
        const reply = await forward(parts, gone.signal);
        sendHead(parts, reply);
        await pipeline(reply, outgoing);
        line.replyEnded();
      } catch {
        // The server is gone, or broke off: so do we, without words of our own.
        outgoing.destroy();
      }
    },

    async streamRegardless() {
      try {
        const reply = await forward(parts);
        sendHead(parts, reply);
        for await (const chunk of reply) {
          if (!outgoing.destroyed) outgoing.write(chunk);
        }
        line.replyEnded();
        outgoing.end();
      } catch {
        outgoing.destroy();
      }
    },

    async collect() {
      try {
        const reply = await forward(parts);
        const body = await buffer(reply);
        line.replyEnded();
        return { httpStatus: reply.statusCode ?? 502, headers: withoutHops(reply.headers), body };
      } catch {
        return null;
      }
    },

    send: (reply) => write(parts, reply, reply.body.length),

    async sendHalf(reply) {
      await write(parts, reply, Math.floor(reply.body.length / 2));
      outgoing.destroy();
    },

    async sendPlayed(reply) {
      line.replyBegan(reply.httpStatus);
      line.replyEnded();
      await write(parts, reply, reply.body.length);
    },
  };
}

/** Each belongs to one connection, and each side of us has its own. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Sends the request on and gives the head of the reply. Rejects when there is none. */
function forward(parts: ExchangeParts, signal?: AbortSignal): Promise<IncomingMessage> {
  const { target, incoming, body, line, upstreams } = parts;
  const send = target.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const upstream = send({
      protocol: target.protocol,
      hostname: target.hostname,
      port: target.port,
      path: incoming.url,
      method: incoming.method,
      headers: toServer(incoming, target, body),
      // A fresh socket each time: a kept one may be closed by the server just when it is used again.
      agent: false,
      ...(signal && { signal }),
    });
    upstreams.add(upstream);
    upstream.once('close', () => upstreams.delete(upstream));
    upstream.on('error', reject);
    upstream.once('response', (reply) => {
      line.replyBegan(reply.statusCode ?? 0);
      resolve(reply);
    });
    upstream.end(body);
  });
}

function sendHead({ outgoing }: ExchangeParts, reply: IncomingMessage): void {
  if (outgoing.destroyed) return;
  outgoing.writeHead(reply.statusCode ?? 502, reply.statusMessage, withoutHops(reply.headers));
  // The head of an event stream may be all that comes for minutes.
  outgoing.flushHeaders();
}

/** `sizeBytes` of the reply's body; fewer than it has look to the client like a connection that broke. */
function write(parts: ExchangeParts, reply: WholeReply, sizeBytes: number): Promise<void> {
  const { outgoing } = parts;
  return new Promise((resolve) => {
    outgoing.once('close', resolve);
    if (outgoing.destroyed) return resolve();
    outgoing.writeHead(reply.httpStatus, reply.headers);
    if (sizeBytes === reply.body.length) outgoing.end(reply.body, resolve);
    // Resolves when the bytes are with the system; a hang-up then comes after them.
    else outgoing.write(reply.body.subarray(0, sizeBytes), () => resolve());
  });
}

function toServer(incoming: IncomingMessage, target: URL, body: Buffer): Record<string, string | string[]> {
  const headers = withoutHops(incoming.headers);
  headers['host'] = target.host;
  if (body.length > 0) headers['content-length'] = `${body.length}`;
  return headers;
}

function withoutHops(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !HOP_BY_HOP.includes(name)) kept[name] = value;
  }
  return kept;
}
