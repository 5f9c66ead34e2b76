// Owns questions of a 2025-11-25 task: read once, bound to their task, stored before their stream is let go, answered.
// Must never wait for real minutes: every stream here speaks at once or ends.

import type http from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ToolAdapter, WireQuestion } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import {
  eventOf,
  openStream,
  ScriptedServer,
  type SeenRequest,
  sendError,
  sendJson,
  sendResult,
  SESSION,
  taskJson,
  toolServer,
} from './scripted-server.js';

const REFERENCE = { remoteId: 'task-1', locator: SESSION };
const ANCHOR = { sessionId: 'session-1', eventId: 'e1' };
const SCHEMA = { type: 'object', properties: { name: { type: 'string' } } };

let scripted: ScriptedServer;
let adapter: ToolAdapter;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
  adapter = createProtocolRegistry().adapter('mcp/2025-11-25');
});
afterEach(() => scripted.stop());

const server = () => toolServer(scripted.url);

function elicitation(id: unknown, more: Record<string, unknown> = {}, taskId: string | null = 'task-1') {
  const meta = taskId === null ? {} : { _meta: { 'io.modelcontextprotocol/related-task': { taskId } } };
  const params = { message: 'Who?', requestedSchema: SCHEMA, ...meta, ...more };
  return { jsonrpc: '2.0', id, method: 'elicitation/create', params };
}

async function pickUp(anchor: typeof ANCHOR | null, wireKeys: string[] = []): Promise<WireQuestion[]> {
  const picked: WireQuestion[] = [];
  await adapter.pickUpQuestions(server(), REFERENCE, { anchor, wireKeys }, async (question) => {
    picked.push(question);
  });
  return picked;
}

/** Writes these events to whoever reads, and keeps the stream open. */
function streaming(events: string[]) {
  return (seen: SeenRequest, response: http.ServerResponse): void => {
    if (seen.body.method === undefined && seen.httpMethod === 'POST')
      return void response.writeHead(202).end();
    openStream(response);
    response.write(events.join(''));
  };
}

