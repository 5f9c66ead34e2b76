// Owns the words of MCP 2026-07-28 and its tasks extension on the wire, also where no server here can be made to err.
// What FastMCP 4 makes of them is in fastmcp.test.ts; clause by clause it is in docs/PROTOCOLS.md.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RemoteReference } from '../../operation/row.js';
import { type Submission, type ToolCall, WireFault } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import {
  eventOf,
  NO_HOOKS,
  openStream,
  type Script,
  ScriptedServer,
  type SeenRequest,
  sendError,
  sendJson,
  sendResult,
  toolCall,
  toolServer,
} from './scripted-server.js';

const TOOL_RESULT = { resultType: 'complete', content: [{ type: 'text', text: 'done' }] };
const FORM = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Who?', requestedSchema: { type: 'object', properties: {} } },
};
const HOOKS = { beforeSend: async () => undefined, afterSend: async () => undefined };

let scripted: ScriptedServer;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
});
afterEach(() => scripted.stop());

const adapter = createProtocolRegistry().adapter('mcp/2026-07-28');
const server = () => toolServer(scripted.url);
const referenceTo = (remoteId: string): RemoteReference => ({ remoteId, locator: {} });
const REFERENCE = referenceTo('task-1');

function submit(more: Partial<ToolCall> = {}, hooks = {}): Promise<Submission> {
  return adapter.submit(toolCall(server(), more), {}, { ...NO_HOOKS, ...hooks });
}

async function faultOf(promise: Promise<unknown>): Promise<WireFault> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!WireFault.isInstance(error)) throw new Error(`no WireFault: ${String(error)}`);
  return error;
}

function task(status: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const times = { createdAt: '2026-01-01T00:00:00.000Z', lastUpdatedAt: '2026-01-01T00:00:00.000Z' };
  return { taskId: 'task-1', status, ttlMs: 60_000, pollIntervalMs: 1_500, ...times, ...more };
}

const result =
  (value: unknown): Script =>
  (seen, response) =>
    sendResult(response, seen, value);
const metaOf = (seen: SeenRequest | undefined) => seen?.body.params?.['_meta'];

