/** Owns: what `tool-servers.json` may say, and the words for what it may not. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../operation/limits.js';
import {
  type ConfiguredServer,
  loadToolServers,
  parseToolServers,
  policyOf,
} from '../../worker/tool-servers.js';
import { refusal } from './refusal.js';

const URL = 'https://tools.example/mcp';
function parse(entry: unknown, env: Record<string, string> = {}): ConfiguredServer {
  const { servers } = parseToolServers({ mcpServers: { search: entry } }, env);
  const configured = servers.get('search');
  if (!configured) throw new Error('no server');
  return configured;
}

describe('a file as people have it', () => {
  it('gives a server with defaults, foreign keys and all', () => {
    const json = { inputs: [], mcpServers: { search: { url: URL, alwaysAllow: ['find'], timeout: 60 } } };
    const { servers, notes } = parseToolServers(json, {});
    expect(notes).toEqual([]);
    expect([...servers]).toEqual([
      [
        'search',
        {
          server: {
            name: 'search',
            url: URL,
            headers: {},
            protocol: 'auto',
            maxPollsPerSecond: 1,
            trustAnnotations: false,
          },
          tools: {},
          unavailable: null,
        },
      ],
    ]);
  });

  it.each(['http', 'streamable-http', 'streamableHttp'])('knows streamable HTTP by the name %s', (type) => {
    expect(parse({ type, url: URL })).toMatchObject({ unavailable: null, server: { url: URL } });
  });

  it('knows old transports, and says why they cannot be used', () => {
    const { servers, notes } = parseToolServers({ mcpServers: { old: { type: 'sse', url: URL } } }, {});
    const old = 'the HTTP+SSE transport of 2024-11-05 is not supported; give the streamable HTTP URL.';
    expect(servers.get('old')).toMatchObject({ unavailable: old });
    expect(notes).toEqual([`mcpServers.old: ${old}`]);
  });

  it('gives programs what they need, and knows which of it is secret', () => {
    const args = ['--root', '${ROOT}'];
    const env = {
      TOKEN: '${TOKEN}',
      KEY: '-----BEGIN KEY-----\nMIIabcdef',
      MODE: 'production',
      NAME: '${NAME}',
    };
    const files = { command: '${HOME}/files-server', args, env, cwd: '/srv' };
    const { servers, notes } = parseToolServers(
      { mcpServers: { files } },
      { ROOT: '/r', TOKEN: 'secret', HOME: '/home/me', NAME: 'alice' },
    );
    expect(notes).toEqual([]);
    expect(servers.get('files')).toMatchObject({
      unavailable: null,
      server: {
        url: '',
        program: {
          command: '/home/me/files-server',
          args: ['--root', '/r'],
          env: { ...env, TOKEN: 'secret', NAME: 'alice' },
          cwd: '/srv',
        },
        secrets: ['/r', 'secret', env.KEY, '-----BEGIN KEY-----', 'MIIabcdef', 'alice'],
      },
    });
  });

  it('notes what does not go together', () => {
    const mcpServers = {
      files: { command: 'c', headers: { A: 'b' } },
      search: { type: 'http', url: URL, command: 'c', cwd: '/' },
    };
    expect(parseToolServers({ mcpServers }, {}).notes).toEqual([
      'mcpServers.files.headers: is ignored beside "command"; give a program what it needs in "env".',
      'mcpServers.search.command: is ignored beside "url".',
      'mcpServers.search.cwd: is ignored beside "url".',
    ]);
  });

  it.each([
    [
      'a token for a program',
      { command: 'c', durable: { auth: { bearer: 't' } } },
      'is for a server with a "url"; give a program its credentials in "env"',
    ],
    [
      'two Authorizations',
      { url: URL, headers: { authorization: 'x' }, durable: { auth: { bearer: 't' } } },
      'would replace the Authorization of "headers"; keep one of them',
    ],
  ])('refuses %s', (_, given, message) => {
    const path = 'mcpServers.search.durable.auth';
    expect(refusal({ mcpServers: { search: given } }).mistakes).toEqual([{ path, message }]);
  });

  it('fills the ways to a token from the environment, and misses a variable by name', () => {
    const env = { TOKEN: 'abc', SECRET: 's3' };
    const oauth = { clientId: 'c', clientSecret: '${SECRET}', issuer: 'https://auth.example/' };
    const withAuth = (auth: unknown) => ({ url: URL, durable: { auth } });
    const authOf = (auth: unknown) => parse(withAuth(auth), env).server.auth;
    expect(authOf({ bearer: '${TOKEN}' })).toEqual({ kind: 'bearer', token: 'abc' });
    expect(authOf({ command: ['print', '${TOKEN}'], lifetime: '5m' })).toEqual({
      kind: 'command',
      command: ['print', 'abc'],
      lifetimeMs: 300_000,
    });
    const more = { kind: 'oauth', scope: null, refreshToken: null };
    expect(authOf({ oauth })).toEqual({ ...more, ...oauth, clientSecret: 's3' });
    expect(refusal({ mcpServers: { search: withAuth({ oauth }) } }).message).toBe(
      'mcpServers.search.durable.auth.oauth.clientSecret: the environment variable SECRET is not set; ' +
        'set it, or write "${SECRET:-default}"',
    );
  });

  it('notes settings that stand where nobody reads them', () => {
    const entry = { url: URL, durabel: {}, maxPollsPerSecond: 9, tools: ['*'] };
    expect(parseToolServers({ mcpServers: { search: entry } }, {}).notes).toEqual([
      'mcpServers.search.durabel: is ignored; did you mean "durable"?',
      'mcpServers.search.maxPollsPerSecond: is ignored here; it belongs under "durable".',
    ]);
  });

  it('takes the example of this repository', async () => {
    const file = new globalThis.URL('../../examples/tool-servers.json', import.meta.url).pathname;
    const { servers, notes } = await loadToolServers(file, {});
    expect(notes).toEqual([]);
    const everything = servers.get('everything');
    expect(everything).toMatchObject({ unavailable: null, server: { url: 'http://127.0.0.1:3001/mcp' } });
    expect(policyOf(everything, 'simulate-research-query')).toMatchObject({
      waitBudgetMs: 600_000,
      submissionPolicy: 'session-list',
      sideEffects: 'none',
    });
  });
});

describe('the rest of the file', () => {
  const AT = 'mcpServers.search';
  const entry = (value: unknown): unknown => ({ mcpServers: { search: value } });
  const NO_SERVERS = 'must be an object with one key per server, each with a "url"';
  it.each([
    ['no object', 7, 'mcpServers', NO_SERVERS],
    ['no servers', { servers: {} }, 'mcpServers', NO_SERVERS],
    [
      'our key at the top',
      { mcpServers: {}, durable: {} },
      'durable',
      'belongs under one server: mcpServers.NAME.durable',
    ],
    ['an entry that is no object', entry('x'), AT, 'must be an object with a "url" (or a "command")'],
    ['neither url nor command', entry({}), AT, 'needs a "url" (streamable HTTP) or a "command" (stdio)'],
    [
      'both url and command',
      entry({ url: URL, command: 'c' }),
      AT,
      'has both "url" and "command"; keep one, or say which counts with "type"',
    ],
    [
      'an unknown type',
      entry({ type: 'ws', url: URL }),
      `${AT}.type`,
      'must be "http", "streamable-http", "streamableHttp", "stdio" or "sse"',
    ],
    ['a url that is none', entry({ url: 'tools' }), `${AT}.url`, 'must be an http:// or https:// URL'],
    [
      'another scheme',
      entry({ url: 'ftp://tools.example' }),
      `${AT}.url`,
      'must be an http:// or https:// URL',
    ],
    ['no url for http', entry({ type: 'http' }), `${AT}.url`, 'must be a string'],
    [
      'a password in the url',
      entry({ url: 'https://me:hunter2@tools.example' }),
      `${AT}.url`,
      'must not carry a user name or password; put them into "headers"',
    ],
    [
      'headers as a list',
      entry({ url: URL, headers: [] }),
      `${AT}.headers`,
      'must be an object whose values are strings',
    ],
    [
      'a header that is no text',
      entry({ url: URL, headers: { A: 1 } }),
      `${AT}.headers.A`,
      'must be a string',
    ],
    [
      'a header of two lines',
      entry({ url: URL, headers: { Authorization: 'hunter2\nX: y' } }),
      `${AT}.headers.Authorization`,
      'is not a header that HTTP can carry: the name must be a token, the value visible Latin characters on one line',
    ],
    ['args that are no list', entry({ command: 'c', args: 'x' }), `${AT}.args`, 'must be a list of strings'],
    [
      'an argument that is no text',
      entry({ command: 'c', args: ['a', 1] }),
      `${AT}.args[1]`,
      'must be a string',
    ],
    [
      'a name too long for the engine',
      { mcpServers: { ['é'.repeat(33)]: { url: URL } } },
      `mcpServers["${'é'.repeat(33)}"]`,
      "a server's name must have 1 to 64 bytes",
    ],
  ])('may not have %s', (_, json, path, message) => {
    const error = refusal(json);
    expect(error.mistakes).toEqual([{ path, message }]);
    expect(error.message).toBe(`${path}: ${message}`);
  });
});

describe('the environment', () => {
  const env = { HOST: 'tools.example', TOKEN: 'hunter2', EMPTY: '', NESTED: '${TOKEN}' };

  it('fills urls and headers, with defaults where a variable is missing or empty', () => {
    const { server } = parse(
      {
        url: 'https://${HOST}:${PORT:-8443}/mcp',
        headers: {
          Authorization: 'Bearer ${TOKEN}',
          A: '${EMPTY:-a}',
          B: '${NO:-}',
          C: '${EMPTY}',
          D: '${NESTED}',
        },
      },
      env,
    );
    expect(server.url).toBe('https://tools.example:8443/mcp');
    expect(server.headers).toEqual({ Authorization: 'Bearer hunter2', A: 'a', B: '', C: '', D: '${TOKEN}' });
  });

  it.each([
    ['url', { url: 'https://${HOST}/${NO}' }, 'url'],
    ['headers', { url: URL, headers: { Authorization: '${TOKEN} ${NO}' } }, 'headers.Authorization'],
    ['args', { command: 'c', args: ['${TOKEN}', '${NO}'] }, 'args[1]'],
    ['env', { command: 'c', env: { A: '${NO}' } }, 'env.A'],
  ])('is asked by name for a variable that %s needs', (_, given, at) => {
    const error = refusal({ mcpServers: { search: given } }, env);
    expect(error.message).toBe(
      `mcpServers.search.${at}: the environment variable NO is not set; set it, or write "\${NO:-default}"`,
    );
  });

  it.each(['${', '${}', '${1A}', '${A-b}', '${env:HOST}'])('is not asked by %s', (text) => {
    expect(refusal({ mcpServers: { search: { url: URL, headers: { A: text } } } }, env).message).toBe(
      'mcpServers.search.headers.A: has a "${" that is no reference; allowed: "${NAME}" or "${NAME:-default}"',
    );
  });

  it('does not lend the properties of every object', () => {
    expect(refusal({ mcpServers: { search: { url: '${constructor}' } } }, {}).message).toContain(
      'variable constructor is not set',
    );
  });

  it('never shows in an error text', () => {
    const given = {
      url: 'ftp://${TOKEN}',
      headers: { A: '${TOKEN}\n', B: '${TOKEN} ${NO:-hunter2} ${NO}' },
      durable: { protocol: 'hunter2', tools: { find: { waitBudget: 'hunter2', onUnresolved: 'hunter2' } } },
    };
    const error = refusal({ mcpServers: { search: given } }, env);
    expect(error.mistakes).toHaveLength(6);
    expect(`${error.message}${JSON.stringify(error)}${error.stack}`).not.toContain('hunter2');
  });
});

describe('a file on disk', () => {
  it('that is missing is named with the reason', async () => {
    await expect(loadToolServers('/nowhere/tool-servers.json', {})).rejects.toMatchObject({
      path: '/nowhere/tool-servers.json',
      message: '/nowhere/tool-servers.json: cannot be read (ENOENT)',
    });
  });

  it.each([
    ['{\n "a": "hunter2",\n "b" 1}', ' (line 3)'],
    ['hunter2', ''],
  ])('that is no JSON is named without a word of it', async (text, where) => {
    const folder = await mkdtemp(join(tmpdir(), 'tool-servers-'));
    const file = join(folder, 'tool-servers.json');
    try {
      await writeFile(file, text);
      const error: unknown = await loadToolServers(file, {}).catch((refused: unknown) => refused);
      expect(error).toMatchObject({ path: file, message: `${file}: is not valid JSON${where}` });
      // Its cause would quote the file.
      expect(error).not.toHaveProperty('cause');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('the policy of an operation', () => {
  const durable = {
    protocol: 'synchronous',
    tools: {
      find: { waitBudget: '2h', synchronousBound: '5s', submission: { policy: 'key-meta', key: 'k' } },
    },
  };
  const configured = parse({ url: URL, durable });

  it('is the table of limits where nothing is configured', () => {
    const defaults = {
      waitBudgetMs: LIMITS.waitBudgetMs,
      waitBudgetExplicit: false,
      submitBudgetMs: LIMITS.submitBudgetMs,
      lookUpBudgetMs: LIMITS.lookUpBudgetMs,
      settleBudgetMs: LIMITS.settleBudgetMs,
      fetchBudgetMs: LIMITS.fetchBudgetMs,
      inputBudgetMs: LIMITS.inputBudgetMs,
      synchronousBoundMs: LIMITS.synchronousBoundMs,
      submissionPolicy: null,
      keyName: null,
      sideEffects: 'unknown',
      protocol: 'auto',
      onUnresolved: { kind: 'hold' },
    };
    expect(policyOf(undefined, 'find')).toEqual(defaults);
    expect(policyOf(configured, 'constructor')).toEqual({ ...defaults, protocol: 'synchronous' });
  });

  it('follows the configuration, and the caller before it', () => {
    const policy = policyOf(configured, 'find');
    expect(policy).toMatchObject({
      waitBudgetMs: 7_200_000,
      waitBudgetExplicit: true,
      synchronousBoundMs: 5_000,
      submissionPolicy: 'key-meta',
      keyName: 'k',
    });
    expect('lookUp' in policy).toBe(false);
    const lookUp = { tool: 'find', argument: 'a', id: '/id' };
    const submission = { policy: 'lookup-tool', argument: 'k', lookUp };
    const looking = parse({ url: URL, durable: { tools: { find: { submission } } } });
    expect(policyOf(looking, 'find')).toMatchObject({
      submissionPolicy: 'lookup-tool',
      keyName: 'k',
      lookUp: { tool: 'find', idPointer: '/id', provesAbsence: false },
    });
    expect(policyOf(configured, 'find', { waitBudgetMs: 9 })).toEqual({ ...policy, waitBudgetMs: 9 });
    expect(policyOf(configured, 'other', { waitBudgetMs: 9 })).toMatchObject({
      waitBudgetMs: 9,
      waitBudgetExplicit: true,
    });
  });
});
