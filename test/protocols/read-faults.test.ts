// Owns what every reply to a read or a cancel of a 2025-11-25 task means; an error while polling never ends anything.
// Must never let a table entry pass by accident: each names the exact kind.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ToolAdapter, WireFault } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import {
  NO_HOOKS,
  type Script,
  ScriptedServer,
  sendError,
  sendJson,
  sendResult,
  SESSION,
  taskJson,
  toolCall,
  toolServer,
} from './scripted-server.js';

const REFERENCE = { remoteId: 'task-1', locator: SESSION };
const RESULT = { content: [{ type: 'text', text: 'x' }] };

let scripted: ScriptedServer;
let adapter: ToolAdapter;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
  adapter = createProtocolRegistry().adapter('mcp/2025-11-25');
});
afterEach(() => scripted.stop());

const server = () => toolServer(scripted.url);
const observe = () => adapter.observe(server(), REFERENCE);
const cancel = () => adapter.cancel(server(), REFERENCE, NO_HOOKS.afterSend);
const fetchResult = () => adapter.fetchResult(server(), REFERENCE);

function replying(byMethod: Record<string, Script>): Script {
  return (seen, response) => {
    const script = byMethod[seen.body.method ?? seen.httpMethod];
    if (!script) return void response.writeHead(599).end();
    return script(seen, response);
  };
}
const status =
  (code: number, headers = {}): Script =>
  (_, response) =>
    void response.writeHead(code, headers).end('<html>secret-body</html>');
const rpcError =
  (code: number, httpStatus = 200): Script =>
  (seen, response) =>
    sendError(response, seen, code, httpStatus);
const result =
  (value: unknown): Script =>
  (seen, response) =>
    sendResult(response, seen, value);
const idless =
  (code: number, httpStatus: number): Script =>
  (_, response) =>
    sendJson(response, httpStatus, { jsonrpc: '2.0', error: { code, message: 'x' } });

const READ_FAULTS: readonly (readonly [string, Script, WireFault['kind']])[] = [
  ['HTTP 404', status(404), 'SessionLost'],
  ['HTTP 404 with -32001 and no id', idless(-32001, 404), 'SessionLost'],
  ['HTTP 400 with -32000 and no id', idless(-32000, 400), 'SessionLost'],
  ['-32602 under HTTP 200', rpcError(-32602), 'NotFound'],
  ['-32602 under HTTP 400', rpcError(-32602, 400), 'NotFound'],
  ['-32602 under HTTP 404', rpcError(-32602, 404), 'NotFound'],
  ['HTTP 400 without a reason', status(400), 'Transient'],
  ['HTTP 401', status(401), 'Transient'],
  ['HTTP 403', status(403), 'Transient'],
  ['HTTP 408', status(408), 'Transient'],
  ['HTTP 429', status(429), 'Transient'],
  ['HTTP 500', status(500), 'Transient'],
  ['HTTP 503', status(503), 'Transient'],
  ['HTTP 302', status(302, { location: '/elsewhere' }), 'Transient'],
  ['HTTP 202', status(202), 'Transient'],
  ['-32603', rpcError(-32603), 'Transient'],
  ['-32000 under HTTP 200', rpcError(-32000), 'Transient'],
  ['-32601 of a gateway', rpcError(-32601, 502), 'Transient'],
  ['an HTML page under 200', status(200, { 'content-type': 'text/html' }), 'Transient'],
  ['HTML that claims to be JSON', status(200, { 'content-type': 'application/json' }), 'Transient'],
  ['a closed socket', (_, response) => void response.destroy(), 'Transient'],
  ['-32601', rpcError(-32601), 'ProtocolViolation'],
  [
    'the reply to another request',
    (_, response) => sendJson(response, 200, { jsonrpc: '2.0', id: 'other', result: taskJson('working') }),
    'ProtocolViolation',
  ],
];

