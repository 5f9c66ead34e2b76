// Owns an HTTP server whose every reply the test writes, byte by byte if need be, and a log of what it was sent.
// Must never answer by itself what a test did not script: an unscripted request is a 599.

import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SubmitHooks, ToolCall, ToolServer } from '../../protocols/adapter.js';

export interface SeenRequest {
  readonly httpMethod: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: {
    id?: string;
    method?: string;
    params?: Record<string, unknown>;
    result?: unknown;
    error?: unknown;
  };
}

export type Script = (seen: SeenRequest, response: http.ServerResponse) => void | Promise<void>;

export class ScriptedServer {
  readonly seen: SeenRequest[] = [];
  script: Script = (_, response) => void response.writeHead(599).end();
  private readonly server: http.Server;
  private waiters: (() => void)[] = [];

  constructor() {
    this.server = http.createServer((request, response) => void this.serve(request, response));
  }

  static async start(): Promise<ScriptedServer> {
    const scripted = new ScriptedServer();
    scripted.server.listen(0, '127.0.0.1');
    await once(scripted.server, 'listening');
    return scripted;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/mcp`;
  }

  /** Requests of one JSON-RPC method, in order of arrival. */
  sent(method: string): readonly SeenRequest[] {
    return this.seen.filter((request) => request.body.method === method);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  private async serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text === '' ? {} : (JSON.parse(text) as SeenRequest['body']);
    const { method = '', url = '', headers } = request;
    const seen = { httpMethod: method, path: url, headers, body };
    this.seen.push(seen);
    await this.script(seen, response);
    for (const wake of this.waiters.splice(0)) wake();
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}

export function sendJson(response: http.ServerResponse, status: number, value: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
}

export function sendResult(response: http.ServerResponse, seen: SeenRequest, result: unknown): void {
  sendJson(response, 200, { jsonrpc: '2.0', id: seen.body.id, result });
}

export function sendError(
  response: http.ServerResponse,
  seen: SeenRequest,
  code: number,
  status = 200,
): void {
  sendJson(response, status, { jsonrpc: '2.0', id: seen.body.id, error: { code, message: 'scripted' } });
}

export function openStream(response: http.ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
}

export function eventOf(message: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}data: ${message === '' ? '' : JSON.stringify(message)}\n\n`;
}

export function toolServer(url: string, more: Partial<ToolServer> = {}): ToolServer {
  const defaults = {
    headers: {},
    protocol: 'auto',
    maxPollsPerSecond: 100,
    trustAnnotations: false,
  } as const;
  return { name: 'scripted', url, ...defaults, ...more };
}

export function toolCall(server: ToolServer, more: Partial<ToolCall> = {}): ToolCall {
  return {
    server,
    tool: 'report',
    arguments: { topic: 'x' },
    submissionKey: 'dtc-key',
    submissionPolicy: 'at-most-once',
    keyName: null,
    synchronousBoundMs: 5_000,
    ...more,
  };
}

export const SESSION = {
  sessionId: 'session-1',
  protocolVersion: '2025-11-25',
  canList: true,
  canCancel: true,
  canReplay: true,
  listWasEmpty: true,
};

export const NO_HOOKS: SubmitHooks = {
  afterSend: async () => undefined,
  onProgress: () => undefined,
};

export function taskJson(status: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const times = { createdAt: '2026-01-01T00:00:00.000Z', lastUpdatedAt: '2026-01-01T00:00:00.000Z' };
  return { taskId: 'task-1', status, ttl: 60_000, pollInterval: 1_500, ...times, ...more };
}
