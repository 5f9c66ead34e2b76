// Owns reading single members out of bytes that are whole JSON, so that a large one is made into values only where it is
// asked for. Must never read a member that is larger than one that is no result may be.

import { LIMITS } from '../operation/limits.js';
import type { JsonObject, JsonValue } from '../operation/json.js';
import { sliceMembers, type Span } from './json-slice.js';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Of bytes that are whole JSON: the spans of an object's members, null where they are no object. */
export function membersOf(bytes: Uint8Array): ReadonlyMap<string, Span> | null {
  const known = knownMembers.get(bytes);
  if (known) return known;
  if (bytes[0] !== OPEN_OBJECT) return null;
  const members = sliceMembers(bytes, LIMITS.wireJsonDepth);
  knownMembers.set(bytes, members);
  return members;
}

/** A large result is scanned once for all that is asked of it. */
const knownMembers = new WeakMap<Uint8Array, ReadonlyMap<string, Span>>();

const OPEN_OBJECT = 0x7b;

/** One member, parsed; undefined where there is none, or where it is larger than any that is not a result may be. */
export function memberOf(bytes: Uint8Array, name: string): JsonValue | undefined {
  const span = membersOf(bytes)?.get(name);
  if (!span || span.end - span.start > LIMITS.wireReplyBytes) return undefined;
  return parseJson(bytes.subarray(span.start, span.end));
}

/** Of bytes that the scanner has passed: what it accepts, JSON.parse does not refuse. */
export function parseJson(bytes: Uint8Array): JsonValue {
  return JSON.parse(decoder.decode(bytes)) as JsonValue;
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
