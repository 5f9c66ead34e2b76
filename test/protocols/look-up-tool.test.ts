// Owns what the answer of a look-up tool means on the wire: named, absent or unreadable; and how it is asked.
// Must never let anything but a whole answer without an error count as "absent".

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import type { AdapterName } from '../../operation/names.js';
import type { LookUpSettings } from '../../operation/row.js';
import { type LookUp, WireFault } from '../../protocols/adapter.js';
import { idAt } from '../../protocols/mcp/answer-members.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import {
  NO_HOOKS,
  type Script,
  ScriptedServer,
  sendError,
  sendJson,
  sendResult,
  SESSION,
  toolCall,
  toolServer,
} from './scripted-server.js';

const LOOK_UP: LookUpSettings = {
  keyPlace: 'argument',
  tool: 'find_work',
  argument: 'clientRef',
  idPointer: '/structuredContent/jobId',
  provesAbsence: true,
  settleAfterMs: 30_000,
};

const text = (said: string): JsonObject => ({ content: [{ type: 'text', text: said }] });
const structured = (value: unknown): JsonObject =>
  ({ content: [], structuredContent: value }) as unknown as JsonObject;

describe('the id in an answer', () => {
  it.each<[string, JsonObject, string, string]>([
    ['structured', structured({ jobId: 'job-7' }), '/structuredContent/jobId', 'job-7'],
    ['exactly as said', structured({ jobId: ' Ä/+=?\n' }), '/structuredContent/jobId', ' Ä/+=?\n'],
    ['deep', structured({ 'a/b': [{ '~': 'x' }] }), '/structuredContent/a~1b/0/~0', 'x'],
    ['in the JSON of the first text', text('{"job":{"id":"j"}}'), '/job/id', 'j'],
    ['the text itself', text('job-7'), '/content/0/text', 'job-7'],
  ])('is %s', (_, result, pointer, remoteId) => {
    expect(idAt(result, pointer)).toEqual({ kind: 'named', remoteId });
  });

  it.each<[JsonValue, string]>([
    [70, '70'],
    [0, '0'],
    [-3, '-3'],
  ])('is a number, %s, and known to be one', (jobId, remoteId) => {
    const said = idAt(structured({ jobId }), '/structuredContent/jobId');
    expect(said).toEqual({ kind: 'named', remoteId, isNumber: true });
  });

  it.each<[string, JsonObject, string]>([
    ['null', structured({ jobId: null }), '/structuredContent/jobId'],
    ['empty', structured({ jobId: '' }), '/structuredContent/jobId'],
    ['missing', structured({}), '/structuredContent/jobId'],
    ['below null', structured({ job: null }), '/structuredContent/job/id'],
    ['in an empty list', text('{"jobs":[]}'), '/jobs/0/id'],
    ['null as a whole', text('null'), '/jobId'],
    ['only inherited', structured({}), '/structuredContent/constructor'],
  ])('is absent where it is %s', (_, result, pointer) => {
    expect(idAt(result, pointer)).toEqual({ kind: 'absent' });
  });

  it.each<[string, JsonObject, string]>([
    ['there is no structured content', text('{"jobId":"j"}'), '/structuredContent/jobId'],
    ['the structured content is null', structured(null), '/structuredContent/jobId'],
    ['the text is not JSON', text('database is down'), '/jobId'],
    ['there is no text', structured({ jobId: 'j' }), '/jobId'],
    ['a text stands in the way', structured({ job: 'none' }), '/structuredContent/job/id'],
    ['a list is asked for a name', structured({ jobs: [] }), '/structuredContent/jobs/first'],
    ['an object stands there', structured({ jobId: {} }), '/structuredContent/jobId'],
    ['false stands there', structured({ jobId: false }), '/structuredContent/jobId'],
    ['the number is not whole', structured({ jobId: 1.5 }), '/structuredContent/jobId'],
    ['the number is not exact', structured({ jobId: 2 ** 53 }), '/structuredContent/jobId'],
    ['half a character stands there', structured({ jobId: 'a\ud800' }), '/structuredContent/jobId'],
    ['it is longer than an id', structured({ jobId: 'x'.repeat(4_097) }), '/structuredContent/jobId'],
  ])('cannot be read where %s', (_, result, pointer) => {
    expect(idAt(result, pointer)).toMatchObject({ kind: 'unreadable' });
  });
});

let scripted: ScriptedServer;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
});
afterEach(() => scripted.stop());

const GREETING = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 's', version: '1' },
};

