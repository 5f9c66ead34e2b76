// Owns `tools/call`: what is refused before anything runs, what is the same call again, and the start of the work.
// Must never start work twice for one key where the plan says `deduplicate`, nor at all for a call it refuses.

import { Execution, type WorkOrder, type WorkResult } from './executions.js';
import { isObject, type JsonObject, type JsonValue, sortedJson } from './json.js';
import type { Arrival, Journal } from './journal.js';
import { aboutTask } from './false-replies.js';
import { PlanRefused, readPlan } from './plan.js';
import { type Job, Jobs, START_JOB, START_TEXT_JOB } from './jobs.js';
import { LOOK_UP_TOOL, LookUps } from './look-ups.js';
import type { Reply, RpcAnswer } from './replies.js';
import type { Session, Sessions } from './sessions.js';
import { Task, type Tasks } from './tasks.js';
import { KEY_ARGUMENT, KEY_META, TOOLS } from './tools.js';
import { CallRefused, type Wire } from './wire.js';
import { isInsteadOfHandling, OK, spell, type Word, wordAt } from './words.js';

export interface CallDesk {
  readonly journal: Journal;
  readonly sessions: Sessions;
  readonly tasks: Tasks;
  /** The plan of a call that brings none. */
  readonly defaultPlan: JsonObject;
}

/** The same key with other arguments: typed, so that nobody takes it for a failure of the work. */
const KEY_CONFLICT_CODE = -32009;

type Started =
  | { readonly kind: 'task'; readonly task: Task }
  | { readonly kind: 'job'; readonly job: Job }
  | { readonly kind: 'plain'; readonly done: Promise<WorkResult> };

interface KnownKey {
  readonly argumentsText: string;
  readonly started: Started;
}

export class Calls {
  private readonly desk: CallDesk;
  private readonly received = new Map<string, number>();
  private readonly keys = new Map<string, KnownKey>();
  private readonly lookUps: LookUps;
  private readonly jobs: Jobs;

  constructor(desk: CallDesk) {
    this.desk = desk;
    this.lookUps = new LookUps(desk.journal);
    this.jobs = new Jobs(desk.journal);
  }

  async call(params: JsonObject, session: Session, reply: Reply, arrival: Arrival): Promise<void> {
    const { journal } = this.desk;
    if (params['name'] === LOOK_UP_TOOL) return reply.give(this.lookUps.answer(params, arrival), OK);
    if (this.jobs.isTool(params['name'])) return this.jobs.call(params['name'], params, reply, arrival);
    const label = journalCall(params, session.wire, journal, arrival);
    try {
      const read = this.readOrder(params, session.wire);
      this.lookUps.heard(read);
      const nth = this.received.get(read.label) ?? 0;
      this.received.set(read.label, nth + 1);
      session.noteCall(read.label, read.plan.words.lists);
      const word = wordAt(read.plan.words.create, nth);
      const played = { kind: 'faultPlayed', label: read.label, phase: 'create', word: spell(word) } as const;
      if (word.name !== 'ok') journal.write(played, arrival);
      if (isInsteadOfHandling(word)) return await reply.giveInstead(word);
      const first = session.wire.askFirst(read, params, journal, arrival);
      if ('ask' in first) return await reply.give(first.ask, word);
      const order = { ...read, heard: first.heard };
      const started = this.startOnce(order, params, session, arrival);
      await reply.give(this.named(await this.answerOf(started), started, session, word), word);
      if (order.plan.session === 'lose-after-create') this.loseSession(started, session);
    } catch (error) {
      if (!(error instanceof CallRefused)) throw error;
      const { code, message, data } = error;
      journal.write({ kind: 'callRefused', label, code, reason: message }, arrival);
      await reply.give({ error: { code, message, ...(data ? { data } : {}) } }, OK);
    }
  }

