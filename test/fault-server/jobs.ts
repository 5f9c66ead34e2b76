// Owns jobs: work that a plain tool started, and the plain tools that look after it by its id (no tasks of any revision).
// Must never run the body of a tool, nor tell of a job in a way its start did not say: structured, or as JSON text.

import { randomUUID } from 'node:crypto';
import type { Execution, WorkOrder, WorkResult } from './executions.js';
import { isObject, type JsonObject, type JsonValue } from './json.js';
import type { Arrival, Journal } from './journal.js';
import type { Phase } from './plan.js';
import type { Reply, RpcAnswer } from './replies.js';
import { isInsteadOfHandling, OK, spell, type Word, wordAt } from './words.js';

export const START_JOB = 'start_job';
/** Answers in JSON text only, and counts its jobs: their ids are numbers. */
export const START_TEXT_JOB = 'start_text_job';
const JOB_TOOLS = ['job_status', 'job_result', 'cancel_job', 'answer_job'] as const;
type JobToolName = (typeof JOB_TOOLS)[number];

const CHOICE: JsonObject = { type: 'string', enum: ['left', 'right'] };
const QUESTION_ID: JsonObject = { type: 'integer' };

export function jobToolDescriptors(): readonly JsonObject[] {
  return JOB_TOOLS.map((name) => {
    const answers = name === 'answer_job';
    return {
      name,
      description: 'Looks after what start_job and start_text_job start.',
      inputSchema: {
        type: 'object',
        additionalProperties: false,
        required: answers ? ['jobId', 'questionId', 'choice'] : ['jobId'],
        // Two kinds of ids: a requester has to give back what it was given.
        properties: { jobId: {}, ...(answers ? { questionId: QUESTION_ID, choice: CHOICE } : {}) },
      },
    };
  });
}

interface OpenQuestion {
  readonly question: number;
  readonly settle: (answer: JsonValue) => void;
  /** A reply that was taken and moves nothing for so many status reads. */
  held: { readonly choice: string; readsLeft: number } | null;
}

export class Job {
  readonly jobId: string | number;
  readonly order: WorkOrder;
  readonly isText: boolean;
  readonly createdAt = Date.now();
  execution: Execution | null = null;
  isForgotten = false;
  question: OpenQuestion | null = null;
  result: WorkResult | null = null;
  private readonly played = new Map<Phase, number>();
  private lagReadsLeft: number;
  private staleReadsLeft: number;
  private wasEndTold = false;
  private reads = 0;

  constructor(jobId: string | number, order: WorkOrder, isText: boolean) {
    this.jobId = jobId;
    this.order = order;
    this.isText = isText;
    this.lagReadsLeft = order.plan.lagReads;
    this.staleReadsLeft = order.plan.staleReads;
  }

  takeWord(phase: Phase): Word {
    const nth = this.played.get(phase) ?? 0;
    this.played.set(phase, nth + 1);
    return wordAt(this.order.plan.words[phase], nth);
  }

  isKnown(): boolean {
    const { ttlMs } = this.order.plan;
    if (this.isForgotten || (ttlMs !== null && Date.now() >= this.createdAt + ttlMs)) return false;
    if (this.lagReadsLeft === 0) return true;
    this.lagReadsLeft -= 1;
    return false;
  }

  ask(question: number, journal: Journal, signal: AbortSignal): Promise<JsonValue> {
    journal.write({ kind: 'questionAsked', label: this.order.label, question });
    return new Promise((resolve) => {
      const settle = (answer: JsonValue): void => {
        this.question = null;
        resolve(answer);
      };
      signal.addEventListener('abort', () => settle(null), { once: true });
      this.question = { question, settle, held: null };
    });
  }

  /** The state in this server's own words. */
  state(): string {
    const { workingStatus } = this.order.plan;
    if (this.question) return 'needs_input';
    if (!this.result) return workingStatus === 'working' ? 'running' : workingStatus;
    if (this.result.kind === 'aborted') return 'cancelled';
    return this.result.kind === 'protocolError' ? 'error' : 'done';
  }

  /** What one status read is told. */
  read(): JsonObject {
    const { pollIntervals, pollIntervalMs } = this.order.plan;
    const hint = pollIntervals[Math.min(this.reads, pollIntervals.length - 1)];
    this.reads += 1;
    const told = this.told(this.isStaleRead() ? 'running' : this.state());
    const { question } = this;
    if (question?.held && --question.held.readsLeft <= 0) question.settle(question.held.choice);
    const interval = hint === undefined ? pollIntervalMs : hint;
    return interval === null ? told : { ...told, pollAfterMs: interval };
  }

  told(state: string = this.state()): JsonObject {
    const asked = state === 'needs_input' ? this.question : null;
    return {
      jobId: this.jobId,
      state,
      note: `${this.order.label}: ${state}`,
      ...(asked
        ? { questionId: asked.question, question: `Question ${asked.question} of ${this.order.label}` }
        : {}),
    };
  }

  private isStaleRead(): boolean {
    if (!this.result) return false;
    const isFirst = !this.wasEndTold;
    this.wasEndTold = true;
    if (isFirst || this.staleReadsLeft === 0) return false;
    this.staleReadsLeft -= 1;
    return true;
  }
}

