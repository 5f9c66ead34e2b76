// Owns one HTTP exchange: what counts as sent, the limits, and that nothing is ever sent twice.
// Must never reach another machine.

import net from 'node:net';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  exchange,
  HttpFault,
  type HttpReply,
  type HttpRequest,
  retryAfterMsOf,
} from '../../protocols/http.js';
import { ScriptedServer } from './scripted-server.js';

let scripted: ScriptedServer;
beforeEach(async () => {
  scripted = await ScriptedServer.start();
});
afterEach(() => scripted.stop());

function send(more: Partial<HttpRequest> = {}): Promise<HttpReply> {
  return exchange({
    method: 'POST',
    url: scripted.url,
    headers: { 'content-type': 'application/json' },
    body: '{}',
    connectTimeoutMs: 2_000,
    totalTimeoutMs: 2_000,
    maxReplyBytes: 1_000,
    ...more,
  });
}

async function textOf(reply: HttpReply): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of reply.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** A listener that says nothing, whatever it is sent. */
async function silentListener(): Promise<{ port: number; received: () => number; stop: () => void }> {
  const sockets = new Set<net.Socket>();
  let bytes = 0;
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => (bytes += data.length));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = (): void => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { port: (server.address() as net.AddressInfo).port, received: () => bytes, stop };
}

describe('exchange', () => {
  it('awaits afterSend before the reply is given, although the reply is there', async () => {
    const order: string[] = [];
    scripted.script = (_, response) => {
      order.push('served');
      response.end('ok');
    };
    const reply = await send({
      afterSend: async () => {
        await scripted.until(() => scripted.seen.length === 1);
        order.push('afterSend');
      },
    });
    order.push('reply');
    expect(await textOf(reply)).toBe('ok');
    expect(order).toEqual(['served', 'afterSend', 'reply']);
  });

  it('uses a fresh connection for each request', async () => {
    const ports = new Set<number | undefined>();
    scripted.script = (_, response) => {
      ports.add(response.socket?.remotePort);
      response.end();
    };
    for (let turn = 0; turn < 3; turn += 1) await textOf(await send());
    expect(ports.size).toBe(3);
  });

  it('counts an unanswered TLS handshake as not sent, an unanswered request as sent', async () => {
    const silent = await silentListener();
    const limits = { connectTimeoutMs: 100, totalTimeoutMs: 300 };
    await expect(send({ url: `https://127.0.0.1:${silent.port}/`, ...limits })).rejects.toMatchObject({
      reason: 'timeout',
      isSent: false,
    });
    await expect(send({ url: `http://127.0.0.1:${silent.port}/`, ...limits })).rejects.toMatchObject({
      reason: 'timeout',
      isSent: true,
    });
    silent.stop();
  });

  it('bounds a body that never ends by time and by size', async () => {
    scripted.script = (_, response) => void response.write('x'.repeat(10));
    await expect(send({ totalTimeoutMs: 200 }).then(textOf)).rejects.toMatchObject({
      reason: 'timeout',
      isSent: true,
    });
    scripted.script = (_, response) => void response.end('x'.repeat(1_001));
    await expect(send().then(textOf)).rejects.toMatchObject({ reason: 'tooLarge', isSent: true });
    scripted.script = (_, response) => void response.end('x'.repeat(1_000));
    expect((await send().then(textOf)).length).toBe(1_000);
  });

  it('gives a redirect and a 401 as they are', async () => {
    for (const status of [301, 307, 401]) {
      scripted.script = (_, response) => void response.writeHead(status, { location: scripted.url }).end();
      expect((await send()).status).toBe(status);
    }
    expect(scripted.seen.length).toBe(3);
  });

  it('never says the value of a header it could not send', async () => {
    const error = await send({ headers: { authorization: 'Bearer secret\nvalue' } }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(HttpFault);
    expect(error).toMatchObject({ reason: 'badRequest', isSent: false });
    expect((error as HttpFault).message).not.toContain('secret');
  });
});

describe('retryAfterMsOf', () => {
  const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
  it.each([
    ['0', 0],
    ['120', 120_000],
    ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['soon', null],
    ['-5', null],
    ['1.5', null],
    ['', null],
    [null, null],
  ])('reads %j as %j', (value, expected) => {
    expect(retryAfterMsOf(value, NOW_MS)).toBe(expected);
  });
});
