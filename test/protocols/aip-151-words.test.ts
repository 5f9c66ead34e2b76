// The words of AIP-151 byte by byte: what goes out for which declaration, and replies that no server of ours would write.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../operation/json.js';
import type { DeclaredMethod } from '../../protocols/declared-method.js';
import { submitRequest } from '../../protocols/aip-151/encode.js';
import {
  aip151,
  declaredCall,
  declaredMethod,
  faultOf,
  operationServer,
  sessionOf,
  submitCall,
} from './declared.js';
import { ScriptedServer, sendJson } from './scripted-server.js';

let scripted: ScriptedServer;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
});
afterEach(() => scripted.stop());

const server = (changes: Partial<DeclaredMethod> = {}, list: DeclaredMethod['operation']['list'] = null) =>
  operationServer(scripted.url, declaredMethod(changes, { list }));

/** Every request is answered by this. */
function answer(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): void {
  scripted.script = (_, response) => sendJson(response, status, value, headers);
}

async function seenAs(operation: JsonObject) {
  answer({ name: 'operations/1', ...operation });
  const own = server();
  return aip151().observe(own, { remoteId: 'operations/1', locator: await sessionOf(own) });
}

describe('a request', () => {
  const BASE = 'https://api.example/v1/';
  const args = {
    parent: 'projects/p',
    id: 'b/1',
    size: 3,
    tags: ['a', 'b&c'],
    spec: { deep: { x: null, y: true } },
  };
  const built = (changes: Partial<DeclaredMethod>, url = BASE) =>
    submitRequest(
      url,
      declaredMethod({ path: '/{parent=projects/*}/backups?backupId={id}', ...changes }),
      args,
    );

  it('has all that the path does not take in its body', () => {
    const { verb, url, body } = built({});
    expect([verb, url]).toEqual(['POST', 'https://api.example/v1/projects/p/backups?backupId=b%2F1']);
    expect(JSON.parse(body ?? '')).toEqual({ size: 3, tags: args.tags, spec: args.spec });
  });

  it('has one argument as its body, and the rest in the query, repeated and dotted', () => {
    const { url, body } = built({ verb: 'PATCH', body: 'spec' });
    expect(url).toBe('https://api.example/v1/projects/p/backups?backupId=b%2F1&size=3&tags=a&tags=b%26c');
    expect(JSON.parse(body ?? '')).toEqual(args.spec);
    expect(built({ body: 'absent' }).body).toBe('{}');
  });

  it('has everything in the query where there is no body', () => {
    const { url, body } = built({ verb: 'DELETE', body: null });
    expect(url).toBe(
      'https://api.example/v1/projects/p/backups?backupId=b%2F1&size=3&tags=a&tags=b%26c&spec.deep.y=true',
    );
    expect(body).toBeNull();
  });

  it('keeps the query of the server itself', () => {
    expect(built({ path: '/x', body: '*' }, 'https://api.example/v1?key=K%2B').url).toBe(
      'https://api.example/v1/x?key=K%2B',
    );
  });

  it('of the operation itself keeps it too, and cancels with an empty object', async () => {
    answer({});
    const own = { ...server(), url: `${scripted.url}?key=K` };
    const reference = { remoteId: 'operations/1', locator: await sessionOf(own) };
    expect(await aip151().cancel(own, reference, async () => {})).toBe('acknowledged');
    expect(scripted.seen).toMatchObject([
      { httpMethod: 'POST', body: {}, headers: { 'content-length': '2' } },
    ]);
  });
});

describe('a reply', () => {
  it.each([
    [{ done: null }, 'working'],
    [{ done: false, error: { code: 5 } }, 'working'],
    [{ done: true, response: null, error: null }, 'completed'],
    [{ done: true, response: {}, error: null }, 'completed'],
    [{ done: true, response: 'text' }, 'completed'],
    [{ done: true, response: null, error: { code: 1 } }, 'cancelled'],
    [{ done: true, error: { code: 77, message: 7 } }, 'failed'],
  ])('%j is %s', async (operation, meaning) => {
    expect(await seenAs(operation)).toMatchObject({ meaning });
  });

  it.each([
    [{ done: 'true' }],
    [{ done: 1 }],
    [{ done: true, error: { code: 0 } }],
    [{ done: true, error: { code: '1' } }],
    [{ done: true, error: 'CANCELLED' }],
    [{ name: 7 }],
    [{ name: '', done: false }],
  ])('%j breaks the contract', async (operation) => {
    expect(await faultOf(seenAs(operation as JsonObject))).toMatchObject({ kind: 'ProtocolViolation' });
  });

  it('with half a character in its name is ambiguous: that name could not be sent back', async () => {
    scripted.script = (_, response) =>
      void response.writeHead(200).end('{"name":"operations/\\ud83d","done":false}');
    expect(await faultOf(submitCall(declaredCall(server(), {})))).toMatchObject({ kind: 'Ambiguous' });
  });

  it('nested without end is ambiguous, and read without a stack', async () => {
    const depth = 200_000;
    scripted.script = (_, response) =>
      void response.writeHead(200).end(`{"name":"o/1","metadata":${'['.repeat(depth)}${']'.repeat(depth)}}`);
    expect(await faultOf(submitCall(declaredCall(server(), {})))).toMatchObject({ kind: 'Ambiguous' });
  });

  it.each([
    // The bare status of some gateways has the RPC code, AIP-193's envelope the HTTP status.
    [409, { code: 10, message: 'busy' }, 'RefusedByServer'],
    [409, { code: 6, message: 'there' }, 'Ambiguous'],
    [409, { error: { code: 409, status: 'ABORTED' } }, 'RefusedByServer'],
    [409, { error: { code: 10 } }, 'Ambiguous'],
    [429, { code: 8 }, 'RefusedByServer'],
    [200, { error: { code: 409, status: 'ABORTED' } }, 'Ambiguous'],
  ])('%i %j to a submission is %s', async (status, body, kind) => {
    answer(body, status);
    expect(await faultOf(submitCall(declaredCall(server(), {})))).toMatchObject({ kind });
  });

  it('cut in the middle of a refusal is still that refusal', async () => {
    scripted.script = (_, response) => {
      response.writeHead(403, { 'content-length': 500 }).write('{"error":', () => response.destroy());
    };
    expect(await faultOf(submitCall(declaredCall(server(), {})))).toMatchObject({ kind: 'RefusedByServer' });
  });
});

