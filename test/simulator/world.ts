// Owns one simulated world: the shipped workflow, bodies, core and store over a virtual engine and a model server.
// Must never decide what is right; it lets a script happen and keeps the story. `judge.ts` judges.

import { createStepActivities } from '../../activities/bind.js';
import type { Ports } from '../../activities/ports.js';
import { replyDigest, requestDigest } from '../../operation/digests.js';
import type { LiveStatus } from '../../operation/live-status.js';
import { ACTIVITIES, MESSAGES, workflowIdOf } from '../../operation/names.js';
import type { ToolOperation } from '../../operation/record.js';
import type { OperationPolicy } from '../../operation/row.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { toolOperation } from '../../workflows/tool-operation.js';
import { Random } from '../operation/random.js';
import { POLICY } from '../receipts/suite-fixtures.js';
import type { Attempt } from './activity-task.js';
import { Blows } from './blows.js';
import { Engine, type Run } from './engine.js';
import { attempts } from './fake-activity.js';
import { watchFence } from './fence-watch.js';
import { type Passage, Points } from './points.js';
import type { OperatorWord, PlannedReply, Script } from './script.js';
import { ToolServerModel } from './tool-server.js';
import { inVirtualTime, VirtualTime } from './virtual-time.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** A course of some days with its polls needs a few thousand; more is a circle. */
const MOST_EVENTS = 20_000;

export interface GivenReply {
  readonly roundId: string;
  readonly replyDigest: string;
  readonly bytes: string;
  /** Null for a signal. */
  readonly updateId: string | null;
}

/** What happened in a world, for its judge and for people. */
export interface Story {
  readonly lines: string[];
  /** What no course allows, noticed on the way. */
  readonly breaches: string[];
  readonly cancelsAskedAt: number[];
  readonly repliesGiven: GivenReply[];
  /** Round ids in the order in which people came to hear of them, each once. */
  readonly roundsAsked: string[];
  operatorSpoke: OperatorWord | null;
  readonly receiptTexts: string[];
  readonly passages: Passage[];
  /** Why it was held once all was well again. */
  readonly holds: string[];
}

export type Tamper = (store: ReceiptStore, world: World) => ReceiptStore;

export class World {
  readonly time = new VirtualTime();
  readonly startedAt = this.time.nowMs;
  readonly story: Story = {
    lines: [],
    breaches: [],
    cancelsAskedAt: [],
    repliesGiven: [],
    roundsAsked: [],
    operatorSpoke: null,
    receiptTexts: [],
    passages: [],
    holds: [],
  };
  readonly script: Script;
  readonly callNodeId: string;
  readonly server: ToolServerModel;
  readonly engines: Engine[] = [];
  readonly points: Points;
  readonly store: ReceiptStore;
  readonly blows: Blows;
  readonly random: Random;
  isHealed = false;
  #tokens = 0;

