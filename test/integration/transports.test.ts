// Credentials that end in mid-operation, and servers that are programs, on the real engine: operations go on, once, and what
// is lost is named. Tokens come from oidc-provider, tools from server-everything.

import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EverythingServer, startEverythingServer } from '../../cli/demo/everything-server.js';
import { type PassThrough, startPassThrough } from '../../cli/demo/pass-through.js';
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../servers/oauth/start-authorization-server.js';
import { type Gate, startGate } from '../servers/oauth/start-gate.js';
import type { JsonObject } from '../../operation/json.js';
import { until } from './lab.js';
import { openServerLab, type ServerLab } from './server-lab.js';

const RESEARCH = { tool: 'simulate-research-query', arguments: { topic: 'tides', ambiguous: false } };
const ASKING = { tool: 'simulate-research-query', arguments: { topic: 'python', ambiguous: true } };

describe('a token of OAuth', () => {
  const SECRET = 'oauth-secret-of-the-worker';
  let everything: EverythingServer;
  let wire: PassThrough;
  beforeAll(async () => {
    everything = await startEverythingServer();
    wire = await startPassThrough({ targetUrl: everything.url });
  });
  afterAll(async () => {
    await wire.stop();
    await everything.stop();
  });

  let authority: AuthorizationServer;
  let gate: Gate;
  let lab: ServerLab;
  async function openWith(tokenSeconds: number): Promise<void> {
    authority = await startAuthorizationServer({ clientSecret: SECRET, tokenSeconds });
    gate = await startGate(wire.url, authority);
    const oauth = { clientId: 'worker', clientSecret: SECRET, issuer: authority.issuer, scope: 'tools' };
    const durable = { maxPollsPerSecond: 50, auth: { oauth } };
    lab = await openServerLab({ mcpServers: { gated: { url: gate.url, durable } } });
    await lab.startWorker();
  }
  afterEach(async () => {
    await lab.close();
    await gate.stop();
    await authority.stop();
  });

  const startResearch = (callNodeId: string) =>
    lab.client.start({ callNodeId, server: 'gated', ...RESEARCH });

  test('that is revoked under many operations is asked for once, and all of them go on', async () => {
    await openWith(600);
    const calls = wire.counts().byMethod['tools/call'] ?? 0;
    const handles = await Promise.all(Array.from({ length: 8 }, (_, n) => startResearch(`revoked-${n}`)));
    await Promise.all(handles.map((handle) => until(handle, ({ polls }) => polls > 0)));
    expect(authority.grants).toEqual([{ grantType: 'client_credentials', isOk: true }]);
    await authority.revoke(gate.bearers[0] ?? '');
    const ends = await Promise.all(handles.map((handle) => handle.result()));
    expect(ends.map(({ outcome }) => outcome)).toEqual(Array(8).fill('completed'));
    expect(ends.flatMap(({ receipt }) => receipt.submissionLegs)).toHaveLength(8);
    expect((wire.counts().byMethod['tools/call'] ?? 0) - calls).toBe(8);
    expect(gate.refusals).toBeGreaterThan(0);
    expect(authority.grants).toEqual(Array(2).fill({ grantType: 'client_credentials', isOk: true }));
  });

  test('that lives shorter than the operation is renewed in time, and no token is asked for in vain', async () => {
    await openWith(2);
    const handles = await Promise.all(Array.from({ length: 4 }, (_, n) => startResearch(`short-${n}`)));
    const ends = await Promise.all(handles.map((handle) => handle.result()));
    expect(ends.map(({ outcome }) => outcome)).toEqual(Array(4).fill('completed'));
    expect(gate.bearers.length).toBeGreaterThan(1);
    // One that was renewed for a refused submission may be spent before the next leg uses it.
    const legs = ends.flatMap(({ receipt }) => receipt.submissionLegs);
    const refused = legs.filter((leg) => leg.outcome === 'notSent').length;
    expect(authority.grants.length).toBeGreaterThanOrEqual(gate.bearers.length);
    expect(authority.grants.length).toBeLessThanOrEqual(gate.bearers.length + refused);
  });
});

