// Owns the plan that a seed stands for, and which ends of an operation that plan allows. Pure: a seed is a plan for ever.
// Must never draw a word whose allowed ends it cannot say, nor look at what the requester makes of it.
//
// The distribution (shares in percent; lists are drawn word by word, each as likely as its weight):
//   outcome          completed 80, isError 10, protocolError 10
//   create           none 55, else one word (70) or two (30) of CREATE; 3 in all: a task id that is nobody's
//   polls            0 to 5 of POLLS, of which two at most (none where the session is lost) say "unknown" or break
//                    the contract
//   result           0 to 2 of RESULT; 4 in all: lost or gone for ever
//   lists, answers   0 to 1 of LISTS and ANSWERS;  cancelReply: 0 to 1 of CANCEL_REPLY;  cancel: CANCEL
//   session          lost 12 (half right after the create, half later), then found 70
//   expiry           4, while the work still runs; never where the session is lost
//   questions        one 20, two 5; never where the session is lost or the task expires
//   hints            0 to 4 of HINTS, changing with each read;  lag 0 to 1 read;  stale 0 to 2 reads
// Not drawn, because one of them takes half a minute or more (hints of 1e12, hang, drip, and wrong-id, whose true reply
// is sought on the stream until the request times out), or ends in another operation's task (reused-id, and
// foreign-task in a list).

import type { JsonObject } from './json.js';

export type DrawnEnd = 'completed' | 'failed' | 'cancelled' | 'held';
/** How the requester may repeat or look up a submission; `keyed` where the server deduplicates its key. */
export const WAYS = ['keyed', 'session-list', 'repeatable', 'at-most-once'] as const;
export type Way = (typeof WAYS)[number];

/** Where every question is answered, nobody cancels, and budgets are longer than the faults. */
export interface Allowed {
  /** `held` alone: nothing can be known. Without `held`: the operation must be accepted. */
  readonly ends: readonly DrawnEnd[];
  readonly executions: readonly [least: number, most: number];
}

/** On 2026-07-28: null where only a wait budget would end it. */
export type ModernAllowed = Readonly<Record<Way, Allowed>> | null;

export interface DrawnPlan {
  readonly plan: JsonObject;
  /** How long the work takes: an argument of the call, not of its plan. */
  readonly durationMs: number;
  readonly allowed: Readonly<Record<Way, Allowed>>;
  readonly allowedOnModern: ModernAllowed;
  /** A cancel adds `held`, and `cancelled` too where this is true or nothing ran. */
  readonly isCancelHonoured: boolean;
}

type Weighted = readonly (readonly [word: string, weight: number])[];

/** The task is made, the reply says nothing. */
const SILENT: Weighted = [
  ['lose', 4],
  ['cut', 3],
  ['empty', 2],
  ['empty-object', 2],
  ['empty-result', 2],
  ['html', 1],
  ['wrong-json', 1],
  ['wrong-types', 1],
];
/** No task is made, and the reply does not prove it. */
const UNMADE: Weighted = [
  ['reset', 2],
  ['503:1', 1],
  ['504', 1],
  ['429:1', 1],
  ['error:-32603', 2],
];
const HARMLESS: Weighted = [
  ['delay:600', 2],
  ['duplicate', 2],
  ['reorder', 2],
];
const CREATE = [...SILENT, ...UNMADE, ...HARMLESS];
/** Said three times in a row, they end in a hold. */
const MISSES: Weighted = [
  ['error:-32602', 2],
  ['wrong-types', 1],
  ['foreign-task', 1],
  ['empty-result', 1],
  ['deep-json', 1],
];
const PASSING: Weighted = [
  ...UNMADE,
  ...HARMLESS,
  ['lose', 2],
  ['cut', 2],
  ['cut-resumable', 1],
  ['empty', 1],
  ['html', 1],
  ['wrong-json', 1],
];
const POLLS = [...PASSING, ...MISSES];
const RESULT: Weighted = [
  ...PASSING,
  ['other-bytes', 2],
  ['wrong-types', 1],
  ['foreign-task', 1],
  ['empty-result', 1],
  ['deep-json', 1],
];
const LISTS: Weighted = [...UNMADE, ...HARMLESS, ['lose', 2], ['cut', 1], ['empty', 1], ['wrong-types', 1]];
const ANSWERS: Weighted = [
  ['lose', 2],
  ['reset', 2],
  ['503:1', 1],
  ['delay:600', 1],
];
const CANCEL_REPLY: Weighted = [...UNMADE, ['lose', 3], ['cut', 1], ['delay:600', 1]];
const CANCEL: Weighted = [
  ['honour', 5],
  ['delay:500', 1],
  ['refuse', 1],
  ['ignore', 1],
  ['complete-first', 1],
  ['complete-after', 1],
  ['flip:1000', 1],
];
const HINTS = [2, 0, -1, 700, 1_500, null] as const;