  /** `tamper` breaks a rule on purpose, to see that the judge notices. */
  constructor(
    script: Script,
    callNodeId: string,
    store: ReceiptStore,
    tamper: Tamper = (untouched) => untouched,
  ) {
    this.script = script;
    this.callNodeId = callNodeId;
    this.random = new Random(script.seed * 7 + 1);
    this.blows = new Blows(this);
    this.points = new Points((passage) => {
      this.story.passages.push(passage);
      this.blows.atPoint(passage);
    });
    this.server = new ToolServerModel(script.plan, {
      time: this.time,
      mayStop: (point) => this.points.pass(point),
      caller: () => attempts.getStore() ?? null,
      isGivenUp: (caller) => (caller as Attempt).isOver,
    });
    this.store = this.points.around(this.#watched(tamper(store, this)));
    this.addEngine();
  }

  get policy(): OperationPolicy {
    return { ...POLICY, ...this.script.plan.policy };
  }

  say(line: string): void {
    const atS = ((this.time.nowMs - this.startedAt) / 1_000).toFixed(2).padStart(8);
    this.story.lines.push(`${atS} ${line}`);
  }

  // --- its parts

  addEngine(): Engine {
    const engine: Engine = new Engine(`engine-${this.engines.length + 1}`, {
      time: this.time,
      random: () => this.random.next(),
      workflow: toolOperation as (input: unknown) => Promise<unknown>,
      activities: this.#activities(),
      onAttempt: (attempt) => this.blows.onAttempt(attempt),
      onHeartbeat: (details) => this.#hear(details as LiveStatus | undefined),
      onAttemptEnd: (attempt, how) => this.#attemptEnded(attempt, how),
      onClosed: (run) => this.#closed(engine, run),
      say: (line) => this.say(line),
    });
    this.engines.push(engine);
    return engine;
  }

  #activities(): Record<string, (input: unknown) => Promise<unknown>> {
    const tools = {
      name: 'tools',
      url: 'http://tools',
      headers: {},
      protocol: 'auto',
      maxPollsPerSecond: 10,
      trustAnnotations: false,
    } as const;
    const ports: Ports = {
      receipts: this.store,
      protocols: { adapter: () => this.server, negotiate: () => this.server.negotiate() },
      servers: { find: () => tools, unavailable: () => null, policyOf: () => this.policy },
      clock: { nowMs: () => this.time.nowMs },
      random: () => this.random.next(),
      newToken: () => `token-${(this.#tokens += 1)}`,
      digests,
      checkSchema,
    };
    const activities = createStepActivities(ports, {
      seam: (name) => this.points.pass(name),
      wakeObserve: async (_workflowId, runId) => {
        for (const engine of this.engines) engine.bringForward(runId, ACTIVITIES.observe);
      },
    });
    return { ...activities } as unknown as Record<string, (input: unknown) => Promise<unknown>>;
  }