test('a submission that is refused as unauthorized was not sent: its next leg has a new token', async () => {
  const everything = await startEverythingServer();
  const wire = await startPassThrough({ targetUrl: everything.url });
  const command = [process.execPath, '-e', "console.log('token-' + process.hrtime.bigint())"];
  const lab = await openServerLab({
    mcpServers: { printed: { url: wire.url, durable: { auth: { command } } } },
  });
  await lab.startWorker();
  const refused = wire.faults.answerNext('tools/call', { httpStatus: 401 });
  const handle = await lab.client.start({ callNodeId: 'unauthorized', server: 'printed', ...RESEARCH });
  const { outcome, receipt } = await handle.result();
  await refused.played;
  expect(outcome).toBe('completed');
  expect(receipt.submissionLegs).toMatchObject([
    {
      outcome: 'notSent',
      detail: 'tools/call: HTTP 401: the token was spent and has been renewed, nothing ran',
    },
    { outcome: 'referenced' },
  ]);
  await lab.close();
  await wire.stop();
  await everything.stop();
});

describe('a server that is a program', () => {
  const EVERYTHING = createRequire(import.meta.url).resolve(
    '@modelcontextprotocol/server-everything/dist/index.js',
  );
  let lab: ServerLab;
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'dtc-programs-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));
  /** The shell writes its process id down and becomes the server. */
  const openProgramLab = (): Promise<ServerLab> => {
    const write = `echo $$ >> ${join(dir, 'pids')}; exec "$0" "$@"`;
    const args = ['-c', write, process.execPath, EVERYTHING, 'stdio'];
    const program = { command: 'sh', args, durable: { maxPollsPerSecond: 50 } };
    return openServerLab({ mcpServers: { program } });
  };
  const pids = (): readonly number[] => {
    const file = join(dir, 'pids');
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : [];
  };
  const start = (callNodeId: string, call: { tool: string; arguments: JsonObject }) =>
    lab.client.start({ callNodeId, server: 'program', ...call });
  const isRunning = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  test('serves tasks with questions and plain calls from one process, which ends with its worker', async () => {
    lab = await openProgramLab();
    const worker = await lab.startWorker();
    const asking = await start('stdio-asking', ASKING);
    const plain = await start('stdio-plain', { tool: 'echo', arguments: { message: 'hello' } });
    expect((await plain.result()).toolResult).toMatchObject({ content: [{ text: 'Echo: hello' }] });
    await until(asking, (view) => view.pendingInput.length > 0);
    expect(await asking.answer({ content: { interpretation: 'snake' } })).toEqual({ kind: 'applied' });
    const { outcome, receipt } = await asking.result();
    expect([outcome, receipt.adapter]).toEqual(['completed', 'mcp/2025-11-25']);
    expect(pids()).toHaveLength(1);
    expect(isRunning(pids()[0] ?? 0)).toBe(true);
    await worker.stop();
    expect(isRunning(pids()[0] ?? 0)).toBe(false);
    await lab.close();
  });

  test('that is killed holds what it was doing, with how it ended, and serves the next call from a new process', async () => {
    lab = await openProgramLab();
    await lab.startWorker({ budgets: { recheckGapMs: 600_000 } });
    const task = await start('stdio-killed-task', ASKING);
    const plain = await start('stdio-killed-plain', {
      tool: 'trigger-long-running-operation',
      arguments: { duration: 60, steps: 60 },
    });
    await until(plain, ({ statusMessage }) => statusMessage !== null);
    await until(task, (view) => view.pendingInput.length > 0);
    process.kill(pids()[0] ?? 0, 'SIGKILL');
    const ended = 'the server process of program ended (signal SIGKILL)';
    const heldPlain = await until(plain, ({ state }) => state === 'UNRESOLVED');
    expect(heldPlain.evidence).toContain(ended);
    const heldTask = await until(task, ({ state }) => state === 'UNRESOLVED');
    expect(heldTask.reason).toBe('handle-lost');
    const next = await start('stdio-after', { tool: 'echo', arguments: { message: 'again' } });
    expect((await next.result()).outcome).toBe('completed');
    expect(new Set(pids()).size).toBe(2);
    expect(lab.rows('stdio-killed-plain')).toMatchObject({ legs: 1, receipts: 0 });
    await lab.close();
  });
});
