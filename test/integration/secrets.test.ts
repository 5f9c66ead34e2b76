// Planted credentials of every kind, servers that quote them back wherever they can, paths that fail: nothing of them is in
// history, store, logs, errors, metrics or receipts. Read from the bytes on disk of a whole `dtc up`, with a control that
// what was searched for can be found there.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ToolOperationClient, type ToolOperationHandle } from '../../client/index.js';
import { type Started, startCommand } from '../cli/command-line.js';
import {
  ScriptedServer,
  type SeenRequest,
  sendJson,
  sendResult,
  taskJson,
} from '../protocols/scripted-server.js';
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../servers/oauth/start-authorization-server.js';
import { type Gate, startGate } from '../servers/oauth/start-gate.js';
import { until } from './lab.js';

const PLANTED = {
  header: 'Planted-Header/1+a==',
  bearer: 'Planted.Bearer/2+b',
  command: 'Planted-Command/3+c',
  clientSecret: 'Planted-Client-Secret/4+d=',
  program: 'Planted-Program-Env/5+e',
};
const MARKER = 'marker-that-must-be-found';
const PROGRAM = new URL('../../dist/test/protocols/stdio-program.js', import.meta.url).pathname;

let root: string;
let echo: ScriptedServer;
let elsewhere: ScriptedServer;
let authority: AuthorizationServer;
let gate: Gate;
let refreshToken: string;
let up: Started;
let connection: Connection;
let client: ToolOperationClient;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'dtc-secrets-'));
  echo = await ScriptedServer.start();
  elsewhere = await ScriptedServer.start();
  echo.script = quoteEverything;
  authority = await startAuthorizationServer({ clientSecret: PLANTED.clientSecret, tokenSeconds: 5 });
  gate = await startGate(echo.url, authority);
  refreshToken = await authority.refreshTokenFor(gate.url);
  writeFileSync(join(root, 'tool-servers.json'), JSON.stringify({ mcpServers: servers() }));
  const env = {
    HEADER: PLANTED.header,
    BEARER: PLANTED.bearer,
    COMMAND: PLANTED.command,
    CLIENT_SECRET: PLANTED.clientSecret,
    REFRESH: refreshToken,
    PROGRAM_SECRET: PLANTED.program,
  };
  up = startCommand({ cwd: root, env }, 'up', '--metrics', '0', '--log', 'json');
  await up.said('ready');
  const address = up.soFar().stdout.match(/^engine +(\S+)$/m)?.[1] ?? '';
  connection = await Connection.connect({ address });
  client = new ToolOperationClient({ client: new Client({ connection }), log: () => undefined });
});
afterAll(async () => {
  await connection?.close();
  up.kill('SIGTERM');
  await up.ended;
  await gate.stop();
  await authority.stop();
  await echo.stop();
  await elsewhere.stop();
  rmSync(root, { recursive: true, force: true });
});

function servers(): object {
  const oauth = {
    clientId: 'worker',
    clientSecret: '${CLIENT_SECRET}',
    issuer: authority.issuer,
    scope: 'tools',
  };
  const refresh = { ...oauth, clientId: 'refresher', refreshToken: '${REFRESH}' };
  const broken = { ...oauth, clientSecret: '${CLIENT_SECRET}-not-quite' };
  const command = [
    process.execPath,
    '-e',
    'console.error(process.env.COMMAND); console.log(process.env.COMMAND)',
  ];
  const failing = [process.execPath, '-e', 'console.error(process.env.COMMAND); process.exit(1)'];
  const guarded = (url: string, auth: object) => ({ url, durable: { maxPollsPerSecond: 20, auth } });
  return {
    header: { url: echo.url, headers: { 'x-key': '${HEADER}', authorization: 'Bearer ${HEADER}' } },
    bearer: guarded(echo.url, { bearer: '${BEARER}' }),
    command: guarded(echo.url, { command }),
    oauth: guarded(gate.url, { oauth }),
    refresh: guarded(gate.url, { oauth: refresh }),
    failing: guarded(echo.url, { command: failing }),
    broken: guarded(gate.url, { oauth: broken }),
    program: { command: process.execPath, args: [PROGRAM], env: { SECRET: '${PROGRAM_SECRET}' } },
  };
}

/** All that a server was sent as credentials, in every member that people might come to read. */
function quoteEverything(seen: SeenRequest, response: http.ServerResponse): void {
  const { authorization = '', 'x-key': key = '' } = seen.headers;
  const quoted = `you sent <${authorization}> <${String(key)}>`;
  const { method, params, id } = seen.body;
  if (method === undefined || id === undefined) return void response.writeHead(202).end();
  if (method === 'initialize') {
    const capabilities = { tools: {}, tasks: { requests: { tools: { call: {} } } } };
    return sendResult(response, seen, {
      protocolVersion: '2025-11-25',
      capabilities,
      serverInfo: { name: 'echo', version: quoted },
    });
  }
  if (method === 'tools/list') {
    const inputSchema = { type: 'object', description: quoted };
    const execution = { taskSupport: 'optional' };
    return sendResult(response, seen, { tools: [{ name: 'report', inputSchema, execution }] });
  }
  if (method === 'tools/call') return callTool(seen, quoted, response);
  if (method === 'tasks/result')
    return sendResult(response, seen, { content: [{ type: 'text', text: 'done' }] });
  const taskId = String(params?.['taskId']);
  const looks = echo.seen.filter((one) => one.body.params?.['taskId'] === taskId).length;
  const error = { jsonrpc: '2.0', id, error: { code: -32603, message: quoted } };
  // A spent token, an outage, a word that nobody knows: then the end.
  if (looks === 1) return sendJson(response, 401, error, { 'www-authenticate': `Bearer error="${quoted}"` });
  if (looks === 2) return sendJson(response, 500, error);
  if (looks === 3)
    return sendResult(response, seen, { ...taskJson(quoted, { statusMessage: quoted }), taskId });
  return sendResult(response, seen, { ...taskJson('completed', { statusMessage: quoted }), taskId });
}

