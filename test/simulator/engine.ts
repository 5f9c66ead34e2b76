// Owns a simulated engine: runs with their histories, messages, reset, terminate, lost workers and engines.
// Must never know what a tool operation is.

import { isDeepStrictEqual } from 'node:util';
import { ActivityTask, type Attempt, cloned } from './activity-task.js';
import type { VirtualTime } from './virtual-time.js';
import { type Command, type Job, Sandbox } from './workflow-sandbox.js';

export type RunStatus = 'open' | 'completed' | 'failed' | 'terminated';

export interface EngineOptions {
  readonly time: VirtualTime;
  readonly random: () => number;
  readonly workflow: (input: unknown) => Promise<unknown>;
  readonly activities: Readonly<Record<string, (input: unknown) => Promise<unknown>>>;
  readonly onAttempt: (attempt: Attempt) => void;
  readonly onHeartbeat: (details: unknown) => void;
  readonly onAttemptEnd: (attempt: Attempt, how: string) => void;
  readonly onClosed: (run: Run) => void;
  readonly say: (line: string) => void;
}

interface Task {
  readonly atMs: number;
  readonly jobs: readonly Job[];
  readonly commands: readonly Command[];
  /** A reset went on from here: its run, whose id the random numbers after it are drawn from. */
  readonly resetAs?: string;
}

/** How long a workflow task may lie before a worker takes it (ms). */
const TASK_LAG_MS = 30;

export class Run {
  readonly engine: Engine;
  readonly workflowId: string;
  readonly runId: string;
  readonly firstRunId: string;
  readonly input: unknown;
  readonly startedAt: number;
  status: RunStatus = 'open';
  value: unknown = null;
  error: unknown = null;
  sandbox: Sandbox;
  readonly history: Task[] = [];
  readonly #inbox: Job[] = [];
  readonly tasks = new Map<number, ActivityTask>();
  readonly #timers = new Map<number, { takeBack(): void }>();
  #isTaskPlanned = false;

  constructor(engine: Engine, of: Pick<Run, 'workflowId' | 'runId' | 'firstRunId' | 'input' | 'startedAt'>) {
    this.engine = engine;
    this.workflowId = of.workflowId;
    this.runId = of.runId;
    this.firstRunId = of.firstRunId;
    this.input = of.input;
    this.startedAt = of.startedAt;
    this.sandbox = this.#newSandbox();
  }

  #newSandbox(): Sandbox {
    const { workflowId, runId, firstRunId, startedAt } = this;
    const info = {
      workflowId,
      runId,
      firstExecutionRunId: firstRunId,
      taskQueue: 'queue',
      startTime: new Date(startedAt),
    };
    return new Sandbox(info, this.engine.options.workflow, cloned(this.input));
  }

  post(job: Job): void {
    if (this.status !== 'open') return;
    this.#inbox.push(job);
    if (this.#isTaskPlanned) return;
    this.#isTaskPlanned = true;
    const { time, random } = this.engine.options;
    time.after(Math.floor(random() * TASK_LAG_MS), () => this.#workflowTask());
  }

  async #workflowTask(): Promise<void> {
    this.#isTaskPlanned = false;
    const jobs = this.#inbox.splice(0);
    if (this.status !== 'open' || jobs.length === 0) return;
    const commands = await this.sandbox.activate(jobs);
    this.history.push({ atMs: this.engine.options.time.nowMs, jobs, commands });
    this.#obey(commands);
  }

  #obey(commands: readonly Command[]): void {
    for (const command of commands) {
      switch (command.kind) {
        case 'activity':
          this.#schedule(command);
          break;
        case 'cancelActivity':
          this.tasks.get(command.seq)?.requestCancel();
          break;
        case 'timer':
          this.#startTimer(command.seq, command.delayMs);
          break;
        case 'cancelTimer':
          this.#timers.get(command.seq)?.takeBack();
          break;
        case 'complete':
          this.value = cloned(command.value);
          this.close('completed');
          break;
        case 'fail':
          this.error = command.error;
          this.close('failed');
          break;
      }
    }
  }

  #schedule(command: Extract<Command, { kind: 'activity' }>): void {
    const { seq, type } = command;
    const { time, random, activities, onAttempt, onHeartbeat, onAttemptEnd } = this.engine.options;
    const body = activities[type];
    if (!body) throw new Error(`no activity ${type}`);
    const task = new ActivityTask(type, command.input, command.options, {
      time,
      random,
      run: { workflowId: this.workflowId, runId: this.runId },
      body,
      onAttempt,
      onHeartbeat,
      onAttemptEnd,
      onEnd: (end) => {
        this.tasks.delete(seq);
        this.post('value' in end ? { kind: 'resolve', seq, ...end } : { kind: 'reject', seq, ...end });
      },
    });
    this.tasks.set(seq, task);
  }

  #startTimer(seq: number, delayMs: number): void {
    const timer = this.engine.options.time.after(delayMs, () => this.post({ kind: 'fire', seq }));
    this.#timers.set(seq, timer);
  }

  close(status: RunStatus): void {
    if (this.status !== 'open') return;
    this.status = status;
    for (const task of this.tasks.values()) task.abandon();
    for (const timer of this.#timers.values()) timer.takeBack();
    this.tasks.clear();
    this.engine.options.onClosed(this);
  }

  /** The worker lost its cache: the run is rebuilt from its history, and must ask for the same again in the same order. */
  async replay(): Promise<readonly Command[]> {
    const sandbox = this.#newSandbox();
    const said: Command[] = [];
    for (const [index, task] of this.history.entries()) {
      const commands = await this.engine.options.time.pretend(task.atMs, () => sandbox.activate(task.jobs));
      if (task.resetAs !== undefined) sandbox.reseed(task.resetAs);
      if (!isDeepStrictEqual(commands.map(wordFor), task.commands.map(wordFor)))
        throw new Error(`replay of ${this.runId} asks for something else in task ${index}`);
      said.push(...commands.map((command) => shifted(command, task.atMs, this)));
    }
    this.sandbox = sandbox;
    return said;
  }

  /** Goes on from another run's history up to a task; what was pending there is pending again, from its start. */
  async adoptPrefix(prefix: readonly Task[], later: readonly Job[]): Promise<void> {
    const resetAs = this.runId;
    this.history.push(
      ...prefix.map((task, index) => (index === prefix.length - 1 ? { ...task, resetAs } : task)),
    );
    const again = await this.replay();
    // A scheduled activity keeps its input; a local one is in no history before it ends, and is asked for anew.
    const before = prefix.flatMap((task) => task.commands);
    const said = again.map((command, index) => {
      const isKept = command.kind === 'activity' && !command.options.isLocal;
      return isKept ? (before[index] ?? command) : command;
    });
    const heard = new Set(prefix.flatMap((task) => task.jobs.map((job) => ('seq' in job ? job.seq : -1))));
    const isDone = (command: Command): boolean => 'seq' in command && heard.has(command.seq);
    const over = new Set(said.flatMap((command) => (command.kind === 'cancelTimer' ? [command.seq] : [])));
    const pending = said.filter(
      (command) => !isDone(command) && !('seq' in command && over.has(command.seq)),
    );
    this.#obey(pending);
    for (const job of later) this.post(job);
  }

  /** Messages that no workflow task has seen yet. */
  get unread(): readonly Job[] {
    return this.#inbox;
  }
}

