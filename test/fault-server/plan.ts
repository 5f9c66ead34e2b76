// Owns the plan of one call: what its server does wrong, and when. A plan is data: written in the call's arguments, or
// drawn from a seed (draw-plan.ts). Must never take a field or a word it does not know for one that it does.

import { drawPlan } from './draw-plan.js';
import { isObject, type JsonObject, type JsonValue } from './json.js';
import { readCancelWord, readReplyWord, type Word } from './words.js';

/** The kinds of requests about one call, each with its own list of words. */
export const PHASES = ['create', 'polls', 'result', 'cancelReply', 'lists', 'answers'] as const;
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

export const FLAGS = {
  deduplicate: 'a second call with a known key (argument or `_meta`) gets the task or result of the first',
  foreignQuestion: 'before each question of this task the stream carries one of a task that is not this one',
} as const;

/** Numbers of a plan: least and most. */
export const NUMBERS = {
  /** How many questions are asked, one after the other, half-way through the work. */
  questions: [0, 2],
  /** How many questions are asked, one call after the other, before there is any work (2026-07-28). */
  questionsBeforeTask: [0, 2],
  /** The lifetime; past it the task is unknown. Absent: what the client asked for, or the server's own. */
  ttlMs: [0, Number.MAX_SAFE_INTEGER],
  pollIntervalMs: [-1, Number.MAX_SAFE_INTEGER],
  /** So many reads right after the creation do not know the task yet (get, result, cancel: -32602; not listed). */
  lagReads: [0, 1_000],
  /** So many status reads after the first that told the end say `working` again. */
  staleReads: [0, 1_000],
  /** An answer that was taken moves nothing for so many status reads, which say input_required; -1: for ever. */
  heldAnswerReads: [-1, 1_000],
  /** So often an answered question is sent again, under its own JSON-RPC id. */
  questionReplays: [0, 10],
  /** The session is lost so long after the creation. */
  sessionLossMs: [0, 600_000],
  /** So many look-ups of `find_work` do not find the work yet. */
  lateLookUps: [0, 1_000],
  /** So many look-ups of `find_work` say isError first. */
  failedLookUps: [0, 1_000],
} as const;
type NumberField = keyof typeof NUMBERS;

export interface Plan extends Readonly<Record<Exclude<NumberField, 'ttlMs' | 'sessionLossMs'>, number>> {
  /** The n-th word is for the n-th request of that kind; after the last one all goes well (`lost` and `gone` stay). */
  readonly words: Readonly<Record<Phase, readonly Word[]>>;
  readonly session: (typeof CHOICES.session)[number];
  readonly sessionGone: (typeof CHOICES.sessionGone)[number];
  readonly taskAfterSession: (typeof CHOICES.taskAfterSession)[number];
  readonly outcome: (typeof CHOICES.outcome)[number];
  readonly cancel: Word;
  readonly deduplicate: boolean;
  readonly foreignQuestion: boolean;
  readonly ttlMs: number | null;
  readonly sessionLossMs: number | null;
  /** The hint of the n-th read, the last one stays; null = the member is absent. Empty: `pollIntervalMs` holds. */
  readonly pollIntervals: readonly (number | null)[];
  /** The lifetime as the n-th read tells it and it holds from then on, the last one stays. Empty: it does not change. */
  readonly ttlsMs: readonly (number | null)[];
  /** What status reads say while the work runs, in place of `working`. */
  readonly workingStatus: string;
  /** The call whose task `reused-id` names; null: the newest one that another call made. */
  readonly reusedOf: string | null;
}

export class PlanRefused extends Error {
  override readonly name = 'PlanRefused';
}

const FIELDS: readonly string[] = [
  ...PHASES,
  ...Object.keys(CHOICES),
  ...Object.keys(FLAGS),
  ...Object.keys(NUMBERS),
  'cancel',
  'pollIntervals',
  'ttlsMs',
  'workingStatus',
  'reusedOf',
];