export function drawPlan(seed: number): DrawnPlan {
  const dice = new Dice(seed);
  const outcome = dice.share([
    ['completed', 80],
    ['isError', 10],
    ['protocolError', 10],
  ]);
  const create = drawCreate(dice);
  const session = drawSession(dice);
  const isExpiring = session === null && dice.chance(0.04);
  const questions = session === null && !isExpiring ? drawQuestions(dice) : null;
  const { polls, lagReads } = drawPolls(dice, session === null ? 2 : 0);
  const result = drawResult(dice, outcome);
  const cancel = dice.share(CANCEL);
  const plan: JsonObject = {
    outcome,
    create,
    polls,
    result,
    lists: dice.words(LISTS, dice.upTo(1)),
    cancelReply: dice.words(CANCEL_REPLY, dice.upTo(1)),
    cancel,
    deduplicate: true,
    lagReads,
    staleReads: dice.upTo(2),
    pollIntervals: Array.from({ length: dice.upTo(4) }, () => HINTS[dice.upTo(HINTS.length - 1)] ?? null),
    ...(isExpiring ? { ttlMs: 2_500 } : {}),
    ...session,
    ...questions,
  };
  const durationMs = isExpiring ? 60_000 : 200 + dice.upTo(2_800);
  const reading = endsOfReading({ outcome, create, result, session, isExpiring });
  const allowed = Object.fromEntries(WAYS.map((way) => [way, allowedFor(way, create, session, reading)]));
  return {
    plan,
    durationMs,
    allowed: allowed as Record<Way, Allowed>,
    allowedOnModern: allowedOnModern({ outcome, create, result, isExpiring }, polls, lagReads),
    isCancelHonoured: /^(honour|delay|flip)/.test(cancel),
  };
}

function drawCreate(dice: Dice): readonly string[] {
  if (dice.chance(0.03)) return ['foreign-task'];
  return dice.chance(0.55) ? [] : dice.words(CREATE, dice.chance(0.7) ? 1 : 2);
}

function drawSession(dice: Dice): JsonObject | null {
  if (!dice.chance(0.12)) return null;
  const when = dice.chance(0.5)
    ? { session: 'lose-after-create' }
    : { sessionLossMs: 500 + dice.upTo(2_000) };
  const sessionGone = dice.chance(0.5) ? '404' : '400';
  return { ...when, sessionGone, taskAfterSession: dice.chance(0.7) ? 'found' : 'not-found' };
}

function drawQuestions(dice: Dice): JsonObject | null {
  if (!dice.chance(0.25)) return null;
  return {
    questions: dice.chance(0.8) ? 1 : 2,
    foreignQuestion: dice.chance(0.2),
    questionReplays: dice.upTo(1),
    heldAnswerReads: dice.upTo(3),
    answers: dice.words(ANSWERS, dice.upTo(1)),
  };
}

/** A lost session has cost all its misses: the one look through a fresh session must find the task. */
function drawPolls(dice: Dice, mostMisses: number) {
  const lagReads = Math.min(dice.upTo(1), mostMisses);
  let missesLeft = mostMisses - lagReads;
  const polls = dice.words(POLLS, dice.upTo(5)).map((word) => {
    const isMiss = MISSES.some(([miss]) => miss === word);
    if (isMiss) missesLeft -= 1;
    return isMiss && missesLeft < 0 ? 'ok' : word;
  });
  return { polls, lagReads };
}

