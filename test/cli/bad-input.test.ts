// Owns the proof that bad input ends with one clear sentence and the right exit code, and leaves nothing half-written.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { openSqliteStore } from '../../receipts/open-store.js';
import { type AskingServer, startAskingServer } from './asking-server.js';
import { type Ended, startCommand, viewOf } from './command-line.js';

/** Matching it against a long run of one letter takes longer than anybody lives. */
const CATASTROPHE = '^(a+)+$';

let root: string;
let asking: AskingServer;
let web: Server;

const run = (...args: string[]): Promise<Ended> => startCommand({ cwd: root }, ...args).ended;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'dtc-bad-'));
  asking = await startAskingServer({
    type: 'object',
    properties: { word: { type: 'string', pattern: CATASTROPHE }, size: { type: 'integer' } },
    required: ['word', 'size'],
  });
  web = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html><body>Welcome</body></html>');
  });
  web.listen(0, '127.0.0.1');
  await once(web, 'listening');
  const address = web.address();
  const port = typeof address === 'object' ? address?.port : 0;
  writeConfig('tool-servers.json', {
    mcpServers: { asking: { url: asking.url }, web: { url: `http://127.0.0.1:${port}/` } },
  });
});
afterAll(async () => {
  web.closeAllConnections();
  web.close();
  await asking.stop();
  rmSync(root, { recursive: true, force: true });
});

function writeConfig(name: string, config: object): void {
  writeFileSync(join(root, name), JSON.stringify(config));
}

/** One sentence, no stack, nothing on standard output. */
function expectSentence(ended: Ended, sentence: string | RegExp, exitCode = 2): void {
  expect(ended.stderr).toMatch(sentence);
  expect(ended.stderr).not.toMatch(/\n\s+at /);
  expect(ended.stdout).toBe('');
  expect(ended.exitCode, ended.stderr).toBe(exitCode);
}

const UNTOUCHED = ['--state-dir', 'untouched'];
function expectUntouched(): void {
  expect(existsSync(join(root, 'untouched'))).toBe(false);
}

describe('before anything is written', () => {
  test('a URL that answers HTML is no MCP server', async () => {
    const ended = await run('call', 'web', 'ask', ...UNTOUCHED);
    expectSentence(ended, /^web at http:\/\/\S+ does not answer as an MCP server \(.+\); check "url"/);
    expect(ended.stderr).not.toContain('Welcome');
    expectUntouched();
  });

  test.each([
    ['a slip in the first key', { mcpServer: {} }, 'did you mean it by "mcpServer"?'],
    [
      'a slip under durable',
      { mcpServers: { asking: { url: 'http://127.0.0.1:9/', durable: { maxPollPerSecond: 1 } } } },
      '"maxPollPerSecond" (nearest: "maxPollsPerSecond")',
    ],
  ])('%s of the configuration is a mistake', async (_what, config, sentence) => {
    writeConfig('slip.json', config);
    const ended = await run('call', 'asking', 'ask', '--config', 'slip.json', ...UNTOUCHED);
    expectSentence(ended, sentence);
    expectUntouched();
  });

  test('a slip beside durable is told with the nearest name, and is no mistake', async () => {
    writeConfig('near.json', { mcpServers: { web: { url: 'http://127.0.0.1:9/', header: {}, cwd: '.' } } });
    const ended = await run('call', 'web', 'ask', '--config', 'near.json', ...UNTOUCHED);
    expectSentence(ended, 'mcpServers.web.header: is ignored; did you mean "headers"?');
    expect(ended.stderr).toContain('mcpServers.web.cwd: is ignored beside "url".');
    expectUntouched();
  });

  test('oversized arguments are refused with both sizes', async () => {
    writeFileSync(join(root, 'huge.json'), JSON.stringify({ topic: 'x'.repeat(300_000) }));
    const ended = await run('call', 'asking', 'ask', '--args', '@huge.json', ...UNTOUCHED);
    expectSentence(ended, 'the arguments have 300012 bytes, more than 262144');
    expectUntouched();
  });

  test('where no Temporal server is to be had, it says how to get one', async () => {
    mkdirSync(join(root, 'empty'), { recursive: true });
    const env = { DTC_NO_DOWNLOAD: '1', XDG_CACHE_HOME: join(root, 'empty'), PATH: join(root, 'empty') };
    const none = await startCommand({ cwd: root, env }, 'call', 'asking', 'ask', '--state-dir', 'none').ended;
    expectSentence(none, /^No Temporal server can be had here .*TEMPORAL_CLI_PATH/);
    expect(existsSync(join(root, 'none', 'operations.sqlite'))).toBe(false);
    const away = { TEMPORAL_ADDRESS: '127.0.0.1:9' };
    const gone = await startCommand({ cwd: root, env: away }, 'call', 'asking', 'ask', '--state-dir', 'none')
      .ended;
    expectSentence(gone, 'the Temporal server at 127.0.0.1:9 cannot be reached');
    expect(existsSync(join(root, 'none', 'operations.sqlite'))).toBe(false);
  });
});

