// The adapter for jobs against scripted replies: what is found out before anything is sent, and what each exchange means, with
// a session and without. (job-decode.test.ts has the answers themselves.)

import type http from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JobSettings } from '../../operation/job-settings.js';
import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import { type Negotiated, type Negotiation, type ToolServer, WireFault } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import {
  NO_HOOKS,
  type Script,
  ScriptedServer,
  type SeenRequest,
  sendError,
  sendJson,
  sendResult,
  toolCall,
  toolServer,
} from './scripted-server.js';

const JOB: JobSettings = {
  idPointer: '/structuredContent/id',
  refusedByError: false,
  status: {
    tool: 'look',
    argument: 'id',
    pointer: '/structuredContent/state',
    words: { running: 'working', asks: 'inputRequired', done: 'completed', gone: 'notFound' },
    idPointer: null,
    messagePointer: null,
    interval: null,
  },
  result: { tool: 'get', argument: 'id', retryErrors: false },
  cancel: { tool: 'stop', argument: 'id' },
  input: {
    tool: 'say',
    argument: 'id',
    questionPointer: '/structuredContent/q',
    schemaPointer: null,
    key: { pointer: '/structuredContent/k', argument: 'key' },
  },
};

type Tools = Record<string, JsonObject>;
const takes = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  inputSchema: { type: 'object', additionalProperties: false, properties, ...more },
});
const TOOLS: Tools = {
  report: takes({ topic: { type: 'string' } }),
  look: takes({ id: { type: 'string' } }),
  get: {
    ...takes({ id: {} }),
    outputSchema: { type: 'object', properties: { rows: { type: 'integer' } } },
  },
  stop: takes({ id: {} }),
  say: takes({ id: {}, key: {}, choice: { enum: ['a', 'b'] } }, { required: ['id', 'key', 'choice'] }),
};

let scripted: ScriptedServer;
let server: ToolServer;
let tools: Tools;
let isModern: boolean;
/** What the tools of the job answer. */
let answers: Record<string, (args: JsonObject, seen: SeenRequest, response: http.ServerResponse) => void>;

beforeEach(async () => {
  scripted = await ScriptedServer.start();
  server = toolServer(scripted.url);
  tools = TOOLS;
  isModern = false;
  answers = {};
  scripted.script = respond;
});
afterEach(() => scripted.stop());

const respond: Script = (seen, response) => {
  const { method, params } = seen.body;
  if (seen.httpMethod === 'DELETE') return void response.writeHead(200).end();
  switch (method) {
    case 'server/discover':
      if (!isModern) return sendError(response, seen, -32601, 404);
      return sendResult(response, seen, { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } });
    case 'initialize': {
      const result = {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 's', version: '1' },
      };
      const envelope = { jsonrpc: '2.0', id: seen.body.id, result };
      return sendJson(response, 200, envelope, { 'mcp-session-id': 'session-1' });
    }
    case 'tools/list': {
      const listed = Object.entries(tools).map(([name, more]) => ({ name, ...more }));
      return sendResult(response, seen, { tools: listed });
    }
    case 'tools/call': {
      const args = (params?.['arguments'] ?? {}) as JsonObject;
      const answer = answers[String(params?.['name'])];
      return answer ? answer(args, seen, response) : sendError(response, seen, -32602);
    }
    default:
      return void response.writeHead(202).end();
  }
};

const said = (structuredContent: object, more: object = {}) => ({ content: [], structuredContent, ...more });
const answering = (value: object) => (_: JsonObject, seen: SeenRequest, response: http.ServerResponse) =>
  sendResult(response, seen, value);
const failing = answering({ content: [{ type: 'text', text: 'no' }], isError: true });

function negotiate(job: Partial<JobSettings> = {}, tool = 'report'): Promise<Negotiation> {
  return createProtocolRegistry().negotiate(server, tool, undefined, { ...JOB, ...job });
}

async function negotiated(job: Partial<JobSettings> = {}): Promise<Negotiated> {
  const found = await negotiate(job);
  if (found.kind !== 'negotiated') throw new Error(found.message);
  // Nothing is shared with a later process but what JSON carries.
  return JSON.parse(JSON.stringify(found.negotiated)) as Negotiated;
}

