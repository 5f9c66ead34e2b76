// Owns the bytes of one reply, and what a plan's word does to them.
// Must never decide what the reply says.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventStream } from './event-streams.js';
import { aboutTask, falsified } from './false-replies.js';
import { deepText, sendNoReply, sendWithoutEnd } from './hostile-bytes.js';
import { isObject, type JsonObject, type JsonValue } from './json.js';
import type { Session } from './sessions.js';
import { isInsteadOfHandling, type Word } from './words.js';

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
    if (isInsteadOfHandling(word)) return this.giveInstead(word);
    const message = {
      jsonrpc: '2.0',
      id: this.jsonRpcId,
      ...falsified(this.session.wire.sealed(answer), word.name),
    };
    switch (word.name) {
      case 'lose':
      case 'lost':
        if (this.stream) this.stream.forget();
        this.response.destroy();
        return;
      case 'cut':
      case 'cut-resumable':
        return this.sendHalf(message, word.name === 'cut-resumable');
      case 'delay':
        await sleep(word.amount ?? 0);
        return this.send(message);
      case 'hang':
        return closing(this.response);
      case 'duplicate':
        return this.send(message, message);
      case 'reorder':
        return this.sendAfterOthers(message, answer);
      case 'wrong-id':
        return this.send({ ...message, id: randomUUID() });
      default:
        return this.giveOdd(message, word);
    }
  }

  /** Words that leave nothing of the answer, or too much. */
  private async giveOdd(message: JsonObject, word: Word): Promise<void> {
    switch (word.name) {
      case 'empty':
        return this.sendText('');
      case 'empty-object':
        return this.sendText('{}');
      case 'empty-result':
        return this.send({ jsonrpc: '2.0', id: this.jsonRpcId, result: {} });
      case 'wrong-json':
        return this.sendRaw(JSON.stringify(message).replace('":', '"'));
      case 'deep-json':
        return this.sendRaw(deepText(this.jsonRpcId));
      case 'huge':
        return this.send(padded(message, (word.amount ?? 0) * 1_000_000));
      case 'endless':
      case 'flood':
      case 'drip':
        return this.sendForEver(word.name);
      case 'html':
      case 'redirect':
      case 'bomb':
        if (this.response.headersSent) return this.stream?.forget();
        return sendNoReply(this.response, word.name);
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
    if (/^[0-9]+$/.test(word.name) && !this.response.headersSent) return sendStatus(this.response, word);
    this.stream?.forget();
    this.response.socket?.resetAndDestroy();
  }

  private get headers(): Readonly<Record<string, string>> {
    return this.isOpening ? { 'mcp-session-id': this.session.sessionId } : {};
  }

  private async send(...messages: readonly JsonObject[]): Promise<void> {
    const error = messages.at(-1)?.['error'];
    const code = isObject(error) && typeof error['code'] === 'number' ? error['code'] : null;
    const status = code === null ? 200 : this.session.wire.httpStatusOf(code);
    if (status !== 200 && this.stream === null) {
      this.response.writeHead(status, { 'content-type': 'application/json' });
      return finish(this.response, JSON.stringify(messages.at(-1)));
    }
    return this.sendRaw(...messages.map((message) => JSON.stringify(message)));
  }

  /** As JSON a reply is one text: the last one. */
  private async sendRaw(...texts: readonly string[]): Promise<void> {
    if (this.stream === null && this.session.style.replies === 'json') {
      return this.sendText(texts.at(-1) ?? '');
    }
    const stream = this.openStream();
    const closed = closing(this.response);
    for (const text of texts) stream.sendText(text);
    stream.finish();
    await closed;
  }

  private sendAfterOthers(message: JsonObject, answer: RpcAnswer): Promise<void> {
    const params = { level: 'info', data: 'a word in between' };
    const said = { jsonrpc: '2.0', method: 'notifications/message', params };
    if (!('result' in answer)) return this.send(said, message);
    const result = aboutTask(answer.result, randomUUID(), 'completed');
    return this.send(said, { jsonrpc: '2.0', id: randomUUID(), result }, message);
  }

  private sendForEver(word: string): Promise<void> {
    if (this.stream === null && this.session.style.replies === 'json') {
      this.response.writeHead(200, { 'content-type': 'application/json', ...this.headers });
      return sendWithoutEnd(this.response, word, false);
    }
    this.openStream();
    return sendWithoutEnd(this.response, word, true);
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

/** The result with so many bytes more in it. */
function padded(message: JsonObject, bytes: number): JsonObject {
  const result = message['result'];
  if (typeof result !== 'object' || result === null) return message;
  return { ...message, result: { ...(result as JsonObject), padding: 'x'.repeat(bytes) } };
}

/** A bare status; the word's number is its Retry-After. */
export function sendStatus(response: ServerResponse, word: Word): Promise<void> {
  const retryAfter = word.amount === null ? {} : { 'retry-after': String(word.amount) };
  response.writeHead(Number(word.name), { 'content-type': 'text/plain', ...retryAfter });
  return finish(response, 'try later');
}

/** Ends the response; resolves also where its client is gone. */
export async function finish(response: ServerResponse, text: string): Promise<void> {
  const closed = closing(response);
  response.end(text);
  await closed;
}

export async function closing(response: ServerResponse): Promise<void> {
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
