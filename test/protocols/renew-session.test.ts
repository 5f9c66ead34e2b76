// Owns what a renewed session may answer: a reference with the same remote id, or Transient with the server's pause.
// Must never see another kind of fault: the caller knows no other.

import type http from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RemoteReference } from '../../operation/row.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { ScriptedServer, sendJson, sendResult, SESSION, toolServer } from './scripted-server.js';

let scripted: ScriptedServer;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
});
afterEach(() => scripted.stop());

const renew = (url = scripted.url): Promise<RemoteReference> =>
  createProtocolRegistry()
    .adapter('mcp/2025-11-25')
    .renewSession(toolServer(url), { remoteId: 'task-1', locator: SESSION });
const hello = (capabilities: object) => ({
  protocolVersion: '2025-11-25',
  capabilities,
  serverInfo: { name: 's', version: '1' },
});
const TASKS = { tasks: { requests: { tools: { call: {} } } } };
const PAUSE = { 'retry-after': '7' };

describe('a renewed session', () => {
  it('keeps the remote id', async () => {
    scripted.script = (seen, response) => {
      if (seen.body.method !== 'initialize') return void response.writeHead(202).end();
      const reply = { jsonrpc: '2.0', id: seen.body.id, result: hello(TASKS) };
      return sendJson(response, 200, reply, { 'mcp-session-id': 'session-2' });
    };
    expect(await renew()).toMatchObject({ remoteId: 'task-1', locator: { sessionId: 'session-2' } });
  });

  it.each([
    ['HTTP 429', (response: http.ServerResponse) => void response.writeHead(429, PAUSE).end()],
    ['HTTP 503', (response: http.ServerResponse) => void response.writeHead(503, PAUSE).end()],
    ['HTTP 401', (response: http.ServerResponse) => void response.writeHead(401, PAUSE).end()],
    [
      'HTTP 429 that claims -32600',
      (response: http.ServerResponse) =>
        sendJson(response, 429, { jsonrpc: '2.0', id: null, error: { code: -32600, message: '' } }, PAUSE),
    ],
  ])('refused with %s is Transient and says the pause', async (_, send) => {
    scripted.script = (__, response) => send(response);
    await expect(renew()).rejects.toMatchObject({ kind: 'Transient', retryAfterMs: 7_000 });
  });

  it('whose first notification is refused is Transient and says the pause', async () => {
    scripted.script = (seen, response) =>
      seen.body.method === 'initialize'
        ? sendResult(response, seen, hello(TASKS))
        : void response.writeHead(429, PAUSE).end();
    await expect(renew()).rejects.toMatchObject({ kind: 'Transient', retryAfterMs: 7_000 });
  });

  it.each([
    ['that is not one', {}],
    ['without tasks', hello({})],
    ['in a revision not spoken here', { ...hello(TASKS), protocolVersion: '1999-01-01' }],
  ])('%s is Transient', async (_, result) => {
    scripted.script = (seen, response) => {
      if (seen.body.method !== 'initialize') return void response.writeHead(202).end();
      return sendResult(response, seen, result);
    };
    await expect(renew()).rejects.toMatchObject({ kind: 'Transient' });
  });

  it('of a server that is not there is Transient', async () => {
    await expect(renew('http://nothing.invalid/mcp')).rejects.toMatchObject({ kind: 'Transient' });
  });
});
