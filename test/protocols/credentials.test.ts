// Owns the proof of credentials: whence a token comes, that it is asked for once for all, what a refusal of it means.
// Must never take a mock for an authorization server: tokens of OAuth come from a real one.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AuthSettings, ToolServer } from '../../protocols/adapter.js';
import { exchangeJson } from '../../protocols/aip-151/rest-exchange.js';
import { CredentialFault } from '../../protocols/credentials/credential-fault.js';
import { keeperOf } from '../../protocols/credentials/keepers.js';
import { TokenKeeper } from '../../protocols/credentials/token-keeper.js';
import { redactorOf } from '../../protocols/redact.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../servers/oauth/start-authorization-server.js';
import { type Gate, startGate } from '../servers/oauth/start-gate.js';
import { type EverythingServer, startEverythingServer } from './everything-server.js';
import {
  NO_HOOKS,
  ScriptedServer,
  sendJson,
  sendResult,
  SESSION,
  taskJson,
  toolCall,
  toolServer,
} from './scripted-server.js';

const adapter = createProtocolRegistry().adapter('mcp/2025-11-25');
const REFERENCE = { remoteId: 'task-1', locator: SESSION };
let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-credentials-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

describe('the keeper of a token', () => {
  let now = 0;
  let fetched = 0;
  const keeperWith = (lifetimeMs: number | null) =>
    new TokenKeeper(
      async () => ({ value: `t${++fetched}`, expiresAt: lifetimeMs === null ? null : now + lifetimeMs }),
      () => now,
    );
  beforeEach(() => {
    now = 1_000_000;
    fetched = 0;
  });

  it('asks once, however many want it', async () => {
    const keeper = keeperWith(null);
    const all = await Promise.all(Array.from({ length: 50 }, () => keeper.token()));
    expect(new Set(all)).toEqual(new Set(['t1']));
    expect(fetched).toBe(1);
  });

  it('asks again a little before the end', async () => {
    const keeper = keeperWith(100_000);
    await keeper.token();
    now += 89_999;
    expect(await keeper.token()).toBe('t1');
    now += 1;
    expect(await keeper.token()).toBe('t2');
  });

  it('renews a refused token once, however many were refused', async () => {
    const keeper = keeperWith(null);
    keeper.accepted(await keeper.token());
    const next = await Promise.all(Array.from({ length: 50 }, () => keeper.afterRefusal('t1')));
    expect(new Set(next)).toEqual(new Set(['t2']));
    // One that was refused with the old token comes late: it gets the new one, which nobody has refused.
    expect(await keeper.afterRefusal('t1')).toBe('t2');
    expect(fetched).toBe(2);
  });

  it('asks for no other where a fresh one is refused, until it has aged', async () => {
    const keeper = keeperWith(null);
    await keeper.token();
    expect(await keeper.afterRefusal('t1')).toBeNull();
    now += 30_000;
    expect(await keeper.afterRefusal('t1')).toBe('t2');
  });

  it('asks less and less often where none can be had, and says the same meanwhile', async () => {
    let asked = 0;
    const keeper = new TokenKeeper(
      async () => {
        asked += 1;
        throw new CredentialFault('none to be had');
      },
      () => now,
    );
    const end = now + 60_000;
    for (; now < end; now += 100) await expect(keeper.token()).rejects.toThrow('none to be had');
    expect(asked).toBe(6);
  });
});

