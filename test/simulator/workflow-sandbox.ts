// Owns one execution of workflow code in a simulated engine: its scopes, conditions, handlers and commands.
// Must never know activities' bodies or time's passing: the engine tells it what happened, it says what it wants.

import { AsyncLocalStorage } from 'node:async_hooks';
import { CancelledFailure } from '@temporalio/common';
import { quiet } from './virtual-time.js';

export interface ActivityOptions {
  readonly isLocal: boolean;
  readonly heartbeatTimeoutMs: number;
  readonly initialIntervalMs: number;
  readonly backoffCoefficient: number;
  readonly maximumIntervalMs: number;
}

export type Command =
  | {
      readonly kind: 'activity';
      readonly seq: number;
      readonly type: string;
      readonly input: unknown;
      readonly options: ActivityOptions;
    }
  | { readonly kind: 'cancelActivity'; readonly seq: number }
  | { readonly kind: 'timer'; readonly seq: number; readonly delayMs: number }
  | { readonly kind: 'cancelTimer'; readonly seq: number }
  | { readonly kind: 'complete'; readonly value: unknown }
  | { readonly kind: 'fail'; readonly error: unknown };

export type Job =
  | { readonly kind: 'start' }
  | { readonly kind: 'signal'; readonly name: string; readonly message: unknown }
  | { readonly kind: 'update'; readonly id: string; readonly name: string; readonly message: unknown }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'resolve'; readonly seq: number; readonly value: unknown }
  | { readonly kind: 'reject'; readonly seq: number; readonly error: unknown }
  | { readonly kind: 'fire'; readonly seq: number };

export interface RunInfo {
  readonly workflowId: string;
  readonly runId: string;
  readonly firstExecutionRunId: string;
  readonly taskQueue: string;
  readonly startTime: Date;
}

interface Waiting {
  readonly fn: () => boolean;
  readonly go: () => void;
}

type Handler = (message: unknown) => unknown;

const current = new AsyncLocalStorage<Scope>();

export class Scope {
  readonly sandbox: Sandbox;
  readonly cancellable: boolean;
  readonly cancelRequested: Promise<never>;
  isCancelRequested = false;
  #reject: (error: Error) => void = () => {};

  constructor(sandbox: Sandbox, cancellable: boolean) {
    this.sandbox = sandbox;
    this.cancellable = cancellable;
    this.cancelRequested = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.cancelRequested.catch(() => {});
  }

  static current(): Scope {
    const scope = current.getStore();
    if (!scope) throw new Error('workflow code runs only in a sandbox');
    return scope;
  }

  run<T>(fn: () => Promise<T>): Promise<T> {
    return current.run(this, async () => fn());
  }

  cancel(): void {
    this.isCancelRequested = true;
    this.#reject(new CancelledFailure('Cancellation scope cancelled'));
  }
}

export class Sandbox {
  readonly info: RunInfo;
  readonly root: Scope;
  commands: Command[] = [];
  handlersRunning = 0;
  query: (() => unknown) | null = null;
  /** Outcomes of updates, by their id. */
  readonly updates = new Map<string, unknown>();
  readonly #workflow: (input: unknown) => Promise<unknown>;
  readonly #input: unknown;
  readonly #waiting = new Set<Waiting>();
  readonly #pending = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  readonly #handlers = new Map<string, Handler>();
  #seq = 0;
  #uuids = 0;
  #seed: string;

  constructor(info: RunInfo, workflow: (input: unknown) => Promise<unknown>, input: unknown) {
    this.info = info;
    this.root = new Scope(this, true);
    this.#workflow = workflow;
    this.#input = input;
    this.#seed = info.firstExecutionRunId;
  }

  /** After its point, a reset run draws other random numbers than the run before it. */
  reseed(runId: string): void {
    this.#seed = runId;
  }

  /** One workflow task. Messages go first, as the SDK does it; then what became of timers and activities. */
  async activate(jobs: readonly Job[]): Promise<readonly Command[]> {
    const isMessage = (job: Job): boolean => ['start', 'signal', 'update', 'cancel'].includes(job.kind);
    for (const batch of [jobs.filter(isMessage), jobs.filter((job) => !isMessage(job))]) {
      if (batch.length === 0) continue;
      for (const job of batch) this.#perform(job);
      await this.#settle();
    }
    const said = this.commands;
    this.commands = [];
    return said;
  }

