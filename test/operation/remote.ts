// Owns the far side of the model world: one server with a character, and the one task it may hold.
// Must never know the store or the core.

import type { CancelReply, FetchFinding, ObserveFinding } from '../../operation/facts.js';
import { SUBMISSION_POLICIES, type SubmissionPolicyName } from '../../operation/names.js';
import type { InputRound } from '../../operation/row.js';
import type { Random } from './random.js';
import { HOUR_MS, MINUTE_MS, sampleRound } from './sample-row.js';

export type SubmitReply =
  | 'created'
  | 'answered'
  | 'asked'
  | 'refused'
  | 'notSent'
  | 'open'
  | 'openButCreated'
  | 'lost'
  | 'vanished';

const NEVER = Number.POSITIVE_INFINITY;

export class Remote {
  readonly submissionPolicy: SubmissionPolicyName;
  readonly provesAbsence: boolean;
  readonly ignoresCancel: boolean;
  endsAs: 'completed' | 'failed' | 'cancelled';
  created = false;
  endedAt = NEVER;
  expiresAt: number | null = null;
  forgottenAt = NEVER;
  gaveUpAt = NEVER;
  readonly #random: Random;
  readonly #durationMs: number;
  readonly #canCancel: boolean;
  readonly #lookFaultShare: number;
  readonly #favouriteFault: ObserveFinding;
  #roundsLeft: number;
  #nextAskAt = NEVER;
  #asked = 0;

  constructor(random: Random) {
    this.#random = random;
    this.submissionPolicy = random.pick(SUBMISSION_POLICIES);
    this.provesAbsence = random.chance(0.6);
    this.ignoresCancel = random.chance(0.3);
    this.endsAs = random.pick(['completed', 'completed', 'failed', 'cancelled']);
    this.#durationMs = random.pick([5_000, 8 * MINUTE_MS, 5 * HOUR_MS, NEVER]);
    this.#canCancel = random.chance(0.7);
    this.#lookFaultShare = random.pick([0, 0.1, 0.6]);
    this.#favouriteFault = random.pick(['notFound', 'sessionLost', 'violation']);
    this.#roundsLeft = random.pick([0, 0, 1, 3]);
  }

  submitReply(): SubmitReply {
    return this.#random.pick<SubmitReply>([
      ...(['created', 'created', 'created', 'created', 'lost', 'lost'] as const),
      ...(['answered', 'asked', 'refused', 'notSent', 'open', 'openButCreated', 'vanished'] as const),
    ]);
  }

  create(nowMs: number): void {
    if (this.created) return;
    this.created = true;
    this.endedAt = nowMs + this.#durationMs;
    if (this.#roundsLeft > 0) this.#nextAskAt = nowMs + 2_000;
    if (this.#random.chance(0.3)) this.expiresAt = nowMs + this.#random.pick([20 * MINUTE_MS, 30 * HOUR_MS]);
    if (this.expiresAt !== null && this.#random.chance(0.7)) this.forgottenAt = this.expiresAt;
  }

  endAt(nowMs: number, as = this.endsAs): void {
    this.created = true;
    if (this.endedAt <= nowMs) return;
    this.endedAt = nowMs;
    this.endsAs = as;
  }

  lookFault(): ObserveFinding | null {
    if (!this.#random.chance(this.#lookFaultShare)) return null;
    return this.#random.chance(0.7)
      ? this.#favouriteFault
      : this.#random.pick(['notFound', 'sessionLost', 'violation']);
  }

  /** When a look would next show news: an end, a question, or that the open questions are over. */
  nextEventAt(openRoundIds: readonly string[], nowMs: number): number {
    const isAsked = openRoundIds.length > 0;
    return Math.max(nowMs, Math.min(this.endedAt, isAsked ? this.gaveUpAt : this.#nextAskAt));
  }

  ask(nowMs: number): readonly InputRound[] {
    const count = this.#random.chance(0.3) ? 2 : 1;
    this.#roundsLeft -= 1;
    this.#nextAskAt = NEVER;
    this.gaveUpAt = this.#random.chance(0.3) ? nowMs + this.#random.below(2 * HOUR_MS) : NEVER;
    return Array.from({ length: count }, () => {
      this.#asked += 1;
      return sampleRound(`round-${this.#asked}`, { openedAt: nowMs, deadlineAt: nowMs + HOUR_MS });
    });
  }

  /** Before there is any work; none of it knows that it was asked. */
  askBeforeWork(nowMs: number): InputRound {
    this.#asked += 1;
    return sampleRound(`round-${this.#asked}`, { openedAt: nowMs, deadlineAt: nowMs + HOUR_MS });
  }

  movedOn(): void {
    this.gaveUpAt = NEVER;
    if (this.#roundsLeft > 0) this.#nextAskAt = 0;
  }

  cancelReply(): CancelReply {
    if (!this.#canCancel) return this.#random.chance(0.8) ? 'unsupported' : 'lost';
    return this.#random.pick(['confirmed', 'acknowledged', 'acknowledged', 'refused', 'lost']);
  }

  hearCancel(nowMs: number): void {
    if (!this.ignoresCancel) this.endAt(nowMs + 3_000, this.#random.chance(0.8) ? 'cancelled' : this.endsAs);
  }

  fetchReply(): FetchFinding {
    return this.#random.pick(['stored', 'stored', 'notYet', 'notYet', 'lost', 'tooLarge']);
  }

  /** The server is well again: it forgets nothing more and its work ends. */
  heal(nowMs: number): void {
    if (this.created && this.endedAt === NEVER) this.endedAt = nowMs + 3 * HOUR_MS;
    this.forgottenAt = NEVER;
  }
}