/** `{ seed }` alone stands for the plan that is drawn from it. @throws PlanRefused */
export function readPlan(value: JsonValue | undefined): Plan {
  const json = value ?? {};
  if (!isObject(json)) throw new PlanRefused('the plan is no object');
  if (json['seed'] !== undefined) return readPlan(planOfSeed(json));
  const stranger = Object.keys(json).find((field) => !FIELDS.includes(field));
  if (stranger !== undefined) throw new PlanRefused(`the plan has no field "${stranger}"`);
  return {
    words: {
      create: readWords(json, 'create'),
      polls: readWords(json, 'polls'),
      result: readWords(json, 'result'),
      cancelReply: readWords(json, 'cancelReply'),
      lists: readWords(json, 'lists'),
      answers: readWords(json, 'answers'),
    },
    session: readChoice(json, 'session'),
    sessionGone: readChoice(json, 'sessionGone'),
    taskAfterSession: readChoice(json, 'taskAfterSession'),
    outcome: readChoice(json, 'outcome'),
    cancel: known(readCancelWord(json['cancel'] ?? 'honour'), 'cancel', json['cancel']),
    deduplicate: readFlag(json, 'deduplicate'),
    foreignQuestion: readFlag(json, 'foreignQuestion'),
    questions: readNumber(json, 'questions') ?? 0,
    questionsBeforeTask: readNumber(json, 'questionsBeforeTask') ?? 0,
    ttlMs: readNumber(json, 'ttlMs'),
    pollIntervalMs: readNumber(json, 'pollIntervalMs') ?? 1_000,
    lagReads: readNumber(json, 'lagReads') ?? 0,
    staleReads: readNumber(json, 'staleReads') ?? 0,
    heldAnswerReads: readNumber(json, 'heldAnswerReads') ?? 0,
    questionReplays: readNumber(json, 'questionReplays') ?? 0,
    sessionLossMs: readNumber(json, 'sessionLossMs'),
    lateLookUps: readNumber(json, 'lateLookUps') ?? 0,
    failedLookUps: readNumber(json, 'failedLookUps') ?? 0,
    pollIntervals: readHints(json, 'pollIntervals'),
    ttlsMs: readHints(json, 'ttlsMs'),
    workingStatus: readText(json, 'workingStatus') ?? 'working',
    reusedOf: readText(json, 'reusedOf'),
  };
}

function planOfSeed(json: JsonObject): JsonObject {
  const { seed, ...others } = json;
  if (typeof seed !== 'number' || !Number.isSafeInteger(seed) || seed < 0)
    throw new PlanRefused('"seed" is no whole number from 0');
  const [other] = Object.keys(others);
  if (other !== undefined) throw new PlanRefused(`a plan with a seed has no "${other}"`);
  return drawPlan(seed).plan;
}

function readWords(json: JsonObject, phase: Phase): readonly Word[] {
  const given = json[phase];
  if (given === undefined) return [];
  const list: readonly JsonValue[] = Array.isArray(given)
    ? (given as readonly JsonValue[])
    : [given as JsonValue];
  return list.map((word) => known(readReplyWord(word), phase, word));
}

function known<T>(word: T | null, field: string, given: JsonValue | undefined): T {
  if (word === null) throw new PlanRefused(`"${field}" knows no word ${JSON.stringify(given)}`);
  return word;
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

function readNumber(json: JsonObject, field: NumberField): number | null {
  const given = json[field];
  const [least, most] = NUMBERS[field];
  if (given === undefined) return null;
  if (typeof given === 'number' && given >= least && given <= most) return given;
  throw new PlanRefused(`"${field}" is not a number from ${least} to ${most}`);
}

function readFlag(json: JsonObject, field: keyof typeof FLAGS): boolean {
  const given = json[field] ?? false;
  if (typeof given !== 'boolean') throw new PlanRefused(`"${field}" is neither true nor false`);
  return given;
}

function readHints(json: JsonObject, field: 'pollIntervals' | 'ttlsMs'): readonly (number | null)[] {
  const given = json[field] ?? [];
  const isHint = (hint: JsonValue): hint is number | null => hint === null || typeof hint === 'number';
  if (Array.isArray(given) && (given as readonly JsonValue[]).every(isHint)) return given as number[];
  throw new PlanRefused(`"${field}" is no list of numbers and nulls`);
}

function readText(json: JsonObject, field: string): string | null {
  const given = json[field] ?? null;
  if (given === null || (typeof given === 'string' && given !== '')) return given;
  throw new PlanRefused(`"${field}" is no text`);
}