function callTool(seen: SeenRequest, quoted: string, response: http.ServerResponse): void {
  const { how, name } = (seen.body.params ?? {})['arguments'] as { how: How; name: string };
  const error = { jsonrpc: '2.0', id: seen.body.id, error: { code: -32000, message: quoted } };
  switch (how) {
    case 'completes': {
      const task = { ...taskJson('working', { statusMessage: quoted, pollInterval: 1_000 }), taskId: name };
      return sendResult(response, seen, { task });
    }
    case 'refused':
      return sendJson(response, 403, error, {
        'www-authenticate': `Bearer error="insufficient_scope", scope="${quoted}"`,
      });
    case 'breaks':
      return sendJson(response, 500, error);
    case 'redirects':
      return void response.writeHead(307, { location: elsewhere.url }).end(quoted);
  }
}

const HOWS = ['completes', 'refused', 'breaks', 'redirects'] as const;
type How = (typeof HOWS)[number];
const SERVERS = ['header', 'bearer', 'command', 'oauth', 'refresh'] as const;

async function start(server: string, how: string, tool = 'report'): Promise<ToolOperationHandle> {
  const callNodeId = `secrets-${server}-${how}`;
  return client.start({ callNodeId, server, tool, arguments: { how, name: callNodeId, MARKER } });
}

/** Of a step that is tried again. */
async function faultOf(handle: ToolOperationHandle): Promise<string> {
  const run = new Client({ connection }).workflow.getHandle(handle.workflowId);
  for (;;) {
    const { pendingActivities } = (await run.describe()).raw;
    const message = pendingActivities?.[0]?.lastFailure?.message;
    if (message) return message;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** As it is, and as it may be written. */
function spellingsOf(secret: string): readonly string[] {
  return [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    Buffer.from(secret).toString('base64').replace(/=+$/, ''),
    Buffer.from(secret).toString('base64url'),
  ];
}

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesUnder(path) : [path];
  });
}

test('no credential is in history, store, logs, errors, metrics or receipts, however often it is quoted back', async () => {
  const ended = SERVERS.flatMap((server) => HOWS.map((how) => ({ server, how })));
  const handles = await Promise.all(
    ended.map(async ({ server, how }) => ({ how, handle: await start(server, how) })),
  );
  const hopeless = await Promise.all(['failing', 'broken'].map((server) => start(server, 'waits')));
  const programs = await Promise.all(['noise', 'fail', 'end'].map((tool) => start('program', tool, tool)));

  for (const { how, handle } of handles) {
    const view = await until(handle, (seen) => seen.receipt !== null || seen.state === 'UNRESOLVED');
    const expected = { completes: 'completed', refused: 'rejected', breaks: null, redirects: null }[how];
    expect([handle.callNodeId, view.outcome]).toEqual([handle.callNodeId, expected]);
  }
  // Tried again until the submit deadline; what it fails on is shown in the UI meanwhile.
  const faults = await Promise.all(hopeless.map(faultOf));
  expect(faults).toEqual([
    expect.stringContaining('the program of "auth.command" of failing ended with exit code 1'),
    expect.stringContaining('refuses (invalid_client)'),
  ]);
  for (const handle of programs)
    await until(handle, (seen) => seen.receipt !== null || seen.state === 'UNRESOLVED');
  const views = await Promise.all(
    [...handles.map(({ handle }) => handle), ...hopeless, ...programs].map((handle) => handle.status()),
  );
  const metrics = await (await fetch(up.soFar().stdout.match(/^metrics +(\S+)$/m)?.[1] ?? '')).text();
  const said = up.soFar();
  const places = new Map<string, string>([
    ['views', JSON.stringify([views, faults])],
    ['metrics', metrics],
    ['standard output', said.stdout],
    ['standard error', said.stderr],
    ...filesUnder(join(root, '.durable-tool-calls')).map(
      (file) => [file, readFileSync(file, 'latin1')] as const,
    ),
  ]);

  // The controls: what is searched is what was written, and each credential was really sent and quoted.
  expect([...places.keys()].filter((file) => places.get(file)?.includes(MARKER)).length).toBeGreaterThan(1);
  expect(places.get('views')).toContain('[redacted]');
  expect(places.get('standard error')).toContain('"stepEnded"');
  const sent = JSON.stringify(echo.seen.map(({ headers }) => headers));
  for (const secret of [PLANTED.header, PLANTED.bearer, PLANTED.command]) expect(sent).toContain(secret);
  expect(gate.bearers.length).toBeGreaterThan(1);
  expect(elsewhere.seen).toEqual([]);

  const secrets = [...Object.values(PLANTED), refreshToken, ...gate.bearers];
  for (const [place, text] of places)
    for (const secret of secrets)
      for (const spelling of spellingsOf(secret))
        expect(text.includes(spelling), `${secret} in ${place}`).toBe(false);
}, 120_000);
