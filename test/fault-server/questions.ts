// Owns the questions of one task: asked one after the other, answered once, held back as the plan says.
// Must never know how a question reaches anybody: each front hands it out in its own way.

import type { WorkOrder } from './executions.js';
import type { Journal } from './journal.js';
import type { JsonValue } from './json.js';

export interface AskedQuestion {
  readonly question: number;
  /** Set by the front that gave it to somebody. */
  isHandedOut: boolean;
  isAnswered: boolean;
  /** The first answer counts. */
  readonly answer: (answer: JsonValue) => void;
}

/** An answer that was taken and moves nothing yet. */
interface HeldAnswer {
  readonly release: () => void;
  readsLeft: number;
}

export class Questions {
  /** Asked and not over. */
  open: readonly AskedQuestion[] = [];
  /** A front that hands out by itself listens here. */
  onAsked: () => void = () => undefined;
  private readonly order: WorkOrder;
  private readonly journal: Journal;
  private readonly become: (status: 'input_required' | 'working') => void;
  private held: HeldAnswer | null = null;

  constructor(order: WorkOrder, journal: Journal, become: Questions['become']) {
    this.order = order;
    this.journal = journal;
    this.become = become;
  }

  /** Asks, and resolves with the answer. */
  ask(question: number, signal: AbortSignal): Promise<JsonValue> {
    this.journal.write({ kind: 'questionAsked', label: this.order.label, question });
    this.become('input_required');
    return new Promise((resolve) => {
      let isOver = false;
      const settle = (answer: JsonValue): void => {
        if (isOver) return;
        isOver = true;
        this.open = this.open.filter((one) => one !== asked);
        this.held = null;
        this.become('working');
        resolve(answer);
      };
      const asked: AskedQuestion = {
        question,
        isHandedOut: false,
        isAnswered: false,
        answer: (answer) => {
          if (asked.isAnswered) return;
          asked.isAnswered = true;
          this.hold(() => settle(answer));
        },
      };
      signal.addEventListener('abort', () => settle({ action: 'cancel' }), { once: true });
      this.open = [...this.open, asked];
      this.onAsked();
    });
  }

  /** One status read went by. */
  countRead(): void {
    if (this.held && --this.held.readsLeft <= 0) this.held.release();
  }

  private hold(release: () => void): void {
    const { heldAnswerReads } = this.order.plan;
    if (heldAnswerReads === 0) return release();
    const readsLeft = heldAnswerReads < 0 ? Number.POSITIVE_INFINITY : heldAnswerReads;
    this.held = { release, readsLeft };
  }
}
