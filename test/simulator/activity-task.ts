// Owns one activity of a simulated engine: its attempts, back-off, heartbeats, cancellation and end.
// Must never look into what an activity returns; a late end of an attempt that was given up counts for nothing.

import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  RetryState,
  TimeoutFailure,
} from '@temporalio/common';
import type { AttemptContext } from './fake-activity.js';
import { attempts } from './fake-activity.js';
import type { Planned, VirtualTime } from './virtual-time.js';
import type { ActivityOptions } from './workflow-sandbox.js';

export type ActivityEnd = { readonly value: unknown } | { readonly error: unknown };

export interface Home {
  readonly time: VirtualTime;
  /** In [0, 1). */
  readonly random: () => number;
  readonly run: { readonly workflowId: string; readonly runId: string };
  readonly body: (input: unknown) => Promise<unknown>;
  readonly onAttempt: (attempt: Attempt) => void;
  readonly onHeartbeat: (details: unknown) => void;
  readonly onAttemptEnd: (attempt: Attempt, how: string) => void;
  readonly onEnd: (end: ActivityEnd) => void;
}

/** One attempt in one worker process. It may be frozen at any point, and go on later, when nobody waits for it any more. */
export class Attempt implements AttemptContext {
  readonly task: ActivityTask;
  readonly info: AttemptContext['info'];
  readonly number: number;
  readonly #controller = new AbortController();
  /** It was given up by the engine, or its end was reported. */
  isOver = false;
  hasReturned = false;
  /** The engine had to give it up: whatever it had not written down by then is lost. */
  wasGivenUp = false;
  #thawed: Promise<void> | null = null;
  #thaw: () => void = () => {};

  constructor(task: ActivityTask, number: number, details: unknown) {
    this.task = task;
    this.number = number;
    this.info = {
      activityType: task.type,
      attempt: number,
      heartbeatDetails: details,
      workflowExecution: task.home.run,
    };
  }

  get cancellationSignal(): AbortSignal {
    return this.#controller.signal;
  }

  heartbeat(details: unknown): void {
    if (this.isOver || this.isFrozen) return;
    this.task.details = details === undefined ? undefined : cloned(details);
    this.task.home.onHeartbeat(this.task.details);
  }

  get isFrozen(): boolean {
    return this.#thawed !== null;
  }

  /** From now on it goes no further than its next point. */
  freeze(): void {
    if (this.#thawed || this.hasReturned) return;
    this.#thawed = new Promise((resolve) => {
      this.#thaw = () => resolve();
    });
    this.task.onFrozen(this);
  }

  thaw(): void {
    this.#thawed = null;
    this.#thaw();
  }

  async passPoint(): Promise<void> {
    while (this.#thawed) await this.#thawed;
  }

  abort(): void {
    if (!this.isFrozen) this.#controller.abort();
  }
}

export class ActivityTask {
  readonly type: string;
  readonly home: Home;
  details: unknown = undefined;
  current: Attempt | null = null;
  isCancelRequested = false;
  hasEnded = false;
  /** It came to an end of its own, which its run has been told. */
  hasValue = false;
  attemptsMade = 0;
  readonly #input: unknown;
  readonly #options: ActivityOptions;
  #number = 1;
  #failures = 0;
  #next: Planned | null = null;

  constructor(type: string, input: unknown, options: ActivityOptions, home: Home) {
    this.type = type;
    this.#input = input;
    this.#options = options;
    this.home = home;
    this.#planAttempt(0);
  }