describe('a request', () => {
  it('says revision, client and capabilities of itself, and repeats in headers what proxies need', async () => {
    scripted.script = result(TOOL_RESULT);
    await submit();
    const [seen] = scripted.seen;
    expect(metaOf(seen)).toEqual({
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'durable-tool-calls', version: expect.any(String) },
      'io.modelcontextprotocol/clientCapabilities': {
        elicitation: { form: {}, url: {} },
        extensions: { 'io.modelcontextprotocol/tasks': {} },
      },
      progressToken: expect.any(String),
    });
    expect([seen?.httpMethod, seen?.headers]).toMatchObject([
      'POST',
      {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'report',
      },
    ]);
    expect(seen?.headers['mcp-session-id']).toBeUndefined();
  });

  it('of any other method says the same of itself', async () => {
    scripted.script = (seen, response) =>
      sendResult(
        response,
        seen,
        seen.body.method === 'tasks/get' ? task('input_required', { inputRequests: { k: FORM } }) : {},
      );
    await adapter.observe(server(), REFERENCE);
    await adapter.answer(server(), REFERENCE, { key: 'k' }, { action: 'decline', content: null }, HOOKS);
    await adapter.cancel(server(), REFERENCE, NO_HOOKS.afterSend);
    expect(scripted.seen.map(({ body, headers }) => [body.method, headers['mcp-method']])).toEqual(
      ['tasks/get', 'tasks/get', 'tasks/update', 'tasks/cancel'].map((method) => [method, method]),
    );
    for (const seen of scripted.seen) {
      expect(Object.keys(metaOf(seen) as object)).toEqual([
        'io.modelcontextprotocol/protocolVersion',
        'io.modelcontextprotocol/clientInfo',
        'io.modelcontextprotocol/clientCapabilities',
      ]);
      expect(seen.headers).toMatchObject({ 'mcp-name': 'task-1', 'mcp-protocol-version': '2026-07-28' });
    }
    expect(new Set(scripted.seen.map(({ body }) => body.id)).size).toBe(4);
  });

  it.each([
    ['task-1', 'task-1'],
    ['a b/+=', 'a b/+='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['Ä', '=?base64?w4Q=?='],
    ['two\nlines', '=?base64?dHdvCmxpbmVz?='],
    ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
  ])('about the task %j carries the name %s', async (taskId, header) => {
    scripted.script = result(task('working', { taskId }));
    await adapter.observe(server(), referenceTo(taskId));
    expect(scripted.seen[0]?.headers['mcp-name']).toBe(header);
    expect(scripted.seen[0]?.body.params?.['taskId']).toBe(taskId);
  });

  it('is answered by JSON or by a stream, with comments and notifications before the reply', async () => {
    scripted.script = (seen, response) => {
      openStream(response);
      response.write(': still there\n\n');
      response.write(eventOf({ jsonrpc: '2.0', method: 'notifications/message', params: {} }));
      response.end(eventOf({ jsonrpc: '2.0', id: seen.body.id, result: TOOL_RESULT }));
    };
    expect((await submit()).kind).toBe('answered');
  });

  it('of the server is never answered: this revision has no responses of clients', async () => {
    scripted.script = (seen, response) => {
      openStream(response);
      for (const method of ['ping', 'sampling/createMessage', 'roots/list', 'elicitation/create'])
        response.write(eventOf({ jsonrpc: '2.0', id: `${method}!`, method, params: {} }));
      response.end(eventOf({ jsonrpc: '2.0', id: seen.body.id, result: TOOL_RESULT }));
    };
    expect((await submit()).kind).toBe('answered');
    // What would be sent in passing is sent before the next request of this process.
    scripted.script = result(task('working'));
    await adapter.observe(server(), REFERENCE);
    expect(scripted.seen.map(({ body }) => body.method)).toEqual(['tools/call', 'tasks/get']);
  });

  it('whose stream breaks is lost with it: nothing is resumed, nothing sent again', async () => {
    scripted.script = (_, response) => {
      openStream(response);
      response.write(eventOf({ jsonrpc: '2.0', method: 'notifications/message', params: {} }, 'e1'), () =>
        response.destroy(),
      );
    };
    expect((await faultOf(submit())).kind).toBe('Ambiguous');
    expect(scripted.seen.map(({ httpMethod }) => httpMethod)).toEqual(['POST']);
  });

  it('given up at its bound closes its stream, which is what cancels it here', async () => {
    let isClosed = false;
    scripted.script = (_, response) => {
      openStream(response);
      response.on('close', () => {
        isClosed = true;
      });
    };
    expect((await faultOf(submit({ synchronousBoundMs: 150 }))).kind).toBe('Ambiguous');
    while (!isClosed) await new Promise((resolve) => setImmediate(resolve));
    expect(scripted.seen.length).toBe(1);
  });

  it('shows only progress of its own token that grows', async () => {
    const said: string[] = [];
    const progress = (progressToken: unknown, value: number) =>
      eventOf({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken, progress: value },
      });
    scripted.script = (seen, response) => {
      const token = (metaOf(seen) as { progressToken: string }).progressToken;
      openStream(response);
      response.write(progress(token, 1) + progress('another', 9) + progress(token, 1) + progress(token, 2));
      response.end(eventOf({ jsonrpc: '2.0', id: seen.body.id, result: TOOL_RESULT }));
    };
    await submit({}, { onProgress: (message: string) => said.push(message) });
    expect(said).toEqual(['1', '2']);
  });
});

