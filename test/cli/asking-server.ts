// Owns a small MCP server whose one tool asks a question with a schema of the test's choice, and ends with the answer.
// Must never be lenient: it answers only what a client of MCP 2025-11-25 with tasks would send.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

type Json = Record<string, unknown>;
interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: Json;
}

export interface AskingServer {
  readonly url: string;
  /** Replies that came over the wire. */
  readonly replies: readonly Json[];
  stop(): Promise<void>;
}

const RELATED = 'io.modelcontextprotocol/related-task';
const QUESTION_ID = 4711;

export async function startAskingServer(requestedSchema: Json): Promise<AskingServer> {
  const replies: Json[] = [];
  const taskId = randomUUID();
  const createdAt = new Date().toISOString();
  const streams = new Set<ServerResponse>();
  const status = (): string => (replies.length > 0 ? 'completed' : 'input_required');
  const task = (): Json => ({
    taskId,
    status: status(),
    createdAt,
    lastUpdatedAt: createdAt,
    ttl: null,
    pollInterval: 200,
  });
  const results: Record<string, (params: Json) => Json> = {
    initialize: () => ({
      protocolVersion: '2025-11-25',
      capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
      serverInfo: { name: 'asking', version: '1' },
    }),
    'tools/list': () => ({
      tools: [{ name: 'ask', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }],
    }),
    'tools/call': () => ({ task: task() }),
    'tasks/get': () => task(),
    'tasks/cancel': () => ({ ...task(), status: 'cancelled' }),
    'tasks/result': () => ({ content: [{ type: 'text', text: JSON.stringify(replies[0]) }] }),
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      response.writeHead(405).end();
      return;
    }
    const message = JSON.parse(await text(request)) as Message;
    if (message.result && message.id === QUESTION_ID) replies.push(message.result);
    if (message.method === undefined || message.id === undefined) {
      response.writeHead(202).end();
      return;
    }
    if (message.method === 'tasks/result' && replies.length === 0) {
      ask(response);
      return;
    }
    const result = results[message.method]?.(message.params ?? {});
    const body = result ? { result } : { error: { code: -32601, message: 'no such method' } };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...body }));
  }

  function ask(response: ServerResponse): void {
    streams.add(response);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const params = {
      mode: 'form',
      message: 'Which one?',
      requestedSchema,
      _meta: { [RELATED]: { taskId } },
    };
    const question = { jsonrpc: '2.0', id: QUESTION_ID, method: 'elicitation/create', params };
    response.write(`event: message\ndata: ${JSON.stringify(question)}\n\n`);
  }

  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    replies,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
