// Owns the choice of the contract, and what negotiation does with servers that refuse, fail, or break their word.
// Must never need a tool to run: negotiation only reads.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Negotiation, ToolServer } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { freePort } from './everything-server.js';
import {
  eventOf,
  openStream,
  type Script,
  ScriptedServer,
  sendError,
  sendJson,
  sendResult,
  taskJson,
  toolServer,
} from './scripted-server.js';

let scripted: ScriptedServer;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
});
afterEach(() => scripted.stop());

const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const TOOL = { name: 'report', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } };

interface Published {
  readonly version?: string;
  readonly tasks?: unknown;
  readonly tool?: Record<string, unknown>;
  readonly sessionId?: string | null;
  readonly listed?: unknown[];
  readonly overrides?: Record<string, Script>;
}

function publishing(published: Published): Script {
  const { version = '2025-11-25', tasks = TASKS, tool = TOOL, sessionId = 'sid', listed = [] } = published;
  return (seen, response) => {
    const word = seen.body.method ?? seen.httpMethod;
    const override = published.overrides?.[word];
    if (override) return override(seen, response);
    const capabilities = tasks === null ? { tools: {} } : { tools: {}, tasks };
    const hello = { protocolVersion: version, capabilities, serverInfo: { name: 's', version: '3.1' } };
    const headers = sessionId === null ? {} : { 'mcp-session-id': sessionId };
    if (word === 'initialize')
      return sendJson(response, 200, { jsonrpc: '2.0', id: seen.body.id, result: hello }, headers);
    if (word === 'tools/list') return sendResult(response, seen, { tools: [tool] });
    if (word === 'tasks/list') return sendResult(response, seen, { tasks: listed });
    return void response.writeHead(word === 'DELETE' ? 200 : 202).end();
  };
}

const negotiate = (more: Partial<ToolServer> = {}, tool = 'report'): Promise<Negotiation> =>
  createProtocolRegistry().negotiate(toolServer(scripted.url, more), tool);
const withSupport = (taskSupport: unknown) => ({ ...TOOL, execution: { taskSupport } });
const ended = () => scripted.seen.filter((seen) => seen.httpMethod === 'DELETE').length;

describe('the choice of the contract', () => {
  it.each([
    ['auto', TASKS, 'optional', 'mcp/2025-11-25'],
    ['auto', TASKS, 'required', 'mcp/2025-11-25'],
    ['auto', TASKS, 'forbidden', 'synchronous'],
    ['auto', TASKS, undefined, 'synchronous'],
    ['auto', TASKS, 'perhaps', 'synchronous'],
    ['auto', null, 'optional', 'synchronous'],
    ['auto', { list: {} }, 'optional', 'synchronous'],
    [
      'auto',
      null,
      'required',
      /requires tasks, but the server does not declare tasks\.requests\.tools\.call/,
    ],
    ['mcp/2025-11-25', TASKS, 'optional', 'mcp/2025-11-25'],
    ['mcp/2025-11-25', TASKS, 'forbidden', /Set "protocol" to "auto" or "synchronous"/],
    ['mcp/2025-11-25', null, 'optional', /the server does not declare tasks.*Set "protocol"/],
    ['mcp/2025-11-25', null, 'required', /does not declare tasks\.requests\.tools\.call/],
    ['synchronous', TASKS, 'optional', 'synchronous'],
    ['synchronous', null, undefined, 'synchronous'],
    ['synchronous', TASKS, 'required', /Set "protocol" to "auto" or "mcp\/2025-11-25"/],
  ] as const)(
    'with protocol %j, server tasks %j and taskSupport %j is %s',
    async (protocol, tasks, support, expected) => {
      scripted.script = publishing({ tasks, tool: withSupport(support) });
      const negotiation = await negotiate({ protocol });
      if (typeof expected === 'string') {
        expect(negotiation).toMatchObject({ kind: 'negotiated', negotiated: { adapter: expected } });
        expect(ended()).toBe(0);
      } else {
        expect(negotiation).toMatchObject({ kind: 'unsupported', message: expect.stringMatching(expected) });
        expect(ended()).toBe(1);
      }
      expect(scripted.sent('tools/call').length).toBe(0);
    },
  );

  it('on an older revision never takes tasks', async () => {
    scripted.script = publishing({ version: '2025-06-18' });
    expect(await negotiate()).toMatchObject({
      negotiated: { adapter: 'synchronous', session: { protocolVersion: '2025-06-18' } },
    });
    expect(scripted.sent('tools/list')[0]?.headers['mcp-protocol-version']).toBe('2025-06-18');
  });

  it('declares elicitation and tasks, but no requests it would have to serve as tasks', async () => {
    scripted.script = publishing({});
    await negotiate();
    expect(scripted.sent('initialize')[0]?.body.params).toMatchObject({
      protocolVersion: '2025-11-25',
      capabilities: { elicitation: { form: {}, url: {} }, tasks: {} },
    });
    expect(scripted.sent('notifications/initialized').length).toBe(1);
  });
});