describe('a reply to a call', () => {
  it.each([
    ['complete', TOOL_RESULT, 'answered'],
    ['no type at all, as earlier revisions send it', { content: [] }, 'answered'],
    ['task', { resultType: 'task', ...task('working') }, 'referenced'],
    ['input_required', { resultType: 'input_required', requestState: 's' }, 'inputBeforeTask'],
  ])('of type %s is taken as what it says', async (_, value, kind) => {
    scripted.script = result(value);
    expect((await submit()).kind).toBe(kind);
  });

  it.each([
    ['a type that nobody defined', { ...TOOL_RESULT, resultType: 'perhaps' }],
    ['the task of the older generation', { task: task('working') }],
    ['a task without an id', { resultType: 'task', ...task('working', { taskId: undefined }) }],
    ['questions that are none, and no state', { resultType: 'input_required' }],
    [
      'a question of a kind that was not declared',
      {
        resultType: 'input_required',
        inputRequests: { k: { method: 'sampling/createMessage', params: {} } },
      },
    ],
  ])('with %s is ambiguous', async (_, value) => {
    scripted.script = result(value);
    expect((await faultOf(submit())).kind).toBe('Ambiguous');
    expect(scripted.seen.length).toBe(1);
  });

  it.each([
    [-32020, 400, 'RefusedByServer'],
    [-32021, 400, 'RefusedByServer'],
    [-32022, 400, 'RefusedByServer'],
    [-32601, 404, 'RefusedByServer'],
    [-32602, 400, 'Ambiguous'],
    [-32603, 200, 'Ambiguous'],
    // Of the older generation only.
    [-32042, 200, 'Ambiguous'],
  ])('with the error %i under HTTP %i is %s', async (code, status, kind) => {
    scripted.script = (seen, response) => sendError(response, seen, code, status);
    expect((await faultOf(submit())).kind).toBe(kind);
  });
});

describe('a status', () => {
  const observe = () => adapter.observe(server(), REFERENCE);

  it.each([
    ['working', 'working'],
    ['input_required', 'inputRequired'],
    ['completed', 'completed'],
    ['failed', 'failed'],
    ['cancelled', 'cancelled'],
    ['rejected', 'other'],
    ['constructor', 'other'],
  ])('%j means %s', async (word, meaning) => {
    scripted.script = result(task(word));
    expect(await observe()).toMatchObject({ remoteStatus: word, meaning });
  });

  it('brings interval and lifetime as they are at that moment', async () => {
    scripted.script = result(task('working'));
    expect(await observe()).toMatchObject({ intervalMs: 1_500, expiresAt: 1_767_225_660_000 });
    scripted.script = result(task('working', { pollIntervalMs: 4_000, ttlMs: null }));
    expect(await observe()).toMatchObject({ intervalMs: 4_000, expiresAt: null });
  });

  it('completed carries the result, also one that says isError; failed carries the error of the protocol', async () => {
    scripted.script = result(task('completed', { result: { content: [], isError: true } }));
    expect(await observe()).toMatchObject({
      inline: { kind: 'result', result: { isToolError: true, isProtocolError: false } },
    });
    scripted.script = result(task('failed', { error: { code: -32603, message: 'm' } }));
    expect(await observe()).toMatchObject({
      inline: { kind: 'result', result: { isToolError: false, isProtocolError: true } },
    });
  });

  it.each([
    ['completed without a result', task('completed')],
    ['failed without an error', task('failed')],
    ['failed with an error of no code', task('failed', { error: { message: 'm' } })],
    ['completed with what is no tool result', task('completed', { result: {} })],
  ])('%s has lost it, and says so', async (_, value) => {
    scripted.script = result(value);
    expect(await adapter.fetchResult(server(), REFERENCE)).toMatchObject({ kind: 'lost' });
  });

  it.each([
    ['a type that nobody defined', task('working', { resultType: 'perhaps' })],
    ['another task', task('working', { taskId: 'task-2' })],
    ['no status', task('working', { status: undefined })],
  ])('of %s breaks the contract', async (_, value) => {
    scripted.script = result(value);
    expect((await faultOf(observe())).kind).toBe('ProtocolViolation');
  });

  it.each([
    [-32602, 200, 'NotFound'],
    [-32602, 400, 'NotFound'],
    [-32603, 200, 'Transient'],
    [-32021, 400, 'Transient'],
    // Of no session, and of nothing else: in this revision the code has no meaning.
    [-32000, 400, 'Transient'],
  ])('refused with %i under HTTP %i is %s', async (code, status, kind) => {
    scripted.script = (seen, response) => sendError(response, seen, code, status);
    expect((await faultOf(observe())).kind).toBe(kind);
  });
});

