// Owns the methods of MCP 2026-07-28 other than `tools/call`: what they answer, and which word of the plan they play.
// Must never run the body of a tool, nor know a session.

import type { JsonObject } from '../json.js';
import type { Arrival, Journal } from '../journal.js';
import { decideCancel } from '../methods.js';
import type { Phase } from '../plan.js';
import type { Reply, RpcAnswer } from '../replies.js';
import type { Session } from '../sessions.js';
import type { Task, Tasks } from '../tasks.js';
import { descriptors } from '../tools.js';
import { isInsteadOfHandling, OK, spell, type Word } from '../words.js';
import { ListedQuestions } from './listed-questions.js';
import { endedTask, REVISION, TASKS_EXTENSION } from './wire.js';

export interface ModernCall {
  readonly params: JsonObject;
  /** Of this request alone. */
  readonly session: Session;
  readonly reply: Reply;
  readonly arrival: Arrival;
}

const METHOD_NOT_FOUND: RpcAnswer = { error: { code: -32601, message: 'there is no such method here' } };
const UNKNOWN_TASK: RpcAnswer = { error: { code: -32602, message: 'there is no such task' } };
const ACKNOWLEDGED: RpcAnswer = { result: {} };
const CACHING: JsonObject = { ttlMs: 0, cacheScope: 'private' };

const DISCOVERED: RpcAnswer = {
  result: {
    ...CACHING,
    supportedVersions: [REVISION],
    capabilities: { tools: {}, extensions: { [TASKS_EXTENSION]: {} } },
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'fault-server', version: '1' } },
  },
};

export class ModernMethods {
  private readonly journal: Journal;
  private readonly tasks: Tasks;
  private readonly asking = new Map<Task, ListedQuestions>();

  constructor(journal: Journal, tasks: Tasks) {
    this.journal = journal;
    this.tasks = tasks;
  }

  async perform(method: string, call: ModernCall): Promise<void> {
    switch (method) {
      case 'server/discover':
        return call.reply.give(DISCOVERED, OK);
      case 'tools/list':
        this.journal.write({ kind: 'toolsListed' }, call.arrival);
        return call.reply.give({ result: { ...CACHING, tools: published() } }, OK);
      case 'tasks/get':
        return this.get(call);
      case 'tasks/update':
        return this.update(call);
      case 'tasks/cancel':
        return call.session.style.cancel ? this.cancel(call) : call.reply.give(METHOD_NOT_FOUND, OK);
      default:
        return call.reply.give(METHOD_NOT_FOUND, OK);
    }
  }

  /** One reply for what are two requests of 2025-11-25: first the word for the poll is played, then that for the result. */
  private async get(call: ModernCall): Promise<void> {
    const { reply, arrival } = call;
    const task = await this.findTask('polled', call);
    if (!task) return;
    const forPoll = this.playWord(task, 'polls', arrival);
    const hasResult = task.isTellingEnd && task.status !== 'cancelled';
    const word = forPoll.name === 'ok' && hasResult ? this.playWord(task, 'result', arrival) : forPoll;
    if (isInsteadOfHandling(word)) return reply.giveInstead(word);
    await reply.give({ result: await this.statusOf(task, arrival) }, word);
  }

  private async statusOf(task: Task, arrival: Arrival): Promise<JsonObject> {
    const isEnd = task.isTellingEnd;
    // Before the read is counted: the last read that an answer is held for still lists it.
    const inputRequests = task.status === 'input_required' ? this.askingOf(task).list(arrival) : null;
    const told = task.told();
    if (isEnd) return endedTask(told, task.status, await task.ended());
    const status = task.wire.task(told);
    return inputRequests === null ? status : { ...status, inputRequests };
  }

  private async update(call: ModernCall): Promise<void> {
    const { params, reply, arrival } = call;
    const task = this.tasks.find(call.session, params['taskId']);
    if (!task) return reply.give(UNKNOWN_TASK, OK);
    const heard = this.askingOf(task).hear(params['inputResponses'], arrival);
    const word = this.playWord(task, 'answers', arrival);
    if (isInsteadOfHandling(word)) return reply.giveInstead(word);
    for (const take of heard) take();
    await reply.give(ACKNOWLEDGED, word);
  }

  /** Cooperative: acknowledged whatever comes of it, also of what is over. */
  private async cancel(call: ModernCall): Promise<void> {
    const { reply, arrival } = call;
    const task = await this.findTask('cancelReceived', call);
    if (!task) return;
    const word = this.playWord(task, 'cancelReply', arrival);
    if (isInsteadOfHandling(word)) return reply.giveInstead(word);
    const { cancel } = task.order.plan;
    const isRefused = cancel.name === 'refuse' && !task.isTerminal;
    const decided = await decideCancel(task);
    await reply.give(isRefused ? decided : ACKNOWLEDGED, word);
    if (cancel.name === 'complete-after') task.execution?.hurry();
  }

  /** The task, or null where nobody knows it (any more); then -32602 was answered. */
  private async findTask(
    kind: 'polled' | 'cancelReceived',
    { session, params, reply, arrival }: ModernCall,
  ): Promise<Task | null> {
    const { taskId } = params;
    const task = this.tasks.find(session, taskId);
    const remoteTaskId = typeof taskId === 'string' ? taskId : '';
    this.journal.write({ kind, label: task?.order.label ?? null, remoteTaskId }, arrival);
    if (task && !task.takeLag()) return task;
    await reply.give(UNKNOWN_TASK, OK);
    return null;
  }

  private playWord(task: Task, phase: Phase, arrival: Arrival): Word {
    const word = task.takeWord(phase);
    const { label } = task.order;
    if (word.name !== 'ok')
      this.journal.write({ kind: 'faultPlayed', label, phase, word: spell(word) }, arrival);
    return word;
  }

  private askingOf(task: Task): ListedQuestions {
    const asking = this.asking.get(task) ?? new ListedQuestions(task, this.journal);
    this.asking.set(task, asking);
    return asking;
  }
}

/** This revision's list of tools says nothing of tasks. */
function published(): readonly JsonObject[] {
  return descriptors().map((descriptor) =>
    Object.fromEntries(Object.entries(descriptor).filter(([member]) => member !== 'execution')),
  );
}
