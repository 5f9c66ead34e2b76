// Owns bare HTTP to an MCP endpoint, and what came over the wire, byte for byte, whole or not.
// Must never repair, repeat or interpret: a reply that was cut is a cut reply.

import http from 'node:http';
import { isObject, type JsonObject, type JsonValue } from './json.js';

export interface RawReply {
  /** null: the connection ended without a status line. */
  readonly status: number | null;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  /** The body came to its end as HTTP says. */
  readonly isWhole: boolean;
  /** ECONNRESET only where the peer reset the connection; one that it closed in order is `socket hang up` or `aborted`. */
  readonly errorCode: string | null;
}

export interface RawRequest {
  readonly method?: 'POST' | 'GET' | 'DELETE';
  readonly sessionId?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: JsonValue;
  /** Hangs up once the text received so far fits. */
  readonly hangUpWhen?: (text: string) => boolean;
}

export function exchange(url: string, request: RawRequest): Promise<RawReply> {
  return new Promise((resolve) => {
    const sessionId = request.sessionId ?? null;
    const outgoing = http.request(url, {
      method: request.method ?? 'POST',
      agent: false,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(sessionId === null ? {} : { 'mcp-session-id': sessionId }),
        ...request.headers,
      },
    });
    let status: number | null = null;
    let headers: http.IncomingHttpHeaders = {};
    let text = '';
    let isWhole = false;
    let errorCode: string | null = null;
    const noteError = (error: NodeJS.ErrnoException): void => {
      // Node gives the code ECONNRESET to a close in order too; only a failed system call is a reset.
      errorCode ??= error.syscall === undefined ? error.message : (error.code ?? null);
    };
    outgoing.on('error', noteError);
    outgoing.on('response', (incoming) => {
      status = incoming.statusCode ?? null;
      headers = incoming.headers;
      incoming.setEncoding('utf8');
      incoming.on('data', (chunk: string) => {
        text += chunk;
        if (request.hangUpWhen?.(text)) outgoing.destroy();
      });
      incoming.on('end', () => (isWhole = incoming.complete));
      incoming.on('error', noteError);
    });
    outgoing.on('close', () => resolve({ status, headers, text, isWhole, errorCode }));
    outgoing.end(request.body === undefined ? undefined : JSON.stringify(request.body));
  });
}

/** The JSON-RPC messages of a reply, as JSON or as SSE; what cannot be read is left out. */
export function messagesOf(reply: RawReply): readonly JsonObject[] {
  if (!reply.headers['content-type']?.startsWith('text/event-stream')) return parse(reply.text);
  // Only events that were closed by a blank line.
  const events = reply.text.split('\n\n').slice(0, -1);
  return events.flatMap((event) => parse(/^data: (.*)$/m.exec(event)?.[1] ?? ''));
}

export function eventIdsOf(reply: RawReply): readonly string[] {
  return [...reply.text.matchAll(/^id: (.*)$/gm)].map((match) => match[1] ?? '');
}

function parse(text: string): readonly JsonObject[] {
  try {
    const value = JSON.parse(text) as JsonValue;
    return isObject(value) ? [value] : [];
  } catch {
    return [];
  }
}

/** One session, as a test speaks in it. */
export class RawSession {
  readonly url: string;
  readonly sessionId: string;
  private ids = 0;

  private constructor(url: string, sessionId: string) {
    this.url = url;
    this.sessionId = sessionId;
  }

  static async open(url: string): Promise<RawSession> {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: { elicitation: { form: {} }, tasks: {} },
      clientInfo: { name: 'raw', version: '0' },
    };
    const body = { jsonrpc: '2.0', id: 'open', method: 'initialize', params };
    const reply = await exchange(url, { body });
    const session = new RawSession(url, String(reply.headers['mcp-session-id']));
    await session.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return session;
  }

  send(body: JsonObject): Promise<RawReply> {
    return exchange(this.url, { sessionId: this.sessionId, body });
  }

  raw(method: string, params: JsonObject, more: RawRequest = {}): Promise<RawReply> {
    const body = { jsonrpc: '2.0', id: ++this.ids, method, params };
    return exchange(this.url, { sessionId: this.sessionId, body, ...more });
  }

  resume(lastEventId: string, more: RawRequest = {}): Promise<RawReply> {
    const headers = { 'last-event-id': lastEventId };
    return exchange(this.url, { method: 'GET', sessionId: this.sessionId, headers, ...more });
  }

  /** The JSON-RPC reply's `result` or `error`; undefined where none came. */
  async ask(
    method: string,
    params: JsonObject,
  ): Promise<Readonly<Record<string, JsonValue | undefined>> | undefined> {
    const reply = messagesOf(await this.raw(method, params)).find(
      (message) => 'result' in message || 'error' in message,
    );
    return (reply?.['result'] ?? reply?.['error']) as JsonObject | undefined;
  }

  call(args: JsonObject, more: JsonObject = {}): Promise<RawReply> {
    return this.raw('tools/call', { name: 'work', arguments: args, task: { ttl: 60_000 }, ...more });
  }

  /** Creates a task and gives its id. */
  async createTask(args: JsonObject): Promise<string> {
    const [message] = messagesOf(await this.call(args));
    const result = message?.['result'];
    const task = isObject(result) ? result['task'] : undefined;
    const taskId = isObject(task) ? task['taskId'] : undefined;
    if (typeof taskId !== 'string') throw new Error(`no task was created: ${JSON.stringify(message)}`);
    return taskId;
  }

  async status(taskId: string): Promise<JsonValue | undefined> {
    return (await this.ask('tasks/get', { taskId }))?.['status'];
  }

  async untilStatus(taskId: string, status: string): Promise<void> {
    while ((await this.status(taskId)) !== status) await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** MCP 2026-07-28: no session, so each request says all of itself. */
export class RawModern {
  readonly url: string;
  private ids = 0;

  constructor(url: string) {
    this.url = url;
  }

  raw(method: string, params: JsonObject, more: RawRequest = {}): Promise<RawReply> {
    const name = params['name'] ?? params['taskId'];
    const headers = {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
      ...more.headers,
    };
    const body = { jsonrpc: '2.0', id: ++this.ids, method, params: { _meta: MODERN_META, ...params } };
    return exchange(this.url, { body, ...more, headers });
  }

  /** The JSON-RPC reply's `result` or `error`; undefined where none came. */
  async ask(method: string, params: JsonObject, more: RawRequest = {}): Promise<JsonObject | undefined> {
    const [reply] = messagesOf(await this.raw(method, params, more));
    return (reply?.['result'] ?? reply?.['error']) as JsonObject | undefined;
  }

  call(args: JsonObject, more: JsonObject = {}): Promise<RawReply> {
    return this.raw('tools/call', { name: 'work', arguments: args, ...more });
  }

  /** Creates a task and gives its id. */
  async createTask(args: JsonObject): Promise<string> {
    const created = await this.ask('tools/call', { name: 'work', arguments: args });
    const taskId = created?.['taskId'];
    if (typeof taskId !== 'string') throw new Error(`no task was created: ${JSON.stringify(created)}`);
    return taskId;
  }

  status(taskId: string): Promise<JsonObject | undefined> {
    return this.ask('tasks/get', { taskId });
  }

  async untilStatus(taskId: string, status: string): Promise<JsonObject> {
    for (;;) {
      const seen = await this.status(taskId);
      if (seen?.['status'] === status) return seen;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

export const MODERN_META: JsonObject = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '0' },
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: { form: {} },
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
};
