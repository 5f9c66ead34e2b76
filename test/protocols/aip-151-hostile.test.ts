// Hostile replies to each exchange of AIP-151: huge, deep, endless, of wrong types, packed, pointing to another host. Each
// ends in its class, within bounded memory and time. One process per exchange, so that its memory is its own.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import type http from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sendNoReply, sendWithoutEnd } from '../fault-server/hostile-bytes.js';
import type { HostileReport, OperationExchange } from './hostile-child.js';
import { ScriptedServer } from './scripted-server.js';

const PROGRAM = new URL('../../dist/test/protocols/hostile-child.js', import.meta.url).pathname;
const MB = 1_000_000;
const DEPTH = 200_000;
const WIDE = `[${'{},'.repeat(1_300_000)}0]`;

/** `stranger`: where a redirect leads, and nobody may be seen. */
let scripted: ScriptedServer;
let stranger: ScriptedServer;
beforeAll(async () => {
  scripted = await ScriptedServer.start();
  stranger = await ScriptedServer.start();
});
afterAll(async () => {
  await scripted.stop();
  await stranger.stop();
});

const BODIES: Readonly<Record<string, string | Buffer>> = {
  deep: `{"name":"operations/1","done":true,"response":${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}}`,
  'wrong types': '{"name":["operations/1"],"done":"true","operations":7,"response":[]}',
  'wrong JSON': '{"name":"operations/1","done":true,"response":{]}',
  'no text': Buffer.from('{"name":"operations/1","done":true,"response":"\xc3"}', 'latin1'),
  'an array': '[{"name":"operations/1"}]',
  nothing: '',
  'two at once': '{"name":"operations/1"}{"name":"operations/1"}',
  'a wide name': `{"name":${WIDE},"done":${WIDE}}`,
  wide: `{"name":"operations/1","done":true,"metadata":${WIDE},"response":{},"operations":${WIDE}}`,
};

function play(word: string, response: http.ServerResponse): void {
  response.on('error', () => undefined);
  const json = { 'content-type': 'application/json' };
  switch (word) {
    case 'huge':
      // Its length is told.
      return void response.writeHead(200, { ...json, 'content-length': 100_000_000_000 }).write('{');
    case 'endless':
    case 'endless 403':
    case 'endless 503':
      response.writeHead(Number(word.slice(8) || 200), json);
      return void sendWithoutEnd(response, 'endless', false);
    case 'drip':
      response.writeHead(200, json);
      return void sendWithoutEnd(response, 'drip', false);
    case 'a wide 503':
      response.writeHead(503, json);
      return void response.end(`{"error":{"status":"UNAVAILABLE","details":[${'{},'.repeat(300_000)}0]}}`);
    case 'html':
    case 'bomb':
      return void sendNoReply(response, word);
    case '302':
    case '307':
    case '308':
      return void response.writeHead(Number(word), { location: stranger.url }).end();
    default:
      response.writeHead(200, json).end(BODIES[word]);
  }
}

async function meet(word: string, exchange: OperationExchange): Promise<HostileReport> {
  const child = fork(PROGRAM, [`${scripted.url}?${encodeURIComponent(word)}`, exchange]);
  const [report] = (await once(child, 'message')) as [HostileReport];
  return report;
}

type Class = Record<OperationExchange, string>;
const classes = (submit: string, get: string, result: string, list: string, cancel: string): Class => ({
  submit,
  get,
  'result of an operation': result,
  list,
  cancel,
});
const TOO_LARGE = classes('Ambiguous', 'ProtocolViolation', 'tooLarge', 'cannotTell', 'Transient');
// What a success says is nothing to a cancel: it is a success.
const UNREADABLE = classes(
  'Ambiguous',
  'ProtocolViolation',
  'ProtocolViolation',
  'cannotTell',
  'acknowledged',
);
/** No success, or a larger one than a reply without a result may be. */
const UNCLEAR = { ...UNREADABLE, cancel: 'Transient' };
const LINE = classes('Ambiguous', 'Transient', 'Transient', 'Transient', 'Transient');

const HOSTILE: readonly (readonly [string, Class])[] = [
  ['huge', TOO_LARGE],
  ['endless', TOO_LARGE],
  ['deep', UNREADABLE],
  ['wrong types', UNREADABLE],
  ['wrong JSON', UNREADABLE],
  ['no text', UNREADABLE],
  ['an array', UNREADABLE],
  ['nothing', UNREADABLE],
  ['two at once', UNREADABLE],
  ['a wide name', UNCLEAR],
  ['html', UNREADABLE],
  ['302', UNCLEAR],
  ['307', UNCLEAR],
  ['308', UNCLEAR],
  ['bomb', LINE],
  ['drip', LINE],
  // Of a refusal the status alone says enough.
  ['endless 503', LINE],
  ['a wide 503', LINE],
  ['endless 403', classes('RefusedByServer', 'NotFound', 'NotFound', 'cannotTell', 'refused')],
  // A sound end in a large reply: nothing but what decides is made into values.
  ['wide', classes('answered', 'done', 'result', 'cannotTell', 'Transient')],
];

/** An end may bring a result of 64 MiB; what was thrown away is not collected at once. */
function mostMemory(exchange: OperationExchange): number {
  return exchange === 'list' || exchange === 'cancel' ? 60 * MB : 200 * MB;
}

const CASES = HOSTILE.flatMap(([word, of]) =>
  (Object.keys(of) as OperationExchange[]).map((exchange) => ({ word, exchange, kind: of[exchange] })),
);

describe.concurrent('a hostile reply', () => {
  test.concurrent.each(CASES)('$word to a $exchange is $kind', async ({ word, exchange, kind }) => {
    scripted.script = ({ path }, response) =>
      play(decodeURIComponent((path.split('?')[1] ?? '').split('&')[0] ?? ''), response);
    const report = await meet(word, exchange);
    expect(report).toMatchObject({ kind });
    expect(report.message.length).toBeLessThanOrEqual(400);
    expect(report.peakGrowthBytes).toBeLessThan(mostMemory(exchange));
    // Only what trickles in lasts as long as one request may.
    expect(report.durationMs).toBeLessThan(word === 'drip' ? 35_000 : 20_000);
    // Longer pauses would cost the step its heartbeat.
    expect(report.longestPauseMs).toBeLessThan(1_900);
    expect(stranger.seen).toEqual([]);
  });
});
