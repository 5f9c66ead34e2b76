// Owns cutting the exact received bytes of members and elements out of JSON (result digests are made of them).
// Must never re-serialise, recurse, or accept what JSON.parse would refuse.

/** The text is not one complete JSON object within the limits. `message` holds positions only, never content. */
export class JsonSliceError extends Error {
  override readonly name = 'JsonSliceError';
}

export interface Span {
  /** Offset of the first byte. */
  readonly start: number;
  /** Offset after the last byte. */
  readonly end: number;
}

const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SIMPLE_ESCAPES = new Set(Buffer.from('"\\/bfnrt'));
const LITERALS = ['true', 'false', 'null'];

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The spans of the top-level members of one JSON object. Where a name is repeated the last one counts, as in
 * JSON.parse, so what is digested is what is interpreted.
 * @throws JsonSliceError when `bytes` is not exactly one JSON object of at most `maxDepth` levels.
 */
export function sliceMembers(bytes: Uint8Array, maxDepth: number): ReadonlyMap<string, Span> {
  const members = new Map<string, Span>();
  let at = skipSpace(bytes, 0);
  if (bytes[at] !== OPEN_OBJECT) throw broken('no object', at);
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === CLOSE_OBJECT) return atEnd(bytes, at + 1, members);
  for (;;) {
    const name = { start: at, end: endOfString(bytes, at) };
    at = skipSpace(bytes, name.end);
    if (bytes[at] !== COLON) throw broken('no colon', at);
    const start = skipSpace(bytes, at + 1);
    const end = endOfValue(bytes, start, maxDepth - 1);
    members.set(nameOf(bytes, name), { start, end });
    at = skipSpace(bytes, end);
    if (bytes[at] === CLOSE_OBJECT) return atEnd(bytes, at + 1, members);
    if (bytes[at] !== COMMA) throw broken('no comma', at);
    at = skipSpace(bytes, at + 1);
  }
}

/**
 * The spans of the elements of one JSON array, one after the other; nothing of them is kept.
 * @throws JsonSliceError when `bytes` is not exactly one JSON array of at most `maxDepth` levels.
 */
export function* sliceElements(bytes: Uint8Array, maxDepth: number): Generator<Span, void> {
  let at = skipSpace(bytes, 0);
  if (bytes[at] !== OPEN_ARRAY) throw broken('no array', at);
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === CLOSE_ARRAY) return atEnd(bytes, at + 1, undefined);
  for (;;) {
    const end = endOfValue(bytes, at, maxDepth - 1);
    yield { start: at, end };
    at = skipSpace(bytes, end);
    if (bytes[at] === CLOSE_ARRAY) return atEnd(bytes, at + 1, undefined);
    if (bytes[at] !== COMMA) throw broken('no comma', at);
    at = skipSpace(bytes, at + 1);
  }
}

function atEnd<T>(bytes: Uint8Array, at: number, value: T): T {
  const end = skipSpace(bytes, at);
  if (end !== bytes.length) throw broken('bytes after the object', end);
  return value;
}

function nameOf(bytes: Uint8Array, span: Span): string {
  try {
    return JSON.parse(decoder.decode(bytes.subarray(span.start, span.end))) as string;
  } catch {
    throw broken('a name that is no text', span.start);
  }
}

/** Iterative: the open containers live in `closers`, so that depth costs no stack. */
function endOfValue(bytes: Uint8Array, from: number, maxDepth: number): number {
  const closers: number[] = [];
  let at = from;
  for (;;) {
    const byte = bytes[at];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (closers.length >= maxDepth) throw broken('nested too deeply', at);
      closers.push(byte === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY);
      at = skipSpace(bytes, at + 1);
      if (bytes[at] !== closers.at(-1)) {
        at = startOfElement(bytes, at, closers);
        continue;
      }
      closers.pop();
      at += 1;
    } else {
      at = endOfScalar(bytes, at);
    }
    // A value just ended: close what it completes, then go on to the next element or out.
    for (;;) {
      const closer = closers.at(-1);
      if (closer === undefined) return at;
      at = skipSpace(bytes, at);
      if (bytes[at] === closer) {
        closers.pop();
        at += 1;
        continue;
      }
      if (bytes[at] !== COMMA) throw broken('no comma', at);
      at = startOfElement(bytes, skipSpace(bytes, at + 1), closers);
      break;
    }
  }
}

/** In an object: past the name and the colon. */
function startOfElement(bytes: Uint8Array, at: number, closers: readonly number[]): number {
  if (closers.at(-1) === CLOSE_ARRAY) return at;
  const colon = skipSpace(bytes, endOfString(bytes, at));
  if (bytes[colon] !== COLON) throw broken('no colon', colon);
  return skipSpace(bytes, colon + 1);
}

function endOfScalar(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === QUOTE) return endOfString(bytes, at);
  if (byte === 0x2d || isDigit(byte)) return endOfNumber(bytes, at);
  for (const literal of LITERALS) {
    if (matches(bytes, at, literal)) return at + literal.length;
  }
  throw broken('no value', at);
}

function matches(bytes: Uint8Array, at: number, literal: string): boolean {
  for (let offset = 0; offset < literal.length; offset += 1) {
    if (bytes[at + offset] !== literal.charCodeAt(offset)) return false;
  }
  return true;
}

function endOfString(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== QUOTE) throw broken('no string', from);
  for (let at = from + 1; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20) throw broken('a control character in a string', at);
    if (byte !== BACKSLASH) continue;
    at += 1;
    const escape = bytes[at];
    if (escape === 0x75) {
      for (let digit = 1; digit <= 4; digit += 1) {
        if (!isHex(bytes[at + digit])) throw broken('a broken escape', at);
      }
      at += 4;
    } else if (escape === undefined || !SIMPLE_ESCAPES.has(escape)) {
      throw broken('a broken escape', at);
    }
  }
  throw broken('a string without an end', from);
}

function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = bytes[from] === 0x2d ? from + 1 : from;
  if (!isDigit(bytes[at])) throw broken('a broken number', at);
  at = bytes[at] === 0x30 ? at + 1 : endOfDigits(bytes, at);
  if (bytes[at] === 0x2e) at = endOfDigits(bytes, at + 1);
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    const sign = bytes[at + 1];
    at = endOfDigits(bytes, sign === 0x2b || sign === 0x2d ? at + 2 : at + 1);
  }
  return at;
}

function endOfDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isDigit(bytes[at])) at += 1;
  if (at === from) throw broken('a broken number', at);
  return at;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && SPACE.has(bytes[at] as number)) at += 1;
  return at;
}

function broken(what: string, at: number): JsonSliceError {
  return new JsonSliceError(`not one JSON object: ${what} at byte ${at}`);
}
