// Owns the tasks: their status as the wire shows it, who may see them, their questions and their end.
// Must never run anything itself: an execution does.

import { randomUUID } from 'node:crypto';
import type { Execution, WorkOrder, WorkResult } from './executions.js';
import type { EventStream } from './event-streams.js';
import type { Journal } from './journal.js';
import type { JsonObject, JsonValue } from './json.js';
import type { Phase, Word } from './plan.js';
import { wordAt } from './plan.js';
import type { Session } from './sessions.js';

export const RELATED_TASK = 'io.modelcontextprotocol/related-task';

export type RemoteStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

interface WaitingQuestion {
  readonly question: number;
  readonly settle: (answer: JsonValue) => void;
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
  isHidden = false;
  status: RemoteStatus = 'working';
  execution: Execution | null = null;
  private updatedAt = this.createdAt;
  private readonly journal: Journal;
  private readonly played: Record<Phase, number> = { create: 0, polls: 0, result: 0, cancelReply: 0 };
  private readonly readers: Reader[] = [];
  private waiting: WaitingQuestion[] = [];
  private result: WorkResult | null = null;
  private readonly settled: Promise<void>;
  private settle: () => void = () => undefined;

  constructor(order: WorkOrder, session: Session, requestedTtlMs: number | null, journal: Journal) {
    this.order = order;
    this.journal = journal;
    this.ttlMs = order.plan.ttlMs ?? requestedTtlMs;
    this.sessions.add(session.sessionId);
    this.settled = new Promise((resolve) => (this.settle = resolve));
  }

  get isTerminal(): boolean {
    return this.status === 'completed' || this.status === 'failed' || this.status === 'cancelled';
  }

  /** The word for this request; each is used once. */
  takeWord(phase: Phase): Word {
    return wordAt(this.order.plan.words[phase], this.played[phase]++);
  }

  isVisibleIn(session: Session): boolean {
    if (this.isHidden || (this.ttlMs !== null && Date.now() >= this.createdAt + this.ttlMs)) return false;
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
    this.handOut();
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
      const jsonRpcId = reader.session.nextQuestionId();
      reader.session.questions.set(jsonRpcId, { label, question, onAnswer: settle });
      this.journal.write(
        { kind: 'questionHandedOut', label, question, jsonRpcId },
        { session: reader.session.sessionId },
      );
      reader.stream.send(this.elicitation(jsonRpcId, question));
    }
  }

  private elicitation(jsonRpcId: number, question: number): JsonObject {
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
        _meta: { [RELATED_TASK]: { taskId: this.remoteTaskId } },
      },
    };
  }

  toWire(): JsonObject {
    return {
      taskId: this.remoteTaskId,
      status: this.status,
      statusMessage: `${this.order.label}: ${this.status}`,
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

  find(session: Session, remoteTaskId: JsonValue | undefined): Task | null {
    const task = typeof remoteTaskId === 'string' ? this.all.get(remoteTaskId) : undefined;
    return task?.isVisibleIn(session) ? task : null;
  }

  listedIn(session: Session): readonly Task[] {
    return [...this.all.values()].filter(
      (task) => task.sessions.has(session.sessionId) && task.isVisibleIn(session),
    );
  }
}
