// Server-sent events read off bytes: the same events that a parser of text finds, however the bytes were cut.

import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eventStreamOf } from '../../protocols/mcp/event-stream.js';

interface Seen {
  readonly id: string | null;
  readonly data: string;
}

async function* chunksOf(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let n = 0; at < bytes.length; n += 1) {
    const size = sizes[n % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function read(text: string, sizes: readonly number[] = [7]) {
  const stream = eventStreamOf(chunksOf(Buffer.from(text), sizes), 1024 * 1024);
  const events: Seen[] = [];
  for (;;) {
    const event = await stream.next(null);
    if (typeof event === 'string') return { events, retryMs: stream.retryMs };
    events.push({ id: event.id, data: Buffer.from(event.data).toString('utf8') });
  }
}

/** What another parser makes of the same text, fed whole. */
function expected(text: string): readonly Seen[] {
  const events: Seen[] = [];
  createParser({ onEvent: ({ id, data }) => events.push({ id: id || null, data }) }).feed(text);
  return events;
}

describe('an event stream', () => {
  it.each([
    ['one event', 'data: {"a":1}\n\n', [{ id: null, data: '{"a":1}' }]],
    ['an id and no data, which is a place to resume from', 'id: 7\ndata: \n\n', [{ id: '7', data: '' }]],
    ['an id alone, which is no event', 'id: 7\n\n', []],
    ['several data lines', 'data: a\ndata: b\n\n', [{ id: null, data: 'a\nb' }]],
    ['comments and unknown fields', ': hi\nevent: x\nfoo\ndata:y\n\n', [{ id: null, data: 'y' }]],
    ['every kind of line end', 'data: a\r\n\r\ndata: b\r\rdata: c\n\n', ['a', 'b', 'c'].map(of)],
    ['only one space taken', 'data:  a\n\n', [{ id: null, data: ' a' }]],
    ['a byte order mark', '\uFEFFdata: a\n\n', [{ id: null, data: 'a' }]],
    ['an event without its end, which is none', 'data: a\n\ndata: b\n', [of('a')]],
  ])('%s', async (_, text, events) => {
    for (const sizes of [[1], [2], [3], [1_000]]) expect((await read(text, sizes)).events).toEqual(events);
  });

  it('tells how long to wait before it is opened again', async () => {
    expect((await read('retry: 1500\n\nretry: soon\n\n')).retryMs).toBe(1_500);
  });

  it('is the same for a parser of text, in any pieces', async () => {
    const word = fc.constantFrom('data: ', 'data', 'id: 1', ':', '\n', '\n\n', '\r\n', 'x', 'ä€😀', '"', ' ');
    const texts = fc.array(word, { maxLength: 30 }).map((words) => words.join(''));
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(texts, sizes, async (text, cuts) => {
        // Whole lines: the other parser waits for what may still come after a line that has not ended.
        const whole = `${text}\n\n`;
        expect((await read(whole, cuts)).events).toEqual(expected(whole));
      }),
      { numRuns: 2_000 },
    );
  });

  it('ends where a line is longer than allowed', async () => {
    const stream = eventStreamOf(chunksOf(Buffer.from(`data: ${'x'.repeat(100)}`), [10]), 50);
    await expect(stream.next(null)).rejects.toThrow('more than 50 bytes');
  });

  it('hands a large event on as it came', async () => {
    const data = 'ä'.repeat(3_000_000);
    const stream = eventStreamOf(chunksOf(Buffer.from(`data: ${data}\n\n`), [65_536]), 8_000_000);
    const event = await stream.next(null);
    expect(typeof event === 'object' && Buffer.from(event.data).toString('utf8') === data).toBe(true);
  });
});

function of(data: string): Seen {
  return { id: null, data };
}
