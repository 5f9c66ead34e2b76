/** Owns: what `operationServers` in `tool-servers.json` may say, and the words for what it may not. */
import { describe, expect, it } from 'vitest';
import { negotiateDeclared } from '../../protocols/aip-151/negotiate.js';
import { inspectServer } from '../../worker/inspect-server.js';
import { preflight } from '../../worker/preflight.js';
import {
  type ConfiguredServer,
  loadToolServers,
  parseToolServers,
  policyOf,
} from '../../worker/tool-servers.js';
import { refusal } from './refusal.js';

const URL = 'https://spanner.example/v1';
const AT = 'operationServers.spanner';
const TOOL = `${AT}.durable.tools.backup`;

const LIST = { path: '/{parent=projects/*}/backups/{id}/operations', startedAt: '/metadata/startTime' };
const METHOD = { path: '/{parent=projects/*}/backups?backupId={id}' };

function entry(method: object, more: object = {}, durable: object = {}): object {
  return { url: URL, ...more, durable: { ...durable, tools: { backup: { ...METHOD, ...method } } } };
}

function parse(spanner: unknown, env: Record<string, string> = {}): ConfiguredServer {
  const { servers, notes } = parseToolServers({ operationServers: { spanner } }, env);
  expect(notes).toEqual([]);
  const configured = servers.get('spanner');
  if (!configured) throw new Error('no server');
  return configured;
}