describe('observe', () => {
  it.each(READ_FAULTS)('answered by %s throws', async (_, script, kind) => {
    scripted.script = script;
    const error = await observe().then(
      () => null,
      (thrown: unknown) => thrown as WireFault,
    );
    expect(error?.kind).toBe(kind);
    expect(error?.message).not.toContain('secret-body');
    expect(scripted.seen.length).toBe(1);
  });

  it('gives Retry-After in ms, from seconds and from a date', async () => {
    scripted.script = status(429, { 'retry-after': '12' });
    await expect(observe()).rejects.toMatchObject({ retryAfterMs: 12_000, wireCode: 429 });
    scripted.script = status(503, { 'retry-after': new Date(Date.now() + 60_000).toUTCString() });
    const error = (await observe().catch((thrown: unknown) => thrown)) as WireFault;
    expect(error.retryAfterMs).toBeGreaterThan(50_000);
    expect(error.retryAfterMs).toBeLessThanOrEqual(60_000);
  });

  it.each([
    ['working', 'working'],
    ['input_required', 'inputRequired'],
    ['completed', 'completed'],
    ['failed', 'failed'],
    ['cancelled', 'cancelled'],
    ['rejected', 'other'],
    ['auth-required', 'other'],
    ['constructor', 'other'],
    ['', 'other'],
  ])('maps the status %j to %s', async (word, meaning) => {
    scripted.script = result(taskJson(word, { unknownMember: 1 }));
    expect(await observe()).toMatchObject({ remoteStatus: word, meaning });
  });

  it.each([
    [{ ttl: 60_000 }, 1_767_225_660_000],
    [{ ttl: 0 }, 1_767_225_600_000],
    [{ ttl: null }, null],
    [{ ttl: -1 }, null],
    [{ ttl: '60000' }, null],
    [{ ttl: 60_000, createdAt: 'yesterday' }, null],
    [{ ttl: 60_000, createdAt: undefined }, null],
  ])('reads the expiry from %j', async (more, expiresAt) => {
    scripted.script = result(taskJson('working', more));
    expect((await observe()).expiresAt).toBe(expiresAt);
  });

  it.each([[1_500], [0], [-1], [1e12]])('hands on the interval %j as sent', async (pollInterval) => {
    scripted.script = result(taskJson('working', { pollInterval }));
    expect((await observe()).intervalMs).toBe(pollInterval);
  });

  it.each([
    ['another task', taskJson('working', { taskId: 'task-2' })],
    ['no id', taskJson('working', { taskId: undefined })],
    ['a status that is no text', taskJson('working', { status: 3 })],
    ['an empty object', {}],
    ['a list', [taskJson('working')]],
  ])('takes a reply with %s for a broken contract', async (_, value) => {
    scripted.script = result(value);
    await expect(observe()).rejects.toMatchObject({ kind: 'ProtocolViolation' });
  });
});

describe('cancel', () => {
  it.each([
    ['our task, cancelled', result(taskJson('cancelled')), 'confirmed'],
    ['our task, still working', result(taskJson('working')), 'acknowledged'],
    ['our task, completed', result(taskJson('completed')), 'acknowledged'],
    ['an empty object', result({}), 'acknowledged'],
    ['-32602', rpcError(-32602), 'refused'],
    ['-32602 under HTTP 400', rpcError(-32602, 400), 'refused'],
    ['-32600', rpcError(-32600), 'refused'],
    ['-32601', rpcError(-32601), 'unsupported'],
  ] as const)('answered by %s is told as such', async (_, script, verdict) => {
    scripted.script = script;
    expect(await cancel()).toBe(verdict);
  });

  it.each([
    ['another task, cancelled', result(taskJson('cancelled', { taskId: 'task-2' })), 'Transient'],
    ['-32603', rpcError(-32603), 'Transient'],
    ['HTTP 503', status(503), 'Transient'],
    ['a closed socket', ((_, response) => void response.destroy()) as Script, 'Transient'],
    ['HTTP 404', status(404), 'SessionLost'],
    ['HTTP 400 with -32000', idless(-32000, 400), 'SessionLost'],
  ] as const)('answered by %s proves nothing', async (_, script, kind) => {
    scripted.script = script;
    await expect(cancel()).rejects.toMatchObject({ kind });
  });

  it('is not sent to a server that does not declare it', async () => {
    const reference = { ...REFERENCE, locator: { ...SESSION, canCancel: false } };
    expect(await adapter.cancel(server(), reference, NO_HOOKS.afterSend)).toBe('unsupported');
    expect(scripted.seen.length).toBe(0);
  });
});

describe('fetchResult', () => {
  it.each([
    ['a stored error of a failed task', -32050, 'failed', 'result'],
    ['-32602 of a failed task', -32602, 'failed', 'result'],
    ['-32602 before the end (FastMCP 3)', -32602, 'working', 'notYet'],
    ['-32602 of a completed task', -32602, 'completed', 'lost'],
  ])('takes %s as it is', async (_, code, word, kind) => {
    scripted.script = replying({ 'tasks/result': rpcError(code), 'tasks/get': result(taskJson(word)) });
    const fetched = await fetchResult();
    expect(fetched.kind).toBe(kind);
    if (fetched.kind !== 'result') return;
    expect(fetched.result).toMatchObject({ isProtocolError: true, isToolError: false });
    expect(JSON.parse(new TextDecoder().decode(fetched.result.bytes))).toEqual({ code, message: 'scripted' });
  });

  it('is lost where neither the result nor the task is known', async () => {
    scripted.script = replying({ 'tasks/result': rpcError(-32602), 'tasks/get': rpcError(-32602) });
    expect(await fetchResult()).toMatchObject({ kind: 'lost' });
  });

  it.each([
    [
      '-32603 of a failed task',
      replying({ 'tasks/result': rpcError(-32603), 'tasks/get': result(taskJson('failed')) }),
    ],
    [
      '-32000 of a completed task',
      replying({ 'tasks/result': rpcError(-32000), 'tasks/get': result(taskJson('completed')) }),
    ],
    [
      'an error whose status cannot be read',
      replying({ 'tasks/result': rpcError(-32050), 'tasks/get': status(503) }),
    ],
    ['HTTP 502', status(502)],
    ['-32602 of a gateway', rpcError(-32602, 502)],
    [
      'an error without an id, of a failed task',
      replying({ 'tasks/result': idless(-32050, 400), 'tasks/get': result(taskJson('failed')) }),
    ],
    [
      'JSON cut in the middle',
      ((seen, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '900' });
        response.write(`{"jsonrpc":"2.0","id":"${seen.body.id}","result":{"content":[`, () =>
          response.destroy(),
        );
      }) as Script,
    ],
    [
      'JSON that ends in the middle',
      ((seen, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":"${seen.body.id}","result":{"content":[`)) as Script,
    ],
  ])('answered by %s is fetched again', async (_, script) => {
    scripted.script = script;
    await expect(fetchResult()).rejects.toMatchObject({ kind: 'Transient' });
  });

  it.each([
    ['no content', {}],
    ['content of no shape', { content: [1] }],
    [
      'the result of another task',
      { ...RESULT, _meta: { 'io.modelcontextprotocol/related-task': { taskId: 'task-2' } } },
    ],
  ])('takes a reply with %s for a broken contract', async (_, value) => {
    scripted.script = result(value);
    await expect(fetchResult()).rejects.toMatchObject({ kind: 'ProtocolViolation' });
  });

  it('takes a result that names our task or none, and keeps isError and structuredContent', async () => {
    const meta = { 'io.modelcontextprotocol/related-task': { taskId: 'task-1' } };
    for (const more of [{}, { _meta: meta }]) {
      scripted.script = result({ ...RESULT, ...more, isError: true, structuredContent: { n: 1 } });
      const expected = { isToolError: true, isProtocolError: false, structuredContent: { n: 1 } };
      expect(await fetchResult()).toMatchObject({ kind: 'result', result: expected });
    }
  });
});