describe('a token that a program prints', () => {
  const withCommand = (script: string, lifetimeMs: number | null = null): ToolServer =>
    toolServer('http://127.0.0.1:9/', {
      auth: { kind: 'command', command: [process.execPath, '-e', script], lifetimeMs },
    });
  const tokenOf = async (server: ToolServer) => keeperOf(server)?.token();

  it('is had by one run for all, and kept out of texts from then on', async () => {
    const file = join(dir, 'runs');
    const server = withCommand(
      `require('fs').appendFileSync(${JSON.stringify(file)}, 'x'); console.log('Printed-Token-1')`,
    );
    const all = await Promise.all(Array.from({ length: 20 }, () => tokenOf(server)));
    expect(new Set(all)).toEqual(new Set(['Printed-Token-1']));
    expect(await readFile(file, 'utf8')).toBe('x');
    expect(redactorOf(server)('you sent printed-token-1')).toBe('you sent [redacted]');
  });

  it.each([
    [
      'that fails',
      "console.error('secret'); process.exit(4)",
      'ended with exit code 4; run it by hand to see why',
    ],
    ['that prints nothing', '', 'printed nothing; its standard output must be the token'],
    [
      'that prints a help text',
      "console.log('usage: print a secret')",
      'printed more than one word; its standard output must be the token alone',
    ],
    [
      'that prints without end',
      "console.log('x'.repeat(70000))",
      'printed more than 65536 bytes; its standard output must be the token alone',
    ],
    [
      'that is killed',
      "process.kill(process.pid, 'SIGKILL')",
      'ended with signal SIGKILL; run it by hand to see why',
    ],
  ])('cannot be had from one %s, and none of its words is repeated', async (_, script, message) => {
    await expect(tokenOf(withCommand(script))).rejects.toThrow(
      new CredentialFault(`the program of "auth.command" of scripted ${message}`),
    );
  });

  it('cannot be had from one that is not there', async () => {
    const auth: AuthSettings = { kind: 'command', command: ['no-such-program-here'], lifetimeMs: null };
    await expect(tokenOf(toolServer('http://127.0.0.1:9/', { auth }))).rejects.toThrow(
      'could not be run (ENOENT); check its first word',
    );
  });
});

describe('a refused token', () => {
  let scripted: ScriptedServer;
  let server: ToolServer;
  let valid: string;
  beforeEach(async () => {
    scripted = await ScriptedServer.start();
    const file = join(dir, `token-${Math.random()}`);
    await writeFile(file, 'token-1');
    valid = 'Bearer token-1';
    const script = `const n = Number(require('fs').readFileSync(${JSON.stringify(file)}, 'utf8').split('-')[1]);
      console.log('token-' + n); require('fs').writeFileSync(${JSON.stringify(file)}, 'token-' + (n + 1));`;
    const command = [process.execPath, '-e', script];
    server = toolServer(scripted.url, { auth: { kind: 'command', command, lifetimeMs: null } });
    scripted.script = (seen, response) => {
      const { authorization = '' } = seen.headers;
      if (authorization !== valid)
        return sendJson(response, 401, {
          jsonrpc: '2.0',
          id: seen.body.id,
          error: { code: -32001, message: `no: ${authorization}` },
        });
      return sendResult(
        response,
        seen,
        seen.body.method === 'tools/call' ? { task: taskJson('working') } : taskJson('working'),
      );
    };
  });
  afterEach(() => scripted.stop());

  const submit = () => adapter.submit(toolCall(server), SESSION, NO_HOOKS);
  const observe = () => adapter.observe(server, REFERENCE);

  it('is renewed in the middle of a read, which goes on', async () => {
    await observe();
    valid = 'Bearer token-2';
    expect(await observe()).toMatchObject({ meaning: 'working' });
    expect(scripted.seen.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer token-1',
      'Bearer token-1',
      'Bearer token-2',
    ]);
  });

  it('is proof that a submission was not sent: it is not repeated, and the next one has the new token', async () => {
    await observe();
    valid = 'Bearer token-2';
    await expect(submit()).rejects.toMatchObject({
      kind: 'NotSent',
      message: 'tools/call: HTTP 401: the token was spent and has been renewed, nothing ran',
    });
    expect(scripted.sent('tools/call')).toHaveLength(1);
    expect(await submit()).toMatchObject({ kind: 'referenced' });
    expect(scripted.sent('tools/call')).toHaveLength(2);
  });

  it('that is fresh is an error that says what to configure', async () => {
    valid = 'Bearer none';
    const advice = 'a token that "auth.command" has just given is refused: check that it is for this server';
    await expect(submit()).rejects.toMatchObject({
      kind: 'RefusedByServer',
      message: `tools/call: JSON-RPC -32001, HTTP 401: no: Bearer [redacted]; ${advice}`,
    });
    await expect(observe()).rejects.toMatchObject({ kind: 'Transient', wireCode: -32001 });
    expect(new Set(scripted.seen.map(({ headers }) => headers.authorization))).toEqual(
      new Set(['Bearer token-1']),
    );
  });

  it('is renewed for operations over REST too, a submission again by its next leg', async () => {
    const request = { verb: 'POST', url: server.url, body: '{}' } as const;
    const send = (purpose: 'submission' | 'other') =>
      exchangeJson(server, request, { timeoutMs: 2_000, tool: null, purpose });
    expect(await send('other')).toMatchObject({ kind: 'object' });
    valid = 'Bearer token-2';
    expect(await send('submission')).toMatchObject({ kind: 'notSent' });
    valid = 'Bearer token-3';
    expect(await send('submission')).toMatchObject({ kind: 'error', status: 401 });
    valid = 'Bearer token-2';
    expect(await send('submission')).toMatchObject({ kind: 'object' });
    valid = 'Bearer token-3';
    expect(await send('other')).toMatchObject({ kind: 'object' });
    expect(scripted.seen).toHaveLength(6);
  });

  it('cannot hold up a submission without a word: no token, nothing sent', async () => {
    const auth: AuthSettings = {
      kind: 'command',
      command: [process.execPath, '-e', 'process.exit(1)'],
      lifetimeMs: null,
    };
    server = toolServer(scripted.url, { auth });
    const message =
      'the program of "auth.command" of scripted ended with exit code 1; run it by hand to see why';
    await expect(submit()).rejects.toMatchObject({ kind: 'NotSent', message: `tools/call: ${message}` });
    await expect(observe()).rejects.toMatchObject({ kind: 'Transient', message: `tasks/get: ${message}` });
    expect(scripted.seen).toEqual([]);
  });

  it.each([
    [{ kind: 'bearer', token: 'token-9' } as const, 'give "auth.bearer" a token that has it'],
    [undefined, 'give "headers" a credential that has it'],
  ])('for lack of a scope names the scope and the key (%#)', async (auth, remedy) => {
    server = toolServer(scripted.url, auth ? { auth } : {});
    scripted.script = (_, response) =>
      void response
        .writeHead(403, {
          'www-authenticate': 'Bearer error="insufficient_scope", scope="files:write token-9"',
        })
        .end();
    const scope = auth ? 'files:write [redacted]' : 'files:write token-9';
    await expect(submit()).rejects.toMatchObject({
      kind: 'RefusedByServer',
      message: `tools/call: HTTP 403 without a JSON-RPC reply; the server wants the scope "${scope}": ${remedy}`,
    });
  });

  it('goes to no other place: a redirect is not followed', async () => {
    const other = await ScriptedServer.start();
    scripted.script = (_, response) => void response.writeHead(307, { location: other.url }).end();
    await expect(observe()).rejects.toMatchObject({ kind: 'Transient' });
    expect(other.seen).toEqual([]);
    await other.stop();
  });
});

