/** Owns: the pass-through before the real server-everything. */
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type EverythingServer, startEverythingServer } from '../../cli/demo/everything-server.js';
import { type PassThrough, startPassThrough } from '../../cli/demo/pass-through.js';
import { ANSWER, isObject, readReply } from '../../cli/demo/wire-messages.js';

type Json = Record<string, unknown>;

let everything: EverythingServer;
let passThrough: PassThrough;

beforeAll(async () => {
  everything = await startEverythingServer();
});
afterAll(async () => {
  await everything.stop();
});
beforeEach(async () => {
  passThrough = await startPassThrough({ targetUrl: everything.url });
});
afterEach(async () => {
  await passThrough.stop();
});

function post(body: unknown, sessionId?: string): Promise<Response> {
  return fetch(passThrough.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(sessionId !== undefined && { 'mcp-session-id': sessionId, 'mcp-protocol-version': '2025-11-25' }),
    },
    body: JSON.stringify(body),
  });
}

async function read(reply: Response): Promise<Json> {
  const body = Buffer.from(await reply.arrayBuffer());
  const messages = readReply(body, reply.headers.get('content-type') ?? undefined);
  const answer = messages.find((message) => 'result' in message || 'error' in message);
  if (!answer) throw new Error(`no answer in ${body.toString()}`);
  return answer;
}

async function ask(sessionId: string, method: string, params: Json = {}): Promise<Json> {
  return read(await post({ jsonrpc: '2.0', id: crypto.randomUUID(), method, params }, sessionId));
}

async function openSession(): Promise<string> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: {}, tasks: {} },
    clientInfo: { name: 'pass-through test', version: '0' },
  };
  const reply = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  await reply.text();
  const sessionId = reply.headers.get('mcp-session-id');
  if (sessionId === null) throw new Error('no session');
  const noted = await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, sessionId);
  await noted.text();
  return sessionId;
}

function research(args: Json = {}): Json {
  return { name: 'simulate-research-query', arguments: { topic: 'tides', ...args }, task: { ttl: 60_000 } };
}

async function startTask(sessionId: string, args: Json = {}): Promise<string> {
  const answer = await ask(sessionId, 'tools/call', research(args));
  return taskIdOf(answer);
}

function taskIdOf(answer: Json): string {
  const { result } = answer;
  const task = isObject(result) ? result['task'] : undefined;
  if (!isObject(task) || typeof task['taskId'] !== 'string') throw new Error(JSON.stringify(answer));
  return task['taskId'];
}

/** Ids of the tasks that the server itself knows in that session. */
async function listedTasks(sessionId: string): Promise<unknown[]> {
  const { result } = await ask(sessionId, 'tasks/list');
  if (!isObject(result) || !Array.isArray(result['tasks'])) throw new Error('no list');
  return result['tasks'].map((task: unknown) => (isObject(task) ? task['taskId'] : undefined));
}

