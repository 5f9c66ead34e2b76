// Owns turning the chunks of one reply into server-sent events, one at a time, with a limit on the silence between.
// Must never make text of an event's data (a result may be tens of megabytes), nor buffer more than one event and a chunk.

import { Gatherer } from '../gather.js';

export interface StreamEvent {
  readonly id: string | null;
  /** As it came; several `data` lines are joined by a line feed. */
  readonly data: Uint8Array;
}

export type NextEvent = StreamEvent | 'end' | 'quiet';

/** The events of one reply. `retryMs` is the server's last `retry:` field. */
export interface EventStream {
  retryMs: number | null;
  /**
   * `quiet` when nothing came for `quietMs` (null: waits for ever; the exchange has its own total timeout).
   * @throws what the chunks throw.
   */
  next(quietMs: number | null): Promise<NextEvent>;
}

/** `maxBytes`: of one line; the exchange limits how many bytes come in all. */
export function eventStreamOf(chunks: AsyncIterable<Uint8Array>, maxBytes: number): EventStream {
  const iterator = chunks[Symbol.asyncIterator]();
  const ready: StreamEvent[] = [];
  let hasEnded = false;
  let pending: Promise<IteratorResult<Uint8Array>> | null = null;
  const parser = new EventParser(maxBytes, (event) => ready.push(event));
  return {
    get retryMs() {
      return parser.retryMs;
    },
    async next(quietMs) {
      for (;;) {
        const event = ready.shift();
        if (event) return event;
        if (hasEnded) return 'end';
        pending ??= iterator.next();
        const step = quietMs === null ? await pending : await within(pending, quietMs);
        if (step === null) return 'quiet';
        pending = null;
        // An event without its closing blank line is no event (HTML, "event stream interpretation").
        if (step.done) hasEnded = true;
        else parser.feed(step.value);
      }
    },
  };
}

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** HTML, "parsing an event stream", on bytes: the three ends of a line are no part of any longer UTF-8 sequence. */
class EventParser {
  retryMs: number | null = null;
  private readonly onEvent: (event: StreamEvent) => void;
  /** The line that has not ended yet. */
  private readonly line: Gatherer;
  private data: Uint8Array[] = [];
  private id: string | null = null;
  private isFirstLine = true;
  private mayBeCrLf = false;

  constructor(maxBytes: number, onEvent: (event: StreamEvent) => void) {
    this.line = new Gatherer(maxBytes);
    this.onEvent = onEvent;
  }

  feed(bytes: Uint8Array): void {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let from = 0;
    if (this.mayBeCrLf && chunk.length > 0) {
      if (chunk[0] === LF) from = 1;
      this.mayBeCrLf = false;
    }
    for (;;) {
      const end = endOfLine(chunk, from);
      if (end === -1) break;
      this.line.add(chunk.subarray(from, end));
      this.takeLine();
      const isCr = chunk[end] === CR;
      if (isCr && end + 1 === chunk.length) this.mayBeCrLf = true;
      from = end + (isCr && chunk[end + 1] === LF ? 2 : 1);
    }
    this.line.add(chunk.subarray(from));
  }

  private takeLine(): void {
    let line = this.line.take();
    if (this.isFirstLine && line.subarray(0, 3).equals(BYTE_ORDER_MARK)) line = line.subarray(3);
    this.isFirstLine = false;
    if (line.length === 0) return this.dispatch();
    const colon = line.indexOf(COLON);
    // A comment.
    if (colon === 0) return;
    const name = (colon === -1 ? line : line.subarray(0, colon)).toString('latin1');
    const rest = colon === -1 ? Buffer.alloc(0) : line.subarray(colon + 1);
    this.takeField(name, rest[0] === SPACE ? rest.subarray(1) : rest);
  }

  private takeField(name: string, value: Buffer): void {
    if (name === 'data') this.data.push(value);
    if (name === 'id' && !value.includes(0)) this.id = decoder.decode(value);
    if (name === 'retry' && /^\d+$/.test(value.toString('latin1'))) this.retryMs = Number(value);
  }

  private dispatch(): void {
    const { data, id } = this;
    this.data = [];
    this.id = null;
    const [only] = data;
    if (!only) return;
    const joined =
      data.length === 1
        ? only
        : Buffer.concat(data.flatMap((line, n) => (n === 0 ? [line] : [NEW_LINE, line])));
    this.onEvent({ id: id === '' ? null : id, data: joined });
  }
}

const NEW_LINE = Buffer.from([LF]);

function endOfLine(chunk: Buffer, from: number): number {
  const lf = chunk.indexOf(LF, from);
  const cr = (lf === -1 ? chunk : chunk.subarray(0, lf)).indexOf(CR, from);
  return cr === -1 ? lf : cr;
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}