describe('questions in a status', () => {
  it('are known by their keys, and what nobody could be asked is left out', async () => {
    const link = {
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Sign', url: 'https://a.example/x' },
    };
    scripted.script = result(
      task('input_required', {
        inputRequests: {
          name: FORM,
          link,
          model: { method: 'sampling/createMessage', params: {} },
          roots: { method: 'roots/list' },
          hologram: { method: 'elicitation/create', params: { ...FORM.params, mode: 'hologram' } },
        },
      }),
    );
    const { questions } = await adapter.observe(server(), REFERENCE);
    expect(questions?.map(({ wireKey, question }) => [wireKey, question.mode, question.url])).toEqual([
      ['name', 'form', null],
      ['link', 'url', 'https://a.example/x'],
    ]);
  });

  it('are answered one key at a time, with content only where it was accepted', async () => {
    scripted.script = (seen, response) =>
      sendResult(
        response,
        seen,
        seen.body.method === 'tasks/get'
          ? task('input_required', { inputRequests: { a: FORM, b: FORM } })
          : {},
      );
    const answer = (key: string, action: 'accept' | 'decline' | 'cancel') =>
      adapter.answer(server(), REFERENCE, { key }, { action, content: { name: 'Ann' } }, HOOKS);
    expect(await answer('a', 'accept')).toBe('delivered');
    expect(await answer('b', 'decline')).toBe('delivered');
    expect(scripted.sent('tasks/update').map(({ body }) => body.params)).toMatchObject([
      { taskId: 'task-1', inputResponses: { a: { action: 'accept', content: { name: 'Ann' } } } },
      { taskId: 'task-1', inputResponses: { b: { action: 'decline' } } },
    ]);
    expect(scripted.sent('tasks/update')[1]?.body.params?.['inputResponses']).toEqual({
      b: { action: 'decline' },
    });
  });

  it('that are listed no more are not answered', async () => {
    scripted.script = result(task('input_required', { inputRequests: { b: FORM } }));
    const reply = { action: 'accept', content: {} } as const;
    expect(await adapter.answer(server(), REFERENCE, { key: 'a' }, reply, HOOKS)).toBe('roundClosed');
    expect(scripted.sent('tasks/update').length).toBe(0);
  });
});

describe('a call that was asked something before there was any work', () => {
  it('comes again with its own parameters, the replies, and the state untouched, under another id', async () => {
    const requestState = ' {"not":"ours"} Ä\u0000';
    scripted.script = result(TOOL_RESULT);
    await submit();
    await submit({ continuation: { requestState, replies: { k: { action: 'accept', content: { n: 1 } } } } });
    const [first, second] = scripted.seen.map(({ body }) => body);
    const { _meta: _, ...asked } = first?.params ?? {};
    const { _meta: __, ...again } = second?.params ?? {};
    expect(again).toEqual({
      ...asked,
      inputResponses: { k: { action: 'accept', content: { n: 1 } } },
      requestState,
    });
    expect(second?.id).not.toBe(first?.id);
    expect(metaOf(scripted.seen[1])).toHaveProperty(['io.modelcontextprotocol/clientCapabilities']);
  });

  it('brings no state where none was given, and no replies where nothing was asked', async () => {
    scripted.script = result(TOOL_RESULT);
    await submit({
      continuation: { requestState: null, replies: { k: { action: 'decline', content: null } } },
    });
    await submit({ continuation: { requestState: 's', replies: {} } });
    const [without, bare] = scripted.seen.map(({ body }) => body.params);
    expect(without).toMatchObject({ inputResponses: { k: { action: 'decline' } } });
    expect(without).not.toHaveProperty('requestState');
    expect(bare).toMatchObject({ requestState: 's' });
    expect(bare).not.toHaveProperty('inputResponses');
  });
});