  async #settle(): Promise<void> {
    for (;;) {
      await quiet();
      const ready = [...this.#waiting].filter((waiting) => waiting.fn());
      if (ready.length === 0) return;
      for (const waiting of ready) {
        this.#waiting.delete(waiting);
        waiting.go();
      }
    }
  }

  #perform(job: Job): void {
    switch (job.kind) {
      case 'start':
        void this.root
          .run(() => this.#workflow(this.#input))
          .then(
            (value) => this.commands.push({ kind: 'complete', value }),
            (error: unknown) => this.commands.push({ kind: 'fail', error }),
          );
        return;
      case 'signal':
        void this.root.run(async () => this.#handlers.get(job.name)?.(job.message));
        return;
      case 'update':
        return this.#update(job.id, job.name, job.message);
      case 'cancel':
        return this.root.cancel();
      case 'resolve':
        return this.#settlePending(job.seq, (pending) => pending.resolve(job.value));
      case 'reject':
        return this.#settlePending(job.seq, (pending) => pending.reject(job.error));
      case 'fire':
        return this.#settlePending(job.seq, (pending) => pending.resolve(undefined));
    }
  }

  #update(id: string, name: string, message: unknown): void {
    const handler = this.#handlers.get(name);
    if (!handler || this.updates.has(id)) return;
    this.handlersRunning += 1;
    void this.root
      .run(async () => handler(message))
      .then(
        (verdict) => this.updates.set(id, verdict),
        (error: unknown) => this.updates.set(id, error),
      )
      .then(() => (this.handlersRunning -= 1));
  }

  #settlePending(
    seq: number,
    settle: (pending: { resolve(v: unknown): void; reject(e: unknown): void }) => void,
  ) {
    const pending = this.#pending.get(seq);
    if (!pending) return;
    this.#pending.delete(seq);
    settle(pending);
  }

  // --- what workflow code may ask for

  activity(type: string, input: unknown, options: ActivityOptions): Promise<unknown> {
    const scope = Scope.current();
    if (scope.cancellable && scope.isCancelRequested)
      throw new CancelledFailure('Activity cancelled before scheduled');
    const seq = (this.#seq += 1);
    this.commands.push({ kind: 'activity', seq, type, input, options });
    scope.cancelRequested.catch(() => {
      if (this.#pending.has(seq)) this.commands.push({ kind: 'cancelActivity', seq });
    });
    return new Promise((resolve, reject) => this.#pending.set(seq, { resolve, reject }));
  }

  async condition(fn: () => boolean, timeoutMs?: number): Promise<boolean | undefined> {
    if (timeoutMs === undefined) {
      await this.#until(fn).promise;
      return undefined;
    }
    const seq = (this.#seq += 1);
    this.commands.push({ kind: 'timer', seq, delayMs: timeoutMs });
    const fired = new Promise((resolve, reject) => this.#pending.set(seq, { resolve, reject }));
    const until = this.#until(fn);
    const isMet = await Promise.race([until.promise.then(() => true), fired.then(() => false)]);
    if (isMet) {
      this.#pending.delete(seq);
      this.commands.push({ kind: 'cancelTimer', seq });
    } else until.giveUp();
    return isMet;
  }

  #until(fn: () => boolean): { promise: Promise<void>; giveUp(): void } {
    if (fn()) return { promise: Promise.resolve(), giveUp: () => {} };
    let waiting: Waiting | null = null;
    const promise = new Promise<void>((go) => {
      const scope = Scope.current();
      waiting = { fn: () => current.run(scope, fn), go };
      this.#waiting.add(waiting);
    });
    return { promise, giveUp: () => waiting && this.#waiting.delete(waiting) };
  }

  handle(name: string, kind: string, handler: Handler): void {
    if (kind === 'query') this.query = handler as () => unknown;
    else this.#handlers.set(name, handler);
  }

  uuid(): string {
    return `${this.#seed}/uuid-${(this.#uuids += 1)}`;
  }
}
