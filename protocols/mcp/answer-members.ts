// Owns reading what stands at a JSON pointer in a tool's answer: in its structured content, or in the JSON of its text.
// Must never take a missing member for one that is there, nor change an id by a character.

import { pointerTokens } from '../../operation/json-pointer.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { isObject } from '../json-members.js';

/** Missing, null and empty are "absent"; `unreadable`: nothing could stand there, so its absence says nothing. */
export type Member =
  | { readonly kind: 'value'; readonly value: JsonValue }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unreadable'; readonly why: string };

/** `named`: the id of the work, exactly as the tool said it. */
export type Said =
  | { readonly kind: 'named'; readonly remoteId: string; readonly isNumber?: true }
  | Exclude<Member, { kind: 'value' }>;

/** Members of a result itself; any other pointer leads into the JSON of its first text. */
const RESULT_MEMBERS: readonly string[] = ['structuredContent', 'content', '_meta'];

export function memberAt(result: JsonObject, pointer: string): Member {
  const tokens = pointerTokens(pointer);
  const [first = ''] = tokens;
  const isMember = RESULT_MEMBERS.includes(first);
  if (isMember && !isContainer(result[first])) return { kind: 'unreadable', why: `it gives no ${first}` };
  let at: JsonValue | undefined = isMember ? result : jsonOfFirstText(result);
  if (at === undefined) return { kind: 'unreadable', why: 'its first text is not JSON' };
  for (const token of tokens) {
    if (at === null || at === undefined) return { kind: 'absent' };
    if (!isContainer(at) || (Array.isArray(at) && !/^(0|[1-9]\d*)$/.test(token)))
      return { kind: 'unreadable', why: `nothing can stand at ${pointer}` };
    at = Object.hasOwn(at, token) ? at[token] : undefined;
  }
  if (at === null || at === undefined || at === '') return { kind: 'absent' };
  return { kind: 'value', value: at };
}

/** A kind that is no id says nothing. */
export function idAt(result: JsonObject, pointer: string): Said {
  const member = memberAt(result, pointer);
  if (member.kind !== 'value') return member;
  const { value } = member;
  // A number beyond these has lost digits when it was read.
  const isNumber = typeof value === 'number' && Number.isSafeInteger(value);
  const remoteId = isNumber ? String(value) : value;
  const isId =
    typeof remoteId === 'string' &&
    remoteId.length <= LIMITS.remoteIdChars &&
    // Half a character does not survive UTF-8: the id could not be sent back.
    !/\p{Surrogate}/u.test(remoteId);
  if (!isId) return { kind: 'unreadable', why: `no id stands at ${pointer}` };
  return isNumber ? { kind: 'named', remoteId, isNumber } : { kind: 'named', remoteId };
}

/** The text at the pointer; null where there is none. */
export function textAt(result: JsonObject, pointer: string): string | null {
  const member = memberAt(result, pointer);
  return member.kind === 'value' && typeof member.value === 'string' ? member.value : null;
}

/** The first text as it is; null where there is none. */
export function firstTextOf(result: JsonObject): string | null {
  const content = result['content'];
  if (!Array.isArray(content)) return null;
  const block = (content as readonly JsonValue[]).find((each) => isObject(each) && each['type'] === 'text');
  const text = isObject(block) ? block['text'] : undefined;
  return typeof text === 'string' ? text : null;
}

/** Undefined where there is none that can be read. */
function jsonOfFirstText(result: JsonObject): JsonValue | undefined {
  const text = firstTextOf(result);
  if (text === null) return undefined;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function isContainer(value: JsonValue | undefined): value is JsonObject {
  return isObject(value) || Array.isArray(value);
}
