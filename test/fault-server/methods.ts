// Owns the methods of MCP 2025-11-25 other than `tools/call`: what they answer, and which word of the plan they play.
// Must never run the body of a tool.

import type { JsonObject } from './json.js';
import type { Arrival, Journal } from './journal.js';
import type { Phase } from './plan.js';
import type { Reply, RpcAnswer } from './replies.js';
import { resultAnswer } from './calls.js';
import { StreamQuestions } from './mcp-2025-11-25/stream-questions.js';
import type { Session, Style } from './sessions.js';
import { RELATED_TASK, type Task, type Tasks } from './tasks.js';
import { descriptors } from './tools.js';
import { isInsteadOfHandling, OK, spell, type Word } from './words.js';

const PROTOCOL_VERSION = '2025-11-25';

export interface MethodCall {
  readonly params: JsonObject;
  readonly session: Session;
  readonly reply: Reply;
  readonly arrival: Arrival;
}

const METHOD_NOT_FOUND: RpcAnswer = { error: { code: -32601, message: 'there is no such method here' } };

export function greeting(style: Style): RpcAnswer {
  const { list, cancel } = style;
  const tasks = {
    ...(list ? { list: {} } : {}),
    ...(cancel ? { cancel: {} } : {}),
    requests: { tools: { call: {} } },
  };
  return {
    result: {
      protocolVersion: PROTOCOL_VERSION,
      capabilities: { tools: {}, tasks },
      serverInfo: { name: 'fault-server', version: '1' },
    },
  };
}

export class Methods {
  private readonly journal: Journal;
  private readonly tasks: Tasks;
  private readonly asking = new Map<Task, StreamQuestions>();

  constructor(journal: Journal, tasks: Tasks) {
    this.journal = journal;
    this.tasks = tasks;
  }

  async perform(method: string, call: MethodCall): Promise<void> {
    const { list, cancel } = call.session.style;
    if (method === 'tasks/get') return this.get(call);
    if (method === 'tasks/result') return this.result(call);
    if (method === 'tasks/cancel' && cancel) return this.cancel(call);
    if (method === 'tasks/list' && list) return this.list(call);
    if (method === 'tools/list') {
      this.journal.write({ kind: 'toolsListed' }, call.arrival);
      return call.reply.give({ result: { tools: descriptors() } }, OK);
    }
    if (method === 'ping') return call.reply.give({ result: {} }, OK);
    return call.reply.give(METHOD_NOT_FOUND, OK);
  }

  private list({ session, reply, arrival }: MethodCall): Promise<void> {
    const { label, word } = session.takeListWord();
    const listed = isInsteadOfHandling(word) ? [] : this.tasks.listedIn(session);
    this.journal.write({ kind: 'tasksListed', tasks: listed.length }, arrival);
    if (word.name !== 'ok') {
      this.journal.write({ kind: 'faultPlayed', label, phase: 'lists', word: spell(word) }, arrival);
    }
    return reply.give({ result: { tasks: listed.map((task) => task.toWire()) } }, word);
  }

  private async get(call: MethodCall): Promise<void> {
    const task = await this.findTask('polled', call);
    if (!task) return;
    const word = this.playWord(task, 'polls', call.arrival);
    if (isInsteadOfHandling(word)) return call.reply.giveInstead(word);
    await call.reply.give({ result: task.read() }, word);
  }

  /** Blocks until the task has ended; until then the stream carries its questions. */
  private async result(call: MethodCall): Promise<void> {
    const { reply, session, arrival } = call;
    const task = await this.findTask('resultAsked', call);
    if (!task) return;
    if (!task.isTerminal && (session.style.replies === 'sse' || task.order.plan.questions > 0)) {
      this.askingOf(task).addReader(reply.openStream(), session);
    }
    const work = await task.ended();
    const related = { [RELATED_TASK]: { taskId: task.remoteTaskId } };
    // A word is for a reply that somebody reads: an anchored stream that was dropped long ago must not use it up.
    if (reply.isAbandoned) return;
    const word = reply.isRead ? this.playWord(task, 'result', arrival) : OK;
    await reply.give(resultAnswer(work, related), word);
  }

  private askingOf(task: Task): StreamQuestions {
    const asking = this.asking.get(task) ?? new StreamQuestions(task, this.journal);
    this.asking.set(task, asking);
    return asking;
  }

  private async cancel(call: MethodCall): Promise<void> {
    const { reply, arrival } = call;
    const task = await this.findTask('cancelReceived', call);
    if (!task) return;
    const word = this.playWord(task, 'cancelReply', arrival);
    if (isInsteadOfHandling(word)) return reply.giveInstead(word);
    await reply.give(await decideCancel(task), word);
    if (task.order.plan.cancel.name === 'complete-after') task.execution?.hurry();
  }

  /** The task, or null where the session does not know it; then -32602 was answered. */
  private async findTask(
    kind: 'polled' | 'resultAsked' | 'cancelReceived',
    { session, params, reply, arrival }: MethodCall,
  ): Promise<Task | null> {
    const { taskId } = params;
    const task = this.tasks.find(session, taskId);
    const remoteTaskId = typeof taskId === 'string' ? taskId : '';
    this.journal.write({ kind, label: task?.order.label ?? null, remoteTaskId }, arrival);
    if (task && !task.takeLag()) return task;
    await reply.give({ error: { code: -32602, message: 'there is no such task' } }, OK);
    return null;
  }

  private playWord(task: Task, phase: Phase, arrival: Arrival): Word {
    const word = task.takeWord(phase);
    const { label } = task.order;
    if (word.name !== 'ok') {
      this.journal.write({ kind: 'faultPlayed', label, phase, word: spell(word) }, arrival);
    }
    return word;
  }
}

const REFUSAL: RpcAnswer = { error: { code: -32602, message: 'the task cannot be cancelled' } };

/** What the plan makes of a cancel, and the answer of a contract that answers with the task. */
export async function decideCancel(task: Task): Promise<RpcAnswer> {
  const { cancel } = task.order.plan;
  if (task.isTerminal || task.isSaidCancelled || cancel.name === 'refuse') return REFUSAL;
  const isPatienceOver = cancel.amount !== null && (task.cancelsHeard += 1) > cancel.amount;
  switch (cancel.name === 'ignore' && isPatienceOver ? 'honour' : cancel.name) {
    case 'honour':
      task.execution?.abort();
      await task.ended();
      return { result: task.toWire() };
    case 'delay':
      setTimeout(() => task.execution?.abort(), cancel.amount ?? 0);
      return { result: task.toWire() };
    case 'flip':
      task.isSaidCancelled = true;
      setTimeout(() => task.execution?.hurry(), cancel.amount ?? 0);
      return { result: task.toWire() };
    case 'complete-first':
      task.execution?.hurry();
      await task.ended();
      return REFUSAL;
    default:
      // `ignore` and `complete-after`: acknowledged with the task as it stands, which is not cancelled.
      return { result: task.toWire() };
  }
}