  /** The answer, under an id that is another's where the word says so. */
  private named(answer: RpcAnswer, started: Started, session: Session, word: Word): RpcAnswer {
    if (word.name !== 'reused-id' || started.kind !== 'task' || !('result' in answer)) return answer;
    const other = this.desk.tasks.earlierThan(started.task);
    if (!other) return answer;
    other.sessions.add(session.sessionId);
    return { result: aboutTask(answer.result, other.remoteTaskId) };
  }

  /** @throws CallRefused */
  private readOrder(params: JsonObject, wire: Wire): WorkOrder {
    const support = typeof params['name'] === 'string' ? TOOLS[params['name']] : undefined;
    if (support === undefined) throw new CallRefused(-32602, 'there is no such tool');
    const asTask = wire.becomesTask(params, support);
    const { code, data } = wire.taskRequired;
    if (support === 'required' && !asTask) throw new CallRefused(code, 'the tool runs as a task only', data);
    if (support === 'forbidden' && asTask) throw new CallRefused(-32601, 'the tool does not run as a task');
    const args = params['arguments'];
    if (!isObject(args)) throw new CallRefused(-32602, 'the arguments are no object');
    const {
      label,
      durationMs,
      resultBytes,
      plan: planJson,
      [KEY_ARGUMENT]: keyArgument,
      ...strangers
    } = args;
    if (typeof label !== 'string' || label === '')
      throw new CallRefused(-32602, 'the arguments have no label');
    const [stranger] = Object.keys(strangers);
    if (stranger !== undefined) throw new CallRefused(-32602, `the arguments have no "${stranger}"`);
    try {
      const plan = readPlan(planJson ?? this.desk.defaultPlan);
      // What a seed draws is the same on all contracts; what a person wrote must be able to happen.
      const isDrawn = isObject(planJson) && planJson['seed'] !== undefined;
      const objection = isDrawn ? null : wire.objectionTo(plan);
      if (objection !== null) throw new PlanRefused(objection);
      const mayAsk = asTask || isJobStart(params);
      if (plan.questions > 0 && !mayAsk) throw new PlanRefused('questions need a task');
      const key = typeof keyArgument === 'string' ? keyArgument : metaKeyOf(params);
      return {
        label,
        durationMs: numberOr(durationMs, 0),
        resultBytes: numberOr(resultBytes, 0),
        plan,
        key,
        asTask,
        heard: [],
      };
    } catch (error) {
      if (error instanceof PlanRefused) throw new CallRefused(-32602, error.message);
      throw error;
    }
  }

  /** @throws CallRefused */
  private startOnce(order: WorkOrder, params: JsonObject, session: Session, arrival: Arrival): Started {
    const { key, plan, label } = order;
    if (key === null || !plan.deduplicate) return this.start(order, params, session, arrival);
    const argumentsText = sortedJson([params['name'] ?? null, params['arguments'] ?? null]);
    const known = this.keys.get(key);
    if (!known) {
      const started = this.start(order, params, session, arrival);
      this.keys.set(key, { argumentsText, started });
      return started;
    }
    if (known.argumentsText !== argumentsText) {
      const data = { reason: 'idempotency-key-conflict' };
      throw new CallRefused(KEY_CONFLICT_CODE, 'this key was used with other arguments', data);
    }
    this.desk.journal.write({ kind: 'callDeduplicated', label, key }, arrival);
    if (known.started.kind === 'task') known.started.task.sessions.add(session.sessionId);
    return known.started;
  }

