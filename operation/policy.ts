// Owns the rules that both the fold and the store need: legs, rounds, deadlines, intervals.
// Must never read a clock or the store; everything comes in as arguments.

import { LIMITS } from './limits.js';
import type { SubmissionPolicyName } from './names.js';
import type {
  InputRound,
  LegOutcome,
  LookUpSettings,
  OperationPolicy,
  RowSnapshot,
  SubmissionLeg,
} from './row.js';
import type { ToolOperation } from './record.js';

/** Bytes of this leg may be on the wire and nobody knows what became of them. */
export function isUnsettled(leg: SubmissionLeg): boolean {
  return leg.outcome === 'open' || leg.outcome === 'ambiguous';
}

/** Bytes of this leg may have reached the server, whatever came back. */
export function mayHaveBeenSent(leg: SubmissionLeg): boolean {
  return leg.outcome !== 'notSent';
}

export function unsettledLegs(legs: readonly SubmissionLeg[]): readonly SubmissionLeg[] {
  return legs.filter(isUnsettled);
}

type Legs = Pick<RowSnapshot, 'legs' | 'provedAbsentAtLeg'>;

/** Every leg in doubt was looked for and is not there. */
export function isAbsenceProved({ legs, provedAbsentAtLeg }: Legs): boolean {
  return provedAbsentAtLeg !== null && unsettledLegs(legs).every(({ leg }) => leg <= provedAbsentAtLeg);
}

/**
 * Whether a look sent at `lookedAt` that saw nothing proves that nothing was started: every leg was closed by then, and
 * since the last one closed `settleAfter` had passed. The store asks this inside the transaction: a look that came home
 * late says nothing about a leg that was claimed after it.
 */
export function mayProveAbsence(row: Pick<RowSnapshot, 'legs' | 'policy'>, lookedAt: number): boolean {
  const settleAfterMs = row.policy.lookUp?.settleAfterMs ?? 0;
  return row.legs.every((leg) => leg.closedAt !== null && leg.closedAt + settleAfterMs <= lookedAt);
}

/** A look-up that sends nothing again: it goes on where no further leg may be claimed. */
export function looksWithoutSending(policy: SubmissionPolicyName | null): boolean {
  return policy === 'session-list' || policy === 'operation-list' || policy === 'lookup-tool';
}

/** Where the submission key rides, or null where none is sent. */
export function keyPlaceOf(
  policy: SubmissionPolicyName | null,
  lookUp: LookUpSettings | undefined,
): 'argument' | 'meta' | null {
  if (policy === 'key-argument') return 'argument';
  if (policy === 'key-meta') return 'meta';
  return policy === 'lookup-tool' ? (lookUp?.keyPlace ?? null) : null;
}

/** Each leg that was asked ended one request and began another: what was tried before says nothing of the tries since. */
function triesSinceAsked(legs: readonly SubmissionLeg[]): readonly SubmissionLeg[] {
  return legs.slice(legs.findLastIndex(({ outcome }) => outcome === 'asked') + 1);
}

/** Sent again often enough, where nothing tells one time from another. */
export function isTriedEnough(legs: readonly SubmissionLeg[]): boolean {
  return triesSinceAsked(legs).length >= LIMITS.submissionLegs;
}

/**
 * Whether a request id may be sent again at `at` (AIP-155): the server remembers it for a while only, and then the same id
 * starts new work. Counted from the first leg in doubt, the earliest that the server may have begun to remember.
 */
export function isRequestIdAlive(
  legs: readonly SubmissionLeg[],
  policy: Pick<OperationPolicy, 'requestIdWindowMs'> | null,
  at: number,
): boolean {
  const sinceAt = Math.min(...unsettledLegs(legs).map((leg) => leg.claimedAt));
  const windowMs = policy?.requestIdWindowMs ?? LIMITS.requestIdWindowMs;
  return at < sinceAt + windowMs * LIMITS.requestIdUsableShare;
}

/**
 * `asked`: questions wait for their replies, and the next leg takes them along. `spent`: absence is proved and a further
 * leg would be safe, but there were enough of them.
 */
export type ClaimRuling = 'granted' | 'cancelled' | 'settled' | 'asked' | 'ambiguous' | 'spent';

/**
 * Whether a further leg may be claimed (DESIGN section 5). The store asks this inside the claiming transaction,
 * so a zombie attempt can never claim what its operation has moved past. Who does not say when it is (`at`) is granted
 * nothing that depends on the time.
 */
export function rulingOnClaim(row: RowSnapshot, at = Number.POSITIVE_INFINITY): ClaimRuling {
  if (row.receipt || row.terminalObservation || row.remoteReference || row.rejection) return 'settled';
  if (row.cancelGeneration > 0) return 'cancelled';
  if (row.hasForgotten) return 'ambiguous';
  if (openRounds(row.rounds).length > 0) return 'asked';
  const unsettled = unsettledLegs(row.legs);
  if (unsettled.length === 0) return 'granted';
  if (isAbsenceProved(row)) {
    return isTriedEnough(row.legs.filter(mayHaveBeenSent)) ? 'spent' : 'granted';
  }
  if (unsettled.some((leg) => leg.outcome === 'open')) return 'ambiguous';
  switch (row.submissionPolicy) {
    case 'key-argument':
    case 'key-meta':
      return 'granted';
    case 'request-id':
      return isRequestIdAlive(row.legs, row.policy, at) ? 'granted' : 'ambiguous';
    case 'repeatable':
      return isTriedEnough(row.legs) ? 'ambiguous' : 'granted';
    default:
      return 'ambiguous';
  }
}