describe('a method that is UNIMPLEMENTED', () => {
  const LIST = { path: '/{parent=projects/*}/operations', match: {}, startedAt: '/at', idIsOurs: false };

  it.each([
    ['501 alone', 501, {}],
    ['the word', 400, { error: { status: 'UNIMPLEMENTED' } }],
    ['code 12 without an envelope', 500, { code: 12, message: 'no such method' }],
  ])('said by %s, is unsupported and no error', async (_, status, body) => {
    answer(body, status);
    const own = server({}, LIST);
    const reference = { remoteId: 'operations/1', locator: await sessionOf(own) };
    expect(await aip151().cancel(own, reference, async () => {})).toBe('unsupported');
    expect(await aip151().findBySubmission(declaredCall(own, {}), reference.locator, 1)).toEqual({
      kind: 'cannotTell',
      evidence: 'the server offers no such list',
    });
    await aip151().release(own, { ...reference.locator, deleteAfterReceipt: '/{name=**}' }, 'operations/1');
    expect(scripted.seen.map(({ httpMethod }) => httpMethod)).toEqual(['POST', 'GET', 'DELETE']);
  });
});

describe('a list', () => {
  const LIST = {
    path: '/{parent=projects/*}/operations',
    match: {},
    startedAt: '/metadata/startTime',
    idIsOurs: false,
  };
  const CLAIMED_AT = Date.parse('2026-05-01T12:00:00.400Z');
  const operation = (name: string, startTime: string) => ({ name, metadata: { startTime } });
  const find = async (value: unknown, date: string | null) => {
    const headers = date === null ? {} : { date };
    scripted.script = (_, response) => {
      response.sendDate = false;
      sendJson(response, 200, value, headers);
    };
    const own = server({}, LIST);
    return aip151().findBySubmission(declaredCall(own, {}), await sessionOf(own), CLAIMED_AT);
  };

  it('with two that may be ours tells neither', async () => {
    const operations = [
      operation('operations/1', '2026-05-01T12:00:00Z'),
      operation('operations/2', '2026-05-01T12:00:01Z'),
    ];
    expect(await find({ operations }, null)).toEqual({
      kind: 'cannotTell',
      evidence: '2 listed operations may be ours',
    });
    expect(await find({ operations: operations.slice(1) }, null)).toMatchObject({ kind: 'found' });
  });

  it('is read by the clock of its server: whose clock is ahead must not lend its older ones to us', async () => {
    const operations = [operation('operations/1', '2026-05-01T12:30:00Z')];
    expect(await find({ operations }, null)).toMatchObject({ kind: 'found' });
    // Its clock says an hour more than ours, so this one began half an hour before our claim.
    const ahead = new Date(Date.now() + 3_600_000).toUTCString();
    expect(await find({ operations }, ahead)).toMatchObject({ kind: 'cannotTell' });
  });

  it('larger than any that is read tells nothing, and is not asked for page by page', async () => {
    const many = Array.from({ length: 1_001 }, (_, n) =>
      operation(`operations/${n}`, '2020-01-01T00:00:00Z'),
    );
    const mine = operation('operations/mine', '2026-05-01T12:00:00Z');
    expect(await find({ operations: [mine, ...many] }, null)).toMatchObject({
      kind: 'cannotTell',
      evidence: expect.stringContaining('not whole') as string,
    });
    const padding = 'x'.repeat(3_000_000);
    expect(await find({ operations: [], padding, nextPageToken: 'again' }, null)).toMatchObject({
      kind: 'cannotTell',
      evidence: expect.stringContaining('bytes') as string,
    });
    // The second page would be past the bytes of a whole list.
    expect(scripted.seen).toHaveLength(3);
  });

  it('of nothing, or of what is none, tells nothing', async () => {
    for (const value of [{}, { operations: 'none' }, { operations: [7, null, { name: '' }] }]) {
      expect(await find(value, null)).toMatchObject({ kind: 'cannotTell' });
    }
  });

  it('that never ends is left after some pages', async () => {
    expect(await find({ operations: [], nextPageToken: 'again' }, null)).toMatchObject({
      kind: 'cannotTell',
    });
    expect(scripted.seen).toHaveLength(20);
  });
});
