// `dtc up --metrics` and `--log json` as a person runs them: real calls through it, scraped and read line by line.

import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EverythingServer, startEverythingServer } from '../../cli/demo/everything-server.js';
import { type PassThrough, startPassThrough } from '../../cli/demo/pass-through.js';
import { workflowIdOf } from '../../operation/names.js';
import { type Ended, type Started, startCommand } from './command-line.js';

const TOKEN = 'token-that-nobody-may-read';
const TOPIC = 'topic-that-nobody-may-read';
const RESEARCH = ['simulate-research-query', '--args', JSON.stringify({ topic: TOPIC })] as const;
const STATE = '.durable-tool-calls';

let root: string;
let server: EverythingServer;
let wire: PassThrough;
let up: Started;
let url: string;

const start = (...args: string[]): Started => startCommand({ cwd: root, env: { TOKEN } }, ...args);
const run = (...args: string[]): Promise<Ended> => start(...args).ended;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'dtc-metrics-'));
  server = await startEverythingServer();
  wire = await startPassThrough({ targetUrl: server.url });
  const tools = { echo: { submission: { policy: 'at-most-once' } } };
  const everything = {
    url: wire.url,
    headers: { authorization: 'Bearer ${TOKEN}' },
    durable: { maxPollsPerSecond: 20, tools },
  };
  writeFileSync(join(root, 'tool-servers.json'), JSON.stringify({ mcpServers: { everything } }));
  up = start('up', '--metrics', '0', '--log', 'json');
  await up.said('ready');
  url = up.soFar().stdout.match(/^metrics +(\S+)$/m)?.[1] ?? '';
});