describe('a server of declared methods', () => {
  it('needs a url and one path; all the rest follows the custom of AIP-151', () => {
    expect(parse(entry({}))).toEqual({
      server: {
        name: 'spanner',
        url: URL,
        headers: {},
        protocol: 'aip-151',
        maxPollsPerSecond: 1,
        trustAnnotations: false,
        methods: {
          backup: {
            verb: 'POST',
            path: METHOD.path,
            body: '*',
            headers: {},
            requestIdField: null,
            inputSchema: null,
            operation: {
              get: '/{name=**}',
              cancel: '/{name=**}:cancel',
              deleteAfterReceipt: null,
              list: null,
              pollIntervalMs: 5_000,
            },
          },
        },
      },
      tools: {
        backup: {
          waitBudgetMs: null,
          synchronousBoundMs: null,
          submission: null,
          sideEffects: 'unknown',
          onUnresolved: { kind: 'hold' },
        },
      },
      unavailable: null,
    });
  });

  it('takes the example of this repository', async () => {
    const file = new globalThis.URL('../../examples/operation-servers.json', import.meta.url).pathname;
    const { servers, notes } = await loadToolServers(file, { SPANNER_TOKEN: 't' });
    expect(notes).toEqual([]);
    const spanner = servers.get('spanner');
    expect(spanner).toMatchObject({ server: { url: 'https://spanner.googleapis.com/v1' } });
    expect(policyOf(spanner, 'create-backup')).toMatchObject({
      waitBudgetMs: 6 * 3_600_000,
      submissionPolicy: 'key-argument',
      keyName: 'backupId',
      protocol: 'aip-151',
    });
  });

  it('bounds the results of all its methods, or of one', () => {
    const own = parse(entry({ maxResultBytes: 9_000 }, {}, { maxResultBytes: 5_000 }));
    expect(
      [own, parse(entry({}, {}, { maxResultBytes: 5_000 })), parse(entry({}))].map(
        (server) => policyOf(server, 'backup').maxResultBytes,
      ),
    ).toEqual([9_000, 5_000, undefined]);
  });

  it('is read in full', () => {
    const method = {
      method: 'PATCH',
      path: '/{backup.name=projects/*/backups/*}',
      body: 'backup',
      headers: { 'X-Goog-User-Project': '${PROJECT}' },
      requestIdField: 'requestId',
      requestIdWindow: '30m',
      inputSchema: { type: 'object', properties: { backup: { type: 'object' }, id: {}, parent: {} } },
      operation: {
        get: '/v2/{name=operations/**}',
        cancel: false,
        delete: '/v2/{name=operations/**}',
        list: { ...LIST, match: { '/metadata/@type': 'x/CreateBackupMetadata', '/metadata/name': '{id}' } },
      },
      deleteAfterReceipt: true,
      pollInterval: '2s',
      submission: { policy: 'request-id' },
      sideEffects: 'none',
      waitBudget: '2h',
      synchronousBound: '5s',
      onUnresolved: { closeAfter: '1d' },
    };
    const headers = { Authorization: 'Bearer ${TOKEN}' };
    const configured = parse(entry(method, { headers }, { maxPollsPerSecond: 2, pollInterval: '9s' }), {
      TOKEN: 't',
      PROJECT: 'p',
    });
    const { server, tools } = configured;
    expect(server).toMatchObject({ headers: { Authorization: 'Bearer t' }, maxPollsPerSecond: 2 });
    expect(server.methods?.['backup']).toEqual({
      verb: 'PATCH',
      path: method.path,
      body: 'backup',
      headers: { 'X-Goog-User-Project': 'p' },
      requestIdField: 'requestId',
      inputSchema: method.inputSchema,
      operation: {
        get: '/v2/{name=operations/**}',
        cancel: null,
        deleteAfterReceipt: '/v2/{name=operations/**}',
        list: { ...method.operation.list, idIsOurs: false },
        pollIntervalMs: 2_000,
      },
    });
    expect(tools['backup']).toEqual({
      waitBudgetMs: 7_200_000,
      synchronousBoundMs: 5_000,
      submission: { policy: 'request-id', keyName: 'requestId' },
      sideEffects: 'none',
      onUnresolved: { kind: 'closeAfter', afterMs: 86_400_000 },
      requestId: { field: 'requestId', windowMs: 1_800_000 },
    });
    expect(policyOf(configured, 'backup')).toMatchObject({
      protocol: 'aip-151',
      submissionPolicy: 'request-id',
      keyName: 'requestId',
      requestIdWindowMs: 1_800_000,
    });
  });

  it('takes its intervals from the server where a method has none', () => {
    const { server } = parse(entry({}, {}, { pollInterval: '9s' }));
    expect(server.methods?.['backup']?.operation.pollIntervalMs).toBe(9_000);
  });

  it.each([
    ['GET', undefined, null],
    ['DELETE', undefined, null],
    ['PUT', undefined, '*'],
    ['POST', null, null],
    ['POST', 'backup', 'backup'],
  ])('%s with body %j sends %j', (method, body, expected) => {
    const { server } = parse(entry({ method, ...(body === undefined ? {} : { body }) }));
    expect(server.methods?.['backup']?.body).toBe(expected);
  });

  it('stands beside servers of published tools, under a name of its own', () => {
    const json = { mcpServers: { search: { url: URL } }, operationServers: { spanner: entry({}) } };
    expect([...parseToolServers(json, {}).servers.keys()]).toEqual(['search', 'spanner']);
    const twice = { mcpServers: { spanner: { url: URL } }, operationServers: { spanner: entry({}) } };
    expect(refusal(twice).mistakes).toEqual([
      { path: AT, message: 'is the name of a server under "mcpServers" too; rename one of them' },
    ]);
  });

  it('is told where its map is misspelt', () => {
    expect(parseToolServers({ mcpServers: {}, operationServer: {} }, {}).notes).toEqual([
      'operationServer: is ignored; did you mean "operationServers"?',
    ]);
    expect(refusal({ operationServer: {} }).message).toBe(
      'mcpServers: must be an object with one key per server, each with a "url"; did you mean it by "operationServer"?',
    );
  });
});