describe('a cancel', () => {
  it.each([
    ['an empty acknowledgement', { resultType: 'complete' }],
    ['a task that says cancelled', task('cancelled')],
  ])('answered by %s is acknowledged and no more: the state decides', async (_, value) => {
    scripted.script = result(value);
    expect(await adapter.cancel(server(), REFERENCE, NO_HOOKS.afterSend)).toBe('acknowledged');
    expect(scripted.seen.map(({ body }) => body.method)).toEqual(['tasks/cancel']);
  });
});

describe('negotiation', () => {
  const TOOL = { name: 'report', inputSchema: { type: 'object' } };
  const DISCOVERED = {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
  };
  const publishing =
    (tools: unknown, discovered: unknown = DISCOVERED): Script =>
    (seen, response) =>
      sendResult(response, seen, seen.body.method === 'server/discover' ? discovered : tools);
  const negotiate = () =>
    createProtocolRegistry().negotiate(toolServer(scripted.url, { protocol: 'mcp/2026-07-28' }), 'report');

  it('takes the revision where it is among those of the server', async () => {
    scripted.script = publishing({ tools: [TOOL] });
    expect(await negotiate()).toMatchObject({ kind: 'negotiated', negotiated: { hasTasks: true } });
    expect(scripted.seen.map(({ body }) => body.method)).toEqual(['server/discover', 'tools/list']);
    scripted.script = publishing({ tools: [TOOL] }, { ...DISCOVERED, capabilities: { tools: {} } });
    expect(await negotiate()).toMatchObject({ kind: 'negotiated', negotiated: { hasTasks: false } });
  });

  it.each([
    [
      'speaks others only',
      publishing({ tools: [TOOL] }, { ...DISCOVERED, supportedVersions: ['2027-01-01'] }),
    ],
    [
      'refuses it with -32022',
      ((seen, response) =>
        sendJson(response, 400, {
          jsonrpc: '2.0',
          id: seen.body.id,
          error: { code: -32022, message: '', data: { supported: ['2027-01-01'], requested: '2026-07-28' } },
        })) as Script,
    ],
    ['knows no such method', ((_, response) => void response.writeHead(404).end()) as Script],
  ])('with a server that %s says what to change', async (_, script) => {
    scripted.script = script;
    expect(await negotiate()).toMatchObject({
      kind: 'unsupported',
      message: expect.stringContaining('set "protocol" to "auto"'),
    });
  });

  it('takes a task for an answer to nothing but a call', async () => {
    scripted.script = publishing({ resultType: 'task', ...task('working') });
    expect((await faultOf(negotiate())).kind).toBe('ProtocolViolation');
  });

  it('gives cursors back as they are, also an empty one', async () => {
    const cursors = ['', ' {"p":2}=='];
    scripted.script = (seen, response) => {
      if (seen.body.method === 'server/discover') return sendResult(response, seen, DISCOVERED);
      const page = scripted.sent('tools/list').length;
      sendResult(response, seen, { tools: page === 3 ? [TOOL] : [], nextCursor: cursors[page - 1] });
    };
    expect(await negotiate()).toMatchObject({ kind: 'negotiated' });
    expect(scripted.sent('tools/list').map(({ body }) => body.params?.['cursor'])).toEqual([
      undefined,
      ...cursors,
    ]);
  });

  it('remembers that a server is of the older generation, and asks it once', async () => {
    const hello = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      serverInfo: { name: 's', version: '1' },
    };
    scripted.script = (seen, response) => {
      if (seen.body.method === 'initialize') return sendResult(response, seen, hello);
      if (seen.body.method === 'tools/list') return sendResult(response, seen, { tools: [TOOL] });
      if (seen.body.method === 'server/discover') return sendError(response, seen, -32601, 404);
      return void response.writeHead(202).end();
    };
    const registry = createProtocolRegistry();
    for (let time = 0; time < 2; time += 1)
      expect(await registry.negotiate(server(), 'report')).toMatchObject({
        negotiated: { adapter: 'synchronous' },
      });
    expect(scripted.sent('server/discover').length).toBe(1);
  });
});
