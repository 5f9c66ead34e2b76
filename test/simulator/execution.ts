// Owns one piece of remote work: how it goes on by itself, asks, is answered, is cancelled, ends and is forgotten.
// Must never know who looks: its course is the truth that receipts are compared with.

import { createHash } from 'node:crypto';
import type { Phase, ServerPlan } from './plan.js';

export interface Asked {
  readonly jsonRpcId: number;
  readonly askedAt: number;
  /** The reply that the server took. */
  taken: string | null;
  closedAt: number | null;
  /** Looks that still show it after it was answered. */
  lingers: number;
  handedOut: number;
}

export type RemoteEnd = 'completed' | 'failed' | 'cancelled';

const SECOND_MS = 1_000;
const CANCEL_LAG_MS = { soon: 3 * SECOND_MS, late: 300 * SECOND_MS } as const;

export class Execution {
  readonly remoteId: string;
  readonly sessionId: string;
  /** The key it was submitted under. */
  readonly key: string;
  /** Sessions that may see it, where a server keeps its tasks to their sessions. */
  readonly seenFrom: Set<string>;
  readonly startedAt: number;
  readonly questions: Asked[] = [];
  readonly resultText: string;
  ended: RemoteEnd | null = null;
  endedAt: number | null = null;
  isHealed = false;
  readonly #plan: ServerPlan;
  #phase = 0;
  #since: number;
  #cancelledFrom = Number.POSITIVE_INFINITY;

  constructor(
    remoteId: string,
    from: { sessionId: string; key: string },
    startedAt: number,
    plan: ServerPlan,
  ) {
    this.remoteId = remoteId;
    this.sessionId = from.sessionId;
    this.key = from.key;
    this.seenFrom = new Set([from.sessionId]);
    this.startedAt = startedAt;
    this.#since = startedAt;
    this.#plan = plan;
    const text = { content: [{ type: 'text', text: `done by ${remoteId}` }], isError: this.isToolError };
    this.resultText = JSON.stringify(text);
  }

  get isToolError(): boolean {
    return this.#plan.isToolError || this.#plan.endsAs === 'failed';
  }

  get resultDigest(): string {
    return createHash('sha256').update(this.resultText).digest('hex');
  }

  get expiresAt(): number | null {
    return this.#plan.ttlMs === null ? null : this.startedAt + this.#plan.ttlMs;
  }

  isForgotten(nowMs: number): boolean {
    return this.expiresAt !== null && nowMs >= this.expiresAt;
  }

  /** Lets time work on it. */
  catchUp(nowMs: number): void {
    while (this.ended === null) {
      const goesOnAt = this.#goesOnAt(this.#plan.phases[this.#phase], nowMs);
      if (this.#cancelledFrom <= Math.min(goesOnAt, nowMs))
        return this.endAs('cancelled', this.#cancelledFrom);
      if (goesOnAt > nowMs) return;
      this.#since = goesOnAt;
      if (this.#phase < this.#plan.phases.length) this.#phase += 1;
      else this.endAs(this.#naturalEnd, goesOnAt);
    }
  }

  get #naturalEnd(): RemoteEnd {
    return this.#plan.endsAs === 'never' ? 'completed' : this.#plan.endsAs;
  }

  #goesOnAt(phase: Phase | undefined, nowMs: number): number {
    if (!phase)
      return this.#plan.endsAs === 'never' && !this.isHealed ? Number.POSITIVE_INFINITY : this.#since;
    if (phase.kind === 'work') return this.#since + phase.forMs;
    const question = this.#questionOf(phase);
    if (question.closedAt !== null) return question.closedAt;
    const patienceMs = this.isHealed ? 60 * SECOND_MS : (phase.givesUpAfterMs ?? Number.POSITIVE_INFINITY);
    const givesUpAt = Math.max(question.askedAt + patienceMs, this.#since);
    if (givesUpAt <= nowMs) question.closedAt = givesUpAt;
    return givesUpAt;
  }

  #questionOf(phase: Extract<Phase, { kind: 'ask' }>): Asked {
    const index = this.#plan.phases.slice(0, this.#phase).filter(({ kind }) => kind === 'ask').length;
    const known = this.questions[index];
    if (known) return known;
    const { lingers } = phase;
    const asked = {
      jsonRpcId: index,
      askedAt: this.#since,
      taken: null,
      closedAt: null,
      lingers,
      handedOut: 0,
    };
    this.questions.push(asked);
    return asked;
  }

  /** What waits for a reply now. */
  openQuestion(): Asked | null {
    if (this.ended !== null) return null;
    return this.questions.find((question) => question.closedAt === null) ?? null;
  }

  /** An answered question that some replica still shows as open. */
  get isLingering(): boolean {
    return this.ended === null && this.questions.some(({ taken, lingers }) => taken !== null && lingers > 0);
  }

  take(question: Asked, reply: string, nowMs: number): void {
    question.taken = reply;
    question.closedAt = nowMs;
    this.catchUp(nowMs);
  }

  cancelSoon(nowMs: number, honours: ServerPlan['honours']): void {
    if (honours !== 'never')
      this.#cancelledFrom = Math.min(this.#cancelledFrom, nowMs + CANCEL_LAG_MS[honours]);
  }

  endAs(end: RemoteEnd, atMs: number): void {
    this.ended = end;
    this.endedAt = atMs;
  }
}
