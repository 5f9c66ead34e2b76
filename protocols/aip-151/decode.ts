// Owns the words of AIP-151 as servers send them (google.longrunning.Operation, google.rpc.Status), mapped once into ours.
// Pure. Must never parse, trim or re-encode a name, nor take a running operation's `response` for its end.

import type { JsonValue } from '../../operation/json.js';
import { pointerTokens } from '../../operation/json-pointer.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { Observation, ReceivedResult } from '../adapter.js';
import { isObject, memberOf, membersOf, parseJson } from '../json-members.js';
import { sliceElements } from '../json-slice.js';
import type { Redact } from '../redact.js';

/** google.rpc.Code, by number. */
const RPC_WORDS = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const;
const OK = 0;
const CANCELLED = 1;

/** What a refusing reply says of itself: AIP-193's envelope, or the bare status of some gateways. */
export interface ErrorBody {
  /** A word of google.rpc.Code; null where the body has none. */
  readonly word: string | null;
  readonly message: string;
  /** RetryInfo. */
  readonly retryDelayMs: number | null;
}

export const NO_ERROR_BODY: ErrorBody = { word: null, message: '', retryDelayMs: null };

export function errorBodyOf(value: JsonValue): ErrorBody {
  if (!isObject(value)) return NO_ERROR_BODY;
  const envelope = value['error'];
  const status = isObject(envelope) ? envelope : value;
  // The envelope's code is the HTTP status, its `status` the word; the bare form has the RPC code.
  const word = isObject(envelope) ? wordNamed(envelope['status']) : wordNumbered(value['code']);
  const { message, details } = status;
  return {
    word,
    message: typeof message === 'string' ? message : '',
    retryDelayMs: Array.isArray(details) ? retryDelayMsOf(details) : null,
  };
}

function wordNamed(word: JsonValue | undefined): string | null {
  return RPC_WORDS.find((known) => known === word) ?? null;
}

function wordNumbered(code: JsonValue | undefined): string | null {
  return typeof code === 'number' ? (RPC_WORDS[code] ?? null) : null;
}

function retryDelayMsOf(details: readonly JsonValue[]): number | null {
  for (const detail of details) {
    if (!isObject(detail)) continue;
    const { '@type': type, retryDelay } = detail;
    if (typeof type !== 'string' || !type.endsWith('/google.rpc.RetryInfo')) continue;
    return durationMsOf(retryDelay);
  }
  return null;
}

/** google.protobuf.Duration in JSON: seconds with up to nine digits, e.g. "1.5s". */
function durationMsOf(value: JsonValue | undefined): number | null {
  const [, seconds] = typeof value === 'string' ? (/^(\d{1,12}(?:\.\d{1,9})?)s$/.exec(value) ?? []) : [];
  return seconds === undefined ? null : Math.ceil(Number(seconds) * 1_000);
}

export type SeenOperation =
  | {
      readonly kind: 'operation';
      /** Empty where the reply has none: some servers give none to what is done at once. */
      readonly name: string;
      readonly observation: Observation;
    }
  /** An operation that says two things at once, or something that no operation says. */
  | { readonly kind: 'broken'; readonly why: string }
  | { readonly kind: 'none' };

/** Of the bytes of one object: only the few members that decide are made into values, however large it is. */
export function operationOf(bytes: Uint8Array, redact: Redact): SeenOperation {
  const done = memberOf(bytes, 'done');
  const name = nameOf(bytes);
  if (name === null) return { kind: 'none' };
  if (done !== undefined && done !== null && typeof done !== 'boolean') return { kind: 'none' };
  if (done !== true) {
    return name === '' ? { kind: 'none' } : { kind: 'operation', name, observation: RUNNING };
  }
  const ended = endOf(bytes, redact);
  return typeof ended === 'string'
    ? { kind: 'broken', why: ended }
    : { kind: 'operation', name, observation: ended };
}

/** Empty where there is none; null where it is none that could be used. */
export function nameOf(operation: Uint8Array): string | null {
  if (!membersOf(operation)?.has('name')) return '';
  const name = memberOf(operation, 'name');
  if (name === null) return '';
  // Half a character does not survive UTF-8: the name could neither be sent back nor digested.
  return typeof name === 'string' && !/\p{Surrogate}/u.test(name) ? name : null;
}

/** `done` alone decides: a running operation may already carry its `response` (seen in Spanner's). */
const RUNNING: Observation = {
  remoteStatus: 'running',
  meaning: 'working',
  statusMessage: null,
  intervalMs: null,
  expiresAt: null,
};