  /** A receipt is noted when it is written, and every breach of the fence. */
  #watched(store: ReceiptStore): ReceiptStore {
    const { story } = this;
    const acceptTerminal: ReceiptStore['acceptTerminal'] = async (...args) => {
      const acceptance = await store.acceptTerminal(...args);
      if (acceptance.kind === 'accepted' && acceptance.isFirst) {
        story.receiptTexts.push(JSON.stringify(acceptance.receipt));
        this.say(`receipt: ${acceptance.receipt.outcome} (${acceptance.receipt.decision.evidence})`);
        this.blows.onReceipt();
      }
      return acceptance;
    };
    const watched: Partial<ReceiptStore> = { acceptTerminal };
    const fenced = watchFence(store, (breach) => story.breaches.push(breach));
    return new Proxy(store, {
      get: (target, name: keyof ReceiptStore) => watched[name] ?? fenced[name] ?? target[name].bind(target),
    });
  }

  // --- what happens

  #attemptEnded(attempt: Attempt, how: string): void {
    this.say(`${attempt.task.home.run.runId} ${attempt.task.type} ${attempt.number}: ${how}`);
    if (how.includes('StepFailed') || how.includes('StoreUnavailable')) this.story.breaches.push(how);
    this.blows.onAttemptEnd(attempt, how);
  }

  #closed(engine: Engine, run: Run): void {
    const why = run.error instanceof Error ? run.error : null;
    this.say(
      `${run.runId} ${run.status} ${why?.cause instanceof Error ? why.cause.message : (why?.message ?? '')}`,
    );
    if (run.status === 'completed') return;
    const isSuperseded = why?.cause instanceof Error && why.cause.message.includes('owns it at epoch');
    if (run.status === 'failed' && !isSuperseded) this.story.breaches.push(`the run failed: ${why?.message}`);
    // The sweeper: an open row without an open run anywhere gets one.
    this.time.after(30_000 + this.random.below(60_000), () => {
      if (this.openRuns().length === 0) this.startOn(engine);
    });
  }

  startOn(engine: Engine): void {
    const request = { server: 'tools', tool: 'work', arguments: { call: this.callNodeId } };
    engine.start(workflowIdOf(this.callNodeId), {
      ...request,
      callNodeId: this.callNodeId,
      requestDigest: requestDigest(request, digests),
      waitBudgetMs: null,
      searchAttributes: false,
      ...(engine.runs.at(-1)?.status === 'terminated' ? { lastRunTerminated: true } : {}),
    });
  }

  openRuns(): readonly Run[] {
    return this.engines.flatMap((engine) => engine.runs.filter(({ status }) => status === 'open'));
  }

  /** What the newest open run believes. */
  record(): ToolOperation | null {
    return (this.openRuns().at(-1)?.sandbox.query?.() as ToolOperation | undefined) ?? null;
  }

  /** People see the open questions in the live status of the pending observation. */
  #hear(live: LiveStatus | undefined): void {
    for (const { roundId } of live?.openRounds ?? []) {
      if (this.story.roundsAsked.includes(roundId)) continue;
      this.story.roundsAsked.push(roundId);
      this.#askPeople(this.story.roundsAsked.length - 1, roundId);
    }
  }

  #askPeople(round: number, roundId: string): void {
    for (const reply of this.script.replies) {
      if (reply.round === round) this.time.after(reply.afterMs, () => this.#reply(reply, roundId, 8));
    }
  }

  #reply(reply: PlannedReply, roundId: string, triesLeft: number): void {
    // Where two engines run it, one person may be talking to the one and the next to the other.
    const runs = this.openRuns();
    const run = runs[this.story.repliesGiven.length % Math.max(runs.length, 1)];
    if (!run && triesLeft > 0 && this.story.receiptTexts.length === 0) {
      this.time.after(15_000, () => this.#reply(reply, roundId, triesLeft - 1));
    }
    if (!run) return;
    const { action, content, by } = reply;
    const digest = replyDigest({ action, content }, digests);
    const message = { roundId, replyDigest: digest, action, content };
    const updateId = by === 'update' ? `${roundId}/${digest}` : null;
    const bytes = JSON.stringify({ action, content });
    this.say(`${by} ${bytes} to ${roundId.slice(0, 6)}`);
    this.story.repliesGiven.push({ roundId, replyDigest: digest, bytes, updateId });
    if (updateId === null) run.post({ kind: 'signal', name: MESSAGES.answerSignal, message });
    else run.post({ kind: 'update', id: updateId, name: MESSAGES.answerUpdate, message });
  }

  // --- the phases

  /** With faults, then healed: it must come to an end, or be held with its evidence until a word closes it. */
  async live(): Promise<void> {
    this.time.allow(MOST_EVENTS);
    await inVirtualTime(this.time, async () => {
      this.startOn(this.engines[0] as Engine);
      this.blows.plan();
      await this.#passUntil(this.startedAt + this.script.faultyMs, () => false);
      this.isHealed = true;
      this.server.heal();
      this.say('healed');
      if (this.openRuns().length === 0) this.startOn(this.engines[0] as Engine);
      await this.#passUntil(this.time.nowMs + 3 * DAY_MS, () => this.hasEnded());
    });
  }

  /** A person closes what is held, and ends a run whose row was never made: the next one makes it. */
  async close(): Promise<void> {
    await inVirtualTime(this.time, async () => {
      if (this.record()?.ledgerBehind) {
        for (const engine of this.engines) engine.terminate();
        await this.#passUntil(this.time.nowMs + DAY_MS, () => this.hasEnded());
      }
      this.blows.speak('close');
      await this.#passUntil(this.time.nowMs + DAY_MS, () => this.hasEnded());
    });
  }

  /** Whoever was stopped goes on now, long after: nothing may change any more. */
  async wakeTheDead(): Promise<void> {
    await inVirtualTime(this.time, async () => {
      this.blows.thawAll();
      await this.#passUntil(this.time.nowMs + 30 * MINUTE_MS, () => false);
    });
  }

  hasEnded(): boolean {
    return this.story.receiptTexts.length > 0 && this.openRuns().length === 0;
  }

  async #passUntil(untilMs: number, isOver: () => boolean): Promise<void> {
    while (!isOver() && (await this.time.next(untilMs)));
  }
}
