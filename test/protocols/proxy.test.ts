// Owns the proof of proxies and of authorities of one's own: which requests go through, and what its refusals prove.
// Must never reach another machine: the proxy knows one name, and takes it to the loopback address.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type EverythingServer, startEverythingServer } from './everything-server.js';
import type { ProxiedLook } from './proxied-child.js';

const run = promisify(execFile);
const CHILD = new URL('../../dist/test/protocols/proxied-child.js', import.meta.url).pathname;
const NAME = 'tools.example';

let dir: string;
let everything: EverythingServer;
let plain: http.Server;
let secure: tls.Server;
let proxy: http.Server;
/** `CONNECT host:port` or `GET http://…`, in order. */
let asked: string[] = [];
let authorizations: (string | undefined)[] = [];
let refusal: number | null = null;
const sockets = new Set<net.Socket>();

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-proxy-'));
  everything = await startEverythingServer();
  plain = http.createServer((request, response) =>
    response.end(`plain ${String(request.headers['x-token'])}`),
  );
  // An authority of its own, made now: `${NAME}` signed by itself.
  const subject = ['-subj', `/CN=${NAME}`, '-addext', `subjectAltName=DNS:${NAME}`];
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    join(dir, 'key.pem'),
  ];
  await run('openssl', ['req', '-x509', '-days', '2', ...key, '-out', join(dir, 'ca.pem'), ...subject]);
  const certificate = {
    key: await readFile(join(dir, 'key.pem')),
    cert: await readFile(join(dir, 'ca.pem')),
  };
  secure = tls.createServer(certificate, (socket) => tie(socket, Number(new URL(everything.url).port)));
  secure.on('tlsClientError', () => undefined);
  proxy = http.createServer(forward).on('connect', connect);
  for (const server of [plain, secure, proxy]) await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  for (const server of [plain, proxy]) server.closeAllConnections();
  for (const server of [plain, secure, proxy]) await once(server.close(), 'close');
  await everything.stop();
  await rm(dir, { recursive: true, force: true });
});
beforeEach(() => {
  asked = [];
  authorizations = [];
  refusal = null;
});

function portOf(server: net.Server): number {
  return (server.address() as AddressInfo).port;
}

function tie(socket: net.Socket, port: number): void {
  const upstream = net.connect(port, '127.0.0.1');
  for (const end of [socket, upstream]) sockets.add(end.on('error', () => undefined));
  socket.pipe(upstream).pipe(socket);
}

function connect(request: http.IncomingMessage, socket: net.Socket): void {
  asked.push(`CONNECT ${request.url}`);
  authorizations.push(request.headers['proxy-authorization']);
  if (refusal !== null) return void socket.end(`HTTP/1.1 ${refusal} No\r\n\r\n`);
  socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
  tie(socket, Number(request.url?.split(':')[1]));
}

function forward(request: http.IncomingMessage, response: http.ServerResponse): void {
  asked.push(`${request.method} ${request.url}`);
  authorizations.push(request.headers['proxy-authorization']);
  if (refusal !== null) return void response.writeHead(refusal).end();
  const { port, pathname } = new URL(request.url ?? '');
  const upstream = http.request({
    port,
    host: '127.0.0.1',
    path: pathname,
    headers: request.headers,
    agent: false,
  });
  upstream.on('response', (reply) => reply.pipe(response.writeHead(reply.statusCode ?? 0)));
  upstream.end();
}

async function look(url: string, env: Record<string, string>, tool: string | null = null): Promise<unknown> {
  const given: ProxiedLook = { url, tool };
  const { stdout } = await run(process.execPath, [CHILD, JSON.stringify(given)], { env });
  return JSON.parse(stdout);
}

const proxyUrl = (user = ''): string => `http://${user}127.0.0.1:${portOf(proxy)}`;
const trusted = (): Record<string, string> => ({ NODE_EXTRA_CA_CERTS: join(dir, 'ca.pem') });
const secureUrl = (): string => `https://${NAME}:${portOf(secure)}/mcp`;
const plainUrl = (host = NAME): string => `http://${host}:${portOf(plain)}/at`;

describe('a request', () => {
  it('to an https server goes through a tunnel of HTTPS_PROXY, and its authority is taken from NODE_EXTRA_CA_CERTS', async () => {
    const env = { HTTPS_PROXY: proxyUrl('me:pa%3Ass@'), ...trusted() };
    expect(await look(secureUrl(), env, 'echo')).toEqual({ adapter: 'synchronous' });
    expect(new Set(asked)).toEqual(new Set([`CONNECT ${NAME}:${portOf(secure)}`]));
    expect(new Set(authorizations)).toEqual(new Set([`Basic ${Buffer.from('me:pa:ss').toString('base64')}`]));
  });

  it('to an https server whose authority is not known is not sent', async () => {
    expect(await look(secureUrl(), { https_proxy: proxyUrl() })).toMatchObject({
      reason: 'unreachable',
      isSent: false,
      message: expect.stringMatching(/^before sending: (DEPTH_ZERO_)?SELF_SIGNED_CERT/),
    });
  });

  it('to an http server goes to HTTP_PROXY as a whole', async () => {
    expect(await look(plainUrl(), { HTTP_PROXY: proxyUrl() })).toEqual({ status: 200, body: 'plain T0ken' });
    expect(asked).toEqual([`GET ${plainUrl()}`]);
  });

  it.each([
    ['that NO_PROXY names', () => plainUrl('localhost.test'), { NO_PROXY: 'other.example,.test' }],
    ['on this machine', () => plainUrl('127.0.0.1'), {}],
    ['called localhost', () => plainUrl('localhost'), {}],
  ])('to a server %s goes by itself', async (_, url, env) => {
    await look(url(), { HTTP_PROXY: proxyUrl(), HTTPS_PROXY: proxyUrl(), ...env });
    expect(asked).toEqual([]);
  });

  it('that the proxy refuses to tunnel is not sent, whatever status it says so with', async () => {
    for (const status of [403, 407, 502]) {
      refusal = status;
      expect(await look(secureUrl(), { HTTPS_PROXY: proxyUrl('me:secret@'), ...trusted() })).toEqual({
        reason: 'unreachable',
        isSent: false,
        message: `before sending: the proxy 127.0.0.1:${portOf(proxy)} refuses to connect to ${NAME}:${portOf(secure)} (HTTP ${status})`,
      });
    }
  });

  it('that a proxy got as a whole may have gone on: what it says is an answer', async () => {
    refusal = 502;
    expect(await look(plainUrl(), { HTTP_PROXY: proxyUrl() })).toMatchObject({ status: 502 });
  });

  it('to a proxy that is not there, or that is none, is not sent', async () => {
    expect(await look(secureUrl(), { HTTPS_PROXY: 'http://127.0.0.1:9' })).toEqual({
      reason: 'unreachable',
      isSent: false,
      message: 'before sending: the proxy 127.0.0.1:9 cannot be reached (ECONNREFUSED)',
    });
    expect(await look(plainUrl(), { HTTP_PROXY: 'http://127.0.0.1:9' })).toMatchObject({
      reason: 'unreachable',
      isSent: false,
    });
    expect(await look(plainUrl(), { HTTP_PROXY: 'socks5://me:secret@127.0.0.1:9' })).toEqual({
      reason: 'unreachable',
      isSent: false,
      message: 'HTTP_PROXY (or ALL_PROXY) must be an http:// or https:// URL',
    });
  });
});
