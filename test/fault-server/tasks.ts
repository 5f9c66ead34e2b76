// Owns the tasks: their status, who may see them, and their end.
// Must never run anything itself: an execution does; nor know the words of a wire.

import { randomUUID } from 'node:crypto';
import type { Execution, WorkOrder, WorkResult } from './executions.js';
import type { Journal } from './journal.js';
import type { JsonObject, JsonValue } from './json.js';
import type { Phase } from './plan.js';
import { Questions } from './questions.js';
import type { Session } from './sessions.js';
import type { Told, Wire } from './wire.js';
import { type Word, wordAt } from './words.js';

export const RELATED_TASK = 'io.modelcontextprotocol/related-task';

export type RemoteStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

export class Task {
  readonly remoteTaskId = randomUUID();
  readonly order: WorkOrder;
  readonly createdAt = Date.now();
  readonly wire: Wire;
  readonly questions: Questions;
  /** May change with each read. */
  private ttlMs: number | null;
  /** Sessions in which it is listed and found. */
  readonly sessions = new Set<string>();
  /** Found by its id from any session (never listed there). */
  isFoundEverywhere: boolean;
  /** Says `cancelled` until the work has ended, however it ends. */
  isSaidCancelled = false;
  /** Of a plan that does not meet all of them in the same way. */
  cancelsHeard = 0;
  status: RemoteStatus = 'working';
  execution: Execution | null = null;
  private updatedAt = this.createdAt;
  private readonly played = new Map<Phase, number>();
  private lagReadsLeft: number;
  private staleReadsLeft: number;
  private wasEndTold = false;
  private reads = 0;
  private result: WorkResult | null = null;
  private readonly settled: Promise<void>;
  private settle: () => void = () => undefined;

  constructor(order: WorkOrder, session: Session, requestedTtlMs: number | null, journal: Journal) {
    this.order = order;
    this.wire = session.wire;
    this.isFoundEverywhere = session.wire.isSessionless;
    this.questions = new Questions(order, journal, (status) => this.become(status));
    this.ttlMs = order.plan.ttlMs ?? requestedTtlMs;
    this.lagReadsLeft = order.plan.lagReads;
    this.staleReadsLeft = order.plan.staleReads;
    this.sessions.add(session.sessionId);
    this.settled = new Promise((resolve) => (this.settle = resolve));
  }

  get isTerminal(): boolean {
    return this.status === 'completed' || this.status === 'failed' || this.status === 'cancelled';
  }

  /** The word for this request; each is used once. */
  takeWord(phase: Phase): Word {
    const nth = this.played.get(phase) ?? 0;
    this.played.set(phase, nth + 1);
    return wordAt(this.order.plan.words[phase], nth);
  }

  /** True while a read right after the creation must not find it yet. */
  takeLag(): boolean {
    if (this.lagReadsLeft === 0) return false;
    this.lagReadsLeft -= 1;
    return true;
  }

  isVisibleIn(session: Session): boolean {
    if (this.ttlMs !== null && Date.now() >= this.createdAt + this.ttlMs) return false;
    return this.isFoundEverywhere || this.sessions.has(session.sessionId);
  }

  end(result: WorkResult): void {
    this.result = result;
    if (result.kind === 'aborted') this.become('cancelled');
    else this.become(result.kind === 'completed' ? 'completed' : 'failed');
    this.settle();
  }

  async ended(): Promise<WorkResult> {
    await this.settled;
    if (!this.result) throw new Error('a task settled without a result');
    return this.result;
  }

  /** The next read tells the end, and no planned staleness hides it. */
  get isTellingEnd(): boolean {
    return this.isTerminal && !(this.wasEndTold && this.staleReadsLeft > 0);
  }

  /** The answer to one status read: what is planned for reads happens here. */
  read(): JsonObject {
    return this.wire.task(this.told());
  }

  /** As `read`, before its words are the wire's. */
  told(): Told {
    const { pollIntervals, ttlsMs } = this.order.plan;
    const nth = this.reads++;
    const hint = pollIntervals[Math.min(nth, pollIntervals.length - 1)];
    this.ttlMs = ttlsMs[Math.min(nth, ttlsMs.length - 1)] ?? this.ttlMs;
    const told = this.tell(this.isStaleRead() ? 'working' : this.status);
    this.questions.countRead();
    return hint === undefined ? told : { ...told, pollIntervalMs: hint };
  }

  private isStaleRead(): boolean {
    if (!this.isTerminal) return false;
    const isFirst = !this.wasEndTold;
    this.wasEndTold = true;
    if (isFirst || this.staleReadsLeft === 0) return false;
    this.staleReadsLeft -= 1;
    return true;
  }

  toWire(): JsonObject {
    return this.wire.task(this.tell(this.status));
  }

  private tell(status: RemoteStatus): Told {
    const said = this.isSaidCancelled && !this.isTerminal ? 'cancelled' : status;
    const { label, plan } = this.order;
    return {
      remoteTaskId: this.remoteTaskId,
      status: said === 'working' ? plan.workingStatus : said,
      statusMessage: `${label}: ${said}`,
      createdAt: this.createdAt,
      updatedAt: this.updatedAt,
      ttlMs: this.ttlMs,
      pollIntervalMs: plan.pollIntervalMs,
    };
  }

  private become(status: RemoteStatus): void {
    this.status = status;
    this.updatedAt = Date.now();
  }
}

export class Tasks {
  private readonly all = new Map<string, Task>();

  add(task: Task): void {
    this.all.set(task.remoteTaskId, task);
  }

  /** The newest one that another call made, or the call that the plan names. */
  earlierThan({ order }: Task): Task | null {
    const { reusedOf } = order.plan;
    const others = [...this.all.values()].filter(({ order: other }) =>
      reusedOf === null ? other.label !== order.label : other.label === reusedOf,
    );
    return others.at(-1) ?? null;
  }

  find(session: Session, remoteTaskId: JsonValue | undefined): Task | null {
    const task = typeof remoteTaskId === 'string' ? this.all.get(remoteTaskId) : undefined;
    return task?.isVisibleIn(session) ? task : null;
  }

  listedIn(session: Session): readonly Task[] {
    return [...this.all.values()].filter(
      (task) => task.sessions.has(session.sessionId) && task.isVisibleIn(session) && !task.takeLag(),
    );
  }
}
