// Owns one SSE stream: its events, who reads it now, and giving it again from an event id on.
// Must never give an event of another stream (2025-11-25, "resumability and redelivery").

import type { ServerResponse } from 'node:http';
import type { JsonObject } from './json.js';

interface StoredEvent {
  readonly eventId: string;
  readonly text: string;
}

export class EventStream {
  readonly streamId: string;
  readonly hasEventIds: boolean;
  private readonly events: StoredEvent[] = [];
  private response: ServerResponse | null = null;
  private isFinished = false;
  private isForgotten = false;

  constructor(streamId: string, hasEventIds: boolean) {
    this.streamId = streamId;
    this.hasEventIds = hasEventIds;
  }

  /** Starts on the reply of a request. With event ids the first event is empty: an anchor to resume from. */
  open(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...headers });
    response.flushHeaders();
    this.connect(response);
    if (this.hasEventIds) response.write(this.store(''));
  }

  get isConnected(): boolean {
    return this.response !== null && !this.response.destroyed;
  }

  /** A message sent now can reach the client: at once, or when it resumes. */
  get canCarry(): boolean {
    return !this.isFinished && !this.isForgotten && (this.hasEventIds || this.isConnected);
  }

  send(message: JsonObject): void {
    this.sendText(JSON.stringify(message));
  }

  sendText(data: string): void {
    const text = this.store(data);
    if (this.isConnected) this.response?.write(text);
  }

  /** Writes half of the message's event and closes the socket. Forgotten: no resuming gives the rest. */
  async sendHalf(message: JsonObject, isResumable: boolean): Promise<void> {
    const bytes = Buffer.from(this.store(JSON.stringify(message)));
    const { response } = this;
    this.isFinished = true;
    this.isForgotten = !isResumable;
    if (!response || response.destroyed) return;
    await new Promise<void>((resolve) => {
      response.once('close', resolve);
      response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => resolve());
    });
    response.destroy();
  }

  finish(): void {
    this.isFinished = true;
    if (this.isConnected) this.response?.end();
  }

  /** Closes the socket; the stream can be resumed where it has ids. */
  drop(): void {
    this.response?.destroy();
  }

  forget(): void {
    this.isFinished = true;
    this.isForgotten = true;
    this.drop();
  }

  /** False where this stream does not know the event. */
  resume(response: ServerResponse, lastEventId: string): boolean {
    const at = this.events.findIndex((event) => event.eventId === lastEventId);
    if (at < 0 || this.isForgotten) return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    for (const event of this.events.slice(at + 1)) response.write(event.text);
    if (this.isFinished) response.end();
    else this.connect(response);
    return true;
  }

  private connect(response: ServerResponse): void {
    this.response?.destroy();
    this.response = response;
    response.once('close', () => {
      if (this.response === response) this.response = null;
    });
  }

  private store(data: string): string {
    const eventId = `${this.streamId}-${this.events.length}`;
    const text = `${this.hasEventIds ? `id: ${eventId}\n` : ''}data: ${data}\n\n`;
    if (this.hasEventIds) this.events.push({ eventId, text });
    return text;
  }
}
