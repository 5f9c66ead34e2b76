// Owns bodies that are no reply: without end, without bottom, packed, of another kind.
// Must never hold more of one in memory than a chunk, nor go on once the client has hung up.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

const CHUNK = 'x'.repeat(64 * 1024);
const DEPTH = 200_000;
const DRIP_MS = 200;
const BOMB_MEMBERS = 64;
const BOMB_MEMBER_BYTES = 16 * 1024 * 1024;

/** Everything that arrives there is in the journal. */
export const REDIRECTED_PATH = '/redirected';

const PAGE = '<!doctype html><title>Sign in</title><p>Please sign in to go on.</p>';

/** Words that need an untouched response: their status, type or encoding is the fault. */
export async function sendNoReply(response: ServerResponse, word: string): Promise<void> {
  switch (word) {
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
      response.end(PAGE);
      return;
    case 'redirect':
      response.writeHead(307, { location: REDIRECTED_PATH });
      response.end();
      return;
    case 'bomb':
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      return pour(response, bombMembers());
    default:
      throw new Error(`no such body: ${word}`);
  }
}

/** After a head of `text/event-stream` or `application/json`: bytes until the client hangs up. */
export function sendWithoutEnd(response: ServerResponse, word: string, isStream: boolean): Promise<void> {
  const field = isStream ? 'data: ' : '';
  if (word === 'flood' && isStream) return pour(response, notifications());
  const opening = `${field}{"jsonrpc":"2.0","result":{"padding":"`;
  return word === 'drip' ? drip(response, opening) : pour(response, padding(opening));
}

/** The text of a result that nothing recursive can read. */
export function deepText(jsonRpcId: unknown): string {
  const value = `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`;
  return `{"jsonrpc":"2.0","id":${JSON.stringify(jsonRpcId)},"result":{"content":${value}}}`;
}

function* padding(opening: string): Generator<string> {
  yield opening;
  for (;;) yield CHUNK;
}

function* notifications(): Generator<string> {
  const params = { level: 'info', data: 'still here' };
  const message = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params });
  const burst = `data: ${message}\n\n`.repeat(500);
  for (;;) yield burst;
}

function* bombMembers(): Generator<Buffer> {
  const member = gzipSync(Buffer.alloc(BOMB_MEMBER_BYTES, ' '));
  for (let n = 0; n < BOMB_MEMBERS; n += 1) yield member;
}

async function pour(response: ServerResponse, chunks: Iterable<string | Buffer>): Promise<void> {
  for (const chunk of chunks) {
    if (response.destroyed) return;
    if (!response.write(chunk)) await drainOrClose(response);
  }
  response.end();
}

async function drip(response: ServerResponse, opening: string): Promise<void> {
  response.write(opening);
  while (!response.destroyed) {
    response.write('x');
    await sleep(DRIP_MS);
  }
}

async function drainOrClose(response: ServerResponse): Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const either = [once(response, 'drain', { signal }), once(response, 'close', { signal })];
  await Promise.race(either).catch(() => undefined);
  stop.abort();
  await Promise.allSettled(either);
}
