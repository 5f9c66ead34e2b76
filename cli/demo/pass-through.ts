/**
 * Owns: an HTTP pass-through before a streamable-HTTP MCP server that counts what crosses it and plays faults on
 * request. Must never alter a byte, invent an HTTP answer or hold a chunk back unless a fault was asked for.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { createExchange } from './exchange.js';
import { createFaults, type PassThroughFaults } from './pass-through-faults.js';
import { createLedger, type PassThroughCounts, type PassThroughEntry } from './pass-through-ledger.js';
import { readMessages, type WireMessage } from './wire-messages.js';

export interface PassThroughOptions {
  /** The server's MCP endpoint. */
  readonly targetUrl: string;
  /** Default: any free port. */
  readonly port?: number;
}

export interface PassThrough {
  /** The same path as the target's, on 127.0.0.1. */
  readonly url: string;
  /** Requests seen so far. */
  counts(): PassThroughCounts;
  readonly log: readonly PassThroughEntry[];
  readonly faults: PassThroughFaults;
  /** Resolves when `count` requests of that method were seen, since the start. Rejects when stopped before. */
  waitFor(method: string, count: number): Promise<void>;
  /** The same for complete replies, delivered or not: of the server, or played here. */
  waitForReplies(method: string, count: number): Promise<void>;
  /** Cuts all connections. */
  stop(): Promise<void>;
}

export async function startPassThrough(options: PassThroughOptions): Promise<PassThrough> {
  const target = new URL(options.targetUrl);
  const ledger = createLedger();
  const faults = createFaults();
  const upstreams = new Set<{ destroy(): void }>();

  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch(() => outgoing.destroy());
  });

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    // A request body of MCP is one JSON value: nobody can act on a part of it, so it is read whole.
    const body = await buffer(incoming);
    const messages = incoming.method === 'POST' ? readMessages(body) : [bareMessage(incoming)];
    const line = ledger.open(messages);
    await faults.play(createExchange({ target, incoming, outgoing, body, messages, line, upstreams }));
  }

  // Closing an idle connection could cross the next request on it. (Nor do we ask for one connection each: fetch takes
  // a cut reply for a complete one where it was told that the connection closes.)
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The pass-through has no port.');

  let stopping: Promise<void> | undefined;
  async function stopOnce(): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    for (const upstream of upstreams) upstream.destroy();
    faults.close();
    ledger.close();
    await closed;
  }
  return {
    url: `http://127.0.0.1:${address.port}${target.pathname}${target.search}`,
    counts: ledger.counts,
    log: ledger.log,
    faults,
    waitFor: ledger.waitFor,
    waitForReplies: ledger.waitForReplies,
    stop: () => (stopping ??= stopOnce()),
  };
}

function bareMessage(incoming: IncomingMessage): WireMessage {
  return { method: incoming.method ?? 'GET', jsonRpcId: null, params: {} };
}
