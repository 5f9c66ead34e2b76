// Owns streamable HTTP: reading a request whole, finding its contract and its session, handing its message on.
// Must never answer before the journal holds what was received.

import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { once } from 'node:events';
import { takeAnswer } from './answers.js';
import { Calls, type CallDesk } from './calls.js';
import { REDIRECTED_PATH } from './hostile-bytes.js';
import { isObject, type JsonObject, type JsonValue } from './json.js';
import type { Arrival, Journal } from './journal.js';
import { ModernFront } from './mcp-2026-07-28/front.js';
import { greeting, Methods } from './methods.js';
import { finish, Reply } from './replies.js';
import { readStyle, type Session, Sessions, type Style } from './sessions.js';
import { Tasks } from './tasks.js';
import { OK } from './words.js';

export interface FaultServerParts {
  readonly journal: Journal;
  readonly defaultPlan: JsonObject;
}

/** Listens on the loopback address; resolves with the port. */
export async function listen(parts: FaultServerParts, port: number): Promise<number> {
  const desk = new Desk(parts);
  const connectedAt = new WeakMap<Socket, number>();
  const server = http.createServer((request, response) => {
    const arrivedAt = Date.now();
    const session = request.headers['mcp-session-id'];
    const arrival: Arrival = {
      connectedAt: connectedAt.get(request.socket) ?? arrivedAt,
      arrivedAt,
      session: typeof session === 'string' ? session : null,
    };
    // A client may hang up at any time, and so may we: that is what this server is for.
    response.on('error', () => undefined);
    desk.serve(request, response, arrival).catch((error: unknown) => {
      process.stderr.write(
        `fault server: ${error instanceof Error ? (error.stack ?? '') : 'unknown error'}\n`,
      );
      response.destroy();
    });
  });
  server.on('connection', (socket) => connectedAt.set(socket, Date.now()));
  server.keepAliveTimeout = 0;
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

class Desk {
  private readonly journal: Journal;
  private readonly sessions = new Sessions();
  private readonly calls: Calls;
  private readonly methods: Methods;
  private readonly modern: ModernFront;

  constructor({ journal, defaultPlan }: FaultServerParts) {
    const tasks = new Tasks();
    const desk: CallDesk = { journal, sessions: this.sessions, tasks, defaultPlan };
    this.journal = journal;
    this.calls = new Calls(desk);
    this.methods = new Methods(journal, tasks);
    this.modern = new ModernFront(journal, tasks, this.calls);
  }

  async serve(request: http.IncomingMessage, response: http.ServerResponse, arrival: Arrival): Promise<void> {
    const message = readMessage((await buffer(request)).toString('utf8'));
    if (request.url?.startsWith(REDIRECTED_PATH)) {
      this.journal.write({ kind: 'redirectFollowed', method: request.method ?? '' }, arrival);
      response.writeHead(404);
      return finish(response, '');
    }
    const style = readStyle(new URL(request.url ?? '/', 'http://localhost').searchParams);
    if (!style) return refuse(response, 400, -32600, 'the URL asks for an unknown style');
    if (ModernFront.isMeant(style, request))
      return this.modern.serve(request, message, style, response, arrival);
    if (request.method === 'POST' && message?.['method'] === 'initialize') {
      return this.initialize(style, response, message, arrival);
    }
    if (arrival.session === null) return refuse(response, 400, -32000, 'no session id was given');
    const session = this.sessions.find(arrival.session);
    if (session?.goneAs === '400') return refuse(response, 400, -32000, 'no valid session id was given');
    // "MUST respond with HTTP 404" (2025-11-25, session management).
    if (!session || session.goneAs === '404')
      return refuse(response, 404, -32001, 'there is no such session');
    switch (request.method) {
      case 'POST':
        return this.post(message, session, response, arrival);
      case 'GET':
        return this.resume(request, session, response, arrival);
      case 'DELETE':
        this.journal.write({ kind: 'sessionEnded' }, arrival);
        this.sessions.end(session);
        response.writeHead(200);
        return finish(response, '');
      default:
        response.writeHead(405);
        return finish(response, '');
    }
  }

  private async initialize(
    style: Style,
    response: http.ServerResponse,
    message: JsonObject,
    arrival: Arrival,
  ): Promise<void> {
    const session = this.sessions.create(style);
    this.journal.write({ kind: 'sessionOpened' }, { ...arrival, session: session.sessionId });
    const reply = new Reply(response, session, message['id'] ?? null, true);
    await reply.give(greeting(style), OK);
  }

  private async post(
    message: JsonObject | null,
    session: Session,
    response: http.ServerResponse,
    arrival: Arrival,
  ): Promise<void> {
    if (!message) return refuse(response, 400, -32700, 'the body is no JSON object');
    const { method, id } = message;
    const params = isObject(message['params']) ? message['params'] : {};
    if (typeof method === 'string' && id !== undefined) {
      const reply = new Reply(response, session, id);
      if (method === 'tools/call') return this.calls.call(params, session, reply, arrival);
      return this.methods.perform(method, { params, session, reply, arrival });
    }
    if (method === undefined)
      return takeAnswer(message, session, { journal: this.journal, response, arrival });
    response.writeHead(202);
    return finish(response, '');
  }

  private async resume(
    request: http.IncomingMessage,
    session: Session,
    response: http.ServerResponse,
    arrival: Arrival,
  ): Promise<void> {
    const lastEventId = request.headers['last-event-id'];
    if (typeof lastEventId !== 'string') {
      response.writeHead(405);
      return finish(response, '');
    }
    const isKnown = session.streamOf(lastEventId)?.resume(response, lastEventId) ?? false;
    this.journal.write({ kind: 'streamResumed', lastEventId, isKnown }, arrival);
    if (!isKnown) await refuse(response, 400, -32602, 'there is no such event');
  }
}

function readMessage(text: string): JsonObject | null {
  try {
    const value = JSON.parse(text) as JsonValue;
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function refuse(response: http.ServerResponse, status: number, code: number, message: string): Promise<void> {
  response.writeHead(status, { 'content-type': 'application/json' });
  return finish(response, JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }));
}