describe('reading questions', () => {
  it('replays from the anchor and takes only new questions of our task', async () => {
    scripted.script = streaming([
      eventOf(elicitation(0), 'e2'),
      eventOf(elicitation(1, {}, 'task-2'), 'e3'),
      eventOf(elicitation(2, {}, null), 'e4'),
      eventOf({ jsonrpc: '2.0', id: 'x', result: taskJson('working') }, 'e5'),
      eventOf(elicitation('0', { message: 'And who else?' }), 'e6'),
    ]);
    const picked = await pickUp(ANCHOR, [JSON.stringify(['session-1', 0])]);
    expect(picked).toEqual([
      {
        wireKey: '["session-1","0"]',
        wire: { jsonRpcId: '0', sessionId: 'session-1', eventId: 'e6' },
        question: { mode: 'form', message: 'And who else?', schema: SCHEMA, url: null },
      },
    ]);
    expect(scripted.seen.map((seen) => seen.headers['last-event-id'])).toEqual(['e1']);
  });

  it('takes a replay again until the server has moved the question onto the stream', async () => {
    scripted.script = (seen, response) => {
      openStream(response);
      if (scripted.seen.length >= 3) response.write(eventOf(elicitation(0), 'e2'));
    };
    expect((await pickUp(ANCHOR)).length).toBe(1);
    expect(scripted.seen.length).toBe(3);
  });

  it('without an anchor holds the stream of tasks/result until the question is stored', async () => {
    let isStreamOpen = false;
    scripted.script = (_, response) => {
      isStreamOpen = true;
      response.on('close', () => {
        isStreamOpen = false;
      });
      streaming([eventOf(elicitation(0, {}, null))])(_, response);
    };
    let wasOpenWhileStoring = false;
    await adapter.pickUpQuestions(server(), REFERENCE, { anchor: null, wireKeys: [] }, async (question) => {
      expect(question.wire).toEqual({ jsonRpcId: 0, sessionId: 'session-1' });
      // A turn of the loop, in which a closed stream would have been noticed.
      await new Promise((resolve) => setImmediate(resolve));
      wasOpenWhileStoring = isStreamOpen;
    });
    expect(wasOpenWhileStoring).toBe(true);
    expect(scripted.sent('tasks/result').length).toBe(1);
  });

  it('lets an error of the store pass, so that the question is not taken for stored', async () => {
    scripted.script = streaming([eventOf(elicitation(0), 'e2')]);
    const picked = adapter.pickUpQuestions(server(), REFERENCE, { anchor: ANCHOR, wireKeys: [] }, () =>
      Promise.reject(new Error('store down')),
    );
    await expect(picked).rejects.toThrow('store down');
  });

  it('falls back to tasks/result where the server knows no replay', async () => {
    scripted.script = (seen, response) => {
      if (seen.httpMethod === 'GET') return void response.writeHead(405).end();
      streaming([eventOf(elicitation(0))])(seen, response);
    };
    expect((await pickUp(ANCHOR)).length).toBe(1);
  });

  it('opens no further stream while a known question waits for its reply', async () => {
    scripted.script = streaming([eventOf(elicitation(0), 'e2')]);
    const wireKeys = [JSON.stringify(['session-1', 0])];
    for (const anchor of [ANCHOR, null]) {
      const known = { anchor, wireKeys, hasOpenRound: true };
      await adapter.pickUpQuestions(server(), REFERENCE, known, () =>
        Promise.reject(new Error('taken twice')),
      );
    }
    expect(scripted.seen.map((seen) => seen.httpMethod)).toEqual(['GET']);
  });

  it('does not use an anchor of another session', async () => {
    scripted.script = streaming([eventOf(elicitation(0))]);
    expect((await pickUp({ sessionId: 'older', eventId: 'e1' })).length).toBe(1);
    expect(scripted.seen.map((seen) => seen.httpMethod)).toEqual(['POST']);
  });

  it('reads a link', async () => {
    const link = {
      mode: 'url',
      url: 'https://example.com/pay?x=1',
      elicitationId: 'e',
      requestedSchema: undefined,
    };
    scripted.script = streaming([eventOf(elicitation(0, link))]);
    expect((await pickUp(null))[0]?.question).toEqual({
      mode: 'url',
      message: 'Who?',
      schema: null,
      url: link.url,
    });
  });

  it('opens no link, nor looks at what is behind it', async () => {
    const url = new URL('/pay', scripted.url).href;
    scripted.script = streaming([
      eventOf(elicitation(0, { mode: 'url', url, elicitationId: 'e', requestedSchema: undefined })),
    ]);
    expect((await pickUp(null))[0]?.question.url).toBe(url);
    expect(scripted.seen.map((seen) => [seen.httpMethod, seen.path])).toEqual([['POST', '/mcp']]);
  });

  it.each([
    ['a mode nobody declared', { mode: 'hologram' }, -32602],
    ['no schema', { requestedSchema: undefined }, -32601],
    ['no message', { message: undefined }, -32601],
    ['a script for a link', { mode: 'url', url: 'javascript:alert(1)', elicitationId: 'e' }, -32601],
    ['more than a person can read', { message: 'x'.repeat(40_000) }, -32601],
  ])('refuses a question with %s, so that the server does not wait for it', async (_, more, code) => {
    scripted.script = (seen, response) => {
      if (seen.body.error !== undefined) return void response.writeHead(202).end();
      openStream(response);
      response.write(eventOf(elicitation(9, more)));
      response.write(eventOf(elicitation(10)));
    };
    const picked = await pickUp(null);
    expect(picked.map((question) => question.wire['jsonRpcId'])).toEqual([10]);
    await scripted.until(() => scripted.seen.some((seen) => seen.body.error !== undefined));
    const refusal = scripted.seen.find((seen) => seen.body.error !== undefined);
    expect(refusal?.body).toMatchObject({ id: 9, error: { code } });
  });

  it.each([
    [
      'ended meanwhile',
      (seen: SeenRequest, response: http.ServerResponse) => sendResult(response, seen, { content: [] }),
    ],
    [
      'is not terminal, says FastMCP 3',
      (seen: SeenRequest, response: http.ServerResponse) => sendError(response, seen, -32602),
    ],
  ])('reads none where the task %s', async (_, script) => {
    scripted.script = script;
    expect(await pickUp(null)).toEqual([]);
  });

  it('says SessionLost where the session is gone, with or without an anchor', async () => {
    scripted.script = (_, response) =>
      sendJson(response, 400, { jsonrpc: '2.0', error: { code: -32000, message: '' } });
    await expect(pickUp(null)).rejects.toMatchObject({ kind: 'SessionLost' });
    await expect(pickUp(ANCHOR)).rejects.toMatchObject({ kind: 'SessionLost' });
  });
});

describe('anchoring', () => {
  const anchor = (canReplay = true) =>
    adapter.anchor(server(), { ...REFERENCE, locator: { ...SESSION, canReplay } });

  it('keeps the id of the priming event and drops the stream', async () => {
    let isDropped = false;
    scripted.script = (_, response) => {
      response.on('close', () => {
        isDropped = true;
      });
      streaming([eventOf('', 'prime')])(_, response);
    };
    expect(await anchor()).toEqual({ sessionId: 'session-1', eventId: 'prime' });
    while (!isDropped) await new Promise((resolve) => setImmediate(resolve));
  });

  it('opens nothing on servers whose streams carry no ids', async () => {
    expect(await anchor(false)).toBeNull();
    expect(scripted.seen.length).toBe(0);
  });

  it.each([
    ['the question itself', streaming([eventOf(elicitation(0), 'e1')])],
    ['an event without an id', streaming([eventOf({ jsonrpc: '2.0', method: 'notifications/message' })])],
    [
      'JSON',
      (seen: SeenRequest, response: http.ServerResponse) => sendResult(response, seen, { content: [] }),
    ],
    ['HTTP 503', (_: SeenRequest, response: http.ServerResponse) => void response.writeHead(503).end()],
    ['a closed socket', (_: SeenRequest, response: http.ServerResponse) => void response.destroy()],
  ])('is none where the first thing to come is %s', async (_, script) => {
    scripted.script = script;
    expect(await anchor()).toBeNull();
  });
});

