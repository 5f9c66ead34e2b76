// Owns what a simulated tool server will do to one operation, written down before it begins.
// Must never depend on what the product does: each list is used up call by call, then the server is well.

import type { OperationPolicy } from '../../operation/row.js';
import type { Random } from '../operation/random.js';

/** `lost`: started, the reply never came. `vanished`: never started, nobody says so. `late`: starts long after. */
export type CreateReply =
  | 'ok'
  | 'answered'
  | 'terminal'
  | 'lost'
  | 'vanished'
  | 'late'
  | 'refused'
  | 'notSent'
  | 'notSentForAWhile';
export type NegotiateReply = 'ok' | 'notSent' | 'transient' | 'violation' | 'unknownTool' | 'unsupported';
export type LookReply =
  | 'ok'
  | 'transient'
  | 'retryAfter'
  | 'notFound'
  | 'sessionLost'
  | 'violation'
  | 'stale'
  | 'otherWord';
export type FindReply = 'ok' | 'transient' | 'cannotTell';
/** `lostBefore`: never arrived; `lostAfter`: taken, the acknowledgement never came. */
export type AnswerReply = 'ok' | 'lostBefore' | 'lostAfter' | 'refused' | 'notNow';
export type CancelReply =
  | 'confirmed'
  | 'acknowledged'
  | 'refused'
  | 'unsupported'
  | 'lostBefore'
  | 'lostAfter'
  | 'notFound';
export type FetchReply = 'ok' | 'notYet' | 'transient' | 'retryAfter' | 'violation' | 'sessionLost';

export type Phase =
  | { readonly kind: 'work'; readonly forMs: number }
  | {
      readonly kind: 'ask';
      /** The server goes on by itself after so long; null = it waits for ever. */
      readonly givesUpAfterMs: number | null;
      /** So many looks after the answer still show the question (eventual consistency). */
      readonly lingers: number;
    };

