// Owns the HTTP side: which request is which method, and how each word of a plan looks on the wire.
// Must never answer a request it does not know with a success.

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Journal } from './journal.js';
import { type Held, Operations } from './operations.js';
import { type Plan, readPlan, startsUnder } from './plan.js';

const UUID4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const FORMS = {
  submit: /^\/v1\/(projects\/[^/]+)\/reports$/,
  list: /^\/v1\/(projects\/[^/]+\/reports\/[^/]+)\/operations$/,
  cancel: /^\/v1\/(projects\/[^/]+\/operations\/.+):cancel$/,
  operation: /^\/v1\/(projects\/[^/]+\/operations\/.+)$/,
} as const;

interface Exchange {
  readonly request: http.IncomingMessage;
  readonly response: http.ServerResponse;
  readonly url: URL;
  readonly body: string;
}

export async function listen(journal: Journal, port: number): Promise<number> {
  const server = new OperationServer(journal);
  const listener = http.createServer((request, response) => void server.serve(request, response));
  await new Promise<void>((resolve) => listener.listen(port, '127.0.0.1', resolve));
  return (listener.address() as AddressInfo).port;
}

class OperationServer {
  readonly #journal: Journal;
  readonly #operations: Operations;

  constructor(journal: Journal) {
    this.#journal = journal;
    this.#operations = new Operations(journal);
  }

  async serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? '/', 'http://here');
    const exchange = { request, response, url, body: Buffer.concat(chunks).toString() };
    const found = (form: RegExp): string | undefined => {
      const [, name] = form.exec(url.pathname) ?? [];
      return name === undefined ? undefined : decodeURIComponent(name);
    };
    const parent = found(FORMS.submit);
    const resource = found(FORMS.list);
    const cancelled = found(FORMS.cancel);
    const name = found(FORMS.operation);
    if (url.pathname === '/elsewhere') this.#journal.write({ kind: 'followed' });
    if (parent !== undefined && request.method === 'POST') this.#submit(exchange, parent);
    else if (resource !== undefined && request.method === 'GET') this.#list(exchange, resource);
    else if (cancelled !== undefined && request.method === 'POST') this.#cancel(exchange, cancelled);
    else if (name !== undefined && request.method === 'GET') this.#get(exchange, name);
    else if (name !== undefined && request.method === 'DELETE') this.#delete(exchange, name);
    else sendPage(response, 404);
  }

  #submit({ request, response, url, body }: Exchange, parent: string): void {
    const given = JSON.parse(body) as {
      label: string;
      reportId?: string;
      requestId?: string;
      plan?: unknown;
    };
    const { label } = given;
    const plan = readPlan(given.plan);
    const requestId = given.requestId ?? url.searchParams.get('requestId');
    const target = request.url ?? '';
    const apiKey = request.headers['x-api-key']?.toString() ?? null;
    const word = plan.submit[this.#journal.count('submitReceived', label)] ?? 'ok';
    const verb = request.method ?? '';
    this.#journal.write({ kind: 'submitReceived', label, requestId, verb, target, apiKey, body });
    if (!startsUnder(word)) return this.#refuse(response, word, label);
    if (requestId !== null && !UUID4.test(requestId)) return sendError(response, 400, 'INVALID_ARGUMENT');
    const resource = given.reportId === undefined ? null : `${parent}/reports/${given.reportId}`;
    const known = this.#operations.remembered(requestId);
    if (known) this.#journal.write({ kind: 'deduplicated', label });
    else if (resource !== null && this.#operations.ofResource(resource).length > 0) {
      this.#journal.write({ kind: 'refused', label });
      return sendError(response, 409, 'ALREADY_EXISTS');
    }
    const held = known ?? this.#operations.start({ label, resource, requestId }, plan);
    this.#answer(response, word, held);
  }

  #refuse(response: http.ServerResponse, word: string, label: string): void {
    this.#journal.write({ kind: 'refused', label });
    if (word === 'reset') response.destroy();
    else playStatus(response, word.replace('refuse ', ''));
  }

  /** The work runs, and the answer is this. */
  #answer(response: http.ServerResponse, word: string, held: Held): void {
    const text = this.#operations.textOf(held);
    switch (word) {
      case 'ok':
        return send(response, 200, text);
      case 'done':
        return send(response, 200, this.#operations.textOf({ ...held, at: 0 }));
      case 'done-nameless':
        return send(response, 200, this.#operations.textOf({ ...held, at: 0 }, ''));
      case 'lose':
        return void response.destroy();
      case 'cut':
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
        response.write(text.slice(0, text.length / 2), () => response.destroy());
        return;
      case 'empty':
        return void response.writeHead(200).end();
      case 'object':
        return send(response, 200, '{}');
      case 'page':
        return sendPage(response, 200);
      default:
        return playStatus(response, word);
    }
  }

  #get({ request, response }: Exchange, name: string): void {
    const held = this.#operations.byName(name);
    if (!held) return sendError(response, 404, 'NOT_FOUND');
    const word = held.plan.get[this.#journal.count('polled', held.label)] ?? 'ok';
    this.#journal.write({ kind: 'polled', label: held.label, target: request.url ?? '' });
    const text = this.#operations.textOf(held);
    switch (word) {
      case 'ok':
        return send(response, 200, text);
      case 'other':
        return send(response, 200, this.#operations.textOf(held, 'operations/another'));
      case 'page':
        return sendPage(response, 200);
      case 'empty':
        return void response.writeHead(204).end();
      case 'cut':
        response
          .writeHead(200, { 'content-length': text.length })
          .write(text.slice(0, 20), () => response.destroy());
        return;
      default: {
        const [, seconds] = /^ok retry-after (\d+)$/.exec(word) ?? [];
        if (seconds !== undefined) return send(response, 200, text, { 'retry-after': seconds });
        return playStatus(response, word);
      }
    }
  }

  #cancel({ request, response }: Exchange, name: string): void {
    const held = this.#operations.byName(name);
    if (!held) return sendError(response, 404, 'NOT_FOUND');
    const { label, plan } = held;
    this.#journal.write({ kind: 'cancelReceived', label, target: request.url ?? '' });
    if (plan.cancel === 'absent') return sendPage(response, 404);
    if (plan.cancel !== 'works' && plan.cancel !== 'ignored') return playStatus(response, plan.cancel);
    const isRunning = Date.now() < held.at + plan.durationMs;
    if (plan.cancel === 'works' && isRunning) this.#journal.write({ kind: 'cancelled', label, name });
    send(response, 200, '{}');
  }

  #delete({ response }: Exchange, name: string): void {
    const held = this.#operations.byName(name);
    if (!held) return sendError(response, 404, 'NOT_FOUND');
    this.#journal.write({ kind: 'deleted', label: held.label, name });
    send(response, 200, '{}');
  }

  #list({ response, url }: Exchange, resource: string): void {
    const found = this.#operations.ofResource(resource);
    const [first] = found;
    const word: Plan['list'] = first?.plan.list ?? 'ok';
    const asked = first ? this.#journal.count('listed', first.label) : 0;
    if (first) this.#journal.write({ kind: 'listed', label: first.label });
    const texts = found.map((held) => this.#operations.textOf(held));
    const page = (listed: readonly string[], more = ''): void =>
      send(response, 200, `{ "operations": [${listed.join(', ')}]${more} }`);
    if (word === 'ok') return page(texts);
    if (word === 'unreachable') return page(texts, ', "unreachable": ["projects/p/locations/moon"]');
    // The first looks do not see it yet.
    if (word === 'lagging') return page(asked < 2 ? [] : texts);
    if (word !== 'paged') return playStatus(response, word);
    if (url.searchParams.get('pageToken') === 'second +=') return page(texts);
    page([], ', "nextPageToken": "second +="');
  }
}

