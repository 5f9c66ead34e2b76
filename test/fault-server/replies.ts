// Owns the bytes of one reply, and what a plan's word does to them.
// Must never decide what the reply says.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventStream } from './event-streams.js';
import type { JsonObject, JsonValue } from './json.js';
import { isInsteadOfHandling, type Word } from './plan.js';
import type { Session } from './sessions.js';

export type RpcAnswer = { readonly result: JsonObject } | { readonly error: JsonObject };

export class Reply {
  private readonly response: ServerResponse;
  private readonly session: Session;
  private readonly jsonRpcId: JsonValue;
  private readonly isOpening: boolean;
  private stream: EventStream | null = null;

  /** `isOpening`: this is the reply that tells the session's id. */
  constructor(response: ServerResponse, session: Session, jsonRpcId: JsonValue, isOpening = false) {
    this.response = response;
    this.session = session;
    this.jsonRpcId = jsonRpcId;
    this.isOpening = isOpening;
  }

  /** The client has hung up and cannot come back for the rest. */
  get isAbandoned(): boolean {
    return this.response.destroyed && !this.stream?.hasEventIds;
  }

  /** The client reads this very reply now. */
  get isRead(): boolean {
    return !this.response.destroyed;
  }

  /** Starts the stream before the answer is known: a question may come first. */
  openStream(): EventStream {
    if (this.stream) return this.stream;
    this.stream = this.session.openStream();
    this.stream.open(this.response, this.headers);
    return this.stream;
  }

  /** Answers as the word says; resolves when the bytes are with the system, or the socket is gone. */
  async give(answer: RpcAnswer, word: Word): Promise<void> {
    const message = { jsonrpc: '2.0', id: this.jsonRpcId, ...answer };
    if (isInsteadOfHandling(word)) return this.giveInstead(word);
    switch (word.name) {
      case 'lose':
      case 'lost':
        if (this.stream) this.stream.forget();
        this.response.destroy();
        return;
      case 'cut':
      case 'cut-resumable':
        return this.sendHalf(message, word.name === 'cut-resumable');
      case 'empty':
        return this.sendText('');
      case 'empty-object':
        return this.sendText('{}');
      case 'empty-result':
        return this.send({ jsonrpc: '2.0', id: this.jsonRpcId, result: {} });
      case 'delay':
        await sleep(word.amount ?? 0);
        return this.send(message);
      default:
        return this.send(message);
    }
  }

  /** Words that stand for a request that was not handled. On an open stream only its end is left to be bad. */
  async giveInstead(word: Word): Promise<void> {
    if (word.name === 'error' || word.name === 'gone') {
      const code = word.name === 'gone' ? -32602 : word.amount;
      const error = { code, message: `planned: ${word.name}` };
      return this.send({ jsonrpc: '2.0', id: this.jsonRpcId, error });
    }
    if (word.name === '503' && !this.response.headersSent) {
      const retryAfter = word.amount === null ? {} : { 'retry-after': String(word.amount) };
      this.response.writeHead(503, { 'content-type': 'text/plain', ...retryAfter });
      return finish(this.response, 'try later');
    }
    this.stream?.forget();
    this.response.socket?.resetAndDestroy();
  }

  private get headers(): Readonly<Record<string, string>> {
    return this.isOpening ? { 'mcp-session-id': this.session.sessionId } : {};
  }

  private async send(message: JsonObject): Promise<void> {
    if (this.stream === null && this.session.style.replies === 'json') {
      return this.sendText(JSON.stringify(message));
    }
    const stream = this.openStream();
    const closed = closing(this.response);
    stream.send(message);
    stream.finish();
    await closed;
  }

  private async sendHalf(message: JsonObject, isResumable: boolean): Promise<void> {
    if (this.stream === null && this.session.style.replies === 'json') {
      const bytes = Buffer.from(JSON.stringify(message));
      this.response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length });
      const half = bytes.subarray(0, Math.floor(bytes.length / 2));
      await new Promise<void>((resolve) => {
        this.response.once('close', resolve);
        this.response.write(half, () => resolve());
      });
      this.response.destroy();
      return;
    }
    await this.openStream().sendHalf(message, isResumable);
  }

  private async sendText(text: string): Promise<void> {
    if (this.stream) return this.stream.forget();
    this.response.writeHead(200, { 'content-type': 'application/json', ...this.headers });
    return finish(this.response, text);
  }
}

/** Ends the response; resolves also where its client is gone. */
export async function finish(response: ServerResponse, text: string): Promise<void> {
  const closed = closing(response);
  response.end(text);
  await closed;
}

async function closing(response: ServerResponse): Promise<void> {
  if (response.destroyed || response.writableFinished) return;
  const stop = new AbortController();
  const signal = stop.signal;
  try {
    await Promise.race([once(response, 'finish', { signal }), once(response, 'close', { signal })]);
  } catch {
    // The response broke: there is nothing left to wait for.
  } finally {
    stop.abort();
  }
}