describe('the look-up by session list', () => {
  const CREATED_AT = Date.parse('2026-01-01T00:00:00.000Z');
  const lookUp = (session = SESSION, claimedAt = CREATED_AT) =>
    adapter.findBySubmission(toolCall(server()), session, claimedAt);
  const initialize: Script = (seen, response) =>
    sendJson(
      response,
      200,
      {
        jsonrpc: '2.0',
        id: seen.body.id,
        result: {
          protocolVersion: '2025-11-25',
          capabilities: { tasks: { list: {}, requests: { tools: { call: {} } } } },
          serverInfo: { name: 's', version: '1' },
        },
      },
      { 'mcp-session-id': 'control' },
    );
  const listing = (tasks: unknown[], inOtherSessions: unknown[] = []): Script =>
    replying({
      initialize,
      'notifications/initialized': status(202),
      DELETE: status(200),
      'tasks/list': (seen, response) => {
        const visible = seen.headers['mcp-session-id'] === 'session-1' ? tasks : inOtherSessions;
        // One task a page, to see that all pages are read.
        const at = Number((seen.body.params as { cursor?: string }).cursor ?? 0);
        const nextCursor = at + 1 < visible.length ? String(at + 1) : undefined;
        sendResult(response, seen, { tasks: visible.slice(at, at + 1), nextCursor });
      },
    });

  it('finds the one task, and ends its control session', async () => {
    scripted.script = listing([taskJson('working')]);
    expect(await lookUp()).toEqual({ kind: 'found', reference: REFERENCE });
    const ended = scripted.seen.filter((seen) => seen.httpMethod === 'DELETE');
    expect(ended.map((seen) => seen.headers['mcp-session-id'])).toEqual(['control']);
  });

  it.each([
    ['no task', listing([])],
    [
      'two tasks, one on each page',
      listing([taskJson('working'), taskJson('working', { taskId: 'task-2' })]),
    ],
    ['a task older than the claim', listing([taskJson('working', { createdAt: '2025-12-31T23:00:00Z' })])],
    ['a task of no known age', listing([taskJson('working', { createdAt: undefined })])],
    ['a task that every session sees', listing([taskJson('working')], [taskJson('working')])],
    ['something that is no task', listing([{}])],
    ['a lost session', status(404)],
  ])('cannot tell from %s', async (_, script) => {
    scripted.script = script;
    expect(await lookUp()).toMatchObject({ kind: 'cannotTell' });
  });

  it('cannot tell, and asks nothing, where the list was not seen empty before', async () => {
    for (const listWasEmpty of [false, null]) {
      expect((await lookUp({ ...SESSION, listWasEmpty } as typeof SESSION)).kind).toBe('cannotTell');
    }
    expect((await lookUp({ ...SESSION, canList: false })).kind).toBe('cannotTell');
    expect((await lookUp({ ...SESSION, sessionId: null } as unknown as typeof SESSION)).kind).toBe(
      'cannotTell',
    );
    expect(scripted.seen.length).toBe(0);
  });

  it('is tried again after a failing server, and never turns in circles', async () => {
    scripted.script = rpcError(-32603);
    await expect(lookUp()).rejects.toMatchObject({ kind: 'Transient' });
    scripted.script = result({ tasks: [], nextCursor: 'again' });
    await expect(lookUp()).rejects.toMatchObject({ kind: 'Transient' });
    expect(scripted.seen.length).toBe(3);
  });
});