function drawResult(dice: Dice, outcome: string): readonly string[] {
  // To a task that failed, -32602 is a thing that it may have said.
  if (dice.chance(0.04)) return [outcome === 'completed' && dice.chance(0.5) ? 'gone' : 'lost'];
  return dice.words(RESULT, dice.upTo(2));
}

interface Reading {
  readonly outcome: string;
  readonly create: readonly string[];
  readonly result: readonly string[];
  readonly session: JsonObject | null;
  readonly isExpiring: boolean;
}

/** What can come of it once the requester holds the reference. */
function endsOfReading({ outcome, create, result, session, isExpiring }: Reading): readonly DrawnEnd[] {
  const end = outcome === 'completed' ? 'completed' : 'failed';
  if (isExpiring || create.includes('foreign-task')) return ['held'];
  if (result.some((word) => word === 'lost' || word === 'gone')) return ['held'];
  if (session?.['session'] !== undefined) return session['taskAfterSession'] === 'found' ? [end] : ['held'];
  // Lost at some moment: before, between or after the end and its result.
  return session === null ? [end] : [end, 'held'];
}

/**
 * 2026-07-28 has no session to lose and no list to find anything in. The result rides in the status, so what it suffers is
 * met by looks: together with the polls it may be enough for a hold, and a result that is gone is a task that is gone.
 */
function allowedOnModern(
  { outcome, create, result, isExpiring }: Omit<Reading, 'session'>,
  polls: readonly string[],
  lagReads: number,
): ModernAllowed {
  if (result.includes('lost') && !isExpiring) return null;
  const isMiss = (word: string): boolean => MISSES.some(([miss]) => miss === word);
  const misses = lagReads + [...polls, ...result].filter(isMiss).length;
  const reading = endsOfReading({ outcome, create, result, session: null, isExpiring });
  const ends = misses >= 3 ? [...new Set([...reading, 'held' as const])] : reading;
  const allowed = WAYS.map((way) => {
    const like = way === 'session-list' ? 'at-most-once' : way;
    return [way, allowedFor(like, create, null, ends)] as const;
  });
  return Object.fromEntries(allowed) as Record<Way, Allowed>;
}

function allowedFor(
  way: Way,
  create: readonly string[],
  session: JsonObject | null,
  reading: readonly DrawnEnd[],
): Allowed {
  const isOf = (words: Weighted, word: string | undefined): boolean => words.some(([one]) => one === word);
  const [first] = create;
  const isAmbiguous = isOf(SILENT, first) || isOf(UNMADE, first);
  const once: readonly [number, number] = isOf(UNMADE, first) ? [0, 0] : [1, 1];
  switch (way) {
    case 'keyed':
      return { ends: reading, executions: [1, 1] };
    case 'repeatable': {
      // Words after one that names the task are never played.
      const failing = create.findIndex((word) => !isOf(SILENT, word) && !isOf(UNMADE, word));
      const played = failing < 0 ? create : create.slice(0, failing);
      const silent = played.filter((word) => isOf(SILENT, word)).length;
      return { ends: reading, executions: [silent + 1, silent + 1] };
    }
    case 'session-list':
      if (isOf(UNMADE, first)) return { ends: ['held'], executions: once };
      // The list is bound to the session; lost with it, or at some moment beside it.
      if (isAmbiguous && session !== null) {
        const ends =
          session['session'] === undefined ? [...new Set([...reading, 'held' as const])] : ['held' as const];
        return { ends, executions: once };
      }
      return { ends: reading, executions: once };
    case 'at-most-once':
      return { ends: isAmbiguous ? ['held'] : reading, executions: once };
  }
}

/** mulberry32: the same numbers on every machine. */
class Dice {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
    // Seeds that differ little must not begin alike.
    for (let n = 0; n < 4; n += 1) this.next();
  }

  private next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  /** A whole number from 0 to `most`. */
  upTo(most: number): number {
    return Math.floor(this.next() * (most + 1));
  }

  share(words: Weighted): string {
    const total = words.reduce((sum, [, weight]) => sum + weight, 0);
    let left = this.next() * total;
    const drawn = words.find(([, weight]) => (left -= weight) < 0);
    return (drawn ?? words[0])?.[0] ?? 'ok';
  }

  words(words: Weighted, count: number): readonly string[] {
    return Array.from({ length: count }, () => this.share(words));
  }
}