export interface ServerPlan {
  readonly contract: 'mcp/2025-11-25' | 'synchronous';
  readonly canList: boolean;
  /** The same key never starts a second piece of work. */
  readonly deduplicates: boolean;
  /** Its look-up tool says "absent" and means it, of all that has arrived by then. */
  readonly provesAbsence: boolean;
  readonly canReplayQuestions: boolean;
  readonly tasksOutliveSessions: boolean;
  readonly policy: Partial<OperationPolicy>;
  readonly negotiations: readonly NegotiateReply[];
  readonly creates: readonly CreateReply[];
  readonly phases: readonly Phase[];
  readonly endsAs: 'completed' | 'failed' | 'cancelled' | 'never';
  readonly isToolError: boolean;
  /** Null = for ever. After it everything about the task is forgotten. */
  readonly ttlMs: number | null;
  readonly hintsMs: readonly (number | null)[];
  readonly looks: readonly LookReply[];
  readonly finds: readonly FindReply[];
  readonly answers: readonly AnswerReply[];
  readonly cancels: readonly CancelReply[];
  /** What an acknowledged cancel comes to. */
  readonly honours: 'soon' | 'late' | 'never';
  readonly fetches: readonly FetchReply[];
  readonly isResultLost: boolean;
  readonly latencyMs: number;
  readonly retryAfterMs: number;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

export const QUIET_PLAN: ServerPlan = {
  contract: 'mcp/2025-11-25',
  canList: false,
  deduplicates: false,
  provesAbsence: false,
  canReplayQuestions: true,
  tasksOutliveSessions: true,
  policy: {},
  negotiations: [],
  creates: [],
  phases: [{ kind: 'work', forMs: 12 * SECOND_MS }],
  endsAs: 'completed',
  isToolError: false,
  ttlMs: null,
  hintsMs: [5 * SECOND_MS],
  looks: [],
  finds: [],
  answers: [],
  cancels: [],
  honours: 'soon',
  fetches: [],
  isResultLost: false,
  latencyMs: 20,
  retryAfterMs: 90 * SECOND_MS,
};

export function seededPlan(random: Random): ServerPlan {
  const some = <T>(share: number, most: number, kinds: readonly T[], quiet: T): T[] =>
    Array.from({ length: random.chance(share) ? 1 + random.below(most) : 0 }, () =>
      random.chance(0.75) ? random.pick(kinds) : quiet,
    );
  const isPlain = random.chance(0.06);
  return {
    ...submission(random),
    contract: isPlain ? 'synchronous' : 'mcp/2025-11-25',
    canList: random.chance(0.5),
    canReplayQuestions: random.chance(0.7),
    tasksOutliveSessions: random.chance(0.7),
    negotiations: some(0.15, 3, ['notSent', 'transient', 'violation', 'unknownTool', 'unsupported'], 'ok'),
    creates: creates(random, isPlain),
    phases: phases(random),
    endsAs: random.pick(['completed', 'completed', 'completed', 'failed', 'cancelled', 'never']),
    isToolError: random.chance(0.2),
    ttlMs: random.chance(0.2) ? random.pick([30 * SECOND_MS, 5 * MINUTE_MS, 40 * MINUTE_MS]) : null,
    hintsMs: random.pick<(number | null)[]>([
      [20_000],
      [20_000],
      [30_000],
      [null],
      [2, 25_000, 40_000],
      [-1, 30_000],
      [1e12],
    ]),
    looks: some(
      0.4,
      6,
      ['transient', 'retryAfter', 'notFound', 'sessionLost', 'violation', 'stale', 'otherWord'],
      'ok',
    ),
    finds: some(0.4, 4, ['transient', 'cannotTell'], 'ok'),
    answers: some(0.5, 4, ['lostBefore', 'lostAfter', 'refused', 'notNow'], 'ok'),
    cancels: some(
      0.7,
      4,
      ['acknowledged', 'refused', 'unsupported', 'lostBefore', 'lostAfter', 'notFound'],
      'confirmed',
    ),
    honours: random.pick(['soon', 'late', 'never']),
    fetches: some(0.4, 5, ['notYet', 'transient', 'retryAfter', 'violation', 'sessionLost'], 'ok'),
    isResultLost: random.chance(0.08),
    latencyMs: random.pick([1, 50, 900]),
    retryAfterMs: random.pick([2 * SECOND_MS, 90 * SECOND_MS, 2 * 60 * MINUTE_MS]),
  };
}

/** Longer than bytes stay on their way (`late`): before it "absent" proves nothing. */
export const LOOK_UP_TOOL = {
  keyPlace: 'meta',
  tool: 'find',
  argument: 'key',
  idPointer: '/id',
  provesAbsence: true,
  settleAfterMs: 60 * SECOND_MS,
} as const;

function submission(random: Random): Pick<ServerPlan, 'policy' | 'deduplicates' | 'provesAbsence'> {
  const budgets = {
    waitBudgetMs: random.pick([24 * 60 * MINUTE_MS, 24 * 60 * MINUTE_MS, 6 * MINUTE_MS]),
    inputBudgetMs: random.pick([60 * MINUTE_MS, 4 * MINUTE_MS]),
    onUnresolved: random.chance(0.1)
      ? ({ kind: 'closeAfter', afterMs: 3 * MINUTE_MS } as const)
      : ({ kind: 'hold' } as const),
  };
  const submissionPolicy = random.pick([
    null,
    null,
    'key-argument',
    'key-meta',
    'repeatable',
    'at-most-once',
    'session-list',
    'lookup-tool',
  ] as const);
  const isKeyed = submissionPolicy === 'key-argument' || submissionPolicy === 'key-meta';
  const sideEffects = submissionPolicy === 'repeatable' ? 'none' : 'unknown';
  const isLookedUp = submissionPolicy === 'lookup-tool';
  const keyName = isKeyed || isLookedUp ? 'key' : null;
  const lookUp = isLookedUp ? { lookUp: LOOK_UP_TOOL } : {};
  const policy = { ...budgets, submissionPolicy, sideEffects, keyName, ...lookUp } as const;
  return { policy, deduplicates: isKeyed, provesAbsence: isLookedUp };
}

function creates(random: Random, isPlain: boolean): readonly CreateReply[] {
  if (random.chance(0.45)) return isPlain ? ['answered', 'answered', 'answered'] : [];
  const kinds: readonly CreateReply[] = isPlain
    ? ['answered', 'lost', 'vanished', 'refused', 'notSent', 'late']
    : [
        'ok',
        'ok',
        'answered',
        'terminal',
        'lost',
        'lost',
        'vanished',
        'late',
        'refused',
        'notSent',
        'notSentForAWhile',
      ];
  return Array.from({ length: isPlain ? 3 : 1 + random.below(3) }, () => random.pick(kinds));
}

function phases(random: Random): readonly Phase[] {
  const work = (): Phase => ({
    kind: 'work',
    forMs: random.pick([0, 3 * SECOND_MS, 40 * SECOND_MS, 2 * MINUTE_MS]),
  });
  const ask = (): Phase => ({
    kind: 'ask',
    givesUpAfterMs: random.chance(0.3) ? random.pick([10 * SECOND_MS, 3 * MINUTE_MS]) : null,
    lingers: random.pick([0, 0, 1, 2]),
  });
  const asked = Array.from({ length: random.pick([0, 0, 0, 1, 1, 2]) }, () => [ask(), work()]);
  return [work(), ...asked.flat()];
}
