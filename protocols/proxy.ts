// Owns which way a request takes (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY), and the tunnel where it is a proxy's.
// Must never put a proxy's credentials into an error, nor take a proxy's refusal for the word of the server behind it.

import http from 'node:http';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import { getProxyForUrl } from 'proxy-from-env';

/** `forward`: the proxy gets the whole URL (http://). `tunnel`: it only carries bytes (https://), by CONNECT. */
export type Route =
  | { readonly kind: 'direct' }
  | { readonly kind: 'forward'; readonly proxy: URL }
  | { readonly kind: 'tunnel'; readonly proxy: URL };

/** Said before anything of the request left. */
export class ProxyFault extends Error {
  override readonly name = 'ProxyFault';
}

/** A server on this machine is never asked for through a proxy: the proxy would look for it on its own. */
const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/i;

/** @throws ProxyFault where the environment names a proxy that cannot be one */
export function routeTo(url: URL): Route {
  const named = LOOPBACK.test(url.hostname) ? '' : getProxyForUrl(url.href);
  if (named === '') return { kind: 'direct' };
  const proxy = URL.canParse(named) ? new URL(named) : null;
  if (!proxy || !['http:', 'https:'].includes(proxy.protocol)) {
    const names = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
    throw new ProxyFault(`${names} (or ALL_PROXY) must be an http:// or https:// URL`);
  }
  return { kind: url.protocol === 'https:' ? 'tunnel' : 'forward', proxy };
}

export interface TunnelOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A way to the target's port on which nothing was said yet: whatever goes wrong before it exists, no byte of the request
 * has left. @throws ProxyFault
 */
export function openTunnel(proxy: URL, target: URL, options: TunnelOptions): Promise<Duplex> {
  const authority = `${target.hostname}:${target.port || '443'}`;
  const client = proxy.protocol === 'https:' ? https : http;
  return new Promise((resolve, reject) => {
    const request = client.request({
      ...placeOf(proxy),
      method: 'CONNECT',
      path: authority,
      agent: false,
      headers: { host: authority, ...proxyHeaders(proxy) },
      timeout: options.timeoutMs,
    });
    const fail = (why: string): void => {
      request.destroy();
      reject(new ProxyFault(`before sending: the proxy ${proxy.host} ${why}`));
    };
    const patience = setTimeout(
      () => fail(`opened no way within ${options.timeoutMs} ms`),
      options.timeoutMs,
    );
    const onAbort = (): void => fail('was not waited for');
    options.signal?.addEventListener('abort', onAbort, { once: true });
    const settle = (): void => {
      clearTimeout(patience);
      options.signal?.removeEventListener('abort', onAbort);
    };
    request.once('connect', (response, socket, head) => {
      settle();
      const { statusCode = 0 } = response;
      if (statusCode < 200 || statusCode > 299) {
        socket.destroy();
        return fail(`refuses to connect to ${authority} (HTTP ${statusCode})`);
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.once('response', (response) => {
      settle();
      fail(`answered CONNECT with HTTP ${response.statusCode}`);
    });
    request.once('error', (error: NodeJS.ErrnoException) => {
      settle();
      fail(`cannot be reached (${error.code ?? error.name})`);
    });
    request.end();
  });
}

/** Host and port of the proxy, as a request's options. */
export function placeOf(proxy: URL): { readonly host: string; readonly port: number } {
  const host = proxy.hostname.replace(/^\[|\]$/g, '');
  const port = proxy.port === '' ? (proxy.protocol === 'https:' ? 443 : 80) : Number(proxy.port);
  return { host, port };
}

export function proxyHeaders(proxy: URL): Readonly<Record<string, string>> {
  if (proxy.username === '' && proxy.password === '') return {};
  const userAndPassword = `${decoded(proxy.username)}:${decoded(proxy.password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(userAndPassword).toString('base64')}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
