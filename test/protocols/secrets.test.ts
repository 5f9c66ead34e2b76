// Owns the proof that no configured credential comes back out of the adapters, whatever a server echoes.
// Must never plant a secret in what has to stay as it is (ids, schema structure) and then call that a leak.

import type http from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ToolAdapter, ToolServer, WireQuestion } from '../../protocols/adapter.js';
import { redactorOf } from '../../protocols/redact.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import {
  eventOf,
  NO_HOOKS,
  openStream,
  ScriptedServer,
  type SeenRequest,
  sendJson,
  sendResult,
  SESSION,
  taskJson,
  toolCall,
  toolServer,
} from './scripted-server.js';

const TOKEN = 'Tok-3n.Secret+Value/9==';
const SECRETS = [
  TOKEN,
  'alice:pa55:word',
  'pa55:word',
  'CookieSecret9',
  'Qu3ry Secret&x',
  'Ur1-P@ssword',
] as const;
const HEADERS = {
  authorization: `Bearer ${TOKEN}`,
  'x-upstream': `Basic ${Buffer.from('alice:pa55:word').toString('base64')}`,
  cookie: 'sid=CookieSecret9; theme=dark',
};

/** Every spelling in which a server could quote them. */
const SPELLINGS = [
  ...SECRETS.flatMap((secret) => [
    secret,
    secret.toLowerCase(),
    secret.toUpperCase(),
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
    Buffer.from(secret).toString('base64url'),
  ]),
  ...Object.values(HEADERS),
  'Qu3ry+Secret%26x',
];
const ECHO = `<${SPELLINGS.join('> <')}>`;
const LINK = `https://example.com/consent?of=${encodeURIComponent(TOKEN)}&pw=${encodeURIComponent('Ur1-P@ssword')}`;

let scripted: ScriptedServer;
let adapter: ToolAdapter;
let server: ToolServer;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
  adapter = createProtocolRegistry().adapter('mcp/2025-11-25');
  const url = new URL(scripted.url);
  url.username = 'bob';
  url.password = 'Ur1-P@ssword';
  url.searchParams.set('api_key', 'Qu3ry Secret&x');
  server = toolServer(url.href, { headers: HEADERS });
});
afterEach(() => scripted.stop());

function expectNoLeak(said: unknown): void {
  const text = said instanceof Error ? `${said.message} ${said.stack} ${JSON.stringify(said)}` : '';
  const all = `${text} ${JSON.stringify(said)}`.toLowerCase();
  expect(all).toContain('[redacted]');
  for (const spelling of SPELLINGS) expect(all).not.toContain(spelling.toLowerCase());
}

async function saidBy(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error: unknown) => error);
}

const REFERENCE = { remoteId: 'task-1', locator: SESSION };
const HOOKS = { beforeSend: async () => undefined, afterSend: async () => undefined };
const NONE_KNOWN = { anchor: null, wireKeys: [] };
const ANCHORED = { anchor: { sessionId: 'session-1', eventId: 'e1' }, wireKeys: [] };
const answer = () =>
  adapter.answer(server, REFERENCE, { jsonRpcId: 0, sessionId: 'session-1' }, DECLINE, HOOKS);
const DECLINE = { action: 'decline', content: null } as const;

/** What each method does with the server's word, however it comes. */
const ASKS = {
  negotiate: () => createProtocolRegistry().negotiate(server, 'report'),
  submit: () => adapter.submit(toolCall(server), SESSION, NO_HOOKS),
  'plain submit': () =>
    createProtocolRegistry().adapter('synchronous').submit(toolCall(server), SESSION, NO_HOOKS),
  findBySubmission: () => adapter.findBySubmission(toolCall(server), SESSION, 0),
  observe: () => adapter.observe(server, REFERENCE),
  renewSession: () => adapter.renewSession(server, REFERENCE),
  pickUpQuestions: () => adapter.pickUpQuestions(server, REFERENCE, NONE_KNOWN, async () => undefined),
  'replayed questions': () => adapter.pickUpQuestions(server, REFERENCE, ANCHORED, async () => undefined),
  answer,
  cancel: () => adapter.cancel(server, REFERENCE, async () => undefined),
  fetchResult: () => adapter.fetchResult(server, REFERENCE),
} satisfies Record<string, () => Promise<unknown>>;
type Ask = keyof typeof ASKS;

