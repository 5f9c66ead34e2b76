// Owns the proof of the commands about operations that exist, on one running "dtc up": what they print, what they
// answer as exit code, and that they change nothing they should not.

import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EverythingServer, startEverythingServer } from '../../cli/demo/everything-server.js';
import { type PassThrough, startPassThrough } from '../../cli/demo/pass-through.js';
import type { OperationView, Receipt } from '../../client/index.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { type Ended, type Started, startCommand } from './command-line.js';

let root: string;
let server: EverythingServer;
let wire: PassThrough;
let up: Started;

const start = (...args: string[]): Started => startCommand({ cwd: root }, ...args);
const run = (...args: string[]): Promise<Ended> => start(...args).ended;

const ASK = ['simulate-research-query', '--args', '{"topic":"python","ambiguous":true}'] as const;
const PLAIN = ['simulate-research-query', '--args', '{"topic":"tides"}'] as const;
const STORE = join('.durable-tool-calls', 'operations.sqlite');

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'dtc-operations-'));
  server = await startEverythingServer();
  wire = await startPassThrough({ targetUrl: server.url });
  const echo = { submission: { policy: 'at-most-once' } };
  const mcpServers = {
    everything: { url: wire.url, durable: { maxPollsPerSecond: 20, tools: { echo } } },
  };
  writeFileSync(join(root, 'tool-servers.json'), JSON.stringify({ mcpServers }));
  const early = await run('call', 'everything', ...PLAIN, '--call-node', 'too-early', '--detach');
  expect(early.stderr).toContain('--detach needs a running "dtc up"');
  expect(early.exitCode).toBe(2);
  expect(existsSync(join(root, '.durable-tool-calls'))).toBe(false);
  up = start('up');
  await up.said('ready');
});

