// Owns how MCP 2025-11-25 asks: on the stream of a `tasks/result`, to one reader and once, under a JSON-RPC id of its session.
// Must never hand a question out twice, but where the plan repeats an answered one.

import { randomUUID } from 'node:crypto';
import type { EventStream } from '../event-streams.js';
import type { Journal } from '../journal.js';
import type { JsonObject } from '../json.js';
import type { AskedQuestion } from '../questions.js';
import type { Session } from '../sessions.js';
import { RELATED_TASK, type Task } from '../tasks.js';
import { ELICITATION, elicitationOf } from '../wire.js';

/** An open `tasks/result`: where a question or the result can go. */
interface Reader {
  readonly stream: EventStream;
  readonly session: Session;
}

export class StreamQuestions {
  private readonly task: Task;
  private readonly journal: Journal;
  private readonly readers: Reader[] = [];
  /** Answered questions that are to be sent again. */
  private repeats: readonly JsonObject[] = [];

  constructor(task: Task, journal: Journal) {
    this.task = task;
    this.journal = journal;
    task.questions.onAsked = () => this.handOut();
  }

  addReader(stream: EventStream, session: Session): void {
    this.readers.push({ stream, session });
    this.repeatOn(stream);
    this.handOut();
  }

  /** As the reference server does: the oldest reader gets it, even one that has hung up, where its stream can be resumed. */
  private handOut(): void {
    for (;;) {
      const reader = this.readers.find(({ stream }) => stream.canCarry);
      const next = this.task.questions.open.find(({ isHandedOut }) => !isHandedOut);
      if (!reader || !next) return;
      this.give(next, reader);
    }
  }

  private give(asked: AskedQuestion, { stream, session }: Reader): void {
    const { task } = this;
    const { label, plan } = task.order;
    const { question } = asked;
    asked.isHandedOut = true;
    // Never registered: who answers it answers nothing that is known here.
    if (plan.foreignQuestion) stream.send(this.message(session.nextQuestionId(), question, randomUUID()));
    const jsonRpcId = session.nextQuestionId();
    const message = this.message(jsonRpcId, question, task.remoteTaskId);
    const onAnswer: AskedQuestion['answer'] = (answer) => {
      this.repeats = Array.from({ length: plan.questionReplays }, () => message);
      this.repeatOn(stream);
      asked.answer(answer);
    };
    session.questions.set(jsonRpcId, { label, question, task, isAnswered: false, onAnswer });
    this.journal.write(
      { kind: 'questionHandedOut', label, question, jsonRpcId },
      { session: session.sessionId },
    );
    stream.send(message);
  }

  private repeatOn(stream: EventStream): void {
    if (!stream.canCarry) return;
    for (const message of this.repeats) stream.send(message);
    this.repeats = [];
  }

  private message(jsonRpcId: number, question: number, taskId: string): JsonObject {
    const params = {
      ...elicitationOf(this.task.order.label, question),
      _meta: { [RELATED_TASK]: { taskId } },
    };
    return { jsonrpc: '2.0', id: jsonRpcId, method: ELICITATION, params };
  }
}