const adapter = () => createProtocolRegistry().adapter('mcp/job-tools');

async function started(job: Partial<JobSettings> = {}, id: unknown = 'job-7'): Promise<RemoteReference> {
  const { session } = await negotiated(job);
  answers['report'] = answering(said({ id }));
  const submission = await adapter().submit(toolCall(server), session, NO_HOOKS);
  if (submission.kind !== 'referenced') throw new Error(submission.kind);
  return JSON.parse(JSON.stringify(submission.reference)) as RemoteReference;
}

async function faultOf(promise: Promise<unknown>): Promise<WireFault> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!WireFault.isInstance(error)) throw new Error('no fault of the wire', { cause: error });
  return error;
}

const callsOf = (tool: string): readonly SeenRequest[] =>
  scripted.sent('tools/call').filter(({ body }) => body.params?.['name'] === tool);

describe('negotiation', () => {
  it.each([
    ['auto', true, true],
    ['auto', false, false],
    ['mcp/job-tools', true, true],
    ['mcp/2025-11-25', true, false],
    ['synchronous', true, false],
    ['mcp/2026-07-28', true, true],
  ] as const)(
    'under "%s" (2026-07-28 spoken: %s) is sessionless: %s',
    async (protocol, modern, isSessionless) => {
      isModern = modern;
      server = toolServer(scripted.url, { protocol });
      const found = await negotiated();
      expect(found).toMatchObject({ adapter: 'mcp/job-tools', hasTasks: true, canList: false });
      expect(found.session).toMatchObject({ isSessionless, job: { idPointer: '/structuredContent/id' } });
      expect(scripted.sent('initialize')).toHaveLength(isSessionless ? 0 : 1);
      expect(scripted.seen.filter(({ httpMethod }) => httpMethod === 'DELETE')).toHaveLength(0);
    },
  );

  it('knows that a job without a cancel tool cannot be asked to stop', async () => {
    expect((await negotiated()).canCancel).toBe(true);
    expect((await negotiated({ cancel: null })).canCancel).toBe(false);
  });

  it('under "mcp/2026-07-28" says so where the server does not speak it', async () => {
    server = toolServer(scripted.url, { protocol: 'mcp/2026-07-28' });
    expect(await negotiate()).toMatchObject({
      kind: 'unsupported',
      message: expect.stringContaining('set it to "auto"') as string,
    });
  });

  it('under "mcp/job-tools" wants a declaration for every tool', async () => {
    server = toolServer(scripted.url, { protocol: 'mcp/job-tools' });
    expect(await createProtocolRegistry().negotiate(server, 'report')).toEqual({
      kind: 'unsupported',
      message:
        'scripted: "protocol" is "mcp/job-tools", but the tool "report" has no "job" declaration. Declare it, or set "protocol" to "auto".',
    });
  });

  it('holds the result to what the tool that gives it publishes', async () => {
    expect((await negotiated()).outputSchema).toEqual(TOOLS['get']?.['outputSchema']);
    expect((await negotiated({ result: null })).outputSchema).toBeNull();
  });

  it('takes the reply to be the other arguments of the answer tool', async () => {
    const { session } = await negotiated();
    expect(session['replySchema']).toEqual({
      type: 'object',
      additionalProperties: false,
      properties: { choice: { enum: ['a', 'b'] } },
      required: ['choice'],
    });
  });

  it.each<[string, JsonObject, string]>([
    ['text', { type: 'string' }, 'string'],
    ['a whole number', { type: 'integer' }, 'number'],
    ['a number', { type: 'number' }, 'number'],
    ['either', { type: ['string', 'integer'] }, 'asGiven'],
    ['anything', {}, 'asGiven'],
  ])('keeps that the status tool takes an id as %s', async (_, id, idKind) => {
    tools = { ...TOOLS, look: takes({ id }) };
    expect((await negotiated()).session['idKind']).toBe(idKind);
  });

  const status = (more: Partial<JobSettings['status']>) => ({ status: { ...JOB.status, ...more } });
  const publishing = { outputSchema: { type: 'object', properties: { state: {}, k: {} } } };
  it.each<[string, Partial<JobSettings>, Tools, string]>([
    [
      'a status tool that is not there',
      status({ tool: 'lok' }),
      {},
      'job.status.tool: scripted has no tool "lok"; near: look',
    ],
    [
      'a cancel tool that is not there',
      { cancel: { tool: 'halt', argument: 'id' } },
      {},
      'job.cancel.tool: ',
    ],
    [
      'an argument that is not there',
      status({ argument: 'jobId' }),
      {},
      'job.status: the tool "look" has no argument "jobId"',
    ],
    [
      'a key argument that is not there',
      {},
      { say: takes({ id: {}, choice: {} }) },
      'job.input: the tool "say" has no argument "key"',
    ],
    [
      'a tool that needs more',
      {},
      { get: takes({ id: {}, page: {} }, { required: ['id', 'page'] }) },
      'job.result: the tool "get" needs the argument "page" too',
    ],
    [
      'a status that is not published',
      status({ pointer: '/structuredContent/status' }),
      { look: { ...TOOLS['look'], ...publishing } },
      'job.status.pointer: the tool "look" publishes no /structuredContent/status in its output',
    ],
    [
      'a question that is not published',
      {},
      { look: { ...TOOLS['look'], ...publishing } },
      'job.input.question: the tool "look" publishes no /structuredContent/q in its output',
    ],
    [
      'an id that is not published',
      {},
      { report: { ...TOOLS['report'], ...publishing } },
      'job.id: the tool publishes no /structuredContent/id in its output',
    ],
    [
      'a status tool that runs as a task only',
      {},
      { look: { ...TOOLS['look'], execution: { taskSupport: 'required' } } },
      'job.status.tool: "look" runs as a task only, and is needed as a plain call',
    ],
    [
      'a start tool that runs as a task only',
      {},
      { report: { ...TOOLS['report'], execution: { taskSupport: 'required' } } },
      'the tool "report" runs as a task only: take its "job" out',
    ],
    [
      'a reply that is too much to keep',
      {},
      { say: takes({ id: {}, key: {}, choice: { enum: ['x'.repeat(9_000)] } }) },
      'the arguments of "say" are too much: name job.input.schema',
    ],
  ])('refuses %s before anything is sent, and leaves no session', async (_, job, more, message) => {
    tools = { ...TOOLS, ...more };
    const found = await negotiate(job);
    expect(found).toMatchObject({ kind: 'unsupported' });
    expect(found.kind === 'unsupported' && found.message).toContain(`scripted: ${message}`);
    expect(scripted.seen.filter(({ httpMethod }) => httpMethod === 'DELETE')).toHaveLength(1);
    expect(scripted.sent('tools/call')).toHaveLength(0);
  });

  it('knows no start tool that is not published', async () => {
    expect(await negotiate({}, 'reports')).toMatchObject({ kind: 'unknownTool' });
  });
});