afterAll(async () => {
  up.kill('SIGTERM');
  expect((await up.ended).exitCode).toBe(0);
  await wire.stop();
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

async function detach(callNodeId: string, ...call: readonly string[]): Promise<void> {
  const { exitCode, stdout, stderr } = await run(
    'call',
    'everything',
    ...call,
    '--call-node',
    callNodeId,
    '--detach',
  );
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toBe(`${callNodeId}\n`);
}

/** The lines of `watch --json` up to the one that fits, and the command that goes on. */
async function watchUntil(callNodeId: string, text: string): Promise<Started> {
  const watching = start('watch', callNodeId, '--json');
  await watching.said(text);
  return watching;
}

function linesOf({ stdout }: Ended): readonly OperationView[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as OperationView);
}

describe('a question', () => {
  test('is listed, refuses what does not fit, is answered once, and the receipt has the exact result', async () => {
    await detach('q1', ...ASK);
    const watching = await watchUntil('q1', '"roundId"');

    const list = JSON.parse((await run('list', '--json')).stdout) as { operations: object[] };
    expect(list.operations).toContainEqual(
      expect.objectContaining({ callNodeId: 'q1', state: 'INPUT_REQUIRED', outcome: null, endedAt: null }),
    );
    const wrong = await run('answer', 'q1', '{"interpretation":"cheese"}');
    expect(wrong.stdout).toContain('the answer was refused: ');
    expect(wrong.stderr).toContain('"programming" | "snake" | "comedy"');
    expect(wrong.exitCode).toBe(2);
    const elsewhere = await run('answer', 'q1', '{"interpretation":"snake"}', '--round', 'no-such-round');
    expect([1, 2], elsewhere.stdout).toContain(elsewhere.exitCode);
    expect(wire.counts().answers).toBe(0);

    const status = JSON.parse((await run('status', 'q1', '--json')).stdout) as OperationView;
    const round = status.pendingInput[0]?.roundId ?? '';
    const snake = ['answer', 'q1', '{"interpretation":"snake"}', '--round', round];
    const applied = await run(...snake, '--json');
    expect(JSON.parse(applied.stdout)).toMatchObject({
      schema: 'answerVerdict.v1',
      verdict: { kind: 'applied' },
    });
    expect(applied.exitCode).toBe(0);
    // The operation cannot end while its next look is held.
    const held = wire.faults.holdNext('tasks/get');
    const again = await run(...snake);
    expect(again.stdout, again.stderr).toMatch(/answered|given already/);
    expect(again.exitCode).toBe(0);
    const other = await run('answer', 'q1', '{"interpretation":"comedy"}', '--round', round);
    expect(other.stdout).toMatch(/another answer was given at|the question is over/);
    expect(other.exitCode).toBe(1);
    held.release();

    const watched = await watching.ended;
    expect(watched.exitCode, watched.stderr).toBe(0);
    const views = linesOf(watched);
    expect(views.length).toBeGreaterThan(2);
    expect(views.filter(({ receipt }) => receipt !== null)).toHaveLength(1);
    expect(views.at(-1)?.outcome).toBe('completed');
    expect(wire.counts().answers).toBe(1);

    const receipt = JSON.parse((await run('receipt', 'q1', '--json')).stdout) as Receipt;
    const result = await run('receipt', 'q1', '--result');
    expect(createHash('sha256').update(result.bytes).digest('hex')).toBe(receipt.result?.digest);
    expect(result.exitCode).toBe(0);

    const reader = await openReceiptsReader(join(root, STORE));
    const key = (await reader.read('q1'))?.submissionKey ?? '';
    await reader.close();
    expect((await run('find', '--task', receipt.remoteReference?.remoteId ?? '')).stdout).toBe('q1\n');
    expect((await run('find', '--key', key)).stdout).toBe('q1\n');
    const swapped = await run('find', '--task', key);
    expect(swapped.stderr).toContain('no operation');
    expect(swapped.exitCode).toBe(2);

    const late = await run('cancel', 'q1');
    expect(late.stdout).toContain('too late to cancel: its end is completed');
    expect(late.exitCode).toBe(1);
    const closed = await run('answer', 'q1', '{"interpretation":"snake"}');
    expect(closed.stdout).toContain('the operation ended: completed');
    expect(closed.exitCode).toBe(1);
    expect((await run('list', '--all')).stdout).toMatch(
      /q1 +everything\/simulate-research-query +ACCEPTED +completed/,
    );
    expect((await run('list')).stdout).not.toContain('q1');
  });

  test('may be declined, and too large a reply is refused before it is sent', async () => {
    await detach('q2', ...ASK);
    const watching = await watchUntil('q2', '"roundId"');
    const file = join(root, 'large.json');
    writeFileSync(file, JSON.stringify({ interpretation: 'x'.repeat(70_000) }));
    const large = await run('answer', 'q2', `@${file}`);
    expect(large.stdout).toContain('more than 65536');
    expect(large.exitCode).toBe(2);
    const both = await run('answer', 'q2', '{}', '--decline');
    expect(both.exitCode).toBe(2);
    const declined = await run('answer', 'q2', '--decline');
    expect(declined.stdout, declined.stderr).toContain('answered');
    expect(declined.exitCode).toBe(0);
    watching.kill('SIGINT');
    expect([0, 1, 130]).toContain((await watching.ended).exitCode);
  });
});

test('a cancel is requested with its reason, and the watcher ends with the code of the outcome', async () => {
  await detach('c1', ...ASK);
  const watching = await watchUntil('c1', '"roundId"');
  const cancel = await run('cancel', 'c1', '--reason', 'not needed any more', '--json');
  expect(JSON.parse(cancel.stdout)).toMatchObject({ schema: 'cancelVerdict.v1', verdict: 'requested' });
  expect(cancel.exitCode).toBe(0);
  const { exitCode, stderr } = await watching.ended;
  expect(exitCode, stderr).toBe(3);
  const receipt = await run('receipt', 'c1');
  expect(receipt.stdout).toContain('not needed any more');
  expect(receipt.exitCode).toBe(3);
  const result = await run('receipt', 'c1', '--result');
  expect(result.stderr).toContain('ended without a result');
  expect(result.exitCode).toBe(3);
});

test('what is held is shown with its evidence and key, and an operator resolves it once', async () => {
  const lost = wire.faults.dropReply('tools/call');
  await detach('h1', 'echo', '--args', '{"message":"once"}');
  await lost.played;
  const watched = await run('watch', 'h1');
  expect(watched.stderr).toContain('"h1" is held: ');
  expect(watched.exitCode).toBe(5);

  const held = await run('unresolved');
  expect(held.stdout).toMatch(/^h1 {2}everything\/echo\n/);
  expect(held.stdout).toContain('ambiguous-submission');
  expect(held.stdout).toMatch(/since +2\d{3}-/);
  expect(held.stdout).toMatch(/key +\S+/);
  expect(held.stdout).toContain('dtc resolve h1 --never-created --evidence TEXT --by NAME');
  expect(held.exitCode).toBe(5);

  const word = ['--evidence', 'the log of the server', '--by', 'Ann'];
  const unsigned = await run('resolve', 'h1', '--close', '--by', 'Ann');
  expect(unsigned.stderr).toContain('--evidence');
  expect(unsigned.exitCode).toBe(2);
  const two = await run('resolve', 'h1', '--close', '--never-created', ...word);
  expect(two.stderr).toContain('say one thing');
  const unfit = await run('resolve', 'h1', '--found', 'task-1', ...word);
  expect(unfit.stderr).toContain('a tool without tasks has no remote work to name');
  expect(unfit.exitCode).toBe(2);

  const resolved = await run('resolve', 'h1', '--never-created', ...word);
  expect(resolved.stdout, resolved.stderr).toContain('the operation has ended');
  expect(resolved.stdout).toContain('operator Ann: the log of the server');
  expect(resolved.exitCode).toBe(0);
  expect((await run('receipt', 'h1')).exitCode).toBe(4);
  const again = await run('resolve', 'h1', '--close', ...word);
  expect(again.stderr).toContain('is not held, so there is nothing to resolve: it has ended: rejected');
  expect(again.exitCode).toBe(2);
  expect((await run('unresolved')).exitCode).toBe(0);
});

describe('doctor', () => {
  test('finds all well on a running engine', async () => {
    const { exitCode, stdout } = await run('doctor');
    expect(stdout).toMatch(/ok +server everything +MCP 2025-11-25, tasks, \d+ tools/);
    expect(stdout).toMatch(/ok +search attributes +ToolServer Keyword/);
    expect(stdout).toMatch(/ok +poll queue partitions +1/);
    expect(stdout).toMatch(/ok +poll rate limits +everything 20\/s/);
    expect(stdout).toMatch(/ok +store +version \d+, sound/);
    expect(exitCode, stdout).toBe(0);
  });

  test('names what is wrong with a configuration and how to mend it', async () => {
    const tools = { ecko: { sideEffects: 'none' } };
    const mcpServers = {
      everything: { uri: 'x', url: wire.url, durable: { tools } },
      dead: { url: 'http://127.0.0.1:9/mcp' },
    };
    writeFileSync(join(root, 'odd.json'), JSON.stringify({ mcpServers }));
    const args = ['doctor', '--config', 'odd.json', '--state-dir', 'nowhere', '--json'];
    const { exitCode, stdout } = await run(...args);
    const { findings } = JSON.parse(stdout) as { findings: { kind: string; says: string; mend: string }[] };
    const wrong = findings.filter(({ kind }) => kind === 'wrong');
    expect(wrong.map(({ says }) => says)).toEqual([
      'mcpServers.everything.uri: is ignored; did you mean "url"?',
      '"durable" has settings for the tool "ecko", which it does not publish',
      expect.stringContaining('dead at http://127.0.0.1:9/mcp cannot be reached'),
    ]);
    expect(wrong[1]?.mend).toBe('did you mean "echo"?');
    expect(exitCode).toBe(1);
    expect(existsSync(join(root, 'nowhere'))).toBe(false);
  });
});

test('a name that nobody used is one sentence and exit code 2', async () => {
  const commands = [
    ['answer', 'nobody', '{}'],
    ['cancel', 'nobody'],
    ['watch', 'nobody'],
    ['receipt', 'nobody'],
    ['resolve', 'nobody', '--close', '--evidence', 'e', '--by', 'b'],
  ];
  const ended = await Promise.all(commands.map((args) => run(...args)));
  for (const { exitCode, stdout, stderr } of ended) {
    expect(stderr).toContain('no operation is named "nobody"');
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(stdout).toBe('');
    expect(exitCode).toBe(2);
  }
});
