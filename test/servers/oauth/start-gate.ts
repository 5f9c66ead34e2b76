// Owns a gate before an MCP server: it lets through what bears a token that the authorization server calls active, and
// publishes whose tokens it takes (RFC 9728). Must never judge a token by itself.

import http from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { AuthorizationServer } from './start-authorization-server.js';

export interface Gate {
  /** The MCP endpoint behind it. */
  readonly url: string;
  readonly refusals: number;
  /** Bearers in the order in which they were first seen. */
  readonly bearers: readonly string[];
  /** Instead of the MCP server's reply; null goes on as before. */
  script: ((request: http.IncomingMessage, response: http.ServerResponse) => boolean) | null;
  stop(): Promise<void>;
}

export async function startGate(targetUrl: string, authority: AuthorizationServer): Promise<Gate> {
  const target = new URL(targetUrl);
  const bearers: string[] = [];
  let refusals = 0;
  const server = http.createServer((request, response) => {
    void serve(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const resource = `${origin}${target.pathname}`;
  const metadataPath = `/.well-known/oauth-protected-resource${target.pathname}`;

  async function serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    if (request.url === metadataPath) {
      const metadata = { resource, authorization_servers: [authority.issuer], scopes_supported: ['tools'] };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata));
      return;
    }
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (bearer !== '' && !bearers.includes(bearer)) bearers.push(bearer);
    if (!(await isActive(bearer, authority))) {
      refusals += 1;
      request.resume();
      // A server that quotes what it was sent, to see that nobody writes it down.
      const challenge = `Bearer error="invalid_token", resource_metadata="${origin}${metadataPath}"`;
      response.writeHead(401, { 'content-type': 'application/json', 'www-authenticate': challenge });
      const said = `not active: ${request.headers.authorization}`;
      response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32001, message: said } }));
      return;
    }
    if (gate.script?.(request, response)) return;
    forward(request, response, target);
  }

  const gate: Gate = {
    url: resource,
    get refusals() {
      return refusals;
    },
    bearers,
    script: null,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return gate;
}

/** RFC 7662: the server that gave it says whether it is still good. */
async function isActive(token: string, { issuer, gateSecret }: AuthorizationServer): Promise<boolean> {
  if (token === '') return false;
  const reply = await fetch(`${issuer}/token/introspection`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`gate:${gateSecret}`).toString('base64')}` },
    body: new URLSearchParams({ token }),
  });
  return ((await reply.json()) as { active?: boolean }).active === true;
}

function forward(request: http.IncomingMessage, response: http.ServerResponse, target: URL): void {
  const { connection: _, ...headers } = request.headers;
  const options = { method: request.method, agent: false, headers: { ...headers, host: target.host } };
  const upstream = http.request(target, options, (reply) => {
    response.writeHead(reply.statusCode ?? 502, reply.headers);
    // Event streams begin with a long silence: their head is what the client waits for.
    response.flushHeaders();
    reply.pipe(response);
  });
  upstream.on('error', () => response.destroy());
  response.on('close', () => upstream.destroy());
  request.pipe(upstream);
}