describe('answering', () => {
  const WIRE = { jsonRpcId: 0, sessionId: 'session-1', eventId: 'e2' };
  const answer = (
    action: 'accept' | 'decline' | 'cancel',
    content: { name: string } | null,
    wire = WIRE,
    log: string[] = [],
  ) =>
    adapter.answer(
      server(),
      REFERENCE,
      wire,
      { action, content },
      { beforeSend: async () => void log.push('before'), afterSend: async () => void log.push('after') },
    );
  function replyingToAnswer(status: number, word = 'input_required', body?: unknown) {
    scripted.script = (seen, response) => {
      if (seen.body.method === 'tasks/get') return sendResult(response, seen, taskJson(word));
      if (body === undefined) return void response.writeHead(status).end();
      return sendJson(response, status, body);
    };
  }

  const RELATED = { 'io.modelcontextprotocol/related-task': { taskId: 'task-1' } };

  it('POSTs the JSON-RPC response in the session of the question', async () => {
    replyingToAnswer(202);
    const log: string[] = [];
    expect(await answer('accept', { name: 'Ann' }, { ...WIRE, sessionId: 'older' }, log)).toBe('delivered');
    expect(log).toEqual(['before', 'after']);
    const posted = scripted.seen.at(-1);
    expect(posted?.body).toEqual({
      jsonrpc: '2.0',
      id: 0,
      result: { action: 'accept', content: { name: 'Ann' }, _meta: RELATED },
    });
    expect(posted?.headers['mcp-session-id']).toBe('older');
  });

  it('sends no content with a decline', async () => {
    replyingToAnswer(200);
    expect(await answer('decline', null)).toBe('delivered');
    expect(scripted.seen.at(-1)?.body.result).toEqual({ action: 'decline', _meta: RELATED });
  });

  it.each(['working', 'completed', 'cancelled', 'rejected'])(
    'sends nothing when the status is %s',
    async (word) => {
      replyingToAnswer(202, word);
      const log: string[] = [];
      expect(await answer('accept', { name: 'Ann' }, WIRE, log)).toBe('roundClosed');
      expect(log).toEqual([]);
      expect(scripted.seen.length).toBe(1);
    },
  );

  it.each([
    [503, undefined, 'Transient'],
    [503, { jsonrpc: '2.0', id: 0, error: { code: -32600, message: '' } }, 'Transient'],
    [302, undefined, 'Transient'],
    [401, undefined, 'Transient'],
    [408, undefined, 'Transient'],
    [409, undefined, 'Transient'],
    [425, undefined, 'Transient'],
    [429, undefined, 'Transient'],
    [200, { jsonrpc: '2.0', id: 0, error: { code: -32603, message: '' } }, 'Transient'],
    [404, undefined, 'SessionLost'],
    [400, { jsonrpc: '2.0', error: { code: -32000, message: '' } }, 'SessionLost'],
  ])('answered by HTTP %i may be delivered again or has lost its session', async (status, body, kind) => {
    replyingToAnswer(status, 'input_required', body);
    await expect(answer('accept', { name: 'Ann' })).rejects.toMatchObject({ kind });
  });

  it.each([
    [400, undefined],
    [403, undefined],
    [405, undefined],
    [413, undefined],
    [415, undefined],
    [422, undefined],
    [400, { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no' } }],
    [200, { jsonrpc: '2.0', id: 0, error: { code: -32600, message: 'no' } }],
    [200, { jsonrpc: '2.0', id: null, error: { code: -32602, message: 'no' } }],
  ])('answered by HTTP %i %j is refused for good and not sent again', async (status, body) => {
    replyingToAnswer(status, 'input_required', body);
    const log: string[] = [];
    await expect(answer('accept', { name: 'Ann' }, WIRE, log)).rejects.toMatchObject({
      kind: 'RefusedByServer',
    });
    expect(log).toEqual(['before', 'after']);
  });

  it('keeps the pause that the server asked for', async () => {
    scripted.script = (seen, response) => {
      if (seen.body.method === 'tasks/get') return sendResult(response, seen, taskJson('input_required'));
      return void response.writeHead(429, { 'retry-after': '7' }).end();
    };
    await expect(answer('decline', null)).rejects.toMatchObject({ kind: 'Transient', retryAfterMs: 7_000 });
  });

  it('takes any other word with a 200 for a delivery', async () => {
    replyingToAnswer(200, 'input_required', { jsonrpc: '2.0', id: 0, result: {} });
    expect(await answer('decline', null)).toBe('delivered');
  });

  it('is closed where the question died with a session that was replaced', async () => {
    replyingToAnswer(404);
    expect(await answer('accept', { name: 'Ann' }, { ...WIRE, sessionId: 'older' })).toBe('roundClosed');
  });
});
