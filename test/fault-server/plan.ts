// Owns the plan of one call: what its server does wrong, and when. A plan is data: written in the call's arguments now,
// drawn from a seed later. Must never take a word it does not know for one that it does.

import { isObject, type JsonObject, type JsonValue } from './json.js';

/** What may happen to the reply of one request; the same words for every kind of request. */
export const WORDS = {
  ok: 'answers',
  // The request is handled, its reply suffers.
  lose: 'handles it, then closes the socket without a byte',
  cut: 'handles it, sends the first half of the reply, closes the socket; the rest is never to be had',
  'cut-resumable': 'as cut, but where the stream has event ids the rest can be had with Last-Event-ID',
  empty: 'handles it, answers 200 without a body',
  'empty-object': 'handles it, answers 200 with the body {}',
  'empty-result': 'handles it, answers a JSON-RPC result {}',
  'delay:ms': 'handles it, answers so much later',
  // The request is not handled.
  reset: 'resets the connection',
  '503': 'answers 503',
  '503:s': 'answers 503 with Retry-After',
  'error:code': 'answers that JSON-RPC error',
  // For ever.
  lost: 'handles it, closes the socket without a byte, this time and every later one',
  gone: 'answers -32602, this time and every later one',
} as const;

const PLAIN_WORDS = Object.keys(WORDS).filter((word) => !word.includes(':'));
/** Bounded repeats: a requester's guard against hostile patterns must let it pass. */
export const WORD_PATTERN = `^(${PLAIN_WORDS.join('|')}|delay:[0-9]{1,6}|503:[0-9]{1,4}|error:-[0-9]{5})$`;
export const CANCEL_PATTERN = '^(honour|refuse|ignore|delay:[0-9]{1,6}|complete-first|complete-after)$';

export interface Word {
  readonly name: string;
  /** ms, seconds or a code; null where the word takes none. */
  readonly amount: number | null;
}

export const PHASES = ['create', 'polls', 'result', 'cancelReply'] as const;
export type Phase = (typeof PHASES)[number];

export const CHOICES = {
  /** When the session of the call is lost. */
  session: ['keep', 'lose-after-create'],
  /** How a lost session is answered: by the specification, or as real servers do (400 and -32000). */
  sessionGone: ['404', '400'],
  /** Whether another session finds the task by its id once its own was lost. No other session ever lists it. */
  taskAfterSession: ['found', 'not-found'],
  outcome: ['completed', 'isError', 'protocolError'],
} as const;

export interface Plan {
  /** The n-th word is for the n-th request of that kind; after the last one all goes well (`lost` and `gone` stay). */
  readonly words: Readonly<Record<Phase, readonly Word[]>>;
  readonly session: (typeof CHOICES.session)[number];
  readonly sessionGone: (typeof CHOICES.sessionGone)[number];
  readonly taskAfterSession: (typeof CHOICES.taskAfterSession)[number];
  readonly outcome: (typeof CHOICES.outcome)[number];
  /** How many questions are asked, one after the other, half-way through the work. */
  readonly questions: number;
  readonly cancel: Word;
  /** A second call with a known key (argument or `_meta`) gets the first one's task or result. */
  readonly deduplicate: boolean;
  /** null: what the client asked for. */
  readonly ttlMs: number | null;
  readonly pollIntervalMs: number;
}

export class PlanRefused extends Error {
  override readonly name = 'PlanRefused';
}

const FIELDS: readonly string[] = [
  ...PHASES,
  ...Object.keys(CHOICES),
  'questions',
  'cancel',
  'deduplicate',
  'ttlMs',
  'pollIntervalMs',
];

/** @throws PlanRefused */
export function readPlan(value: JsonValue | undefined): Plan {
  const json = value ?? {};
  if (!isObject(json)) throw new PlanRefused('the plan is no object');
  const stranger = Object.keys(json).find((field) => !FIELDS.includes(field));
  if (stranger !== undefined) throw new PlanRefused(`the plan has no field "${stranger}"`);
  return {
    words: {
      create: readWords(json, 'create'),
      polls: readWords(json, 'polls'),
      result: readWords(json, 'result'),
      cancelReply: readWords(json, 'cancelReply'),
    },
    session: readChoice(json, 'session'),
    sessionGone: readChoice(json, 'sessionGone'),
    taskAfterSession: readChoice(json, 'taskAfterSession'),
    outcome: readChoice(json, 'outcome'),
    questions: readNumber(json, 'questions', 0, 2) ?? 0,
    cancel: readWord(json['cancel'] ?? 'honour', CANCEL_PATTERN, 'cancel'),
    deduplicate: readFlag(json, 'deduplicate'),
    ttlMs: readNumber(json, 'ttlMs', 0, Number.MAX_SAFE_INTEGER),
    pollIntervalMs: readNumber(json, 'pollIntervalMs', -1, Number.MAX_SAFE_INTEGER) ?? 1_000,
  };
}

const OK: Word = { name: 'ok', amount: null };

/** The word for the n-th request, counted from 0. */
export function wordAt(words: readonly Word[], n: number): Word {
  const last = words.at(-1);
  return words[n] ?? (last && isForEver(last) ? last : OK);
}

/** The request is not handled at all. */
export function isInsteadOfHandling(word: Word): boolean {
  return ['reset', '503', 'error', 'gone'].includes(word.name);
}

export function spell(word: Word): string {
  return word.amount === null ? word.name : `${word.name}:${word.amount}`;
}

function isForEver(word: Word): boolean {
  return word.name === 'lost' || word.name === 'gone';
}

function readWords(json: JsonObject, phase: Phase): readonly Word[] {
  const given = json[phase];
  if (given === undefined) return [];
  const list: readonly JsonValue[] = Array.isArray(given)
    ? (given as readonly JsonValue[])
    : [given as JsonValue];
  return list.map((word) => readWord(word, WORD_PATTERN, phase));
}

function readWord(given: JsonValue, pattern: string, field: string): Word {
  if (typeof given !== 'string' || !new RegExp(pattern).test(given)) {
    throw new PlanRefused(`"${field}" knows no word ${JSON.stringify(given)}`);
  }
  const [name = given, amount] = given.split(':');
  return { name, amount: amount === undefined ? null : Number(amount) };
}

function readChoice<Field extends keyof typeof CHOICES>(
  json: JsonObject,
  field: Field,
): (typeof CHOICES)[Field][number] {
  const choices: readonly string[] = CHOICES[field];
  const given = json[field] ?? choices[0];
  if (typeof given !== 'string' || !choices.includes(given)) {
    throw new PlanRefused(`"${field}" knows no word ${JSON.stringify(given)}`);
  }
  return given as (typeof CHOICES)[Field][number];
}

function readNumber(json: JsonObject, field: string, least: number, most: number): number | null {
  const given = json[field];
  if (given === undefined) return null;
  if (typeof given === 'number' && given >= least && given <= most) return given;
  throw new PlanRefused(`"${field}" is not a number from ${least} to ${most}`);
}

function readFlag(json: JsonObject, field: string): boolean {
  const given = json[field] ?? false;
  if (typeof given !== 'boolean') throw new PlanRefused(`"${field}" is neither true nor false`);
  return given;
}