/** Legs that ended, and started nothing. */
const STARTED_NOTHING: readonly LegOutcome[] = ['notSent', 'refused', 'asked'];

/**
 * A refusal proves that nothing started only where no other leg is in doubt, or proved to be absent; and a late one says
 * nothing of the questions that a later leg has brought.
 */
export function mayReject(row: Legs & Pick<RowSnapshot, 'rounds'>): boolean {
  if (openRounds(row.rounds).length > 0) return false;
  return row.legs.every(
    (leg) => STARTED_NOTHING.includes(leg.outcome) || (isUnsettled(leg) && isAbsenceProved(row)),
  );
}

/** The server still waits for this round as far as we know. */
export function isRoundOpen(round: InputRound): boolean {
  return round.closedAt === null && (round.reply === null || round.reply.deliveredAt === null);
}

export function openRounds(rounds: readonly InputRound[]): readonly InputRound[] {
  return rounds.filter(isRoundOpen);
}

/** Time (ms) spent waiting for people: the union of the rounds' spans, which no budget counts. */
export function humanTimeMs(rounds: readonly InputRound[]): number {
  const spans = rounds
    .map((round) => ({
      from: round.openedAt,
      to: round.reply?.deliveredAt ?? round.closedAt ?? round.openedAt,
    }))
    .sort((a, b) => a.from - b.from);
  let total = 0;
  let coveredTo = Number.NEGATIVE_INFINITY;
  for (const span of spans) {
    const from = Math.max(span.from, coveredTo);
    if (span.to > from) total += span.to - from;
    coveredTo = Math.max(coveredTo, span.to);
  }
  return total;
}

/** When the wait budget ends; null before the policy is known. Human time and held time do not count. */
export function waitDeadlineAt(
  record: Pick<ToolOperation, 'policy' | 'createdAt' | 'rounds' | 'heldMs'>,
): number | null {
  if (!record.policy) return null;
  return record.createdAt + record.policy.waitBudgetMs + humanTimeMs(record.rounds) + record.heldMs;
}

/** The generation of the cancel asked for last; that of the first is 1. */
export function askedGeneration({ cancelAsked, cancelGeneration }: Cancelling): number {
  return cancelAsked ? (cancelAsked.generation ?? 1) : cancelGeneration;
}

/** The row holds the cancel that was asked for last: what it says of the delivery is about that one. */
export function isCancelRaised(record: Cancelling): boolean {
  return record.cancelGeneration >= askedGeneration(record);
}

type Cancelling = Pick<ToolOperation, 'cancelAsked' | 'cancelGeneration'>;

/** The server's hint in ms, clamped; seconds in a milliseconds field, 0, -1, NaN and 1e12 are all seen in the wild. */
export function clampIntervalMs(hintMs: number | null | undefined): number {
  if (typeof hintMs !== 'number' || !Number.isFinite(hintMs)) return LIMITS.pollDefaultMs;
  return Math.min(Math.max(hintMs, LIMITS.pollFloorMs), LIMITS.pollCeilingMs);
}

/** Gap to the next poll: never under the interval or Retry-After; jitter only adds. `random` is in [0, 1). */
export function pollGapMs(intervalMs: number, retryAfterMs: number | null, random: number): number {
  const floorMs = Math.max(intervalMs, Math.min(retryAfterMs ?? 0, LIMITS.retryAfterCeilingMs));
  return Math.ceil(floorMs * (1 + LIMITS.pollJitterShare * random));
}

/** Doubling back-off, `attempts` counted from 1. */
export function backOffMs(firstMs: number, ceilingMs: number, attempts: number): number {
  return Math.min(firstMs * 2 ** Math.min(Math.max(attempts - 1, 0), 30), ceilingMs);
}

/** Never ends in half a character: canonical JSON has no word for one, and a receipt would never be written. */
export function clip(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const cut = text.slice(0, chars - 1);
  return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}

/** What the server publishes and the configuration says, as far as it decides the submission policy. */
export interface PolicyGrounds {
  readonly configured: SubmissionPolicyName | null;
  readonly sideEffects: 'none' | 'unknown';
  readonly trustAnnotations: boolean;
  readonly readOnly: boolean;
  readonly idempotent: boolean;
  /** The contract can list the operation's own submissions. */
  readonly canList: boolean;
  /** What the contract offers for this very tool by declaration; absent where nothing is. */
  readonly offered?: 'request-id' | 'operation-list' | undefined;
}

/** DESIGN section 5: configured, else a request id, else repeat-safe by declaration, else a list, else never again. */
export function decideSubmissionPolicy(grounds: PolicyGrounds): SubmissionPolicyName {
  if (grounds.configured === 'session-list' && !grounds.canList) return 'at-most-once';
  if (grounds.configured) return grounds.configured;
  // The server itself tells a repeat from a new request: better than running twice what may run twice.
  if (grounds.offered === 'request-id') return grounds.offered;
  const trusted = grounds.trustAnnotations && (grounds.readOnly || grounds.idempotent);
  if (grounds.sideEffects === 'none' || trusted) return 'repeatable';
  return grounds.offered ?? (grounds.canList ? 'session-list' : 'at-most-once');
}
