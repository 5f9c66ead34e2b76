// Owns what happens to one simulated operation beside its server: people, messages, crashes, resets, other engines.
// Must never depend on what the product does; a script is written down before its world begins.

import { Random } from '../operation/random.js';
import { QUIET_PLAN, seededPlan, type ServerPlan } from './plan.js';

export interface PlannedReply {
  /** Which question, in the order in which the store came to hold them. */
  readonly round: number;
  readonly afterMs: number;
  readonly content: { readonly year: number | string } | null;
  readonly action: 'accept' | 'decline';
  readonly by: 'update' | 'signal';
}

export type Thaw =
  /** When the attempt after it has ended. */
  | { readonly kind: 'nextEnd' }
  | { readonly kind: 'receipt' }
  | { readonly kind: 'after'; readonly delayMs: number };

export type Blow =
  /** The worker process dies, with every attempt in it. */
  | { readonly kind: 'kill' }
  /** The attempt stops here, is given up, and goes on late. */
  | { readonly kind: 'zombie'; readonly thaw: Thaw }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'nativeCancel' }
  | { readonly kind: 'terminate' }
  /** `share` of the last run's workflow tasks is kept. */
  | { readonly kind: 'reset'; readonly share: number }
  /** Another engine starts a run of the same operation beside the first. */
  | { readonly kind: 'secondEngine' }
  /** Workers are stopped with notice. */
  | { readonly kind: 'shutDown' }
  /** A worker without its cache rebuilds the run from its history. */
  | { readonly kind: 'evict' }
  | { readonly kind: 'operator'; readonly word: OperatorWord };

export type OperatorWord = 'close' | 'neverCreated' | 'found' | 'ended';

export interface PlannedBlow {
  readonly when: { readonly point: number } | { readonly atMs: number };
  readonly blow: Blow;
}

export interface Script {
  readonly name: string;
  /** Of the engine's lags and the bodies' jitter. */
  readonly seed: number;
  readonly plan: ServerPlan;
  readonly replies: readonly PlannedReply[];
  readonly blows: readonly PlannedBlow[];
  /** How long the faults last (ms); then everything is well. */
  readonly faultyMs: number;
}

const MINUTE_MS = 60_000;

export function quietScript(
  name: string,
  parts: Partial<Script> = {},
  plan: Partial<ServerPlan> = {},
): Script {
  return {
    name,
    seed: 1,
    replies: [],
    blows: [],
    faultyMs: 20 * MINUTE_MS,
    ...parts,
    plan: { ...QUIET_PLAN, ...plan },
  };
}

export function seededScript(seed: number): Script {
  const random = new Random(seed);
  const plan = seededPlan(random);
  return {
    name: `seed ${seed}`,
    seed,
    plan,
    replies: replies(random),
    blows: Array.from({ length: random.pick([0, 1, 1, 2, 3, 4]) }, () => plannedBlow(random)),
    faultyMs: random.pick([5 * MINUTE_MS, 12 * MINUTE_MS]),
  };
}

function replies(random: Random): readonly PlannedReply[] {
  const one = (round: number): PlannedReply => ({
    round,
    afterMs: random.pick([50, 5_000, 20_000, 4 * MINUTE_MS]) + random.below(2_000),
    content: random.chance(0.15) ? { year: 'not a number' } : { year: random.pick([1999, 2024]) },
    action: 'accept',
    by: random.pick(['update', 'signal']),
  });
  const decline = (round: number): PlannedReply => ({ ...one(round), content: null, action: 'decline' });
  return [0, 1].flatMap((round) => {
    const people = random.pick([0, 1, 1, 1, 2, 3]);
    return Array.from({ length: people }, () => (random.chance(0.15) ? decline(round) : one(round)));
  });
}

function plannedBlow(random: Random): PlannedBlow {
  const when = random.chance(0.75)
    ? { point: random.below(random.pick([20, 60, 120])) }
    : { atMs: random.below(random.pick([2_000, 60_000, 10 * MINUTE_MS])) };
  return { when, blow: seededBlow(random) };
}

function seededBlow(random: Random): Blow {
  const thaw = random.pick<Thaw>([
    { kind: 'nextEnd' },
    { kind: 'receipt' },
    { kind: 'after', delayMs: random.pick([100, 3_000, 7_000, MINUTE_MS, 12 * MINUTE_MS]) },
  ]);
  return random.pick<Blow>([
    { kind: 'kill' },
    { kind: 'kill' },
    { kind: 'zombie', thaw },
    { kind: 'zombie', thaw },
    { kind: 'zombie', thaw },
    { kind: 'cancel' },
    { kind: 'cancel' },
    { kind: random.pick(['nativeCancel', 'shutDown', 'evict']) },
    { kind: 'terminate' },
    { kind: 'reset', share: random.next() },
    { kind: 'reset', share: random.next() },
    { kind: 'secondEngine' },
    { kind: 'operator', word: random.pick(['close', 'neverCreated', 'found', 'ended', 'ended']) },
  ]);
}
