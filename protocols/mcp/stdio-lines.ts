// Owns cutting a program's output into lines (2025-11-25, stdio: messages are delimited by newlines).
// Must never hold more than one line of the allowed size.

import { Gatherer } from '../gather.js';

/** `start` and `end`: what is kept of a line that was too long, to tell whose it was. */
export type Line =
  | { readonly kind: 'line'; readonly bytes: Uint8Array }
  | { readonly kind: 'tooLong'; readonly start: string; readonly end: string };

const LF = 0x0a;
/** A reply's id stands in its first or its last bytes, whichever member comes first. */
const KEPT_BYTES = 512;

export class LineCutter {
  private readonly maxBytes: number;
  private line: Gatherer;
  private length = 0;
  private start: Buffer | null = null;
  private end: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
    this.line = new Gatherer(maxBytes);
  }

  *cut(chunk: Buffer): Generator<Line> {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(LF, from);
      this.add(chunk.subarray(from, at === -1 ? chunk.length : at));
      if (at === -1) return;
      const line = this.take();
      if (line) yield line;
      from = at + 1;
    }
  }

  private add(piece: Buffer): void {
    this.length += piece.length;
    if (this.start === null && this.length <= this.maxBytes) return this.line.add(piece);
    if (this.start === null) {
      this.start = Buffer.from(this.line.take().subarray(0, KEPT_BYTES));
      this.line = new Gatherer(this.maxBytes);
    }
    this.end = Buffer.concat([this.end, piece.subarray(-KEPT_BYTES)]).subarray(-KEPT_BYTES);
  }

  private take(): Line | null {
    const { start, end, length } = this;
    this.start = null;
    this.end = Buffer.alloc(0);
    this.length = 0;
    if (start !== null)
      return { kind: 'tooLong', start: start.toString('latin1'), end: end.toString('latin1') };
    return length === 0 ? null : { kind: 'line', bytes: this.line.take() };
  }
}