export class Jobs {
  private readonly journal: Journal;
  private readonly all = new Map<string | number, Job>();
  private counted = 0;

  constructor(journal: Journal) {
    this.journal = journal;
  }

  isTool(name: JsonValue | undefined): name is JobToolName {
    return JOB_TOOLS.includes(name as JobToolName);
  }

  create(tool: JsonValue | undefined, order: WorkOrder): Job {
    const isText = tool === START_TEXT_JOB;
    const job = new Job(isText ? ++this.counted : randomUUID(), order, isText);
    this.all.set(job.jobId, job);
    return job;
  }

  started(job: Job): RpcAnswer {
    return answerFor(job, job.told());
  }

  async call(tool: JobToolName, params: JsonObject, reply: Reply, arrival: Arrival): Promise<void> {
    const args = isObject(params['arguments']) ? params['arguments'] : {};
    const { jobId } = args;
    // Exactly the value that was given out: "7" is no job where 7 is one.
    const found = typeof jobId === 'string' || typeof jobId === 'number' ? this.all.get(jobId) : undefined;
    const label = found?.order.label ?? null;
    this.note(tool, label, jobId, args, arrival);
    if (!found?.isKnown()) return reply.give(NO_SUCH_JOB, OK);
    const phase = PHASE_OF[tool];
    const word = found.takeWord(phase);
    if (word.name !== 'ok') {
      const { label: of } = found.order;
      this.journal.write({ kind: 'faultPlayed', label: of, phase, word: spell(word) }, arrival);
    }
    if (isInsteadOfHandling(word)) return reply.giveInstead(word);
    await reply.give(await this.perform(tool, found, args), word);
    if (tool === 'cancel_job' && found.order.plan.cancel.name === 'complete-after') found.execution?.hurry();
  }

  private note(
    tool: JobToolName,
    label: string | null,
    jobId: JsonValue | undefined,
    args: JsonObject,
    arrival: Arrival,
  ): void {
    if (tool === 'answer_job') {
      const { questionId, choice = null } = args;
      const question = typeof questionId === 'number' ? questionId : null;
      return this.journal.write({ kind: 'answerReceived', label, question, answer: choice }, arrival);
    }
    const kinds = { job_status: 'polled', job_result: 'resultAsked', cancel_job: 'cancelReceived' } as const;
    this.journal.write({ kind: kinds[tool], label, remoteTaskId: idText(jobId) }, arrival);
  }

  private perform(tool: JobToolName, job: Job, args: JsonObject): RpcAnswer | Promise<RpcAnswer> {
    switch (tool) {
      case 'job_status':
        return answerFor(job, job.read());
      case 'job_result':
        return resultFor(job);
      case 'cancel_job':
        return this.cancel(job);
      case 'answer_job':
        return takeReply(job, args);
    }
  }

  private async cancel(job: Job): Promise<RpcAnswer> {
    const { cancel } = job.order.plan;
    if (job.result || cancel.name === 'refuse') return failed('the job cannot be cancelled');
    switch (cancel.name) {
      case 'honour':
        job.execution?.abort();
        await job.execution?.done;
        break;
      case 'delay':
        setTimeout(() => job.execution?.abort(), cancel.amount ?? 0);
        break;
      case 'complete-first':
        job.execution?.hurry();
        await job.execution?.done;
        return failed('the job cannot be cancelled');
      default:
        // `ignore`, `flip` and `complete-after`: taken, and the work goes on.
        break;
    }
    return answerFor(job, { jobId: job.jobId, taken: true });
  }
}

const PHASE_OF: Readonly<Record<JobToolName, Phase>> = {
  job_status: 'polls',
  job_result: 'result',
  cancel_job: 'cancelReply',
  answer_job: 'answers',
};

const NO_SUCH_JOB = failed('no such job');

function takeReply(job: Job, { questionId, choice }: JsonObject): RpcAnswer {
  const { question } = job;
  if (!question || question.question !== questionId || question.held !== null)
    return failed('that question is not open');
  if (choice !== 'left' && choice !== 'right') return failed('the choice is neither left nor right');
  const { heldAnswerReads } = job.order.plan;
  if (heldAnswerReads === 0) question.settle(choice);
  else {
    const readsLeft = heldAnswerReads < 0 ? Number.POSITIVE_INFINITY : heldAnswerReads;
    question.held = { choice, readsLeft };
  }
  return answerFor(job, { jobId: job.jobId, taken: true });
}

function resultFor({ result }: Job): RpcAnswer {
  if (!result || result.kind === 'aborted') return failed('the job has no result');
  return result.kind === 'protocolError' ? failed(JSON.stringify(result.error)) : { result: result.result };
}

function answerFor(job: Job, said: JsonObject): RpcAnswer {
  const content = [{ type: 'text', text: JSON.stringify(said) }];
  return { result: job.isText ? { content } : { content, structuredContent: said } };
}

function idText(jobId: JsonValue | undefined): string {
  return typeof jobId === 'string' || typeof jobId === 'number' ? `${jobId}` : '';
}

function failed(text: string): RpcAnswer {
  return { result: { content: [{ type: 'text', text }], isError: true } };
}
