// Owns streamable HTTP of MCP 2026-07-28: what a request must say of itself, since no session says it.
// Must never look at what a request wants before its headers, its `_meta` and its body agree.

import type http from 'node:http';
import type { Calls } from '../calls.js';
import { isObject, type JsonObject, type JsonValue } from '../json.js';
import type { Arrival, Journal } from '../journal.js';
import { finish, Reply } from '../replies.js';
import { Session, type Style } from '../sessions.js';
import type { Tasks } from '../tasks.js';
import { OK } from '../words.js';
import { ModernMethods } from './methods.js';
import { declaresTasks, REVISION, UNDECLARED, WIRE_2026 } from './wire.js';

interface Objection {
  readonly code: number;
  readonly message: string;
  readonly data?: JsonObject;
}

export class ModernFront {
  private readonly journal: Journal;
  private readonly calls: Calls;
  private readonly methods: ModernMethods;

  constructor(journal: Journal, tasks: Tasks, calls: Calls) {
    this.journal = journal;
    this.calls = calls;
    this.methods = new ModernMethods(journal, tasks);
  }

  /** Of an endpoint that speaks both contracts, the header tells which one is meant. */
  static isMeant(style: Style, { headers }: http.IncomingMessage): boolean {
    if (style.contract === 'both') return headers['mcp-protocol-version'] === REVISION;
    return style.contract === REVISION;
  }

  async serve(
    { method: httpMethod, headers }: http.IncomingMessage,
    message: JsonObject | null,
    style: Style,
    response: http.ServerResponse,
    arrival: Arrival,
  ): Promise<void> {
    if (httpMethod !== 'POST') {
      // No session to end, and no stream that could be gone on with.
      this.journal.write({ kind: 'requestRefused', method: httpMethod ?? '', code: 405 }, arrival);
      response.writeHead(405);
      return finish(response, '');
    }
    const session = new Session(style, WIRE_2026);
    const reply = new Reply(response, session, message?.['id'] ?? null);
    const method = typeof message?.['method'] === 'string' ? message['method'] : '';
    const objection = message ? objectionTo(message, method, headers) : UNREADABLE;
    if (objection) {
      this.journal.write({ kind: 'requestRefused', method, code: objection.code }, arrival);
      const { code, message: text, data } = objection;
      return reply.give({ error: { code, message: text, ...(data ? { data } : {}) } }, OK);
    }
    if (message?.['id'] === undefined) {
      response.writeHead(202);
      return finish(response, '');
    }
    const params = isObject(message['params']) ? message['params'] : {};
    if (method === 'tools/call') return this.calls.call(params, session, reply, arrival);
    return this.methods.perform(method, { params, session, reply, arrival });
  }
}

const UNREADABLE: Objection = { code: -32700, message: 'the body is no JSON object' };

function objectionTo(
  message: JsonObject,
  method: string,
  headers: http.IncomingHttpHeaders,
): Objection | null {
  const requested = headers['mcp-protocol-version'] ?? null;
  if (requested !== REVISION) {
    const data = { supported: [REVISION], requested: requested as JsonValue };
    return { code: -32022, message: 'the protocol version is not spoken here', data };
  }
  if (message['id'] === undefined) return null;
  const params = isObject(message['params']) ? message['params'] : {};
  const meta = isObject(params['_meta']) ? params['_meta'] : {};
  const saysVersion = meta['io.modelcontextprotocol/protocolVersion'] === REVISION;
  if (!saysVersion || !isObject(meta['io.modelcontextprotocol/clientCapabilities']))
    return { code: -32602, message: '_meta does not say the version and what the client can do' };
  const mismatch = mismatchOf(method, params, headers);
  if (mismatch !== null) return { code: -32020, message: `the header ${mismatch} differs from the body` };
  if (method.startsWith('tasks/') && !declaresTasks(params))
    return { ...UNDECLARED, message: 'the request does not declare the tasks extension' };
  return null;
}

function mismatchOf(method: string, params: JsonObject, headers: http.IncomingHttpHeaders): string | null {
  if (headers['mcp-method'] !== method) return 'mcp-method';
  const name = method === 'tools/call' ? params['name'] : params['taskId'];
  const isNamed = method === 'tools/call' || method.startsWith('tasks/');
  return isNamed && decoded(headers['mcp-name']) !== name ? 'mcp-name' : null;
}

/** Texts outside visible ASCII travel encoded. */
function decoded(header: string | readonly string[] | undefined): string | undefined {
  if (typeof header !== 'string') return undefined;
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(header) ?? [];
  return base64 === undefined ? header : Buffer.from(base64, 'base64').toString('utf8');
}
