// Owns the proof of the command line as people run it: the built program, the real engine, the real server-everything.
// Must never look inside: exit codes, both output streams, the wire and the store are all that counts.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EverythingServer, startEverythingServer } from '../../cli/demo/everything-server.js';
import { type PassThrough, startPassThrough } from '../../cli/demo/pass-through.js';
import type { OperationView } from '../../client/view.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { type Ended, type Started, startCommand, viewOf } from './command-line.js';

let root: string;
let server: EverythingServer;
let wire: PassThrough;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'dtc-call-'));
  server = await startEverythingServer();
  wire = await startPassThrough({ targetUrl: server.url });
  const mcpServers = {
    everything: { type: 'http', url: wire.url },
    dead: { type: 'http', url: 'http://127.0.0.1:9/mcp' },
  };
  writeFileSync(join(root, 'tool-servers.json'), JSON.stringify({ mcpServers }));
});

afterAll(async () => {
  await wire.stop();
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

const start = (...args: string[]): Started => startCommand({ cwd: root }, ...args);
const run = (...args: string[]): Promise<Ended> => start(...args).ended;

const STATE = '.durable-tool-calls';
const RESEARCH = ['call', 'everything', 'simulate-research-query', '--args'] as const;

describe('before anything is written', () => {
  test.each([
    ['an unknown tool', ['everything', 'ecko'], 'everything has no tool "ecko"; near: echo'],
    ['bad arguments', ['everything', 'echo', '--args', '{"mesage":"x"}'], 'the arguments do not fit "echo"'],
    ['an unknown server', ['everythin', 'echo'], 'did you mean "everything"?'],
    ['an unreachable server', ['dead', 'echo'], 'cannot be reached'],
    ['arguments that are no JSON', ['everything', 'echo', '--args', '{'], '--args is not valid JSON'],
    [
      'a missing configuration',
      ['everything', 'echo', '--config', 'absent.json'],
      'absent.json: cannot be read',
    ],
    ['an unknown flag', ['everything', 'echo', '--bogus'], "unknown option '--bogus'"],
  ])('%s is refused with exit code 2 and one sentence', async (_what, args, sentence) => {
    const { exitCode, stdout, stderr } = await run('call', ...args, '--state-dir', 'untouched');
    expect(stderr).toContain(sentence);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(stdout).toBe('');
    expect(exitCode).toBe(2);
    expect(existsSync(join(root, 'untouched'))).toBe(false);
  });
});

test('a task completes with its view as one document, and its name brings back the same receipt', async () => {
  const first = await run(...RESEARCH, '{"topic":"x"}', '--call-node', 'n1', '--json');
  expect(first.exitCode, first.stderr).toBe(0);
  const view = viewOf(first);
  expect(view).toMatchObject({
    schema: 'operationView.v1',
    callNodeId: 'n1',
    server: 'everything',
    tool: 'simulate-research-query',
    adapter: 'mcp/2025-11-25',
    state: 'ACCEPTED',
    remoteStatus: 'completed',
    outcome: 'completed',
    failureKind: null,
    pendingInput: [],
    workflowId: 'tool-operation/n1',
  });
  expect(JSON.stringify(view.result?.value)).toContain('Research Report: x');

  const calls = wire.counts().toolsCall;
  const again = await run(...RESEARCH, '{"topic":"x"}', '--call-node', 'n1', '--json');
  expect(again.exitCode, again.stderr).toBe(0);
  expect(viewOf(again).receipt).toEqual(view.receipt);
  expect(wire.counts().toolsCall).toBe(calls);

  const status = await run('status', 'n1', '--json');
  expect(status.exitCode, status.stderr).toBe(0);
  expect(viewOf(status).receipt).toEqual(view.receipt);

  const conflict = await run(...RESEARCH, '{"topic":"other"}', '--call-node', 'n1');
  expect(conflict.stderr).toContain('"n1" already names a call');
  expect(conflict.exitCode).toBe(2);
});

test('a plain tool answers on standard output, and a call without a name is told its name', async () => {
  const { exitCode, stdout, stderr } = await run(
    'call',
    'everything',
    'echo',
    '--args',
    '{"message":"hello"}',
  );
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^Echo: hello\n/);
  expect(stdout).toContain('completed  everything/echo');
  expect(stderr).toMatch(/call node: cli-[0-9a-f-]{36}/);
});

test('an unknown tool under a name of its own leaves no row behind', async () => {
  const refused = await run('call', 'everything', 'ecko', '--call-node', 'never');
  expect(refused.exitCode, refused.stderr).toBe(2);
  const reader = await openReceiptsReader(join(root, STATE, 'operations.sqlite'));
  expect(await reader.read('never')).toBeNull();
  await reader.close();
  const status = await run('status', 'never');
  expect(status.stderr).toContain('no operation is named "never"');
  expect(status.exitCode).toBe(2);
});

test('--timeout stops waiting and nothing else: the same call completes later, sent once', async () => {
  const calls = wire.counts().toolsCall;
  const args = [...RESEARCH, '{"topic":"slow"}', '--call-node', 'n2', '--json'];
  const first = await run(...args, '--timeout', '5s');
  expect(first.exitCode, first.stderr).toBe(5);
  expect(viewOf(first).outcome).toBeNull();
  expect(first.stderr).toContain('The remote work goes on; our polling pauses');

  const status = await run('status', 'n2', '--json');
  expect(status.exitCode, status.stderr).toBe(5);
  expect(viewOf(status)).toMatchObject({ callNodeId: 'n2', tool: 'simulate-research-query', outcome: null });

  const second = await run(...args);
  expect(second.exitCode, second.stderr).toBe(0);
  expect(viewOf(second).receipt?.submissionLegs).toHaveLength(1);
  expect(wire.counts().toolsCall).toBe(calls + 1);
  expect(wire.counts().tasksCancel).toBe(0);
});

test('a prepared answer goes to the question', async () => {
  const args = [...RESEARCH, '{"topic":"python","ambiguous":true}', '--call-node', 'n3', '--json'];
  const { exitCode, stdout, stderr } = await run(...args, '--answer', '{"interpretation":"snake"}');
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toContain('python (snake)');
  expect(stderr).toContain('answered');
});

test('a refused answer leaves the question open, with the reason and what would fit', async () => {
  const args = [...RESEARCH, '{"topic":"python","ambiguous":true}', '--call-node', 'n4', '--json'];
  const call = start(...args, '--answer', '{"interpretation":"bogus"}');
  await call.said('it waits for an answer');
  call.kill('SIGINT');
  const { exitCode, stdout, stderr } = await call.ended;
  expect(exitCode, stderr).toBe(130);
  expect(stderr).toContain('the answer was refused: ');
  expect(stderr).toContain('"programming" | "snake" | "comedy"');
  expect((JSON.parse(stdout) as OperationView).pendingInput).toHaveLength(1);

  const answered = await run(...args, '--answer', '{"interpretation":"comedy"}');
  expect(answered.exitCode, answered.stderr).toBe(0);
  expect(answered.stdout).toContain('python (comedy)');
});

test('after kill -9 the same call goes on, although the engine was left behind', async () => {
  const calls = wire.counts().toolsCall;
  const args = [...RESEARCH, '{"topic":"killed"}', '--call-node', 'n5', '--json'];
  const call = start(...args);
  await call.said('WORKING');
  call.kill('SIGKILL');
  await call.ended;
  const again = await run(...args);
  expect(again.exitCode, again.stderr).toBe(0);
  expect(again.stderr).toContain('ended the engine that a killed command had left behind');
  expect(wire.counts().toolsCall).toBe(calls + 1);
});

test('a call that joined the engine of another goes on when that one ends', async () => {
  // Held on the wire, so the first command lives until it is let go; the second waits for an answer meanwhile.
  const held = wire.faults.holdNext('tools/call');
  const first = start('call', 'everything', 'echo', '--args', '{"message":"held"}');
  await held.arrived;
  const args = [...RESEARCH, '{"topic":"python","ambiguous":true}', '--call-node', 'n6', '--json'];
  const second = start(...args);
  await second.said('it waits for an answer');
  held.release();
  expect((await first.ended).exitCode).toBe(0);
  await second.said('going on with an engine of its own');
  second.kill('SIGINT');
  expect((await second.ended).exitCode).toBe(130);

  const answered = await run(...args, '--answer', '{"interpretation":"snake"}');
  expect(answered.exitCode, answered.stderr).toBe(0);
  expect(viewOf(answered).receipt?.submissionLegs).toHaveLength(1);
});

test('up serves other commands, is refused a second time, and ends on SIGTERM', async () => {
  const up = start('up');
  await up.said('ready');
  try {
    const second = await run('up');
    expect(second.stderr).toMatch(/another "up" runs on .*, at 127\.0\.0\.1:\d+ \(process \d+\)/);
    expect(second.exitCode).toBe(2);

    const call = await run('call', 'everything', 'echo', '--args', '{"message":"up"}', '--json');
    expect(call.exitCode, call.stderr).toBe(0);
    // No engine of its own was looked for.
    expect(call.stderr).not.toContain('temporal:');
  } finally {
    up.kill('SIGTERM');
  }
  const { exitCode, stderr } = await up.ended;
  expect(exitCode, stderr).toBe(0);
  expect(existsSync(join(root, STATE, 'engine.json'))).toBe(false);
});
