// Owns giving the SDK's OAuth functions a `fetch` of ours: same sockets, proxies, limits; no redirects, no replays.
// Must never reach another place than the one it was asked for.

import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { LIMITS } from '../../operation/limits.js';
import { exchange, HttpFault, type HttpReply } from '../http.js';

const MAX_REPLY_BYTES = 256 * 1024;

/** Fails with a plain Error: the SDK takes a TypeError for a browser's refusal and asks again. */
export const fetchByExchange: FetchLike = async (input, init) => {
  const headers = Object.fromEntries(new Headers(init?.headers));
  const body = init?.body instanceof URLSearchParams ? init.body.toString() : (init?.body ?? null);
  if (body !== null && typeof body !== 'string') throw new Error('only texts are sent');
  const method = init?.method === 'POST' ? 'POST' : 'GET';
  const reply = await exchange({
    method,
    url: String(input),
    headers,
    body,
    connectTimeoutMs: LIMITS.connectTimeoutMs,
    totalTimeoutMs: LIMITS.tokenTimeoutMs,
    maxReplyBytes: MAX_REPLY_BYTES,
  });
  return responseOf(reply);
};

async function responseOf(reply: HttpReply): Promise<Response> {
  try {
    const chunks: Uint8Array[] = [];
    for await (const chunk of reply.body) chunks.push(chunk);
    const headers = new Headers({ 'content-type': reply.contentType });
    const isBare = [101, 204, 205, 304].includes(reply.status);
    if (reply.status < 200) throw new HttpFault('cut', true, 'no reply');
    return new Response(isBare ? null : Buffer.concat(chunks), { status: reply.status, headers });
  } finally {
    reply.close();
  }
}
