// Owns what strikes a world: lost and late workers, messages at awkward moments, resets, other engines, words.
// Must never strike but as the script says.

import { MESSAGES } from '../../operation/names.js';
import type { Attempt } from './activity-task.js';
import type { Passage } from './points.js';
import type { Execution } from './execution.js';
import type { Blow, OperatorWord, Thaw } from './script.js';
import type { Job } from './workflow-sandbox.js';
import type { World } from './world.js';

interface Zombie {
  readonly attempt: Attempt;
  readonly thaw: Thaw;
}

export class Blows {
  readonly #world: World;
  readonly #running = new Set<Attempt>();
  readonly #zombies = new Set<Zombie>();
  /** Where each one struck. */
  readonly struck: { readonly blow: Blow; readonly name: string }[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** Those that are due at a time rather than at a point. */
  plan(): void {
    for (const { when, blow } of this.#world.script.blows) {
      if ('atMs' in when) this.#world.time.after(when.atMs, () => this.#strike(blow, null, 'a moment'));
    }
  }

  atPoint({ index, name, attempt }: Passage): void {
    for (const { when, blow } of this.#world.script.blows) {
      if ('point' in when && when.point === index) this.#strike(blow, attempt, name);
    }
  }

  onAttempt(attempt: Attempt): void {
    this.#running.add(attempt);
  }

  onAttemptEnd(attempt: Attempt, how: string): void {
    if (how !== 'given up') this.#running.delete(attempt);
    for (const zombie of this.#zombies) {
      const isNext = zombie.attempt.task === attempt.task && zombie.attempt !== attempt;
      if (isNext && zombie.thaw.kind === 'nextEnd') this.#thaw(zombie);
    }
  }

  onReceipt(): void {
    for (const zombie of this.#zombies) if (zombie.thaw.kind === 'receipt') this.#thaw(zombie);
  }

  thawAll(): void {
    for (const zombie of this.#zombies) this.#thaw(zombie);
  }

  #thaw(zombie: Zombie): void {
    if (!this.#zombies.delete(zombie)) return;
    const { attempt } = zombie;
    this.#world.time.after(1, () => {
      this.#world.say(`${attempt.task.type} ${attempt.number} goes on late`);
      attempt.thaw();
    });
  }

  #strike(blow: Blow, at: Attempt | null, name: string): void {
    const { time } = this.#world;
    const attempt = at ?? [...this.#running].at(-1) ?? null;
    this.struck.push({ blow, name });
    this.#world.say(`blow ${JSON.stringify(blow)} at ${name}`);
    switch (blow.kind) {
      case 'kill':
        for (const other of this.#sameProcess(attempt)) other.freeze();
        return;
      case 'zombie':
        return this.#stop(attempt, blow.thaw);
      case 'shutDown':
        for (const other of this.#sameProcess(attempt)) other.task.shutDownWorker();
        return;
      // The rest happens to the engine, not in the middle of a body's step.
      default:
        time.after(0, () => this.#strikeEngine(blow));
    }
  }

  #sameProcess(attempt: Attempt | null): readonly Attempt[] {
    const engineOf = ({ task }: Attempt): string => task.home.run.runId.split('-run-')[0] ?? '';
    return [...this.#running].filter((other) => attempt && engineOf(other) === engineOf(attempt));
  }

  #stop(attempt: Attempt | null, thaw: Thaw): void {
    if (!attempt || attempt.isFrozen || attempt.hasReturned) return;
    attempt.freeze();
    const zombie = { attempt, thaw };
    this.#zombies.add(zombie);
    if (thaw.kind === 'after') this.#world.time.after(thaw.delayMs, () => this.#thaw(zombie));
  }

  async #strikeEngine(blow: Blow): Promise<void> {
    const world = this.#world;
    const engine = world.engines[0];
    if (!engine) return;
    switch (blow.kind) {
      case 'cancel':
      case 'nativeCancel':
        return this.#cancel(blow.kind);
      case 'terminate':
        // Of a run that has claimed nothing it counts as a cancel; of any other it does not.
        if (!world.story.passages.some(({ name }) => name === 'after claimLeg'))
          world.story.cancelsAskedAt.push(world.time.nowMs);
        return engine.terminate();
      case 'reset':
        return engine.reset(blow.share);
      case 'secondEngine':
        if (world.engines.length < 2) world.startOn(world.addEngine());
        return;
      case 'evict':
        await engine.openRun()?.replay();
        return;
      case 'operator':
        return this.#speakWhenHeld(blow.word, 30);
      default:
    }
  }

  #cancel(kind: 'cancel' | 'nativeCancel'): void {
    const world = this.#world;
    const message = { reason: 'changed my mind', requestedBy: 'somebody' };
    const job: Job =
      kind === 'cancel' ? { kind: 'signal', name: MESSAGES.cancelSignal, message } : { kind: 'cancel' };
    const [run] = world.openRuns();
    if (!run) return;
    world.story.cancelsAskedAt.push(world.time.nowMs);
    run.post(job);
  }

  #speakWhenHeld(word: OperatorWord, triesLeft: number): void {
    if (this.#world.record()?.state === 'UNRESOLVED') return this.speak(word);
    if (triesLeft === 0) return;
    this.#world.time.after(60_000, () => this.#speakWhenHeld(word, triesLeft - 1));
  }

  /** An operator who knows what happened at the far side. */
  speak(asked: OperatorWord): void {
    const world = this.#world;
    world.server.catchUp();
    const execution = this.#ownWork();
    const decision = this.#isTrue(asked, execution) ? asked : 'close';
    world.story.operatorSpoke = decision;
    const outcome = execution?.isToolError || execution?.ended === 'failed' ? 'failed' : 'completed';
    const grounds = {
      found: { remoteId: execution?.remoteId },
      ended: { outcome, resultJson: execution?.resultText },
      close: {},
      neverCreated: {},
    };
    const message = { decision, ...grounds[decision], evidence: 'seen in the log', decidedBy: 'ops' };
    for (const run of world.openRuns()) run.post({ kind: 'signal', name: MESSAGES.operatorSignal, message });
  }

  /** What the operation itself names; where it names nothing, the first that was started under its key. */
  #ownWork(): Execution | undefined {
    const { executions } = this.#world.server;
    const named = this.#world.record()?.remoteReference?.remoteId;
    return executions.find(({ remoteId }) => remoteId === named) ?? executions[0];
  }

  #isTrue(word: OperatorWord, execution: Execution | undefined): boolean {
    switch (word) {
      case 'close':
        return true;
      case 'neverCreated':
        return !execution && this.#world.server.startsToCome === 0 && !this.#mayStillSend();
      case 'found':
        return execution !== undefined;
      case 'ended':
        return execution?.ended === 'completed' || execution?.ended === 'failed';
    }
  }

  #mayStillSend(): boolean {
    return [...this.#zombies].some(({ attempt }) => attempt.task.type === 'submit');
  }
}