afterAll(async () => {
  up.kill('SIGTERM');
  const ended = await up.ended;
  expect(ended.exitCode, ended.stderr).toBe(0);
  await wire.stop();
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

/** The value of one series; NaN where there is none. */
async function value(series: string): Promise<number> {
  const response = await fetch(url);
  expect(response.status).toBe(200);
  const lines = (await response.text()).split('\n');
  const line = lines.find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? Number.NaN : Number(line.slice(series.length));
}

/** The gauges are read once a second, and the engine's visibility lags. */
const soon = { timeout: 15_000, interval: 300 };

const COMPLETED =
  'dtc_accepted_total{server="everything",tool="simulate-research-query",outcome="completed"}';
const POLLS = 'dtc_polls_total{server="everything",result="ok"}';
const RUNS_COMPLETED =
  'temporal_workflow_completed{namespace="default",service_name="temporal-core-sdk",' +
  'task_queue="durable-tool-calls",workflow_type="toolOperation"}';

test('a call through it moves the counters of the project and those of the SDK, at one address', async () => {
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
  expect(await value(COMPLETED)).toBeNaN();
  expect(await value(RUNS_COMPLETED)).toBeNaN();
  const call = await run('call', 'everything', ...RESEARCH, '--call-node', 'metrics-1');
  expect(call.exitCode, call.stderr).toBe(0);
  expect(await value(COMPLETED)).toBe(1);
  expect(await value(POLLS)).toBe(wire.counts().tasksGet);
  expect(await value(POLLS)).toBeGreaterThan(0);
  await expect.poll(() => value(RUNS_COMPLETED), soon).toBe(1);
  expect(await value('dtc_step_faults_total{step="observe"}')).toBe(0);
});

test('an open operation, a held one and one without a run show in the gauges, and go again', async () => {
  const working = 'dtc_operations{state="WORKING"}';
  const unresolved = 'dtc_operations{state="UNRESOLVED"}';
  expect(await value('dtc_operations_readable')).toBe(1);
  expect([await value(working), await value(unresolved)]).toEqual([0, 0]);
  expect(await value('dtc_oldest_unresolved_seconds')).toBe(0);

  const lost = wire.faults.dropReply('tools/call');
  const echo = ['echo', '--args', JSON.stringify({ message: TOPIC })];
  await run('call', 'everything', ...echo, '--call-node', 'metrics-held', '--detach');
  await lost.played;
  await expect.poll(() => value(unresolved), soon).toBe(1);
  const age = await value('dtc_oldest_unresolved_seconds');
  expect(age).toBeGreaterThan(0);
  await expect.poll(() => value('dtc_oldest_unresolved_seconds'), soon).toBeGreaterThan(age);

  const held = wire.faults.holdNext('tasks/get');
  await run('call', 'everything', ...RESEARCH, '--call-node', 'metrics-open', '--detach');
  await held.arrived;
  await expect.poll(() => value(working), soon).toBe(1);
  const address = up.soFar().stdout.match(/^engine +(\S+)$/m)?.[1] ?? '';
  const connection = await Connection.connect({ address });
  const runs = new Client({ connection }).workflow;
  await runs.getHandle(workflowIdOf('metrics-open')).terminate('a person in the UI');
  await connection.close();
  held.release();
  await expect.poll(() => value('dtc_operations_without_run'), soon).toBe(1);
  expect(await value(working)).toBe(0);

  const again = await run('call', 'everything', ...RESEARCH, '--call-node', 'metrics-open');
  expect(again.exitCode, again.stderr).toBe(0);
  const word = ['--close', '--evidence', 'a test', '--by', 'Ann'];
  await run('resolve', 'metrics-held', ...word);
  await expect.poll(() => value('dtc_operations_without_run'), soon).toBe(0);
  await expect.poll(() => value('dtc_oldest_unresolved_seconds'), soon).toBe(0);
});

test('a cancel is counted with its latency', async () => {
  // It asks, and nobody answers: only the cancel ends it.
  const asking = ['simulate-research-query', '--args', JSON.stringify({ topic: TOPIC, ambiguous: true })];
  await run('call', 'everything', ...asking, '--call-node', 'metrics-cancelled', '--detach');
  await run('cancel', 'metrics-cancelled');
  await run('watch', 'metrics-cancelled');
  const cancels = 'dtc_cancel_seconds_count{server="everything",outcome="cancelled"}';
  expect(await value(cancels)).toBe(1);
});

test('each line on standard error and in the log file is one JSON object that names its operation', () => {
  const { stderr } = up.soFar();
  const file = readFileSync(join(root, STATE, 'logs', 'worker.log'), 'utf8');
  for (const text of [stderr, file]) {
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    for (const line of lines) {
      expect(line).toMatchObject({ kind: expect.any(String), level: expect.any(String) });
      expect(new Date(String(line['at'])).toISOString()).toBe(line['at']);
      // The words of a server may repeat arguments.
      if (line['kind'] === 'stepRetried') expect(line).not.toHaveProperty('message');
    }
    const ofCall = lines.filter((line) => line['callNodeId'] === 'metrics-1');
    expect(ofCall).toContainEqual(expect.objectContaining({ kind: 'accepted', outcome: 'completed' }));
    expect(ofCall).toContainEqual(
      expect.objectContaining({ kind: 'wireCall', call: 'submit', durationMs: expect.any(Number) }),
    );
    expect(ofCall).toContainEqual(expect.objectContaining({ kind: 'stepRetried', step: 'observe' }));
    expect(text).not.toContain(TOKEN);
    expect(text).not.toContain(TOPIC);
  }
});

test('no label holds a secret or an argument, and nothing but /metrics is answered', async () => {
  const text = await (await fetch(url)).text();
  expect(text).not.toContain(TOKEN);
  expect(text).not.toContain(TOPIC);
  expect(text).not.toContain('metrics-1');
  expect((await fetch(new URL('/', url))).status).toBe(404);
  expect((await fetch(url, { method: 'POST' })).status).toBe(405);
});

test('a port that is taken is one sentence and exit code 2, and nothing was started', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const place = ['--state-dir', 'untouched', '--metrics', String(port)];
  const ended = await run('up', ...place);
  const sentence = `--metrics: 127.0.0.1:${port} is in use already: name another port, or 0 for any free one`;
  expect(ended.stderr).toBe(`${sentence}\n`);
  expect(ended).toMatchObject({ exitCode: 2, stdout: '' });
  const asJson = await run('up', ...place, '--log', 'json');
  expect(JSON.parse(asJson.stderr)).toMatchObject({ level: 'error', kind: 'note', message: sentence });
  expect(asJson.exitCode).toBe(2);
  expect(existsSync(join(root, 'untouched'))).toBe(false);
  taken.close();
});

test.each([
  [['--metrics', 'everywhere'], '--metrics "everywhere" is no address: give a port'],
  [['--metrics', ''], '--metrics "" is no address'],
  [['--metrics', '192.0.2.1:0'], '--metrics: 192.0.2.1:0 is no address of this machine'],
  [['--log', 'xml'], 'Allowed choices are text, json'],
])('up %j is refused with exit code 2 and one sentence', async (args, sentence) => {
  const ended = await run('up', ...args, '--state-dir', 'untouched');
  expect(ended.stderr).toContain(sentence);
  expect(ended.stderr.trimEnd()).not.toContain('\n');
  expect(ended).toMatchObject({ exitCode: 2, stdout: '' });
  expect(existsSync(join(root, 'untouched'))).toBe(false);
});

test('a scraper that keeps its connection does not hold the end up', async () => {
  const own = start('up', '--metrics', '127.0.0.1:0', '--state-dir', 'own');
  await own.said('ready');
  const { port } = new URL(own.soFar().stdout.match(/^metrics +(\S+)$/m)?.[1] ?? '');
  const scraper = connect(Number(port), '127.0.0.1');
  scraper.write('GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: keep-alive\r\n\r\n');
  await once(scraper, 'data');
  const closed = once(scraper, 'close');
  scraper.resume();
  own.kill('SIGTERM');
  expect((await own.ended).exitCode).toBe(0);
  await closed;
});