/** What a done operation says, or why it says nothing that could be taken. */
function endOf(operation: Uint8Array, redact: Redact): Observation | string {
  const error = valueOf(operation, 'error');
  const response = valueOf(operation, 'response');
  if (error && response) return 'done with both response and error';
  if (error) return errorEnd(error, redact);
  const result = response ? received(response, false) : EMPTY;
  return { ...RUNNING, remoteStatus: 'done', meaning: 'completed', inline: { kind: 'result', result } };
}

/** The exact bytes of one member; undefined where there is none, or null, which is how some servers write none. */
function valueOf(operation: Uint8Array, member: 'response' | 'error'): Uint8Array | undefined {
  const span = membersOf(operation)?.get(member);
  if (!span) return undefined;
  const bytes = operation.subarray(span.start, span.end);
  return bytes[0] === NULL_BYTE ? undefined : bytes;
}

/** No other JSON value begins with an n. */
const NULL_BYTE = 0x6e;

function errorEnd(error: Uint8Array, redact: Redact): Observation | string {
  const code = memberOf(error, 'code');
  if (typeof code !== 'number' || !Number.isSafeInteger(code)) return 'done with an error that has no code';
  if (code === OK) return 'done with an error whose code says OK';
  const message = memberOf(error, 'message');
  const statusMessage = typeof message === 'string' ? clip(redact(message), LIMITS.statusMessageChars) : null;
  const word = RPC_WORDS[code] ?? `code ${code}`;
  const ended = { ...RUNNING, remoteStatus: `done: ${word}`, statusMessage };
  // operations.proto, CancelOperation: a cancelled operation is done with an error of code 1.
  if (code === CANCELLED) return { ...ended, meaning: 'cancelled' };
  return { ...ended, meaning: 'failed', inline: { kind: 'result', result: received(error, true) } };
}

/** An operation's error is the work's own end, so the tool's and not the protocol's. */
function received(value: Uint8Array, isToolError: boolean): ReceivedResult {
  return {
    bytes: value,
    mediaType: 'application/json',
    isProtocolError: false,
    isToolError,
    structuredContent: undefined,
  };
}

/**
 * Done with neither member. A method that returns no data has google.protobuf.Empty as its response, and operations.proto
 * allows services to leave the result out. A failure would have set `error`, and there is nothing left to wait for.
 * Zero bytes are what was received of it, and all that Empty is in protobuf's own encoding.
 */
const EMPTY: ReceivedResult = {
  bytes: new Uint8Array(0),
  mediaType: 'application/x-protobuf; messageType="google.protobuf.Empty"',
  isProtocolError: false,
  isToolError: false,
  structuredContent: undefined,
};

export interface OperationsPage {
  /** The bytes of each listed object. */
  readonly operations: readonly Uint8Array[];
  readonly nextPageToken: string | null;
  /** There may be more than is shown: places that could not be asked (AIP-217), or more than anyone reads. */
  readonly isPartial: boolean;
}

/** Of one page; a list that holds more is no list of the operations of one resource. */
const LISTED = 1_000;

export function operationsPageOf(page: Uint8Array): OperationsPage {
  const [nextPageToken, unreachable] = [memberOf(page, 'nextPageToken'), memberOf(page, 'unreachable')];
  const elements = elementsOf(page, 'operations');
  return {
    operations: elements.slice(0, LISTED).filter((element) => membersOf(element) !== null),
    nextPageToken: typeof nextPageToken === 'string' && nextPageToken !== '' ? nextPageToken : null,
    isPartial: elements.length > LISTED || (Array.isArray(unreachable) && unreachable.length > 0),
  };
}

/** One more than is read, where there are more. */
function elementsOf(page: Uint8Array, member: string): readonly Uint8Array[] {
  const span = membersOf(page)?.get(member);
  const list = span && page.subarray(span.start, span.end);
  if (!list || list[0] !== OPEN_ARRAY) return [];
  const elements: Uint8Array[] = [];
  for (const { start, end } of sliceElements(list, LIMITS.wireJsonDepth)) {
    elements.push(list.subarray(start, end));
    if (elements.length > LISTED) break;
  }
  return elements;
}

const OPEN_ARRAY = 0x5b;

/** The member of a listed operation at a JSON pointer (RFC 6901), or undefined. */
export function memberAt(operation: Uint8Array, pointer: string): JsonValue | undefined {
  const [first, ...tokens] = pointerTokens(pointer);
  let found = first === undefined ? parseJson(operation) : memberOf(operation, first);
  for (const token of tokens) {
    if (Array.isArray(found))
      found = /^(?:0|[1-9]\d*)$/.test(token) ? (found[Number(token)] as JsonValue) : undefined;
    else found = isObject(found) && Object.hasOwn(found, token) ? found[token] : undefined;
  }
  return found;
}
