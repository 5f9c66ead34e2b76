// Replies that are huge, deep, endless, of wrong types, packed, or point elsewhere: each ends in its class, within bounded
// memory and time. One process per exchange, so that its memory is its own.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import type http from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deepText, REDIRECTED_PATH, sendNoReply, sendWithoutEnd } from '../fault-server/hostile-bytes.js';
import type { Exchange, HostileReport } from './hostile-child.js';
import { ScriptedServer, type SeenRequest } from './scripted-server.js';

const PROGRAM = new URL('../../dist/test/protocols/hostile-child.js', import.meta.url).pathname;
const MB = 1_000_000;

const EXCHANGES: readonly Exchange[] = ['create', 'plain call', 'poll', 'result', 'negotiation'];
const HOSTILE = [
  'huge',
  'endless JSON',
  'endless event',
  'flood',
  'drip',
  'deep',
  'wide',
  'wrong types',
  'wrong JSON',
  'no text',
  'html',
  'redirect',
  'bomb',
] as const;
type Hostile = (typeof HOSTILE)[number];

let scripted: ScriptedServer;
beforeAll(async () => {
  scripted = await ScriptedServer.start();
});
afterAll(() => scripted.stop());

function play(word: Hostile, seen: SeenRequest, response: http.ServerResponse): void {
  const id = JSON.stringify(seen.body.id);
  response.on('error', () => undefined);
  const json = (text: string | Buffer): void => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(text);
  };
  const open = (type: string): void => {
    response.writeHead(200, { 'content-type': type });
  };
  switch (word) {
    case 'huge':
      // Its length is told.
      return void response
        .writeHead(200, { 'content-type': 'application/json', 'content-length': 100_000_000_000 })
        .write('{');
    case 'endless JSON':
      open('application/json');
      return void sendWithoutEnd(response, 'endless', false);
    case 'endless event':
    case 'flood':
    case 'drip':
      open('text/event-stream');
      return void sendWithoutEnd(response, word === 'endless event' ? 'endless' : word, true);
    case 'deep':
      return json(deepText(seen.body.id));
    case 'wide':
      return json(`{"jsonrpc":"2.0","id":${id},"result":[${'{},'.repeat(2_000_000)}0]}`);
    case 'wrong types':
      return json(`{"jsonrpc":"2.0","id":${id},"result":{"task":7,"taskId":[],"content":"x","tools":1}}`);
    case 'wrong JSON':
      return json(`{"jsonrpc":"2.0","id":${id},"result":{"content":[}}`);
    case 'no text':
      return json(
        Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"a":"`), HALF_A_CHARACTER]),
      );
    case 'html':
    case 'redirect':
    case 'bomb':
      return void sendNoReply(response, word);
  }
}

const HALF_A_CHARACTER = Buffer.from([0xc3, 0x22, 0x7d, 0x7d]);

async function meet(word: Hostile, exchange: Exchange): Promise<HostileReport> {
  const url = `${scripted.url}?${encodeURIComponent(word)}`;
  const child = fork(PROGRAM, [url, exchange]);
  const [report] = (await once(child, 'message')) as [HostileReport];
  return report;
}

/** Not to be had again by asking again: it breaks the contract. Everything else may have been the line's fault. */
const BREACH: readonly Hostile[] = ['huge', 'endless JSON', 'endless event', 'flood', 'wide', 'wrong types'];
const TOO_LARGE: readonly Hostile[] = ['huge', 'endless JSON', 'endless event', 'flood'];

function expectedOf(word: Hostile, exchange: Exchange): string {
  if (exchange === 'create' || exchange === 'plain call') return 'Ambiguous';
  if (exchange === 'result' && TOO_LARGE.includes(word)) return 'tooLarge';
  return BREACH.includes(word) ? 'ProtocolViolation' : 'Transient';
}

/** A result may be 64 MiB, other replies one; what was thrown away is not collected at once. Measured: 117 and 27 MB. */
function mostMemory(exchange: Exchange): number {
  return exchange === 'poll' || exchange === 'negotiation' ? 60 * MB : 200 * MB;
}

describe.concurrent.each(EXCHANGES)('a hostile reply to a %s', (exchange) => {
  test.concurrent.each(HOSTILE)('%s', async (word) => {
    scripted.script = (seen, response) => play(hostileOf(seen), seen, response);
    const report = await meet(word, exchange);
    expect(report).toMatchObject({ kind: expectedOf(word, exchange) });
    expect(report.message.length).toBeLessThanOrEqual(400);
    expect(report.peakGrowthBytes).toBeLessThan(mostMemory(exchange));
    // One request's own timeout: only what trickles in lasts so long, and a flood of half a million messages may.
    expect(report.durationMs).toBeLessThan(word === 'drip' || word === 'flood' ? 35_000 : 20_000);
    // Longer pauses would cost the step its heartbeat.
    expect(report.longestPauseMs).toBeLessThan(1_900);
    expect(scripted.seen.filter(({ path }) => path.startsWith(REDIRECTED_PATH))).toEqual([]);
  });
});

function hostileOf({ path }: SeenRequest): Hostile {
  return decodeURIComponent(path.split('?')[1] ?? '') as Hostile;
}