function greeting(more: Record<string, unknown> = {}) {
  const capabilities = { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
  return { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: ECHO, version: ECHO }, ...more };
}

function publishing(tool: Record<string, unknown>, more: Record<string, unknown> = {}) {
  scripted.script = (seen, response) => {
    if (seen.body.method === 'initialize') return sendResult(response, seen, greeting(more));
    if (seen.body.method === 'tools/list') return sendResult(response, seen, { tools: [tool] });
    if (seen.body.method === 'tasks/list') return sendResult(response, seen, { tasks: [] });
    return void response.writeHead(202).end();
  };
}

describe('a credential that the server echoes', () => {
  it.each(Object.keys(ASKS) as Ask[])('in an error is not in what %s throws', async (name) => {
    const error = { code: -32000, message: ECHO, data: { elicitations: [{ url: LINK }] } };
    scripted.script = (seen, response) => {
      if (name === 'answer' && seen.body.method === 'tasks/get')
        return sendResult(response, seen, taskJson('input_required'));
      return sendJson(response, 403, {
        jsonrpc: '2.0',
        id: seen.httpMethod === 'GET' ? null : (seen.body.id ?? null),
        error,
      });
    };
    // The codes of an error while fetching are read without its words.
    if (name === 'fetchResult') expect(JSON.stringify(await saidBy(ASKS[name]()))).not.toContain('Secret');
    else expectNoLeak(await saidBy(ASKS[name]()));
  });

  it.each(['submit', 'observe', 'cancel'] as const)(
    'in the link of -32042 is not in what %s throws',
    async (name) => {
      scripted.script = (seen, response) =>
        sendJson(response, 200, {
          jsonrpc: '2.0',
          id: seen.body.id,
          error: { code: -32042, message: 'open', data: { elicitations: [{ url: LINK }] } },
        });
      const said = await saidBy(ASKS[name]());
      expectNoLeak(said);
      expect((said as Error).message).toContain('https://example.com/consent?of=[redacted]');
    },
  );

  it.each(['negotiate', 'submit', 'observe', 'renewSession', 'cancel'] as const)(
    'in a content type is not in what %s throws, although it is lower-cased there and clipped',
    async (name) => {
      scripted.script = (_, response) =>
        void response
          .writeHead(200, { 'content-type': `text/${'x'.repeat(40)}-${TOKEN} ${TOKEN}` })
          .end('no JSON');
      const said = await saidBy(ASKS[name]());
      expectNoLeak(said);
      expect((said as Error).message.toLowerCase()).not.toContain('tok-3n');
    },
  );

  it('as its protocol version is not in the reason why it is not supported', async () => {
    publishing({}, { protocolVersion: ECHO });
    const negotiation = await ASKS.negotiate();
    expect(negotiation).toMatchObject({ kind: 'unsupported' });
    expectNoLeak(negotiation);
    expectNoLeak(await saidBy(ASKS.renewSession()));
  });

  it('as names of tools is not in the hint at the nearest', async () => {
    publishing({ name: TOKEN, inputSchema: { type: 'object' } });
    const negotiation = await ASKS.negotiate();
    expect(negotiation).toMatchObject({ kind: 'unknownTool' });
    expectNoLeak(negotiation);
  });

  it('in its version and in the texts of a tool is not in what was negotiated', async () => {
    const schema = { type: 'object', description: ECHO, properties: { title: { title: ECHO } } };
    const tool = { name: 'report', description: ECHO, inputSchema: schema, outputSchema: schema };
    publishing({ ...tool, execution: { taskSupport: 'optional' } });
    const negotiation = await ASKS.negotiate();
    expect(negotiation).toMatchObject({ kind: 'negotiated' });
    expectNoLeak(negotiation);
  });

  it.each([
    ['a known word', 'working'],
    ['an echo', ECHO],
  ])('in a task whose status is %s is not in the observation', async (_, status) => {
    const task = taskJson(status, { statusMessage: ECHO });
    scripted.script = (seen, response) =>
      sendResult(response, seen, seen.body.method === 'tools/call' ? { task } : task);
    expectNoLeak(await adapter.observe(server, REFERENCE));
    expectNoLeak(await adapter.submit(toolCall(server), SESSION, NO_HOOKS));
  });

  it('in progress is not shown, and in the result stays, byte for byte', async () => {
    const shown: string[] = [];
    const result = { content: [{ type: 'text', text: ECHO }] };
    scripted.script = (seen, response) => {
      openStream(response);
      const meta = (seen.body.params as { _meta: { progressToken: string } })['_meta'];
      const params = { progressToken: meta.progressToken, progress: 1, message: ECHO };
      response.write(eventOf({ jsonrpc: '2.0', method: 'notifications/progress', params }));
      response.end(eventOf({ jsonrpc: '2.0', id: seen.body.id, result }));
    };
    const hooks = { ...NO_HOOKS, onProgress: (message: string) => void shown.push(message) };
    const plain = createProtocolRegistry().adapter('synchronous');
    const submission = await plain.submit(toolCall(server), SESSION, hooks);
    expectNoLeak(shown);
    const bytes = submission.kind === 'answered' ? submission.result.bytes : new Uint8Array();
    expect(Buffer.from(bytes).toString()).toBe(JSON.stringify(result));
  });

  it('in a question is not asked, and the structure of its schema stays', async () => {
    const requestedSchema = {
      type: 'object',
      title: ECHO,
      properties: {
        title: { type: 'string', description: ECHO, enum: ['a', 'b'], enumNames: [ECHO, 'B'] },
        pick: { oneOf: [{ const: 'x', title: ECHO }] },
      },
      required: ['title'],
    };
    const picked = await questionsFrom([
      { message: ECHO, requestedSchema },
      { mode: 'url', message: 'Open', url: LINK, elicitationId: 'e' },
    ]);
    expect(picked.length).toBe(2);
    for (const question of picked) expectNoLeak(question);
    expect(picked[0]?.question.schema).toMatchObject({
      properties: { title: { enum: ['a', 'b'], enumNames: [expect.any(String), 'B'] } },
      required: ['title'],
    });
    expect(picked[1]?.question.url).toBe('https://example.com/consent?of=[redacted]&pw=[redacted]');
  });
});

