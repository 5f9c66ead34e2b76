// Owns turning the chunks of one reply into server-sent events, one at a time, with a limit on the silence between.
// Must never buffer more than one event beyond its caller, nor re-encode data that was not valid UTF-8.

import { createParser, type EventSourceMessage } from 'eventsource-parser';

export interface StreamEvent {
  readonly id: string | null;
  readonly data: string;
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

export function eventStreamOf(chunks: AsyncIterable<Uint8Array>, maxChars: number): EventStream {
  const iterator = chunks[Symbol.asyncIterator]();
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const ready: StreamEvent[] = [];
  let hasEnded = false;
  let isTooLarge = false;
  let pending: Promise<IteratorResult<Uint8Array>> | null = null;
  const parser = createParser({
    maxBufferSize: maxChars,
    onEvent: (event: EventSourceMessage) => ready.push({ id: event.id ? event.id : null, data: event.data }),
    onRetry: (retryMs) => {
      stream.retryMs = retryMs;
    },
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') isTooLarge = true;
    },
  });
  const stream: EventStream = {
    retryMs: null,
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
        else parser.feed(decoder.decode(step.value, { stream: true }));
        if (isTooLarge) throw new Error('an event is too large');
      }
    },
  };
  return stream;
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
