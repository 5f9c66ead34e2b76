// Owns the tasks: their status as the wire shows it, who may see them, their questions and their end.
// Must never run anything itself: an execution does.

import { randomUUID } from 'node:crypto';
import type { Execution, WorkOrder, WorkResult } from './executions.js';
import type { EventStream } from './event-streams.js';
import type { Journal } from './journal.js';
import type { JsonObject, JsonValue } from './json.js';
import type { Phase } from './plan.js';
import type { Session } from './sessions.js';
import { type Word, wordAt } from './words.js';

export const RELATED_TASK = 'io.modelcontextprotocol/related-task';

export type RemoteStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

interface WaitingQuestion {
  readonly question: number;
  readonly settle: (answer: JsonValue) => void;
}

/** An answer that was taken and moves nothing yet. */
interface HeldAnswer {
  readonly release: () => void;
  readsLeft: number;
}

/** An open `tasks/result`: where a question or the result can go. */
interface Reader {
  readonly stream: EventStream;
  readonly session: Session;
}

export class Task {
  readonly remoteTaskId = randomUUID();
  readonly order: WorkOrder;
  readonly createdAt = Date.now();
  readonly ttlMs: number | null;
  /** Sessions in which it is listed and found. */
  readonly sessions = new Set<string>();
  /** Found by its id from any session (never listed there). */
  isFoundEverywhere = false;
  /** Says `cancelled` until the work has ended, however it ends. */
  isSaidCancelled = false;
  /** Of a plan that does not meet all of them in the same way. */
  cancelsHeard = 0;
  status: RemoteStatus = 'working';
  execution: Execution | null = null;
  private updatedAt = this.createdAt;
  private readonly journal: Journal;
  private readonly played = new Map<Phase, number>();
  private lagReadsLeft: number;
  private staleReadsLeft: number;
  private wasEndTold = false;
  private reads = 0;
  private held: HeldAnswer | null = null;
  /** Answered questions that are to be sent again. */
  private replays: JsonObject[] = [];
  private readonly readers: Reader[] = [];
  private waiting: WaitingQuestion[] = [];
  private result: WorkResult | null = null;
  private readonly settled: Promise<void>;
  private settle: () => void = () => undefined;

  constructor(order: WorkOrder, session: Session, requestedTtlMs: number | null, journal: Journal) {
    this.order = order;
    this.journal = journal;
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

  /** Asks, and resolves with the answer. The question goes to one reader only, and once. */
  ask(question: number, signal: AbortSignal): Promise<JsonValue> {
    const { label } = this.order;
    this.journal.write({ kind: 'questionAsked', label, question });
    this.become('input_required');
    return new Promise((resolve) => {
      let isOpen = true;
      const settle = (answer: JsonValue): void => {
        if (!isOpen) return;
        isOpen = false;
        this.waiting = this.waiting.filter((waiting) => waiting.settle !== settle);
        this.held = null;
        this.become('working');
        resolve(answer);
      };
      signal.addEventListener('abort', () => settle({ action: 'cancel' }), { once: true });
      this.waiting.push({ question, settle });
      this.handOut();
    });
  }

  addReader(stream: EventStream, session: Session): void {
    this.readers.push({ stream, session });
    this.replayOn(stream);
    this.handOut();
  }

  private takeAnswer(
    answer: JsonValue,
    asked: JsonObject,
    stream: EventStream,
    settle: WaitingQuestion['settle'],
  ): void {
    const { questionReplays, heldAnswerReads } = this.order.plan;
    this.replays = Array.from({ length: questionReplays }, () => asked);
    this.replayOn(stream);
    if (heldAnswerReads === 0) return settle(answer);
    const readsLeft = heldAnswerReads < 0 ? Number.POSITIVE_INFINITY : heldAnswerReads;
    this.held = { release: () => settle(answer), readsLeft };
  }

  private replayOn(stream: EventStream): void {
    if (!stream.canCarry) return;
    for (const asked of this.replays) stream.send(asked);
    this.replays = [];
  }

  /** As the reference server does: the oldest reader gets it, even one that has hung up, where its stream can be resumed. */
  private handOut(): void {
    for (;;) {
      const reader = this.readers.find(({ stream }) => stream.canCarry);
      const next = this.waiting[0];
      if (!reader || !next) return;
      this.waiting = this.waiting.slice(1);
      const { label } = this.order;
      const { question, settle } = next;
      const { stream, session } = reader;
      // Never registered: who answers it answers nothing that is known here.
      if (this.order.plan.foreignQuestion)
        stream.send(this.elicitation(session.nextQuestionId(), question, randomUUID()));
      const jsonRpcId = session.nextQuestionId();
      const asked = this.elicitation(jsonRpcId, question, this.remoteTaskId);
      const onAnswer = (answer: JsonValue): void => this.takeAnswer(answer, asked, stream, settle);
      session.questions.set(jsonRpcId, { label, question, task: this, isAnswered: false, onAnswer });
      this.journal.write(
        { kind: 'questionHandedOut', label, question, jsonRpcId },
        { session: session.sessionId },
      );
      stream.send(asked);
    }
  }

  private elicitation(jsonRpcId: number, question: number, taskId: string): JsonObject {
    return {
      jsonrpc: '2.0',
      id: jsonRpcId,
      method: 'elicitation/create',
      params: {
        mode: 'form',
        message: `Question ${question} of ${this.order.label}`,
        requestedSchema: {
          type: 'object',
          properties: { choice: { type: 'string', enum: ['left', 'right'] } },
          required: ['choice'],
        },
        _meta: { [RELATED_TASK]: { taskId } },
      },
    };
  }

  /** The answer to one status read: what is planned for reads happens here. */
  read(): JsonObject {
    const { pollIntervals } = this.order.plan;
    const hint = pollIntervals[Math.min(this.reads, pollIntervals.length - 1)];
    this.reads += 1;
    const told = this.toWire(this.isStaleRead() ? 'working' : this.status);
    if (this.held && --this.held.readsLeft <= 0) this.held.release();
    if (hint === undefined) return told;
    const { pollInterval: _, ...bare } = told;
    return hint === null ? bare : { ...bare, pollInterval: hint };
  }

  private isStaleRead(): boolean {
    if (!this.isTerminal) return false;
    const isFirst = !this.wasEndTold;
    this.wasEndTold = true;
    if (isFirst || this.staleReadsLeft === 0) return false;
    this.staleReadsLeft -= 1;
    return true;
  }

  toWire(status: RemoteStatus = this.status): JsonObject {
    const said = this.isSaidCancelled && !this.isTerminal ? 'cancelled' : status;
    return {
      taskId: this.remoteTaskId,
      status: said === 'working' ? this.order.plan.workingStatus : said,
      statusMessage: `${this.order.label}: ${said}`,
      createdAt: new Date(this.createdAt).toISOString(),
      lastUpdatedAt: new Date(this.updatedAt).toISOString(),
      ttl: this.ttlMs,
      pollInterval: this.order.plan.pollIntervalMs,
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

  /** The newest one that another call made. */
  earlierThan(task: Task): Task | null {
    const others = [...this.all.values()].filter(({ order }) => order.label !== task.order.label);
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