  #planAttempt(delayMs: number): void {
    const { time, random } = this.home;
    this.#next = time.after(delayMs + Math.floor(random() * 20), () => this.#start());
  }

  #start(): void {
    this.#next = null;
    this.attemptsMade += 1;
    const attempt = new Attempt(this, this.#number, this.details);
    this.current = attempt;
    this.home.onAttempt(attempt);
    const input = cloned(this.#input);
    void attempts
      .run(attempt, () => this.home.body(input))
      .then(
        (value) => this.#returned(attempt, { value: cloned(value) }),
        (error: unknown) => this.#returned(attempt, { error }),
      );
  }

  #returned(attempt: Attempt, end: ActivityEnd): void {
    attempt.hasReturned = true;
    const isLate = attempt.isOver || this.current !== attempt;
    this.home.onAttemptEnd(attempt, `${isLate ? 'late ' : ''}${wordFor(end)}`);
    if (isLate) return;
    attempt.isOver = true;
    this.current = null;
    if ('value' in end) return this.#end(end);
    this.#failed(end.error);
  }

  #failed(error: unknown): void {
    if (this.isCancelRequested) {
      const isCancelled = error instanceof CancelledFailure;
      const state = isCancelled ? RetryState.NON_RETRYABLE_FAILURE : RetryState.CANCEL_REQUESTED;
      return this.#end({ error: this.#failure(state, error as Error) });
    }
    if (error instanceof ApplicationFailure && error.nonRetryable) {
      return this.#end({ error: this.#failure(RetryState.NON_RETRYABLE_FAILURE, error) });
    }
    const { initialIntervalMs, backoffCoefficient, maximumIntervalMs } = this.#options;
    const backOffMs = Math.min(initialIntervalMs * backoffCoefficient ** this.#failures, maximumIntervalMs);
    const asked = error instanceof ApplicationFailure ? error.nextRetryDelay : undefined;
    this.#number += 1;
    this.#failures += 1;
    this.#planAttempt(typeof asked === 'number' ? asked : backOffMs);
  }

  #failure(state: RetryState, cause: Error): ActivityFailure {
    return new ActivityFailure('activity failed', this.type, '0', state, 'engine', cause);
  }

  #end(end: ActivityEnd): void {
    this.hasEnded = true;
    this.hasValue = 'value' in end;
    this.home.onEnd(end);
  }

  /** No heartbeat comes any more: the engine gives the attempt up after its timeout, whatever becomes of it. */
  onFrozen(attempt: Attempt): void {
    if (attempt.isOver) return;
    const jitterMs = Math.floor(this.home.random() * 100);
    this.home.time.after(this.#options.heartbeatTimeoutMs + jitterMs, () => {
      if (attempt.isOver || this.current !== attempt || !attempt.isFrozen) return;
      attempt.isOver = true;
      attempt.wasGivenUp = true;
      this.current = null;
      this.home.onAttemptEnd(attempt, 'given up');
      this.#failed(new TimeoutFailure('activity Heartbeat timeout', undefined, 'HEARTBEAT'));
    });
  }

  requestCancel(): void {
    if (this.hasEnded || this.isCancelRequested) return;
    this.isCancelRequested = true;
    if (this.current) return this.#abortSoon(this.current);
    this.#next?.takeBack();
    this.#end({ error: this.#failure(RetryState.NON_RETRYABLE_FAILURE, new CancelledFailure('cancelled')) });
  }

  /** A running attempt hears of it with the reply to its next heartbeat. */
  #abortSoon(attempt: Attempt): void {
    this.home.time.after(Math.floor(this.home.random() * 1_600), () => attempt.abort());
  }

  /** The worker is stopped with notice: its attempts hear of it, and are tried again elsewhere. */
  shutDownWorker(): void {
    this.current?.abort();
  }

  /** Its run is closed: nobody waits for it any more, and a running attempt hears so from its heartbeat. */
  abandon(): void {
    this.hasEnded = true;
    this.#next?.takeBack();
    if (!this.current) return;
    this.current.isOver = true;
    this.#abortSoon(this.current);
    this.current = null;
  }

  /** Reset of the pending activity: the next attempt comes now, and counts from 1; details stay. */
  bringForward(): void {
    if (this.hasEnded || !this.#next) return;
    this.#next.takeBack();
    this.#number = 1;
    this.#failures = 0;
    this.#planAttempt(0);
  }
}

export function cloned<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}

function wordFor(end: ActivityEnd): string {
  if ('value' in end) return 'ended';
  const { error } = end;
  if (error instanceof ApplicationFailure) return `${error.type}: ${error.message}`;
  return String(error);
}
