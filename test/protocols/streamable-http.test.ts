// Owns the transport of 2025-11-25 as it leaves us: the order of the greeting, the headers of each message, resuming.
// What replies mean is in submit-faults and read-faults; clause by clause it is in docs/PROTOCOLS.md.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createProtocolRegistry } from '../../protocols/registry.js';
import {
  eventOf,
  NO_HOOKS,
  openStream,
  ScriptedServer,
  sendJson,
  sendResult,
  SESSION,
  taskJson,
  toolCall,
  toolServer,
} from './scripted-server.js';

const REFERENCE = { remoteId: 'task-1', locator: SESSION };
const TOOL = { name: 'report', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } };
const HELLO = {
  protocolVersion: '2025-11-25',
  capabilities: { tasks: { requests: { tools: { call: {} } } } },
  serverInfo: { name: 's', version: '1' },
};

let scripted: ScriptedServer;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
});
afterEach(() => scripted.stop());

const adapter = createProtocolRegistry().adapter('mcp/2025-11-25');
const server = () => toolServer(scripted.url);

describe('the greeting', () => {
  beforeEach(() => {
    scripted.script = (seen, response) => {
      const { method, id } = seen.body;
      if (method === 'tools/list') return sendResult(response, seen, { tools: [TOOL] });
      if (method !== 'initialize') return void response.writeHead(202).end();
      return sendJson(response, 200, { jsonrpc: '2.0', id, result: HELLO }, { 'mcp-session-id': 'sid' });
    };
  });

  it('comes first and alone, and is followed by the notification that it was understood', async () => {
    await createProtocolRegistry().negotiate(server(), 'report');
    const words = scripted.seen.map(({ body }) => body.method);
    expect(words).toEqual(['initialize', 'notifications/initialized', 'tools/list']);
    expect(scripted.seen[1]?.body).not.toHaveProperty('id');
  });

  it('is followed by the session and the negotiated version in the headers of every message', async () => {
    await createProtocolRegistry().negotiate(server(), 'report');
    const [greeting, ...others] = scripted.seen;
    expect(greeting?.headers['mcp-session-id']).toBeUndefined();
    for (const { headers } of others)
      expect(headers).toMatchObject({ 'mcp-session-id': 'sid', 'mcp-protocol-version': '2025-11-25' });
  });

  it('and all messages after it are POSTs of one object that take JSON and streams', async () => {
    await createProtocolRegistry().negotiate(server(), 'report');
    for (const { httpMethod, headers, body } of scripted.seen) {
      expect([httpMethod, headers.accept]).toEqual(['POST', 'application/json, text/event-stream']);
      expect(body).toMatchObject({ jsonrpc: '2.0', method: expect.any(String) });
    }
    const ids = scripted.seen.flatMap(({ body }) => body.id ?? []);
    expect(new Set(ids).size).toBe(2);
  });
});

it.each([
  ['with a space', 'a b'],
  ['that is not ASCII', 'Ä'],
  ['without measure', 'x'.repeat(1_025)],
])('a session id %s is not accepted', async (_, sessionId) => {
  scripted.script = (seen, response) =>
    sendJson(
      response,
      200,
      { jsonrpc: '2.0', id: seen.body.id, result: HELLO },
      { 'mcp-session-id': sessionId },
    );
  await expect(createProtocolRegistry().negotiate(server(), 'report')).rejects.toMatchObject({
    kind: 'ProtocolViolation',
  });
  expect(scripted.seen.length).toBe(1);
});

describe('a message about a task', () => {
  it('asks for it by its parameters alone, with a lifetime that outlives our own waiting', async () => {
    scripted.script = (seen, response) => sendResult(response, seen, { task: taskJson('working') });
    await adapter.submit(toolCall(server()), SESSION, NO_HOOKS);
    expect(scripted.seen[0]?.body.params).toEqual({
      name: 'report',
      arguments: { topic: 'x' },
      task: { ttl: expect.any(Number) },
    });
  });

  it('names it in its parameters and nowhere else', async () => {
    scripted.script = (seen, response) =>
      sendResult(
        response,
        seen,
        seen.body.method === 'tasks/result' ? { content: [] } : taskJson('cancelled'),
      );
    await adapter.observe(server(), REFERENCE);
    await adapter.fetchResult(server(), REFERENCE);
    await adapter.cancel(server(), REFERENCE, NO_HOOKS.afterSend);
    expect(scripted.seen.map(({ body }) => [body.method, body.params])).toEqual(
      ['tasks/get', 'tasks/result', 'tasks/cancel'].map((method) => [method, { taskId: 'task-1' }]),
    );
  });

  it('goes by the reply: what notifications on the way say of a task or a link is passed over', async () => {
    scripted.script = (seen, response) => {
      openStream(response);
      const says = (method: string, params: unknown) =>
        response.write(eventOf({ jsonrpc: '2.0', method, params }));
      says('notifications/tasks/status', taskJson('completed'));
      says('notifications/elicitation/complete', { elicitationId: 'nobody knows' });
      says('notifications/progress', { progressToken: 'unknown', progress: 1 });
      says('notifications/cancelled', { requestId: 'unknown' });
      response.end(eventOf({ jsonrpc: '2.0', id: seen.body.id, result: taskJson('working') }));
    };
    expect((await adapter.observe(server(), REFERENCE)).meaning).toBe('working');
    expect(scripted.seen.length).toBe(1);
  });
});

describe('a broken stream', () => {
  it('is taken up by GET with the last event id, in its session, after the pause that the server asked for', async () => {
    let brokenAt = 0;
    let resumedAt = 0;
    scripted.script = (seen, response) => {
      openStream(response);
      if (seen.httpMethod === 'GET') {
        resumedAt = performance.now();
        const id = scripted.seen[0]?.body.id;
        return void response.end(eventOf({ jsonrpc: '2.0', id, result: taskJson('working') }, 'e3'));
      }
      brokenAt = performance.now();
      response.write(`retry: 700\n${eventOf('', 'e1')}`);
      response.write(eventOf({ jsonrpc: '2.0', method: 'notifications/message' }, 'e2'), () =>
        response.destroy(),
      );
    };
    expect((await adapter.observe(server(), REFERENCE)).meaning).toBe('working');
    expect(scripted.seen[1]).toMatchObject({
      httpMethod: 'GET',
      headers: {
        accept: 'text/event-stream',
        'last-event-id': 'e2',
        'mcp-session-id': 'session-1',
        'mcp-protocol-version': '2025-11-25',
      },
    });
    // A timer may fire up to a millisecond early.
    expect(resumedAt - brokenAt).toBeGreaterThan(698);
  });
});