/** Greets, and answers the look-up as the test says. */
function answering(answer: Script): Script {
  return (seen, response) => {
    if (seen.httpMethod === 'DELETE') return void response.writeHead(200).end();
    if (seen.body.method === 'initialize') {
      const envelope = { jsonrpc: '2.0', id: seen.body.id, result: GREETING };
      return sendJson(response, 200, envelope, { 'mcp-session-id': 'session-of-the-look' });
    }
    if (seen.body.method === 'tools/call') return answer(seen, response);
    response.writeHead(202).end();
  };
}

function lookUp(adapter: AdapterName, more: Partial<LookUpSettings> = {}): Promise<LookUp> {
  const call = toolCall(toolServer(scripted.url), {
    submissionPolicy: 'lookup-tool',
    keyName: 'clientRef',
    lookUp: { ...LOOK_UP, ...more },
  });
  return createProtocolRegistry().adapter(adapter).findBySubmission(call, SESSION, 0);
}

describe.each<AdapterName>(['mcp/2025-11-25', 'synchronous'])('a look-up by tool on %s', (adapter) => {
  it('is a plain call with the key, in a session of its own that is ended', async () => {
    scripted.script = answering((seen, response) => sendResult(response, seen, structured({ jobId: null })));
    await lookUp(adapter);
    const [call] = scripted.sent('tools/call');
    expect(call?.body.params).toEqual({ name: 'find_work', arguments: { clientRef: 'dtc-key' } });
    expect(call?.headers['mcp-session-id']).toBe('session-of-the-look');
    const ended = scripted.seen.filter((seen) => seen.httpMethod === 'DELETE');
    expect(ended.map((seen) => seen.headers['mcp-session-id'])).toEqual(['session-of-the-look']);
  });

  it('proves absence only where the configuration declares that it does', async () => {
    scripted.script = answering((seen, response) => sendResult(response, seen, structured({ jobId: null })));
    expect(await lookUp(adapter)).toEqual({
      kind: 'provedAbsent',
      evidence: 'find_work knows no work under the submission key',
    });
    expect(await lookUp(adapter, { provesAbsence: false })).toMatchObject({ kind: 'cannotTell' });
  });

  it.each<[string, Script]>([
    [
      'says that it failed',
      (seen, response) => sendResult(response, seen, { ...structured({ jobId: null }), isError: true }),
    ],
    ['is no tool result', (seen, response) => sendResult(response, seen, {})],
    [
      'is a task',
      (seen, response) => sendResult(response, seen, { task: { taskId: 't', status: 'working' } }),
    ],
    ['says that there is no such tool', (seen, response) => sendError(response, seen, -32602)],
    ['says that it runs as a task only', (seen, response) => sendError(response, seen, -32601)],
  ])('cannot tell where the answer %s', async (_, script) => {
    scripted.script = answering(script);
    expect(await lookUp(adapter)).toMatchObject({ kind: 'cannotTell' });
  });

  it.each<[string, Script]>([
    ['503', (_, response) => void response.writeHead(503, { 'retry-after': '7' }).end()],
    ['-32603', (seen, response) => sendError(response, seen, -32603)],
    ['no byte', (_, response) => void response.destroy()],
    ['a lost session', (_, response) => void response.writeHead(404).end()],
  ])('is tried again after %s', async (_, script) => {
    scripted.script = answering(script);
    const fault = await lookUp(adapter).catch((error: unknown) => error);
    expect(WireFault.isInstance(fault) && fault.kind).toBe('Transient');
  });
});

describe('work that is found', () => {
  beforeEach(() => {
    scripted.script = answering((seen, response) =>
      sendResult(response, seen, structured({ jobId: 'job-7' })),
    );
  });

  it('is a reference in the session of the operation, not in that of the look', async () => {
    expect(await lookUp('mcp/2025-11-25')).toEqual({
      kind: 'found',
      reference: { remoteId: 'job-7', locator: SESSION },
    });
  });

  it('of a plain call was started and cannot be led to its end', async () => {
    expect(await lookUp('synchronous')).toEqual({
      kind: 'cannotTell',
      evidence: 'it was started, as job-7; a plain call has no way back',
    });
  });
});

it.each([
  ['argument', { topic: 'x', clientRef: 'dtc-key' }, undefined],
  ['meta', { topic: 'x' }, { clientRef: 'dtc-key' }],
] as const)('the submission itself carries the key as %s', async (keyPlace, args, meta) => {
  scripted.script = (seen, response) => sendResult(response, seen, text('done'));
  const call = toolCall(toolServer(scripted.url), {
    submissionPolicy: 'lookup-tool',
    keyName: 'clientRef',
    lookUp: { ...LOOK_UP, keyPlace },
  });
  await createProtocolRegistry().adapter('mcp/2025-11-25').submit(call, SESSION, NO_HOOKS);
  const [sent] = scripted.sent('tools/call');
  expect(sent?.body.params?.['arguments']).toEqual(args);
  expect(sent?.body.params?.['_meta']).toEqual(meta);
});