/** A server that goes no further than the head of a reply. `left` resolves when its caller is gone. */
async function startSilentServer(says: 'event stream' | 'nothing') {
  const events = new EventEmitter();
  const asked = once(events, 'asked');
  const left = once(events, 'left');
  const server = createServer((_, response) => {
    if (says === 'event stream')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    response.once('close', () => events.emit('left'));
    events.emit('asked');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${address.port}/mcp`, asked, left, stop };
}

describe('what crosses', () => {
  it('counts single requests, notifications, answers and session ends by method', async () => {
    const sessionId = await openSession();
    const taskId = await startTask(sessionId);
    await ask(sessionId, 'tasks/get', { taskId });
    await ask(sessionId, 'tasks/get', { taskId });
    await ask(sessionId, 'tasks/cancel', { taskId });
    const answer = await post({ jsonrpc: '2.0', id: 7, result: { action: 'decline' } }, sessionId);
    expect(answer.status).toBe(202);
    await fetch(passThrough.url, { method: 'DELETE', headers: { 'mcp-session-id': sessionId } });

    expect(passThrough.counts()).toEqual({
      toolsCall: 1,
      tasksResult: 0,
      tasksGet: 2,
      tasksCancel: 1,
      answers: 1,
      byMethod: {
        initialize: 1,
        'notifications/initialized': 1,
        'tools/call': 1,
        'tasks/get': 2,
        'tasks/cancel': 1,
        answer: 1,
        DELETE: 1,
      },
    });
    expect(passThrough.log[0]).toEqual({
      atMs: expect.any(Number),
      method: 'initialize',
      jsonRpcId: 0,
      httpStatus: 200,
    });
    expect(passThrough.log.find((entry) => entry.method === ANSWER)).toMatchObject({
      jsonRpcId: 7,
      httpStatus: 202,
    });
  });

  it('counts every message of a batch', async () => {
    const ping = (id: number): Json => ({ jsonrpc: '2.0', id, method: 'ping' });
    const reply = await post([ping(1), ping(2), { jsonrpc: '2.0', id: 3, method: 'tasks/list' }]);
    await reply.text();
    expect(passThrough.counts().byMethod).toEqual({ ping: 2, 'tasks/list': 1 });
  });

  it('makes no errors of its own over many requests at once', async () => {
    const sessionId = await openSession();
    await Promise.all(Array.from({ length: 40 }, () => ask(sessionId, 'ping')));
    expect(new Set(passThrough.log.map((entry) => entry.httpStatus))).toEqual(new Set([200, 202]));
  });

  it('hands on each event of a stream before the stream ends', async () => {
    const sessionId = await openSession();
    const params = {
      name: 'trigger-long-running-operation',
      arguments: { duration: 1, steps: 2 },
      _meta: { progressToken: 'p1' },
    };
    const reply = await post({ jsonrpc: '2.0', id: 5, method: 'tools/call', params }, sessionId);
    const order: string[] = [];
    void passThrough.waitForReplies('tools/call', 1).then(() => order.push('the stream ended'));
    for await (const chunk of reply.body ?? []) {
      const text = Buffer.from(chunk).toString();
      if (text.includes('notifications/progress')) order.push('progress');
    }
    await passThrough.waitForReplies('tools/call', 1);
    expect(order[0]).toBe('progress');
    expect(order).toContain('the stream ended');
  });

  it('opens a GET stream at once, and leaves the server when the client leaves', async () => {
    const server = await startSilentServer('event stream');
    const own = await startPassThrough({ targetUrl: server.url });
    try {
      const client = new AbortController();
      const reply = await fetch(own.url, { signal: client.signal, headers: { accept: 'text/event-stream' } });
      expect(reply.headers.get('content-type')).toBe('text/event-stream');
      client.abort();
      await server.left;
    } finally {
      await own.stop();
      server.stop();
    }
  });

  it('leaves the server also where that had not begun to reply', async () => {
    const server = await startSilentServer('nothing');
    const own = await startPassThrough({ targetUrl: server.url });
    try {
      const client = new AbortController();
      const asking = fetch(own.url, { signal: client.signal });
      await server.asked;
      client.abort();
      await expect(asking).rejects.toThrow('aborted');
      await server.left;
    } finally {
      await own.stop();
      server.stop();
    }
  });

  it('hangs up without an HTTP answer where the server cannot be reached', async () => {
    const gone = await startEverythingServer();
    await gone.stop();
    const own = await startPassThrough({ targetUrl: gone.url });
    try {
      await expect(fetch(own.url, { method: 'POST', body: '{}' })).rejects.toThrow('fetch failed');
    } finally {
      await own.stop();
    }
  });

  it('refuses whoever still waits when it stops', async () => {
    const own = await startPassThrough({ targetUrl: everything.url });
    const waiting = own.waitFor('tools/call', 2);
    const { played } = own.faults.dropReply('tools/call');
    await own.stop();
    await expect(waiting).rejects.toThrow('The pass-through stopped after 0 of 2 requests of tools/call.');
    await expect(played).rejects.toThrow('stopped before the fault was played');
  });
});

describe('faults', () => {
  it('drops the reply of a call whose work the server has begun', async () => {
    const sessionId = await openSession();
    const { played } = passThrough.faults.dropReply('tools/call');
    await expect(ask(sessionId, 'tools/call', research())).rejects.toThrow('fetch failed');
    await played;
    expect(await listedTasks(sessionId)).toHaveLength(1);
    expect(passThrough.log.find((entry) => entry.method === 'tools/call')?.httpStatus).toBe(200);
    await startTask(sessionId);
    expect(await listedTasks(sessionId)).toHaveLength(2);
  });

  it('cuts a reply in the middle', async () => {
    const sessionId = await openSession();
    passThrough.faults.cutReply('tasks/list');
    const reply = await post({ jsonrpc: '2.0', id: 1, method: 'tasks/list' }, sessionId);
    expect(reply.status).toBe(200);
    const chunks: string[] = [];
    const reading = (async () => {
      for await (const chunk of reply.body ?? []) chunks.push(Buffer.from(chunk).toString());
    })();
    await expect(reading).rejects.toThrow('terminated');
    expect(chunks.join('')).not.toBe('');
    expect(chunks.join('')).not.toContain('}]');
  });

  it('holds a cancel before the server sees it, until it is released', async () => {
    const sessionId = await openSession();
    const taskId = await startTask(sessionId);
    const held = passThrough.faults.holdNext('tasks/cancel');
    const cancelling = ask(sessionId, 'tasks/cancel', { taskId });
    await held.arrived;
    expect(await ask(sessionId, 'tasks/get', { taskId })).toMatchObject({ result: { status: 'working' } });
    held.release();
    expect(await cancelling).toMatchObject({ result: { status: 'cancelled' } });
  });

  it('delivers a held request even if its client has left', async () => {
    const sessionId = await openSession();
    const taskId = await startTask(sessionId);
    const held = passThrough.faults.holdNext('tasks/cancel');
    const client = new AbortController();
    const cancelling = fetch(passThrough.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': sessionId,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/cancel', params: { taskId } }),
      signal: client.signal,
    });
    await held.arrived;
    client.abort();
    await expect(cancelling).rejects.toThrow('aborted');
    held.release();
    await passThrough.waitForReplies('tasks/cancel', 1);
    expect(await ask(sessionId, 'tasks/get', { taskId })).toMatchObject({ result: { status: 'cancelled' } });
  });

  it('holds a reply after the server did the work', async () => {
    const sessionId = await openSession();
    const taskId = await startTask(sessionId);
    const held = passThrough.faults.holdNext('tasks/cancel', 'reply');
    const cancelling = ask(sessionId, 'tasks/cancel', { taskId });
    await held.arrived;
    expect(await ask(sessionId, 'tasks/get', { taskId })).toMatchObject({ result: { status: 'cancelled' } });
    held.release();
    expect(await cancelling).toMatchObject({ result: { status: 'cancelled' } });
  });

  it('answers as many requests as asked in the place of the server', async () => {
    const sessionId = await openSession();
    const busy = { httpStatus: 503, headers: { 'retry-after': '7' }, body: { busy: true }, times: 2 };
    const { played } = passThrough.faults.answerNext('tasks/list', busy);
    for (let nth = 0; nth < 2; nth += 1) {
      const reply = await post({ jsonrpc: '2.0', id: nth, method: 'tasks/list' }, sessionId);
      expect(reply.status).toBe(503);
      expect(reply.headers.get('retry-after')).toBe('7');
      expect(await reply.json()).toEqual({ busy: true });
    }
    await played;
    expect(await listedTasks(sessionId)).toEqual([]);
    expect(passThrough.log.filter((entry) => entry.httpStatus === 503)).toHaveLength(2);
  });

  it('forgets on clear what was not played, and lets go what is held', async () => {
    const sessionId = await openSession();
    const held = passThrough.faults.holdNext('ping');
    passThrough.faults.dropReply('tasks/list');
    const pinging = ask(sessionId, 'ping');
    await held.arrived;
    passThrough.faults.clear();
    expect(await pinging).toMatchObject({ result: {} });
    expect(await listedTasks(sessionId)).toEqual([]);
  });
});

describe('a task that is made to fail', () => {
  it('has failed for every request that names it, and keeps what the server says beside that', async () => {
    const sessionId = await openSession();
    const becoming = passThrough.faults.failNextTask({
      kind: 'toolError',
      statusMessage: 'no tides today',
      result: { content: [{ type: 'text', text: 'no tides today' }] },
    });
    const taskId = await startTask(sessionId);
    expect(await becoming).toBe(taskId);

    const { result } = await ask(sessionId, 'tasks/get', { taskId });
    expect(result).toMatchObject({
      taskId,
      status: 'failed',
      statusMessage: 'no tides today',
      pollInterval: 1_000,
    });
    const fetched = await ask(sessionId, 'tasks/result', { taskId });
    expect(fetched['result']).toEqual({
      content: [{ type: 'text', text: 'no tides today' }],
      isError: true,
      _meta: { 'io.modelcontextprotocol/related-task': { taskId } },
    });
    expect(await ask(sessionId, 'tasks/cancel', { taskId })).toMatchObject({ error: { code: -32602 } });
    const listed = await ask(sessionId, 'tasks/list');
    expect(listed).toMatchObject({ result: { tasks: [{ taskId, status: 'failed' }] } });
  });

  it('leaves every other task alone', async () => {
    const sessionId = await openSession();
    const other = await startTask(sessionId);
    const failing = await startTask(sessionId);
    passThrough.faults.failTask(failing, { kind: 'protocolError', code: -32603, message: 'storage is down' });
    expect(await ask(sessionId, 'tasks/get', { taskId: other })).toMatchObject({
      result: { status: 'working' },
    });
    const listed = await ask(sessionId, 'tasks/list');
    expect(listed).toMatchObject({
      result: {
        tasks: expect.arrayContaining([
          expect.objectContaining({ taskId: other, status: 'working' }),
          expect.objectContaining({ taskId: failing, status: 'failed' }),
        ]),
      },
    });
    expect(await ask(sessionId, 'tasks/result', { taskId: failing })).toMatchObject({
      error: { code: -32603, message: 'storage is down' },
    });
  });

  it('stays unknown in a session where the server does not know it', async () => {
    const taskId = await startTask(await openSession());
    passThrough.faults.failTask(taskId, { kind: 'toolError', result: { content: [] } });
    expect(await ask(await openSession(), 'tasks/get', { taskId })).toMatchObject({
      error: { code: -32602 },
    });
  });
});