describe('the policy after a lost reply', () => {
  const offeredBy = (method: object): unknown => {
    const { server } = parse(entry(method));
    const found = negotiateDeclared(server, 'backup');
    return found.kind === 'negotiated' ? found.negotiated.offered : found;
  };

  it('is what the declaration offers: a request id, else a list, else nothing', () => {
    expect(offeredBy({})).toBeUndefined();
    expect(offeredBy({ operation: { list: LIST } })).toBe('operation-list');
    expect(offeredBy({ requestIdField: 'requestId', operation: { list: LIST } })).toBe('request-id');
  });

  it('knows the field of the request id even where nothing is configured', () => {
    expect(policyOf(parse(entry({ requestIdField: 'requestId' })), 'backup')).toMatchObject({
      submissionPolicy: null,
      keyName: 'requestId',
      requestIdWindowMs: 3_600_000,
    });
  });
});

describe('what cannot be', () => {
  const TOOL_KEYS =
    '"method", "path", "body", "headers", "requestIdField", "requestIdWindow", "inputSchema", "operation", ' +
    '"deleteAfterReceipt", "pollInterval", "submission", "waitBudget", "synchronousBound", "maxResultBytes", "sideEffects" or "onUnresolved"';
  const OWN = 'must be a path like "/{name=**}:cancel"';
  const PATH = 'must be a path like "/{parent=projects/*}/things?thingId={id}"';
  const SCHEMA = { type: 'object', properties: { parent: {}, ident: {} } };
  it.each([
    ['no object', 7, AT, 'must be an object with the keys "url", "headers" or "durable"'],
    [
      'an unknown key',
      entry({}, { header: {} }),
      AT,
      'unknown key "header" (nearest: "headers"); allowed: "url", "headers" or "durable"',
    ],
    [
      'a token beside an Authorization of a method',
      entry({ headers: { authorization: 'x' } }, {}, { auth: { bearer: 't' } }),
      `${AT}.durable.auth`,
      'would replace the Authorization of "headers"; keep one of them',
    ],
    ['no url', { durable: { tools: {} } }, `${AT}.url`, 'must be a string'],
    [
      'nothing declared',
      { url: URL },
      `${AT}.durable`,
      'must be an object with the keys "auth", "maxPollsPerSecond", "pollInterval", "maxResultBytes" or "tools"',
    ],
    [
      'no methods',
      { url: URL, durable: {} },
      `${AT}.durable.tools`,
      'must be an object with one key per declared method',
    ],
    [
      'an unknown key of a method',
      entry({ paht: '/x' }),
      TOOL,
      `unknown key "paht" (nearest: "path"); allowed: ${TOOL_KEYS}`,
    ],
    ['no path', entry({ path: undefined }), `${TOOL}.path`, PATH],
    ['a path without a slash', entry({ path: 'x' }), `${TOOL}.path`, `${PATH}: it begins with "/"`],
    [
      'an unknown verb',
      entry({ method: 'post' }),
      `${TOOL}.method`,
      'must be "POST", "PUT", "PATCH", "DELETE" or "GET"',
    ],
    [
      'a strange body',
      entry({ body: '{id}' }),
      `${TOOL}.body`,
      'must be "*" (all arguments the path does not take), the name of one argument, or null for none',
    ],
    [
      'a GET with a body',
      entry({ method: 'GET', body: '*' }),
      `${TOOL}.body`,
      'a GET carries no body: leave it out',
    ],
    [
      'a method header of two lines',
      entry({ headers: { A: 'x\ny' } }),
      `${TOOL}.headers.A`,
      'is not a header that HTTP can carry: the name must be a token, the value visible Latin characters on one line',
    ],
    [
      'headers as a list',
      entry({ headers: [] }),
      `${TOOL}.headers`,
      'must be an object whose values are strings',
    ],
    [
      'an interval under the floor',
      entry({ pollInterval: '500ms' }),
      `${TOOL}.pollInterval`,
      'must be between "1s" and "5m"',
    ],
    [
      'an interval over the ceiling',
      entry({}, {}, { pollInterval: '10m' }),
      `${AT}.durable.pollInterval`,
      'must be between "1s" and "5m"',
    ],
    [
      'a schema that is none',
      entry({ inputSchema: [] }),
      `${TOOL}.inputSchema`,
      'must be a JSON schema (an object)',
    ],
    [
      'a schema that nobody could check',
      entry({ inputSchema: JSON.parse(`${'{"not":'.repeat(20)}{}${'}'.repeat(20)}`) as object }),
      `${TOOL}.inputSchema`,
      'the schema is nested deeper than 16',
    ],
    [
      'an operation path without its name',
      entry({ operation: { get: '/operations' } }),
      `${TOOL}.operation.get`,
      `${OWN}: its one variable is "name", the operation's`,
    ],
    [
      'an operation path with another variable',
      entry({ operation: { cancel: '/{parent=**}/{name=**}:cancel' } }),
      `${TOOL}.operation.cancel`,
      `${OWN}: its one variable is "name", the operation's`,
    ],
    [
      'a cancel that is neither',
      entry({ operation: { cancel: true } }),
      `${TOOL}.operation.cancel`,
      `${OWN}, or false where it is not offered`,
    ],
    ['a get that is not offered', entry({ operation: { get: false } }), `${TOOL}.operation.get`, OWN],
    [
      'a list that tells ours from no other',
      entry({ operation: { list: { path: LIST.path } } }),
      `${TOOL}.operation.list`,
      'needs "startedAt" (a JSON pointer to the time an operation began) or "idIsOurs": true (nobody else chooses ' +
        'this id), or an operation of somebody else would be taken for ours',
    ],
    [
      'a pointer that is none',
      entry({ operation: { list: { ...LIST, startedAt: 'metadata.startTime' } } }),
      `${TOOL}.operation.list.startedAt`,
      'must be a JSON pointer, e.g. "/metadata/createTime"',
    ],
    [
      'a match that is no text',
      entry({ operation: { list: { ...LIST, match: { '/a': 1 } } } }),
      `${TOOL}.operation.list.match["/a"]`,
      'must be an object of JSON pointers and the texts there, e.g. {"/metadata/database": "{database}"}',
    ],
    [
      'a match of no pointer',
      entry({ operation: { list: { ...LIST, match: { database: 'x' } } } }),
      `${TOOL}.operation.list.match.database`,
      'must be an object of JSON pointers and the texts there, e.g. {"/metadata/database": "{database}"}',
    ],
    [
      'a policy of published tools',
      entry({ submission: { policy: 'session-list' } }),
      `${TOOL}.submission.policy`,
      'must be an object whose "policy" is "request-id", "key-argument", "operation-list", "repeatable" or "at-most-once"',
    ],
    [
      'request-id without a field',
      entry({ submission: { policy: 'request-id' } }),
      `${TOOL}.submission.policy`,
      '"request-id" needs "requestIdField"',
    ],
    [
      'operation-list without a list',
      entry({ submission: { policy: 'operation-list' } }),
      `${TOOL}.submission.policy`,
      '"operation-list" needs "operation.list"',
    ],
    [
      'repeatable with side effects',
      entry({ submission: { policy: 'repeatable' } }),
      `${TOOL}.submission.policy`,
      '"repeatable" needs "sideEffects": "none" on the tool',
    ],
    [
      'a window of nothing',
      entry({ requestIdWindow: '30m' }),
      `${TOOL}.requestIdWindow`,
      'says how long "requestIdField" is remembered, which is missing',
    ],
    [
      'a delete that is not offered',
      entry({ deleteAfterReceipt: true, operation: { delete: false } }),
      `${TOOL}.deleteAfterReceipt`,
      'needs "operation.delete", which is false',
    ],
    [
      'a path that needs what the schema lacks',
      entry({ inputSchema: SCHEMA }),
      `${TOOL}.path`,
      'needs the argument "id", which "inputSchema" does not have (nearest: "ident")',
    ],
    [
      'a body that needs what the schema lacks',
      entry({ path: '/{parent}', inputSchema: SCHEMA, body: 'backup' }),
      `${TOOL}.body`,
      'needs the argument "backup", which "inputSchema" does not have (nearest: "parent")',
    ],
  ])('is told of %s', (_, spanner, path, message) => {
    const error = refusal({ operationServers: { spanner } });
    expect(error.mistakes).toEqual([{ path, message }]);
  });

  it('is told all at once', () => {
    const spanner = entry(
      { method: 'X', headers: { A: 7 }, waitBudget: '0s' },
      { url: 'x' },
      { maxPollsPerSecond: 0 },
    );
    const paths = refusal({ operationServers: { spanner } }).mistakes.map((mistake) => mistake.path);
    expect(paths.sort()).toEqual(
      [
        `${AT}.durable.maxPollsPerSecond`,
        `${TOOL}.headers.A`,
        `${TOOL}.method`,
        `${TOOL}.waitBudget`,
        `${AT}.url`,
      ].sort(),
    );
  });

  it('is told when the map itself is none', () => {
    expect(refusal({ operationServers: [] }).mistakes).toEqual([
      {
        path: 'operationServers',
        message:
          'must be an object with one key per server, each with a "url" and its methods in "durable.tools"',
      },
    ]);
  });

  it('never shows a value', () => {
    const headers = { A: '${SECRET}\n', B: '${NO} ${SECRET}' };
    const error = refusal(
      {
        operationServers: {
          spanner: entry({ headers, requestIdWindow: 'hunter2' }, { headers, url: 'ftp://${SECRET}' }),
        },
      },
      { SECRET: 'hunter2' },
    );
    expect(error.mistakes.length).toBeGreaterThan(4);
    expect(`${error.message}${JSON.stringify(error)}${error.stack}`).not.toContain('hunter2');
  });
});

