// Owns one server's token in this worker: who fetches it, when it is fetched again, and that it is fetched once for all
// who wait. Must never write it anywhere.

import { backOffMs } from '../../operation/policy.js';
import { CredentialFault } from './credential-fault.js';

export interface Token {
  readonly value: string;
  /** null: until the server refuses it. */
  readonly expiresAt: number | null;
}

interface Held extends Token {
  readonly obtainedAt: number;
  /** The server took it at least once: refused later, it is spent. */
  wasAccepted: boolean;
}

/** A refusal of a token this young that was never accepted is not about its age. */
const FRESH_MS = 30_000;
/** Renewed so long before its end, or a tenth of its life. */
const MARGIN_MS = 30_000;
const RETRY_MS = 1_000;
const RETRY_CEILING_MS = 60_000;

export class TokenKeeper {
  private readonly fetchToken: () => Promise<Token>;
  private readonly nowMs: () => number;
  private held: Held | null = null;
  private pending: Promise<Held> | null = null;
  private failure: {
    readonly fault: CredentialFault;
    readonly untilAt: number;
    readonly count: number;
  } | null = null;

  constructor(fetchToken: () => Promise<Token>, nowMs: () => number = Date.now) {
    this.fetchToken = fetchToken;
    this.nowMs = nowMs;
  }

  /** @throws CredentialFault */
  async token(): Promise<string> {
    const { held } = this;
    if (held && !this.isSpent(held)) return held.value;
    return (await this.renew()).value;
  }

  /** The server took this one. */
  accepted(value: string): void {
    if (this.held?.value === value) this.held.wasAccepted = true;
  }

  /**
   * After a 401: the token to go on with, or null where a fresh one was refused, so that another would be too.
   * @throws CredentialFault
   */
  async afterRefusal(refused: string): Promise<string | null> {
    const { held } = this;
    // Another call was refused before, and it has been renewed meanwhile.
    if (held && held.value !== refused) return held.value;
    if (held && this.isFresh(held)) return null;
    return (await this.renew()).value;
  }

  /** When the held one ends, for a doctor. */
  expiresAt(): number | null {
    return this.held?.expiresAt ?? null;
  }

  /** However many wait: one request. */
  private renew(): Promise<Held> {
    this.pending ??= this.fetchOnce().finally(() => {
      this.pending = null;
    });
    return this.pending;
  }

  private async fetchOnce(): Promise<Held> {
    const { failure } = this;
    if (failure && this.nowMs() < failure.untilAt) throw failure.fault;
    try {
      const token = await this.fetchToken();
      this.failure = null;
      this.held = { ...token, obtainedAt: this.nowMs(), wasAccepted: false };
      return this.held;
    } catch (error) {
      if (!(error instanceof CredentialFault)) throw error;
      const count = (failure?.count ?? 0) + 1;
      const untilAt = this.nowMs() + backOffMs(RETRY_MS, RETRY_CEILING_MS, count);
      this.failure = { fault: error, untilAt, count };
      throw error;
    }
  }

  private isFresh(held: Held): boolean {
    return !held.wasAccepted && this.nowMs() - held.obtainedAt < FRESH_MS;
  }

  private isSpent({ expiresAt, obtainedAt }: Held): boolean {
    if (expiresAt === null) return false;
    const marginMs = Math.min(MARGIN_MS, (expiresAt - obtainedAt) / 10);
    return this.nowMs() >= expiresAt - marginMs;
  }
}
