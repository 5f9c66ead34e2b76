// Owns the proof of an operator's end and of a restored store from the command line: exit codes, what is printed, what
// the store then holds, and that the wire sees one call.

import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EverythingServer, startEverythingServer } from '../../cli/demo/everything-server.js';
import { type PassThrough, startPassThrough } from '../../cli/demo/pass-through.js';
import type { Receipt } from '../../client/index.js';
import { type Ended, type Started, startCommand } from './command-line.js';

let root: string;
let server: EverythingServer;
let wire: PassThrough;
let up: Started;

const run = (...args: string[]): Promise<Ended> => startCommand({ cwd: root }, ...args).ended;
const ANN = ['--evidence', 'the log of the server', '--by', 'Ann'];
const STORE = join('.durable-tool-calls', 'operations.sqlite');

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'dtc-restored-'));
  server = await startEverythingServer();
  wire = await startPassThrough({ targetUrl: server.url });
  const echo = { submission: { policy: 'at-most-once' } };
  const mcpServers = { everything: { url: wire.url, durable: { maxPollsPerSecond: 20, tools: { echo } } } };
  writeFileSync(join(root, 'tool-servers.json'), JSON.stringify({ mcpServers }));
  await startUp();
});

afterAll(async () => {
  await endUp();
  await wire.stop();
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

async function startUp(): Promise<void> {
  up = startCommand({ cwd: root }, 'up');
  await up.said('ready');
}

async function endUp(): Promise<void> {
  up.kill('SIGTERM');
  expect((await up.ended).exitCode).toBe(0);
}

async function hold(callNodeId: string): Promise<void> {
  const lost = wire.faults.dropReply('tools/call');
  const args = ['call', 'everything', 'echo', '--args', '{"message":"once"}', '--call-node', callNodeId];
  const called = await run(...args);
  await lost.played;
  expect(called.stderr).toContain('is held');
  expect(called.exitCode).toBe(5);
}

test('an operator ends a held operation with the result from a file: completed, byte for byte, and advancing', async () => {
  await hold('e1');
  const unresolved = await run('unresolved');
  expect(unresolved.stdout).toContain(
    'dtc resolve e1 --outcome completed|failed --result @FILE --evidence TEXT',
  );

  const usage: [string[], string][] = [
    [['--outcome', 'completed'], '--outcome completed needs --result'],
    [['--result', '{}'], '--result needs --outcome completed or --outcome failed'],
    [['--outcome', 'cancelled', '--result', '{}'], '--result needs --outcome completed or --outcome failed'],
    [['--outcome', 'completed', '--result', '{"content"'], '--result: the result is not valid JSON'],
    [['--outcome', 'completed', '--result', '@nowhere.json'], 'the file cannot be read (ENOENT)'],
    [
      ['--outcome', 'completed', '--result', '@large.json'],
      'large.json: the result is larger than 524288 bytes',
    ],
    [['--outcome', 'completed', '--result', '@latin1.json'], 'latin1.json is not UTF-8 text'],
    [['--outcome', 'completed', '--result', '{}', '--close'], 'say one thing'],
    [['--outcome', 'completed', '--result', '{"isError":true}'], 'the result says isError'],
  ];
  writeFileSync(join(root, 'large.json'), JSON.stringify('x'.repeat(600_000)));
  writeFileSync(join(root, 'latin1.json'), Buffer.from('"\xe4"', 'latin1'));
  const refused = await Promise.all(usage.map(([args]) => run('resolve', 'e1', ...args, ...ANN)));
  refused.forEach(({ exitCode, stdout, stderr }, at) => {
    expect(stderr).toContain(usage[at]?.[1]);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect([exitCode, stdout]).toEqual([2, '']);
  });

  const result = '{ "content": [ {"type": "text", "text": "Echo: once"} ] }\n';
  writeFileSync(join(root, 'result.json'), result);
  const resolved = await run(
    'resolve',
    'e1',
    '--outcome',
    'completed',
    '--result',
    '@result.json',
    ...ANN,
    '--json',
  );
  expect(JSON.parse(resolved.stdout), resolved.stderr).toMatchObject({
    became: 'ended',
    outcome: 'completed',
  });
  expect(resolved.exitCode).toBe(0);
  const receipt = JSON.parse((await run('receipt', 'e1', '--json')).stdout) as Receipt;
  expect(receipt.decision.evidence).toBe('operator Ann: the log of the server');
  expect(receipt.remoteSaid.remoteStatus).toBeNull();
  expect(receipt.result?.digest).toBe(createHash('sha256').update(result).digest('hex'));
  const bytes = await run('receipt', 'e1', '--result');
  expect([bytes.stdout, bytes.exitCode]).toEqual([result, 0]);
  expect((await run('receipt', 'e1')).stdout).toMatch(/ready|advances/);
  const again = await run('resolve', 'e1', '--outcome', 'failed', '--result', '{}', ...ANN);
  expect(again.stderr).toContain('is not held, so there is nothing to resolve: it has ended: completed');
  expect(again.exitCode).toBe(2);
}, 120_000);

test('a store that is as new as its runs is said to be so', async () => {
  const { exitCode, stdout, stderr } = await run('restored');
  expect(stdout, stderr).toMatch(
    /^all is well: the store knows all that 0 open operations have seen and the receipts of \d+/,
  );
  expect(exitCode).toBe(0);
});

test('a store that has forgotten is listed, ended by an operator, and then all is well again; the wire saw one call', async () => {
  const calls = wire.counts().toolsCall;
  const args = ['--args', '{"topic":"python","ambiguous":true}', '--call-node', 'r1', '--detach'];
  expect((await run('call', 'everything', 'simulate-research-query', ...args)).exitCode).toBe(0);
  const watching = startCommand({ cwd: root }, 'watch', 'r1', '--json');
  await watching.said('"roundId"');
  watching.kill('SIGINT');
  await watching.ended;
  await endUp();
  for (const part of ['', '-wal', '-shm']) rmSync(join(root, STORE + part), { force: true });
  expect(existsSync(join(root, STORE))).toBe(false);
  await startUp();

  const restored = await run('restored', '--json');
  expect(restored.exitCode, restored.stderr).toBe(5);
  const { operations } = JSON.parse(restored.stdout) as {
    operations: { kind: string; callNodeId: string }[];
  };
  expect(operations).toContainEqual(expect.objectContaining({ kind: 'ledgerBehind', callNodeId: 'r1' }));
  // The one that ended before lost its receipt with the store.
  expect(operations).toContainEqual(
    expect.objectContaining({ kind: 'receiptLost', callNodeId: 'e1', outcome: 'completed' }),
  );
  const people = await run('restored');
  expect(people.stdout).toMatch(
    /r1 {2}everything\/simulate-research-query\n {2}what +the store is older than its run/,
  );
  expect(people.stdout).toMatch(/e1 {2}everything\/echo\n {2}what +receipt lost from the store/);
  expect((await run('unresolved')).stdout).toContain('dtc resolve r1 --close');

  const named = await run('resolve', 'r1', '--never-created', ...ANN);
  expect(named.stderr).toContain('its store is older than its run');
  expect(named.exitCode).toBe(2);
  const closed = await run('resolve', 'r1', '--close', ...ANN);
  expect(closed.stdout, closed.stderr).toContain('the operation has ended');
  expect(closed.exitCode).toBe(0);
  const receipt = JSON.parse((await run('receipt', 'r1', '--json')).stdout) as Receipt;
  expect(receipt).toMatchObject({ outcome: 'unresolved', effects: 'EFFECT_RECONCILIATION_REQUIRED' });
  expect(receipt.submissionLegs).toHaveLength(1);
  const after = JSON.parse((await run('restored', '--json')).stdout) as {
    operations: { callNodeId: string }[];
  };
  expect(after.operations.map(({ callNodeId }) => callNodeId)).toEqual(['e1']);
  expect(wire.counts().toolsCall).toBe(calls + 1);
}, 180_000);
