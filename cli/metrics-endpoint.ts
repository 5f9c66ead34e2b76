// Owns the one address at which `up` shows its metrics: the project's own, the SDK's, and the gauges of operations.
// Must never be reachable from elsewhere unless a person named such an address, nor answer anything but /metrics.

import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { OperationEvent } from '../activities/events.js';
import { addOperationGauges, createWorkerMetrics } from '../worker/metrics.js';
import { LOOPBACK } from './engine/free-port.js';
import { CommandError } from './exit-codes.js';
import type { Runtime } from './runtime.js';

export interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

const ADDRESS = /^(?:(?<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):)?(?<port>\d{1,5})$/;

/** `PORT`, `HOST:PORT` or `[IPV6]:PORT`. @throws CommandError */
export function readListenAddress(flag: string, given: string): ListenAddress {
  const { host, port } = ADDRESS.exec(given)?.groups ?? {};
  if (port === undefined || Number(port) > 65_535) {
    throw new CommandError(
      `${flag} ${JSON.stringify(given)} is no address: give a port (0: any free one; only this machine gets at it) or ` +
        'HOST:PORT, for example 9464 or 0.0.0.0:9464',
    );
  }
  return { host: host?.replace(/^\[|\]$/g, '') ?? LOOPBACK, port: Number(port) };
}

export interface MetricsEndpoint {
  readonly url: string;
  readonly onEvent: (event: OperationEvent) => void;
  /** Before this, only the counters of the worker are shown: there is nothing else to ask. */
  attach(runtime: Pick<Runtime, 'temporal' | 'reader' | 'sdkMetricsUrl'>): void;
  close(): Promise<void>;
}

/** @throws CommandError where the address cannot be had */
export async function openMetricsEndpoint(given: string): Promise<MetricsEndpoint> {
  const address = readListenAddress('--metrics', given);
  const metrics = createWorkerMetrics();
  let sdkMetricsUrl: string | null = null;
  const server = createServer((request, response) => {
    answer(request, response, async () => {
      const sdk = sdkMetricsUrl === null ? '' : await readSdkMetrics(sdkMetricsUrl);
      return { type: metrics.registry.contentType, text: `${await metrics.registry.metrics()}${sdk}` };
    });
  });
  await listen(server, address);
  const { port } = server.address() as AddressInfo;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return {
    url: `http://${host}:${port}/metrics`,
    onEvent: metrics.onEvent,
    attach({ temporal, reader, sdkMetricsUrl: url }) {
      addOperationGauges(metrics.registry, { client: temporal, ...(reader ? { store: reader } : {}) });
      sdkMetricsUrl = url;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        // A scraper keeps its connection open.
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, { host, port }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const what = `--metrics: ${host}:${port}`;
      const why = WHY[error.code ?? ''] ?? `cannot be listened on (${error.code ?? error.message})`;
      reject(new CommandError(`${what} ${why}`, undefined, { cause: error }));
    });
    server.listen({ host, port }, resolve);
  });
}

const WHY: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use already: name another port, or 0 for any free one',
  EACCES: 'may not be listened on by this user: name a port from 1024 on',
  EADDRNOTAVAIL: 'is no address of this machine',
  ENOTFOUND: 'is no host that is known here',
};

interface Scrape {
  readonly type: string;
  readonly text: string;
}

function answer(request: IncomingMessage, response: ServerResponse, scrape: () => Promise<Scrape>): void {
  const say = (status: number, body: string, type = 'text/plain; charset=utf-8'): void => {
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
  if (request.method !== 'GET' && request.method !== 'HEAD') return say(405, 'only GET and HEAD\n');
  if (request.url?.split('?')[0] !== '/metrics') return say(404, 'only /metrics\n');
  scrape().then(
    ({ type, text: body }) => say(200, body, type),
    () => say(500, 'the metrics could not be put together\n'),
  );
}

const SDK_LIMIT_MS = 2_000;

/** The SDK shows its metrics on a port of its own, which is nobody's business: one address is enough. */
async function readSdkMetrics(url: string): Promise<string> {
  try {
    // No agent: a proxy of the environment must not come between.
    const request = get(url, { agent: false, signal: AbortSignal.timeout(SDK_LIMIT_MS) });
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve).once('error', reject);
    });
    const body = await text(response);
    if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
    return body;
  } catch {
    return "# the SDK's own metrics could not be read in this scrape\n";
  }
}