async function questionsFrom(params: readonly object[]): Promise<readonly WireQuestion[]> {
  scripted.script = (seen: SeenRequest, response: http.ServerResponse) => {
    if (seen.body.method === undefined) return void response.writeHead(202).end();
    openStream(response);
    for (const [id, one] of params.entries())
      response.write(eventOf({ jsonrpc: '2.0', id, method: 'elicitation/create', params: one }));
  };
  const picked: WireQuestion[] = [];
  await adapter.pickUpQuestions(server, REFERENCE, NONE_KNOWN, async (question) => {
    picked.push(question);
  });
  return picked;
}

describe('the redactor', () => {
  const redact = (headers: Record<string, string>, text: string, url = 'http://127.0.0.1/mcp') =>
    redactorOf(toolServer(url, { headers }))(text);

  it('leaves short values and other texts alone', () => {
    expect(redact({ 'x-tier': 'gold', accept: '' }, 'gold plan')).toBe('gold plan');
    expect(redact({}, 'anything', 'not a url')).toBe('anything');
  });

  it('takes patterns in a credential literally', () => {
    expect(redact({ 'x-key': '.*a+(b)[c]' }, 'x .*a+(b)[c] y aab')).toBe('x [redacted] y aab');
  });

  it('takes the whole before its parts', () => {
    expect(redact({ authorization: 'Bearer abcdefgh' }, 'is "Bearer abcdefgh", abcdefgh')).toBe(
      'is "[redacted]", [redacted]',
    );
  });

  it('leaves no half of a character, which could not be digested', () => {
    expect(redact({}, 'a\ud800b \u{1F600}')).toBe('a\ufffdb \u{1F600}');
  });

  it('is one per server', () => {
    expect(redactorOf(server)).toBe(redactorOf(server));
  });
});