/**
 * `STATUS [WORD] [retry-after SECONDS] [retry-info DURATION] [echo]`, e.g. `429 RESOURCE_EXHAUSTED retry-info 1.5s`.
 * `echo`: the server tells the caller's credential in its message, as some do.
 */
function playStatus(response: http.ServerResponse, spelled: string): void {
  const [status = '', ...words] = spelled.split(' ');
  const code = Number(status);
  const rpc = words.find((word) => /^[A-Z_]+$/.test(word));
  const after = (name: string): string | undefined =>
    words.includes(name) ? words[words.indexOf(name) + 1] : undefined;
  const seconds = after('retry-after');
  const retryDelay = after('retry-info');
  const headers = {
    ...(seconds === undefined ? {} : { 'retry-after': seconds }),
    ...(code >= 300 && code < 400 ? { location: '/elsewhere' } : {}),
  };
  if (rpc === undefined && retryDelay === undefined) return sendPage(response, code, headers);
  const apiKey = words.includes('echo') ? response.req.headers['x-api-key']?.toString() : undefined;
  const message = apiKey === undefined ? undefined : `the key ${apiKey} is wrong`;
  sendError(response, code, rpc ?? 'UNKNOWN', { headers, retryDelay, message });
}

interface ErrorDetails {
  readonly headers?: Readonly<Record<string, string>>;
  readonly retryDelay?: string | undefined;
  readonly message?: string | undefined;
}

function sendError(
  response: http.ServerResponse,
  code: number,
  status: string,
  { headers = {}, retryDelay, message = `planned ${status}` }: ErrorDetails = {},
): void {
  const info = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay };
  const details = retryDelay === undefined ? {} : { details: [info] };
  send(response, code, JSON.stringify({ error: { code, message, status, ...details } }), headers);
}

function send(
  response: http.ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
}

function sendPage(
  response: http.ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  response
    .writeHead(status, { 'content-type': 'text/html', ...headers })
    .end(status === 204 ? '' : '<html></html>');
}
