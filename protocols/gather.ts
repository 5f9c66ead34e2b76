// Owns putting bytes that arrive in pieces into one place, with no second copy of a large whole.
// Must never hold more than it was allowed, nor touch memory before bytes are there for it.

/** Small replies are joined at their end; they cost nothing before. */
const JOINED_BYTES = 1024 * 1024;

export class Gatherer {
  private readonly maxBytes: number;
  private pieces: Uint8Array[] = [];
  private large: Buffer | null = null;
  private length = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** @throws RangeError past the allowed bytes; the exchange has its own limit and comes first. */
  add(piece: Uint8Array): void {
    if (piece.length === 0) return;
    const before = this.length;
    this.length += piece.length;
    if (this.length > this.maxBytes) throw new RangeError(`more than ${this.maxBytes} bytes`);
    if (this.large === null && this.length <= JOINED_BYTES) {
      this.pieces.push(piece);
      return;
    }
    this.large ??= this.moveIntoOne(before);
    this.large.set(piece, before);
  }

  /** Everything since the last time; the gatherer is empty afterwards. */
  take(): Buffer {
    const { large, pieces, length } = this;
    this.large = null;
    this.pieces = [];
    this.length = 0;
    return large ? large.subarray(0, length) : Buffer.concat(pieces);
  }

  private moveIntoOne(length: number): Buffer {
    // Zero-filled by the system page by page: what is never written to takes no memory.
    const large = Buffer.alloc(this.maxBytes);
    let at = 0;
    for (const piece of this.pieces) {
      large.set(piece, at);
      at += piece.length;
    }
    if (at !== length) throw new Error('a piece was lost');
    this.pieces = [];
    return large;
  }
}
