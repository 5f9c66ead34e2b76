// Owns the proof table of DESIGN section 5 on the wire: which end of a submission is NotSent, RefusedByServer, or Ambiguous.
// Must never take a code for a proof that the table does not name.

import net from 'node:net';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AdapterName } from '../../operation/names.js';
import { type Submission, type ToolCall, WireFault } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { freePort } from './everything-server.js';
import {
  eventOf,
  NO_HOOKS,
  openStream,
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

let scripted: ScriptedServer;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
});
afterEach(() => scripted.stop());

const CONTRACTS: readonly AdapterName[] = ['mcp/2025-11-25', 'synchronous'];
const TOOL_RESULT = { content: [{ type: 'text', text: 'done' }] };

function submit(adapter: AdapterName, more: Partial<ToolCall> = {}, hooks = {}): Promise<Submission> {
  const call = toolCall(toolServer(scripted.url), { synchronousBoundMs: 2_000, ...more });
  return createProtocolRegistry()
    .adapter(adapter)
    .submit(call, SESSION, { ...NO_HOOKS, ...hooks });
}

async function faultOf(promise: Promise<unknown>): Promise<WireFault> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!WireFault.isInstance(error)) throw new Error(`no WireFault: ${String(error)}`);
  return error;
}

describe.each(CONTRACTS)('a submission on %s', (adapter) => {
  it.each([
    [401, 'RefusedByServer'],
    [403, 'RefusedByServer'],
    [404, 'RefusedByServer'],
    [405, 'RefusedByServer'],
    [413, 'RefusedByServer'],
    [415, 'RefusedByServer'],
    [200, 'Ambiguous'],
    [201, 'Ambiguous'],
    [202, 'Ambiguous'],
    [204, 'Ambiguous'],
    [302, 'Ambiguous'],
    [307, 'Ambiguous'],
    [400, 'Ambiguous'],
    [402, 'Ambiguous'],
    [406, 'Ambiguous'],
    [408, 'Ambiguous'],
    [409, 'Ambiguous'],
    [429, 'Ambiguous'],
    [500, 'Ambiguous'],
    [502, 'Ambiguous'],
    [503, 'Ambiguous'],
    [504, 'Ambiguous'],
  ])('answered by HTTP %i without a JSON-RPC reply is %s, after one request', async (status, kind) => {
    scripted.script = (_, response) => void response.writeHead(status, { location: '/elsewhere' }).end();
    expect((await faultOf(submit(adapter))).kind).toBe(kind);
    expect(scripted.seen.length).toBe(1);
  });

  it.each([
    [-32700, 200, 'RefusedByServer'],
    [-32600, 200, 'RefusedByServer'],
    [-32600, 400, 'RefusedByServer'],
    [-32601, 200, 'RefusedByServer'],
    [-32020, 200, 'RefusedByServer'],
    [-32021, 200, 'RefusedByServer'],
    [-32022, 200, 'RefusedByServer'],
    [-32602, 200, 'Ambiguous'],
    [-32603, 200, 'Ambiguous'],
    [-32000, 400, 'Ambiguous'],
    [-32003, 200, 'Ambiguous'],
    [-32042, 200, 'Ambiguous'],
    [1, 200, 'Ambiguous'],
    [-32600, 500, 'Ambiguous'],
    [-32601, 503, 'Ambiguous'],
  ])('answered by JSON-RPC %i under HTTP %i is %s', async (code, status, kind) => {
    scripted.script = (seen, response) => sendError(response, seen, code, status);
    const fault = await faultOf(submit(adapter));
    expect(fault).toMatchObject({ kind, wireCode: code });
  });

  it.each([
    [-32700, 'RefusedByServer'],
    [-32600, 'RefusedByServer'],
    [-32601, 'Ambiguous'],
    [-32000, 'Ambiguous'],
  ])('answered by JSON-RPC %i without an id is %s', async (code, kind) => {
    scripted.script = (_, response) =>
      sendJson(response, 400, { jsonrpc: '2.0', id: null, error: { code, message: '' } });
    expect((await faultOf(submit(adapter))).kind).toBe(kind);
  });

  const ambiguousReplies: Record<string, Script> = {
    'an empty result': (seen, response) => sendResult(response, seen, {}),
    'a result of null': (seen, response) => sendResult(response, seen, null),
    'content that is no list': (seen, response) => sendResult(response, seen, { content: 'done' }),
    'a task without an id': (seen, response) => sendResult(response, seen, { task: { status: 'working' } }),
    'the reply to another request': (_, response) =>
      sendJson(response, 200, { jsonrpc: '2.0', id: 'x', result: TOOL_RESULT }),
    'the refusal of another request': (_, response) =>
      sendJson(response, 200, { jsonrpc: '2.0', id: 'x', error: { code: -32601, message: '' } }),
    'a stream that is no UTF-8': (seen, response) => {
      openStream(response);
      response.write(
        `data: {"jsonrpc":"2.0","id":"${seen.body.id}","result":{"content":[{"type":"text","text":"`,
      );
      response.end(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('"}]}}\n\n')]));
    },
    'both a result and an error': (seen, response) =>
      sendJson(response, 200, {
        jsonrpc: '2.0',
        id: seen.body.id,
        result: TOOL_RESULT,
        error: { code: -32601, message: '' },
      }),
    'an empty object': (_, response) => sendJson(response, 200, {}),
    'a batch': (seen, response) =>
      sendJson(response, 200, [{ jsonrpc: '2.0', id: seen.body.id, result: TOOL_RESULT }]),
    'a page of HTML': (_, response) =>
      void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    'JSON cut in the middle': (seen, response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(`{"jsonrpc":"2.0","id":"${seen.body.id}","resu`),
    'two JSON values': (seen, response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(`${JSON.stringify({ jsonrpc: '2.0', id: seen.body.id, result: TOOL_RESULT })}{}`),
    'bytes that are no UTF-8': (seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(`{"jsonrpc":"2.0","id":"${seen.body.id}","result":{"content":[{"type":"text","text":"`);
      response.end(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('"}]}}')]));
    },
    'JSON nested without end': (_, response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(`{"result":${'['.repeat(100_000)}`),
    'a compressed body': (seen, response) =>
      sendJson(
        response,
        200,
        { jsonrpc: '2.0', id: seen.body.id, result: TOOL_RESULT },
        { 'content-encoding': 'gzip' },
      ),
    'a body shorter than its length': (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
      response.write('{"jsonrpc"', () => response.destroy());
    },
    'a socket closed before any reply': (_, response) => void response.destroy(),
    'a stream that ends without the reply': (_, response) => {
      openStream(response);
      response.end(eventOf({ jsonrpc: '2.0', method: 'notifications/message', params: {} }));
    },
    'a stream cut inside the event': (seen, response) => {
      openStream(response);
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: seen.body.id, result: TOOL_RESULT })}`);
    },
  };
  it.each(Object.entries(ambiguousReplies))(
    'answered by %s is Ambiguous, after one request',
    async (_, script) => {
      scripted.script = script;
      expect((await faultOf(submit(adapter))).kind).toBe('Ambiguous');
      expect(scripted.seen.length).toBe(1);
    },
  );

  it('of a reset connection is Ambiguous', async () => {
    scripted.script = (_, response) => void response.socket?.resetAndDestroy();
    expect((await faultOf(submit(adapter))).kind).toBe('Ambiguous');
    expect(scripted.seen.length).toBe(1);
  });

  it('to a port where nothing listens, or a name that does not exist, is NotSent', async () => {
    const port = await freePort();
    for (const url of [`http://127.0.0.1:${port}/mcp`, 'http://nothing.invalid/mcp', 'not a url']) {
      const server = toolServer(url, { headers: { authorization: 'Bearer secret-token' } });
      const fault = await faultOf(submit(adapter, { server }));
      expect(fault.kind).toBe('NotSent');
      expect(fault.message).not.toContain('secret-token');
    }
  });

  it('whose TLS handshake fails is NotSent', async () => {
    const plain = net
      .createServer((socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\n'))
      .listen(0, '127.0.0.1');
    await once(plain, 'listening');
    const url = `https://127.0.0.1:${(plain.address() as net.AddressInfo).port}/mcp`;
    expect((await faultOf(submit(adapter, { server: toolServer(url) }))).kind).toBe('NotSent');
    plain.close();
  });

  it('says Retry-After and the code, and quotes neither headers nor bodies', async () => {
    scripted.script = (_, response) =>
      void response.writeHead(503, { 'retry-after': '7' }).end('secret-body');
    const server = toolServer(scripted.url, { headers: { authorization: 'Bearer secret-token' } });
    const fault = await faultOf(submit(adapter, { server }));
    expect(fault).toMatchObject({ kind: 'Ambiguous', retryAfterMs: 7_000, wireCode: 503 });
    expect(fault.message).not.toContain('secret');
    expect(scripted.seen[0]?.headers.authorization).toBe('Bearer secret-token');
  });

  it('asks for the links of -32042 first, without the credential that the server quotes', async () => {
    const link = 'https://example.com/consent';
    const data = { elicitations: [{ mode: 'url', url: link, elicitationId: 'e', message: 'm' }] };
    const error = { code: -32042, message: 'token secret-token is not enough', data };
    scripted.script = (seen, response) =>
      sendJson(response, 200, { jsonrpc: '2.0', id: seen.body.id, error });
    const server = toolServer(scripted.url, { headers: { authorization: 'Bearer secret-token' } });
    const demand = await submit(adapter, { server });
    expect(demand).toEqual({
      kind: 'inputBeforeTask',
      requestState: null,
      needsConsent: true,
      questions: [
        {
          wireKey: 'link 1',
          wire: {},
          question: { mode: 'url', message: 'm', schema: null, url: 'https://example.com/consent' },
        },
      ],
    });
  });

  it.each([
    ['without a link', [], 200],
    ['with what is no link', [{ mode: 'url', url: 'javascript:alert(1)', message: 'm' }], 200],
    ['with a form', [{ mode: 'form', requestedSchema: {}, message: 'm' }], 200],
    ['of a gateway', [{ mode: 'url', url: 'https://example.com/consent', message: 'm' }], 502],
  ])(
    'is ambiguous after -32042 %s: it names nothing that could be opened',
    async (_, elicitations, status) => {
      scripted.script = (seen, response) =>
        sendJson(response, status, {
          jsonrpc: '2.0',
          id: seen.body.id,
          error: { code: -32042, message: 'open', data: { elicitations } },
        });
      expect((await faultOf(submit(adapter))).kind).toBe('Ambiguous');
    },
  );

  it('is answered at once by a tool result, as JSON or as a stream, with its bytes as received', async () => {
    const value = '{ "content":[{"type":"text","text":"x"}], "n":12345678901234567890 ,"isError":true}';
    scripted.script = (seen, response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
        .end(`{"result":${value},"id":"${seen.body.id}","jsonrpc":"2.0"}`);
    const asJson = await submit(adapter);
    scripted.script = (seen, response) => {
      openStream(response);
      response.write(': hello\n\n');
      response.write(eventOf({ jsonrpc: '2.0', method: 'notifications/message', params: {} }));
      response.write(`event: message\r\ndata: {"jsonrpc":"2.0","id":"${seen.body.id}",\r\n`);
      response.write(`data: "result":${value}}\r\n\r\n`);
    };
    const asStream = await submit(adapter);
    for (const submission of [asJson, asStream]) {
      if (submission.kind !== 'answered') throw new Error(submission.kind);
      expect(new TextDecoder().decode(submission.result.bytes)).toBe(value);
      expect(submission.result).toMatchObject({
        isToolError: true,
        isProtocolError: false,
        mediaType: 'application/json',
      });
    }
  });

  it('puts the key where the policy says, and nowhere else', async () => {
    scripted.script = (seen, response) => sendResult(response, seen, TOOL_RESULT);
    await submit(adapter, { submissionPolicy: 'key-argument', keyName: 'idempotencyKey' });
    await submit(adapter, { submissionPolicy: 'key-meta', keyName: 'example.com/key' });
    await submit(adapter, { submissionPolicy: 'at-most-once', keyName: 'idempotencyKey' });
    const [asArgument, asMeta, without] = scripted.seen.map((seen) => seen.body.params);
    expect(asArgument).toMatchObject({
      name: 'report',
      arguments: { topic: 'x', idempotencyKey: 'dtc-key' },
    });
    expect(asMeta).toMatchObject({ arguments: { topic: 'x' }, _meta: { 'example.com/key': 'dtc-key' } });
    expect(JSON.stringify(without)).not.toContain('dtc-key');
    for (const seen of scripted.seen) {
      expect(seen.headers).toMatchObject({
        'mcp-session-id': 'session-1',
        'mcp-protocol-version': '2025-11-25',
      });
      expect(seen.headers['accept-encoding']).toBe('identity');
      expect('task' in (seen.body.params ?? {})).toBe(adapter === 'mcp/2025-11-25');
    }
    expect(new Set(scripted.seen.map((seen) => seen.body.id)).size).toBe(3);
  });

  it('waits for afterSend before it reads the reply, and lets its error pass', async () => {
    scripted.script = (seen, response) => sendResult(response, seen, TOOL_RESULT);
    const killed = submit(adapter, {}, { afterSend: () => Promise.reject(new Error('killed at the seam')) });
    await expect(killed).rejects.toThrow('killed at the seam');
  });
});

describe('a submission with a task', () => {
  it.each(['working', 'input_required', 'completed', 'rejected'])(
    'in status %s is a reference',
    async (status) => {
      scripted.script = (seen, response) =>
        sendResult(response, seen, { task: taskJson(status, { taskId: ' Ä/+=?\n' }) });
      const submission = await submit('mcp/2025-11-25');
      expect(submission).toMatchObject({
        kind: 'referenced',
        reference: { remoteId: ' Ä/+=?\n', locator: SESSION },
        observation: { remoteStatus: status, meaning: status === 'rejected' ? 'other' : expect.any(String) },
      });
    },
  );

  it('is resumed where its stream is cut behind an event id: the reply is had without a second call', async () => {
    scripted.script = (seen, response) => {
      openStream(response);
      if (seen.httpMethod === 'POST') {
        response.write(eventOf('', 'e1'), () => response.destroy());
        return;
      }
      response.end(
        eventOf(
          { jsonrpc: '2.0', id: scripted.seen[0]?.body.id, result: { task: taskJson('working') } },
          'e2',
        ),
      );
    };
    const submission = await submit('mcp/2025-11-25');
    expect(submission).toMatchObject({ kind: 'referenced', reference: { remoteId: 'task-1' } });
    expect(scripted.seen.map((seen) => [seen.httpMethod, seen.headers['last-event-id']])).toEqual([
      ['POST', undefined],
      ['GET', 'e1'],
    ]);
  });

  it('is Ambiguous where the server cannot resume the cut stream', async () => {
    scripted.script = (seen, response) => {
      if (seen.httpMethod === 'GET') return void response.writeHead(405).end();
      openStream(response);
      response.write(eventOf('', 'e1'), () => response.destroy());
    };
    expect((await faultOf(submit('mcp/2025-11-25'))).kind).toBe('Ambiguous');
    expect(scripted.sent('tools/call').length).toBe(1);
  });
});

describe('a plain call', () => {
  it('past its bound is Ambiguous, and nothing is cancelled', async () => {
    scripted.script = (seen, response) => {
      openStream(response);
      response.write(
        eventOf({ jsonrpc: '2.0', method: 'notifications/message', params: { n: seen.body.id } }),
      );
    };
    const fault = await faultOf(submit('synchronous', { synchronousBoundMs: 150 }));
    expect(fault).toMatchObject({ kind: 'Ambiguous', message: expect.stringContaining('150 ms') });
    expect(scripted.seen.length).toBe(1);
  });

  it('is bounded in the size of its reply', async () => {
    const megabyte = 'x'.repeat(1024 * 1024);
    scripted.script = (_, response) => {
      openStream(response);
      const flood = (): void => {
        while (!response.destroyed && response.write(`: ${megabyte}\n`));
        response.once('drain', flood);
      };
      response.on('error', () => undefined);
      flood();
    };
    const fault = await faultOf(submit('synchronous', { synchronousBoundMs: 30_000 }));
    expect(fault).toMatchObject({
      kind: 'Ambiguous',
      message: expect.stringContaining('more than 68157440 bytes'),
    });
  });

  it('shows only progress of its own token that grows', async () => {
    const said: string[] = [];
    const progress = (progressToken: unknown, value: number, more = {}) =>
      eventOf({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken, progress: value, ...more },
      });
    scripted.script = (seen, response) => {
      const token = (seen.body.params as { _meta: { progressToken: string } })._meta.progressToken;
      openStream(response);
      response.write(progress(token, 1) + progress('another', 5) + progress(token, 1) + progress(token, 0));
      response.write(progress(token, 2, { total: 4, message: 'half' }));
      response.end(eventOf({ jsonrpc: '2.0', id: seen.body.id, result: TOOL_RESULT }));
    };
    await submit('synchronous', {}, { onProgress: (message: string) => said.push(message) });
    expect(said).toEqual(['1', '2/4 half']);
  });

  it('answers ping, and refuses sampling, roots and questions, while it waits', async () => {
    const methods = ['ping', 'sampling/createMessage', 'roots/list', 'elicitation/create'];
    scripted.script = async (seen, response) => {
      if (seen.body.method !== 'tools/call') return void response.writeHead(202).end();
      openStream(response);
      for (const method of methods)
        response.write(eventOf({ jsonrpc: '2.0', id: `${method}!`, method, params: {} }));
      await scripted.until(() => scripted.seen.length === methods.length + 1);
      response.end(eventOf({ jsonrpc: '2.0', id: seen.body.id, result: TOOL_RESULT }));
    };
    expect((await submit('synchronous')).kind).toBe('answered');
    const replies = scripted.seen.slice(1).map(({ body }) => [body.id, body.result ?? body.error]);
    expect(new Map(replies as [string, unknown][])).toEqual(
      new Map<string, unknown>([
        ['ping!', {}],
        ...methods
          .slice(1)
          .map((method): [string, unknown] => [`${method}!`, expect.objectContaining({ code: -32601 })]),
      ]),
    );
  });

  it('cannot be looked up, cancelled or observed', async () => {
    const adapter = createProtocolRegistry().adapter('synchronous');
    const server = toolServer(scripted.url);
    const reference = { remoteId: 'x', locator: SESSION };
    expect((await adapter.findBySubmission(toolCall(server), SESSION, 0)).kind).toBe('cannotTell');
    expect(await adapter.cancel(server, reference, NO_HOOKS.afterSend)).toBe('unsupported');
    expect((await faultOf(adapter.observe(server, reference))).kind).toBe('ProtocolViolation');
    expect((await faultOf(adapter.fetchResult(server, reference))).kind).toBe('ProtocolViolation');
    expect(scripted.seen.length).toBe(0);
  });
});