describe('a declared method', () => {
  const method = {
    headers: { 'X-Key': 'secret' },
    inputSchema: { type: 'object', properties: { parent: {}, id: {} } },
  };
  const json = (change: object = {}) => ({ operationServers: { spanner: entry({ ...method, ...change }) } });
  const digestOf = (change: object = {}): string => {
    const { server } = parse(entry({ ...method, ...change }));
    const found = negotiateDeclared(server, 'backup');
    return found.kind === 'negotiated' ? found.negotiated.descriptorDigest : found.message;
  };

  it('has a digest of its declaration, without the values of its headers', () => {
    expect(digestOf()).toMatch(/^[0-9a-f]{64}$/);
    expect(digestOf({ headers: { 'x-key': 'another' } })).toBe(digestOf());
    for (const change of [
      { body: null },
      { headers: {} },
      { requestIdField: 'r' },
      { operation: { cancel: false } },
    ]) {
      expect(digestOf(change)).not.toBe(digestOf());
    }
  });

  it('that nobody declared is named with the nearest one that is', () => {
    expect(negotiateDeclared(parse(entry({})).server, 'bakcup')).toEqual({
      kind: 'unknownTool',
      message: 'spanner has no declared method "bakcup" under "durable.tools"; did you mean "backup"?',
    });
  });

  it('is checked with its arguments before anything is written: by its schema, and by its path', async () => {
    const config = parseToolServers(json(), {});
    const ok = { parent: 'projects/p', id: 'b1' };
    await preflight(config, 'spanner', 'backup', ok);
    for (const [args, why] of [
      [{ ...ok, parent: 'folders/p' }, /"parent" does not have the form projects\/\*/],
      [{ ...ok, id: ['b'] }, /"id" is no text, number or boolean/],
      [{ parent: 'projects/p' }, /"id" is no text/],
      [{ ...ok, parent: 'projects/..' }, /segment "\." or "\.\."/],
    ] as const) {
      await expect(preflight(config, 'spanner', 'backup', args)).rejects.toThrow(why);
    }
    const strict = parseToolServers(json({ inputSchema: { type: 'object', required: ['size'] } }), {});
    await expect(preflight(strict, 'spanner', 'backup', ok)).rejects.toMatchObject({ code: 'bad-arguments' });
  });

  it('is all that a doctor can see of such a server: it is not contacted', async () => {
    expect(await inspectServer(parse(entry({})))).toEqual({ kind: 'declared', toolNames: ['backup'] });
  });
});