describe('what is remembered', () => {
  it('holds ids and capabilities, never a header', async () => {
    scripted.script = publishing({});
    const negotiation = await negotiate({
      headers: { Authorization: 'Bearer secret-token', 'Mcp-Session-Id': 'mine' },
    });
    expect(JSON.stringify(negotiation)).not.toContain('secret-token');
    expect(negotiation).toMatchObject({
      negotiated: {
        session: {
          sessionId: 'sid',
          protocolVersion: '2025-11-25',
          canList: true,
          canCancel: true,
          canReplay: false,
          listWasEmpty: true,
        },
        toolVersion: '3.1',
        canList: true,
        annotations: { readOnly: false, idempotent: false, destructive: false },
      },
    });
    const listed = scripted.sent('tools/list')[0];
    expect(listed?.headers).toMatchObject({ authorization: 'Bearer secret-token', 'mcp-session-id': 'sid' });
  });

  it('knows that streams can be replayed from the priming event', async () => {
    const tools: Script = (seen, response) => {
      openStream(response);
      response.end(
        eventOf('', 'e1') + eventOf({ jsonrpc: '2.0', id: seen.body.id, result: { tools: [TOOL] } }, 'e2'),
      );
    };
    scripted.script = publishing({ overrides: { 'tools/list': tools } });
    expect(await negotiate()).toMatchObject({ negotiated: { session: { canReplay: true } } });
  });

  it.each([
    ['a list that is not empty', { listed: [taskJson('working')] }, false],
    ['no session', { sessionId: null }, true],
    [
      'a list that is declared and refused',
      { overrides: { 'tasks/list': ((seen, response) => sendError(response, seen, -32601)) as Script } },
      null,
    ],
  ] as const)('offers no look-up where there is %s', async (_, published, listWasEmpty) => {
    scripted.script = publishing(published as Published);
    expect(await negotiate()).toMatchObject({ negotiated: { canList: false, session: { listWasEmpty } } });
  });

  it('digests the whole descriptor, whatever the order of its members', async () => {
    const digestOf = async (tool: Record<string, unknown>): Promise<string> => {
      scripted.script = publishing({ tool });
      const negotiation = await negotiate();
      if (negotiation.kind !== 'negotiated') throw new Error(negotiation.message);
      return negotiation.negotiated.descriptorDigest;
    };
    const digest = await digestOf(TOOL);
    expect(await digestOf(Object.fromEntries(Object.entries(TOOL).reverse()))).toBe(digest);
    expect(await digestOf({ ...TOOL, description: 'changed' })).not.toBe(digest);
  });
});

describe('finding the tool', () => {
  const pages: Script = (seen, response) => {
    const cursor = (seen.body.params as { cursor?: string }).cursor;
    if (cursor === undefined)
      return sendResult(response, seen, { tools: [{ name: 7 }, { name: 'resort' }], nextCursor: 'p2' });
    return sendResult(response, seen, { tools: [TOOL] });
  };

  it('reads every page, past entries of no shape', async () => {
    scripted.script = publishing({ overrides: { 'tools/list': pages } });
    expect(await negotiate()).toMatchObject({ kind: 'negotiated' });
    const negotiation = await negotiate({}, 'repor');
    expect(negotiation).toMatchObject({
      kind: 'unknownTool',
      message: expect.stringContaining('near: report, resort'),
    });
    expect(ended()).toBe(1);
  });

  it('stops at a cursor that was there before', async () => {
    const circle: Script = (seen, response) => sendResult(response, seen, { tools: [], nextCursor: 'again' });
    scripted.script = publishing({ overrides: { 'tools/list': circle } });
    await expect(negotiate()).rejects.toMatchObject({ kind: 'ProtocolViolation' });
    expect(scripted.sent('tools/list').length).toBe(2);
  });
});

describe('a server that cannot be negotiated with', () => {
  const replyOf =
    (status: number, body: string): Script =>
    (_, response) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  it.each([
    ['HTTP 401', 'initialize', replyOf(401, ''), 'Transient'],
    ['HTTP 404', 'initialize', replyOf(404, ''), 'Transient'],
    ['HTTP 503', 'initialize', replyOf(503, ''), 'Transient'],
    ['garbage', 'initialize', replyOf(200, '<html>'), 'Transient'],
    ['-32603', 'tools/list', ((seen, response) => sendError(response, seen, -32603)) as Script, 'Transient'],
    ['a refused notification', 'notifications/initialized', replyOf(500, ''), 'Transient'],
    [
      'a result of no shape',
      'initialize',
      ((seen, response) => sendResult(response, seen, {})) as Script,
      'ProtocolViolation',
    ],
    [
      'tools that are no list',
      'tools/list',
      ((seen, response) => sendResult(response, seen, {})) as Script,
      'ProtocolViolation',
    ],
  ] as const)('because of %s to %s says so', async (_, word, script, kind) => {
    scripted.script = publishing({ overrides: { [word]: script } });
    await expect(negotiate()).rejects.toMatchObject({ kind });
  });

  it('because it is not there is NotSent', async () => {
    const nowhere = toolServer(`http://127.0.0.1:${await freePort()}/mcp`);
    await expect(createProtocolRegistry().negotiate(nowhere, 'report')).rejects.toMatchObject({
      kind: 'NotSent',
    });
  });

  it.each([
    ['speaks another revision', { version: '2026-07-28' }],
    [
      'refuses to initialize',
      { overrides: { initialize: ((seen, response) => sendError(response, seen, -32022)) as Script } },
    ],
  ] as const)('because it %s is unsupported', async (_, published) => {
    scripted.script = publishing(published as Published);
    expect(await negotiate()).toMatchObject({ kind: 'unsupported' });
  });
});

describe('release', () => {
  it('ends the session, and does not mind how that goes', async () => {
    const adapter = createProtocolRegistry().adapter('mcp/2025-11-25');
    const session = { sessionId: 'sid', protocolVersion: '2025-11-25' };
    scripted.script = (_, response) => void response.writeHead(405).end();
    await adapter.release(toolServer(scripted.url), session);
    expect(scripted.seen[0]).toMatchObject({ httpMethod: 'DELETE', headers: { 'mcp-session-id': 'sid' } });
    await adapter.release(toolServer('http://127.0.0.1:1/mcp'), session);
    await adapter.release(toolServer(scripted.url), { ...session, sessionId: null });
    await adapter.release(toolServer(scripted.url), {});
    expect(scripted.seen.length).toBe(1);
  });
});