  private start(order: WorkOrder, params: JsonObject, session: Session, arrival: Arrival): Started {
    const { journal, tasks } = this.desk;
    if (isJobStart(params)) return this.startJob(order, params, session, arrival);
    if (!order.asTask) {
      const execution = new Execution(order, journal, async () => null);
      this.lookUps.started(order, `plain run of ${order.label}`);
      return { kind: 'plain', done: execution.done };
    }
    const task = new Task(order, session, session.wire.lifetimeOf(params), journal);
    tasks.add(task);
    this.lookUps.started(order, task.remoteTaskId);
    journal.write({ kind: 'taskCreated', label: order.label, remoteTaskId: task.remoteTaskId }, arrival);
    const { sessionLossMs } = order.plan;
    const started: Started = { kind: 'task', task };
    if (sessionLossMs !== null) setTimeout(() => this.loseSession(started, session), sessionLossMs);
    const execution = new Execution(order, journal, (question, signal) =>
      task.questions.ask(question, signal),
    );
    task.execution = execution;
    void execution.done.then((result) => task.end(result));
    return started;
  }

  private startJob(order: WorkOrder, params: JsonObject, session: Session, arrival: Arrival): Started {
    const { journal } = this.desk;
    const job = this.jobs.create(params['name'], order);
    const started: Started = { kind: 'job', job };
    const remoteTaskId = String(job.jobId);
    this.lookUps.started(order, remoteTaskId);
    journal.write({ kind: 'taskCreated', label: order.label, remoteTaskId }, arrival);
    const { sessionLossMs } = order.plan;
    if (sessionLossMs !== null) setTimeout(() => this.loseSession(started, session), sessionLossMs);
    const execution = new Execution(order, journal, (question, signal) => job.ask(question, journal, signal));
    job.execution = execution;
    void execution.done.then((result) => (job.result = result));
    return started;
  }

  private async answerOf(started: Started): Promise<RpcAnswer> {
    switch (started.kind) {
      case 'task':
        return { result: started.task.wire.created(started.task.toWire()) };
      case 'job':
        return this.jobs.started(started.job);
      case 'plain':
        return resultAnswer(await started.done);
    }
  }

  private loseSession(started: Started, session: Session): void {
    if (started.kind === 'plain' || session.goneAs !== null || session.wire.isSessionless) return;
    const { order } = started.kind === 'task' ? started.task : started.job;
    const { sessionGone, taskAfterSession } = order.plan;
    if (started.kind === 'task') {
      started.task.sessions.delete(session.sessionId);
      started.task.isFoundEverywhere = taskAfterSession === 'found';
    } else {
      // Jobs belong to no session; this one may be forgotten with it all the same.
      started.job.isForgotten = taskAfterSession !== 'found';
    }
    this.desk.sessions.lose(session, sessionGone);
    const { label } = order;
    this.desk.journal.write(
      { kind: 'sessionLost', label, goneAs: sessionGone },
      { session: session.sessionId },
    );
  }
}

/** Before any check: whatever was received is in the journal. */
function journalCall(params: JsonObject, wire: Wire, journal: Journal, arrival: Arrival): string | null {
  const args = isObject(params['arguments']) ? params['arguments'] : {};
  const label = textOrNull(args['label']);
  journal.write(
    {
      kind: 'callReceived',
      label,
      tool: textOrNull(params['name']),
      asTask: wire.offersTask(params),
      keyArgument: textOrNull(args[KEY_ARGUMENT]),
      keyMeta: metaKeyOf(params),
    },
    arrival,
  );
  return label;
}

function isJobStart(params: JsonObject): boolean {
  return params['name'] === START_JOB || params['name'] === START_TEXT_JOB;
}

export function resultAnswer(work: WorkResult, meta?: JsonObject): RpcAnswer {
  switch (work.kind) {
    case 'protocolError':
      return { error: work.error };
    case 'aborted':
      return { error: { code: -32603, message: 'the task was cancelled: it has no result' } };
    default:
      return { result: meta ? { ...work.result, _meta: meta } : work.result };
  }
}

function metaKeyOf(params: JsonObject): string | null {
  return isObject(params['_meta']) ? textOrNull(params['_meta'][KEY_META]) : null;
}

function textOrNull(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

function numberOr(value: JsonValue | undefined, otherwise: number): number {
  return typeof value === 'number' && value >= 0 ? value : otherwise;
}
