// Owns a server program that does what a test asks of it over the standard streams, and nothing a server would do by itself.
// Must never be taken for a model of MCP: its tools are named after what they do to the transport.

import { createInterface } from 'node:readline';

interface Message {
  readonly id?: string;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly arguments?: Record<string, unknown>;
    readonly taskId?: string;
  };
}

const { SECRET = '', DIE_AT_ONCE } = process.env;
process.stderr.write(`started with ${SECRET}\n`);
if (DIE_AT_ONCE) process.exit(7);
// A word that is nobody's message.
process.stdout.write('ready to serve\n\n');

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

const questionOf = (taskId: string | null, id: number) => ({
  id,
  method: 'elicitation/create',
  params: {
    message: `about ${taskId}`,
    requestedSchema: { type: 'object', properties: {} },
    ...(taskId === null ? {} : { _meta: { 'io.modelcontextprotocol/related-task': { taskId } } }),
  },
});

const TOOLS = ['deaf', 'end', 'fail', 'long', 'asks', 'asks-nobody', 'noise', 'told', 'pid'];
const told: unknown[] = [];

function callTool(id: string, name: string, args: Record<string, unknown>): void {
  const result = { content: [{ type: 'text', text: `${name} ${process.pid}` }] };
  switch (name) {
    case 'end':
      return void process.exit(3);
    case 'fail':
      return send({ id, error: { code: -32000, message: `no, ${SECRET}` } });
    case 'long':
      return send({ id, result: { content: [{ type: 'text', text: 'x'.repeat(Number(args['bytes'])) }] } });
    case 'asks':
      send(questionOf(String(args['taskId']), 1));
      return send({ id, result });
    case 'asks-nobody':
      send(questionOf(null, 2));
      send({ id: 3, method: 'sampling/createMessage', params: {} });
      send({ id: 4, method: 'ping' });
      return send({ id, result });
    case 'noise':
      for (let line = 0; line < 50; line += 1) process.stderr.write(`${SECRET} ${'y'.repeat(10_000)}\n`);
      return send({ id, result });
    case 'deaf':
      input.pause();
      process.stdin.pause();
      // Deaf, not gone.
      setInterval(() => undefined, 60_000);
      return send({ id, result });
    case 'told':
      return send({ id, result: { content: [{ type: 'text', text: JSON.stringify(told) }] } });
    default:
      return send({ id, result });
  }
}

const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  const message = JSON.parse(line) as Message;
  const { id, method, params } = message;
  if (id === undefined || method === undefined) return void told.push(message);
  if (method === 'initialize') {
    told.push({ method });
    const capabilities = { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
    const serverInfo = { name: 'program', version: '1' };
    return send({ id, result: { protocolVersion: '2025-11-25', capabilities, serverInfo } });
  }
  if (method === 'tools/list')
    return send({ id, result: { tools: TOOLS.map((name) => ({ name, inputSchema: { type: 'object' } })) } });
  // Waits for ever, as a task that is not over does.
  if (method === 'tasks/result') return;
  if (method === 'tools/call') return callTool(id, params?.name ?? '', params?.arguments ?? {});
  send({ id, error: { code: -32601, message: 'unknown' } });
});