describe('OAuth, against oidc-provider and server-everything', () => {
  const SECRET = 'Cl1ent/secret+9=';
  let authority: AuthorizationServer;
  let everything: EverythingServer;
  let gate: Gate;
  beforeAll(async () => {
    everything = await startEverythingServer();
    authority = await startAuthorizationServer({ clientSecret: SECRET, tokenSeconds: 3 });
    gate = await startGate(everything.url, authority);
  });
  afterAll(async () => {
    await gate.stop();
    await authority.stop();
    await everything.stop();
  });

  function oauthServer(more: Partial<Extract<AuthSettings, { kind: 'oauth' }>> = {}): ToolServer {
    const auth: AuthSettings = {
      kind: 'oauth',
      clientId: 'worker',
      clientSecret: SECRET,
      issuer: authority.issuer,
      scope: 'tools',
      refreshToken: null,
      ...more,
    };
    return toolServer(gate.url, { name: 'gated', auth });
  }

  /** Tokens given by the authorization server, and tokens seen at the gate. */
  function sinceNow() {
    const given = authority.grants.length;
    const seen = gate.bearers.length;
    return { grants: () => authority.grants.slice(given), used: () => gate.bearers.length - seen };
  }

  async function untilUsed(server: ToolServer, used: () => number, tokens: number): Promise<void> {
    while (used() < tokens) expect(await useOnce(server)).toBe('synchronous');
  }

  async function useOnce(server: ToolServer): Promise<string> {
    const registry = createProtocolRegistry();
    const negotiation = await registry.negotiate(server, 'echo');
    if (negotiation.kind !== 'negotiated') return negotiation.message;
    await registry.adapter('synchronous').release(server, negotiation.negotiated.session);
    return negotiation.negotiated.adapter;
  }

  it('client credentials: discovered, one token for many calls, renewed when it ends', async () => {
    const server = oauthServer();
    const { grants, used } = sinceNow();
    expect(await Promise.all(Array.from({ length: 10 }, () => useOnce(server)))).toEqual(
      Array(10).fill('synchronous'),
    );
    // On a slow machine they take longer than a token lives; none was asked for that was not shared and used.
    expect(grants()).toEqual(Array(used()).fill({ grantType: 'client_credentials', isOk: true }));
    expect(used()).toBeLessThan(5);
    const usedAtFirst = used();
    await untilUsed(server, used, usedAtFirst + 1);
    expect(grants()).toHaveLength(used());
  });

  it('refresh token: a server that rotates it gets each one once', async () => {
    const refreshToken = await authority.refreshTokenFor(gate.url);
    const server = oauthServer({ clientId: 'refresher', scope: null, refreshToken });
    const { grants, used } = sinceNow();
    expect(await useOnce(server)).toBe('synchronous');
    await untilUsed(server, used, 2);
    expect(grants()).toEqual(Array(used()).fill({ grantType: 'refresh_token', isOk: true }));
    expect(redactorOf(server)(`was ${refreshToken}`)).toBe('was [redacted]');
  });

  it.each([
    [
      'a wrong secret',
      { clientSecret: 'wrong-secret' },
      'refuses (invalid_client); check "clientId" and "clientSecret"',
    ],
    ['a scope that is not given', { scope: 'admin' }, 'refuses (invalid_scope); check "scope"'],
    [
      'a spent refresh token',
      { clientId: 'refresher', scope: null, refreshToken: 'spent-long-ago' },
      'refuses (invalid_grant); the refresh token is spent or revoked: put a new one into "refreshToken" and start the worker again',
    ],
    [
      'a grant that the client may not use',
      { clientId: 'refresher' },
      'refuses (invalid_request); its own log says why',
    ],
  ])('%s is told with the key to mend', async (_, more, message) => {
    const server = oauthServer(more);
    const said = await useOnce(server).catch((error: Error) => error.message);
    expect(said).toBe(
      `initialize: the authorization server ${authority.issuer} ("auth.oauth" of gated) ${message}`,
    );
  });

  it('an authorization server that the resource does not name never sees the secret', async () => {
    const other = await ScriptedServer.start();
    const { origin } = new URL(other.url);
    await expect(useOnce(oauthServer({ issuer: origin }))).rejects.toThrow(
      `gated names other authorization servers than ${origin}; check "auth.oauth.issuer"`,
    );
    expect(other.seen).toEqual([]);
    await other.stop();
  });

  it('an issuer that is not there is told as one that cannot be asked', async () => {
    const plain = await ScriptedServer.start();
    plain.script = (_, response) => void response.writeHead(404).end();
    const { auth } = oauthServer({ issuer: 'http://127.0.0.1:9' });
    const server = toolServer(plain.url, { name: 'plain', ...(auth ? { auth } : {}) });
    await expect(useOnce(server)).rejects.toThrow(
      'the authorization server http://127.0.0.1:9 ("auth.oauth" of plain) cannot be asked (before sending: ECONNREFUSED)',
    );
    await plain.stop();
  });

  it('metadata under another name are not believed', async () => {
    const impostor = await ScriptedServer.start();
    const { origin } = new URL(impostor.url);
    impostor.script = (seen, response) => {
      if (!seen.path.includes('oauth-authorization-server')) return void response.writeHead(404).end();
      const endpoints = { authorization_endpoint: `${origin}/a`, token_endpoint: `${origin}/t` };
      return sendJson(response, 200, {
        issuer: 'https://elsewhere.example',
        ...endpoints,
        response_types_supported: [],
      });
    };
    const { auth } = oauthServer({ issuer: origin });
    const server = toolServer(impostor.url, { name: 'plain', ...(auth ? { auth } : {}) });
    await expect(useOnce(server)).rejects.toThrow('calls itself by another name; check "issuer"');
    expect(impostor.seen.some(({ path }) => path === '/t')).toBe(false);
    await impostor.stop();
  });
});