describe('a state directory', () => {
  test('of a newer release is refused by every command, and stays as it is', async () => {
    const file = join(root, 'newer', 'operations.sqlite');
    await (await openSqliteStore(file)).close();
    const database = new Database(file);
    database.prepare('insert into store_version (version, applied_at) values (99, 0)').run();
    database.close();
    const place = ['--state-dir', 'newer'];
    const commands = [
      ['call', 'asking', 'ask', '--call-node', 'n'],
      ['list'],
      ['status', 'n'],
      ['receipt', 'n'],
      ['answer', 'n', '{}'],
    ];
    const ended = await Promise.all(commands.map((command) => run(...command, ...place)));
    for (const one of ended) expectSentence(one, 'was written by a newer release (store version 99');
    const doctor = await run('doctor', ...place);
    expect(doctor.stdout).toMatch(/WRONG +store +.*newer release/);
    expect(doctor.exitCode).toBe(1);
    expect(existsSync(join(root, 'newer', 'temporal.db'))).toBe(false);
  });

  test('that cannot be written is refused before an engine starts', async () => {
    const { place, undo } = readOnlyDirectory();
    try {
      const ended = await run('call', 'asking', 'ask', '--state-dir', place);
      expectSentence(ended, /the state directory .* cannot be written \(E(ROFS|ACCES)\)/);
      expect(existsSync(join(place, 'logs'))).toBe(false);
    } finally {
      undo();
    }
  });

  test('on a full disk is refused before an engine starts', async () => {
    const { place, sentence, start, undo } = fullDisk();
    try {
      expectSentence(await start('call', 'asking', 'ask', '--state-dir', place), sentence);
      expect(existsSync(join(place, 'temporal.db'))).toBe(false);
      expect(existsSync(join(place, 'operations.sqlite'))).toBe(false);
    } finally {
      undo();
    }
  });
});

test('a hostile schema hangs nobody, wrong replies are refused, and the right one is given once', async () => {
  const place = ['--state-dir', 'asked'];
  const call = ['call', 'asking', 'ask', '--call-node', 'hostile', '--json', ...place];
  const first = startCommand({ cwd: root }, ...call);
  await first.said('it waits for an answer');
  const long = `${'a'.repeat(60)}!`;
  const replies = [
    ['{"word":"a","size":"large"}', 'the answer was refused: /size'],
    ['{"word":"a"}', 'the answer was refused: '],
    ['[]', 'must be a JSON object'],
    ['{"word":', 'the reply is not valid JSON'],
  ];
  for (const [wrong, sentence] of replies) {
    const refused = await run('answer', 'hostile', wrong ?? '', ...place);
    expect(`${refused.stdout}${refused.stderr}`).toContain(sentence);
    expect(refused.exitCode).toBe(2);
  }
  expect(asking.replies).toEqual([]);
  // The pattern is the server's to check: it could hang us.
  const reply = JSON.stringify({ word: long, size: 3 });
  const answering = startCommand({ cwd: root }, 'answer', 'hostile', reply, ...place);
  // Hung in a matcher, it would hear no milder signal.
  onTestFailed(() => answering.kill('SIGKILL'));
  const answered = await answering.ended;
  expect(answered.stdout, answered.stderr).toContain('answered');
  expect(answered.exitCode).toBe(0);
  const ended = await first.ended;
  expect(ended.exitCode, ended.stderr).toBe(0);
  expect(viewOf(ended).receipt?.submissionLegs).toHaveLength(1);
  expect(asking.replies).toMatchObject([{ action: 'accept', content: { word: long, size: 3 } }]);
});

function readOnlyDirectory(): { place: string; undo: () => void } {
  const place = join(root, 'read-only');
  mkdirSync(place);
  if (process.getuid?.() !== 0) {
    chmodSync(place, 0o555);
    return { place, undo: () => chmodSync(place, 0o755) };
  }
  // Root may write anywhere but on a read-only file system.
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=64k', 'tmpfs', place]);
  return { place, undo: () => void execFileSync('umount', [place]) };
}

interface FullDisk {
  readonly place: string;
  readonly sentence: RegExp;
  readonly start: (...args: string[]) => Promise<Ended>;
  readonly undo: () => void;
}

function fullDisk(): FullDisk {
  const place = join(root, 'full');
  mkdirSync(place);
  if (process.getuid?.() === 0) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', place]);
    const { bavail, bsize } = statfsSync(place);
    writeFileSync(join(place, 'filler'), Buffer.alloc(bavail * bsize - bsize));
    const undo = (): void => void execFileSync('umount', [place]);
    return { place, sentence: /the disk of the state directory .* is full: make room/, start: run, undo };
  }
  // Without a disk to fill: files that may not grow.
  const limit = { cwd: root, shell: "trap '' XFSZ; ulimit -f 0" };
  return {
    place,
    sentence: /the state directory .* cannot be written \(EFBIG\)/,
    start: (...args) => startCommand(limit, ...args).ended,
    undo: () => {},
  };
}