/** A timer that is still pending goes off when it would have gone off. */
function shifted(command: Command, startedAt: number, run: Run): Command {
  if (command.kind !== 'timer') return command;
  return { ...command, delayMs: Math.max(0, startedAt + command.delayMs - run.engine.options.time.nowMs) };
}

/** What the engine compares: kinds, order and names, never inputs. */
function wordFor(command: Command): string {
  const seq = 'seq' in command ? command.seq : '';
  return `${command.kind} ${seq} ${command.kind === 'activity' ? command.type : ''}`;
}

export class Engine {
  readonly options: EngineOptions;
  readonly runs: Run[] = [];
  readonly #name: string;

  constructor(name: string, options: EngineOptions) {
    this.#name = name;
    this.options = options;
  }

  openRun(): Run | null {
    return this.runs.find((run) => run.status === 'open') ?? null;
  }

  /** A start finds the open run, or the completed one; a closed one without an end makes room for the next. */
  start(workflowId: string, input: unknown): void {
    if (this.openRun() || this.runs.some((run) => run.status === 'completed')) return;
    const runId = this.#nextRunId();
    this.options.say(`start ${runId}`);
    const run = new Run(this, {
      workflowId,
      runId,
      firstRunId: runId,
      input,
      startedAt: this.options.time.nowMs,
    });
    this.runs.push(run);
    run.post({ kind: 'start' });
  }

  #nextRunId(): string {
    return `${this.#name}-run-${this.runs.length + 1}`;
  }

  terminate(): void {
    const run = this.openRun();
    if (!run) return;
    this.options.say(`terminate ${run.runId}`);
    run.close('terminated');
  }

  /** Back to the end of one of the last run's workflow tasks; messages that came later are handed over again. */
  async reset(share: number): Promise<void> {
    const last = this.runs.at(-1);
    if (!last || last.history.length === 0) return;
    const length = 1 + Math.floor(share * last.history.length);
    const prefix = last.history.slice(0, length);
    if (prefix.some((task) => task.commands.some(({ kind }) => kind === 'complete' || kind === 'fail')))
      return;
    const later = [...last.history.slice(length).flatMap((task) => task.jobs), ...last.unread];
    const messages = later.filter(({ kind }) => kind === 'signal' || kind === 'update');
    const runId = this.#nextRunId();
    this.options.say(`reset ${last.runId} to task ${length} as ${runId}`);
    last.close('terminated');
    const { workflowId, firstRunId, input, startedAt } = last;
    const run = new Run(this, { workflowId, runId, firstRunId, input, startedAt });
    this.runs.push(run);
    await run.adoptPrefix(prefix, messages);
  }

  /** Brings the pending activities of a type forward. */
  bringForward(runId: string, type: string): void {
    const run = this.runs.find((candidate) => candidate.runId === runId);
    for (const task of run?.tasks.values() ?? []) if (task.type === type) task.bringForward();
  }
}