describe.each([
  ['in a session', false],
  ['without a session', true],
])('a job %s', (_, modern) => {
  beforeEach(() => {
    isModern = modern;
  });

  it('is started by a plain call that offers neither tasks nor questions', async () => {
    await started();
    const [call] = callsOf('report');
    const { params, headers } = { params: call?.body.params ?? {}, headers: call?.headers ?? {} };
    const meta = (params['_meta'] ?? {}) as JsonObject;
    expect(params).not.toHaveProperty('task');
    expect(meta['io.modelcontextprotocol/clientCapabilities']).toEqual(modern ? {} : undefined);
    expect(headers['mcp-session-id']).toBe(modern ? undefined : 'session-1');
  });

  it('is read, fetched, cancelled and answered under its own id, from the reference alone', async () => {
    const reference = await started();
    answers['look'] = answering(said({ state: 'asks', q: 'Which?', k: 3 }));
    const seen = await adapter().observe(server, reference);
    expect(seen).toMatchObject({ remoteStatus: 'asks', meaning: 'inputRequired' });
    const [question] = seen.questions ?? [];
    answers['say'] = answering(said({}));
    const order: string[] = [];
    const hooks = {
      beforeSend: async () => void order.push('before'),
      afterSend: async () => void order.push('after'),
    };
    const reply = { action: 'accept', content: { choice: 'a', id: 'job-8', key: 9 } } as const;
    expect(await adapter().answer(server, reference, question?.wire ?? {}, reply, hooks)).toBe('delivered');
    expect(order).toEqual(['before', 'after']);
    // Neither the id nor the key of the question can be chosen by who answers.
    expect(callsOf('say')[0]?.body.params?.['arguments']).toEqual({ choice: 'a', id: 'job-7', key: 3 });
    answers['stop'] = answering(said({ stopped: true }));
    expect(await adapter().cancel(server, reference, async () => {})).toBe('acknowledged');
    answers['get'] = answering(said({ rows: 3 }));
    expect(await adapter().fetchResult(server, reference)).toMatchObject({
      kind: 'result',
      result: { isToolError: false, structuredContent: { rows: 3 } },
    });
    for (const tool of ['look', 'stop', 'get'])
      expect(callsOf(tool)[0]?.body.params?.['arguments']).toEqual({ id: 'job-7' });
  });

  it('whose id is a number is asked for by that number', async () => {
    tools = { ...TOOLS, look: takes({ id: {} }) };
    const reference = await started({}, 7);
    expect(reference.remoteId).toBe('7');
    answers['look'] = answering(said({ state: 'running' }));
    await adapter().observe(server, reference);
    expect(callsOf('look')[0]?.body.params?.['arguments']).toEqual({ id: 7 });
  });

  it.each<[string, Script, string]>([
    ['isError', (seen, response) => sendResult(response, seen, { content: [], isError: true }), 'Ambiguous'],
    ['no id', (seen, response) => sendResult(response, seen, said({})), 'Ambiguous'],
    [
      'a task',
      (seen, response) => sendResult(response, seen, { task: { taskId: 't', status: 'working' } }),
      'Ambiguous',
    ],
    ['-32602', (seen, response) => sendError(response, seen, -32602), 'Ambiguous'],
    ['-32601', (seen, response) => sendError(response, seen, -32601), 'RefusedByServer'],
    ['503', (seen, response) => sendError(response, seen, -32601, 503), 'Ambiguous'],
  ])('whose start is answered with %s is %s', async (_answer, script, kind) => {
    const { session } = await negotiated();
    answers['report'] = (_args, seen, response) => void script(seen, response);
    expect((await faultOf(adapter().submit(toolCall(server), session, NO_HOOKS))).kind).toBe(kind);
    expect(callsOf('report')).toHaveLength(1);
  });

  it('whose start says isError is refused where that is declared', async () => {
    const { session } = await negotiated({ refusedByError: true });
    answers['report'] = failing;
    const fault = await faultOf(adapter().submit(toolCall(server), session, NO_HOOKS));
    expect([fault.kind, fault.message]).toEqual([
      'RefusedByServer',
      'tools/call: the tool says that it failed: no',
    ]);
  });

  it.each<[string, Script, string]>([
    ['isError', (seen, response) => sendResult(response, seen, { content: [], isError: true }), 'Transient'],
    [
      'the word for unknown',
      (seen, response) => sendResult(response, seen, said({ state: 'gone' })),
      'NotFound',
    ],
    ['no word', (seen, response) => sendResult(response, seen, said({})), 'ProtocolViolation'],
    ['-32603', (seen, response) => sendError(response, seen, -32603), 'Transient'],
    ['-32602', (seen, response) => sendError(response, seen, -32602), 'NotFound'],
    ['503', (_seen, response) => void response.writeHead(503).end(), 'Transient'],
    ['404', (_seen, response) => void response.writeHead(404).end(), modern ? 'Transient' : 'SessionLost'],
    [
      'more than a status may have',
      (seen, response) => sendResult(response, seen, said({ state: 'done', more: 'x'.repeat(1_200_000) })),
      'ProtocolViolation',
    ],
  ])('whose status is answered with %s: %s', async (_answer, script, kind) => {
    const reference = await started();
    answers['look'] = (_args, seen, response) => void script(seen, response);
    expect((await faultOf(adapter().observe(server, reference))).kind).toBe(kind);
  });

  it('without a cancel tool cannot be cancelled, and nothing is sent', async () => {
    const reference = await started({ cancel: null });
    expect(await adapter().cancel(server, reference, async () => {})).toBe('unsupported');
    expect(callsOf('stop')).toHaveLength(0);
  });

  it.each<[string, Script, string]>([
    ['isError', (seen, response) => sendResult(response, seen, { content: [], isError: true }), 'refused'],
    ['-32602', (seen, response) => sendError(response, seen, -32602), 'refused'],
    ['-32601', (seen, response) => sendError(response, seen, -32601), 'refused'],
    ['-32603', (seen, response) => sendError(response, seen, -32603), 'Transient'],
    ['no result', (seen, response) => sendResult(response, seen, {}), 'Transient'],
  ])('whose cancel is answered with %s: %s', async (_answer, script, end) => {
    const reference = await started();
    answers['stop'] = (_args, seen, response) => void script(seen, response);
    const cancelled = adapter().cancel(server, reference, async () => {});
    expect(await cancelled.catch((error: unknown) => (error as WireFault).kind)).toBe(end);
  });

  it("keeps a result that says isError, unless that is the tool's own trouble", async () => {
    answers['get'] = failing;
    const kept = await started();
    expect(await adapter().fetchResult(server, kept)).toMatchObject({
      kind: 'result',
      result: { isToolError: true },
    });
    const again = await started({ result: { tool: 'get', argument: 'id', retryErrors: true } });
    expect((await faultOf(adapter().fetchResult(server, again))).kind).toBe('Transient');
  });

  it.each<[string, Script, string]>([
    ['-32602', (seen, response) => sendError(response, seen, -32602), 'Transient'],
    ['-32603', (seen, response) => sendError(response, seen, -32603), 'Transient'],
    ['no tool result', (seen, response) => sendResult(response, seen, {}), 'ProtocolViolation'],
  ])('whose result is answered with %s: %s', async (_answer, script, kind) => {
    const reference = await started();
    answers['get'] = (_args, seen, response) => void script(seen, response);
    expect((await faultOf(adapter().fetchResult(server, reference))).kind).toBe(kind);
  });

  it.each([1_500_000, 4_000])(
    'whose result is larger than what may be taken (by %i bytes) is not taken',
    async (bytes) => {
      const reference = await started();
      answers['get'] = answering({ content: [{ type: 'text', text: 'x'.repeat(bytes) }] });
      expect(await adapter().fetchResult(server, reference, 2_000)).toMatchObject({ kind: 'tooLarge' });
    },
  );

  it('without a result tool is fetched by its status, and lost where that is unknown', async () => {
    const reference = await started({ result: null });
    answers['look'] = answering(said({ state: 'running' }));
    expect(await adapter().fetchResult(server, reference)).toEqual({ kind: 'notYet' });
    answers['look'] = answering(said({ state: 'done', rows: 3 }));
    expect(await adapter().fetchResult(server, reference)).toMatchObject({ kind: 'result' });
    expect(await adapter().fetchResult(server, reference, 10)).toMatchObject({ kind: 'tooLarge' });
    answers['look'] = answering(said({ state: 'gone' }));
    expect(await adapter().fetchResult(server, reference)).toMatchObject({ kind: 'lost' });
  });

  describe('that asks', () => {
    const HOOKS = { beforeSend: async () => {}, afterSend: async () => {} };
    const ACCEPT = { action: 'accept', content: { choice: 'a' } } as const;
    const asks = answering(said({ state: 'asks', q: 'Which?', k: 3 }));
    const goesOn = answering(said({ state: 'running' }));
    const WIRE = { wireKey: '3', key: 3 };

    it.each([
      ['works on', goesOn],
      ['asks something else', answering(said({ state: 'asks', q: 'Why?', k: 4 }))],
      ['is not known any more', answering(said({ state: 'gone' }))],
    ])('takes no reply where it %s', async (_how, look) => {
      const reference = await started();
      answers['look'] = look;
      expect(await adapter().answer(server, reference, WIRE, ACCEPT, HOOKS)).toBe('roundClosed');
      expect(callsOf('say')).toHaveLength(0);
    });

    it.each(['decline', 'cancel'] as const)(
      'has no words for "%s": refused, nothing sent',
      async (action) => {
        const reference = await started();
        answers['look'] = asks;
        const reply = { action, content: null };
        const fault = await faultOf(adapter().answer(server, reference, WIRE, reply, HOOKS));
        expect([fault.kind, fault.message]).toEqual([
          'RefusedByServer',
          `"${action}" is nothing that say takes`,
        ]);
        expect(callsOf('say')).toHaveLength(0);
      },
    );

    it('and says that it failed has refused the reply only if it still asks', async () => {
      const reference = await started();
      answers['look'] = asks;
      answers['say'] = failing;
      const fault = await faultOf(adapter().answer(server, reference, WIRE, ACCEPT, HOOKS));
      expect([fault.kind, fault.message]).toEqual([
        'RefusedByServer',
        'say: the tool says that it failed: no',
      ]);
      answers['say'] = (args, seen, response) => {
        answers['look'] = goesOn;
        failing(args, seen, response);
      };
      expect(await adapter().answer(server, reference, WIRE, ACCEPT, HOOKS)).toBe('delivered');
    });

    it.each<[string, Script, string]>([
      ['-32603', (seen, response) => sendError(response, seen, -32603), 'Transient'],
      ['404', (_seen, response) => void response.writeHead(404).end(), 'Transient'],
      ['-32602', (seen, response) => sendError(response, seen, -32602), 'RefusedByServer'],
      ['no tool result', (seen, response) => sendResult(response, seen, {}), 'Transient'],
    ])('and answers the reply with %s: %s', async (_answer, script, kind) => {
      const reference = await started();
      answers['look'] = asks;
      answers['say'] = (_args, seen, response) => void script(seen, response);
      expect((await faultOf(adapter().answer(server, reference, WIRE, ACCEPT, HOOKS))).kind).toBe(kind);
    });
  });

  it('is reached through a new session by the same declaration', async () => {
    const reference = await started();
    const renewed = await adapter().renewSession(server, reference);
    expect(renewed.remoteId).toBe(reference.remoteId);
    expect(renewed.locator).toEqual(reference.locator);
    expect(scripted.sent('initialize')).toHaveLength(modern ? 0 : 2);
    await adapter().release(server, renewed.locator);
    expect(scripted.seen.filter(({ httpMethod }) => httpMethod === 'DELETE')).toHaveLength(modern ? 0 : 1);
  });

  it('is found by its key with the kind of its id, by the look-up tool alone', async () => {
    tools = { ...TOOLS, look: takes({ id: {} }) };
    const { session } = await negotiated();
    const lookUp = {
      keyPlace: 'argument',
      tool: 'find',
      argument: 'ref',
      idPointer: '/structuredContent/id',
      provesAbsence: true,
      settleAfterMs: 0,
    } as const;
    const call = toolCall(server, { submissionPolicy: 'lookup-tool', keyName: 'ref', lookUp });
    answers['find'] = answering(said({ id: 7 }));
    const found = await adapter().findBySubmission(call, session, 0);
    if (found.kind !== 'found') throw new Error(found.kind);
    answers['look'] = answering(said({ state: 'running' }));
    await adapter().observe(server, found.reference);
    expect(callsOf('look')[0]?.body.params?.['arguments']).toEqual({ id: 7 });
    const blind = await adapter().findBySubmission(toolCall(server), session, 0);
    expect(blind).toMatchObject({ kind: 'cannotTell' });
  });
});

describe('a stored reference', () => {
  it('without its declaration breaks the contract, and nothing is sent', async () => {
    const fault = await faultOf(adapter().observe(server, { remoteId: 'job-7', locator: {} }));
    expect(fault.kind).toBe('ProtocolViolation');
    expect(scripted.seen).toHaveLength(0);
  });
});
