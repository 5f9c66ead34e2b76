// Owns waiting for an operation at the terminal: progress, questions, and every way in which the waiting can end.
// Must never cancel anything: all ends but the receipt are local.

import { pause } from '../client/pause.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { type OperationResult, ToolOperationError, type ToolOperationHandle } from '../client/index.js';
import type { OperationView } from '../client/view.js';
import { askHuman } from './ask-human.js';
import type { PreparedReply } from './call-request.js';
import { type Interrupts, whenAborted } from './interrupts.js';
import type { Progress } from './progress.js';
import { createQuestionDesk, type QuestionDesk } from './question-desk.js';
import type { Runtime } from './runtime.js';

export interface FollowOptions {
  readonly handle: ToolOperationHandle;
  readonly runtime: Pick<Runtime, 'failed' | 'isThere' | 'withAbortSignal'>;
  readonly progress: Progress;
  readonly prepared: PreparedReply[];
  /** False: whoever follows only watches, and is asked nothing. */
  readonly asks: boolean;
  readonly interrupts: Interrupts;
  /** Absolute (ms); null waits as long as it takes. */
  readonly stopWaitingAt: number | null;
}

export type Followed =
  | { readonly kind: 'ended'; readonly result: OperationResult }
  | { readonly kind: 'held'; readonly sentence: string; readonly view: OperationView | null }
  | { readonly kind: 'timedOut' }
  | { readonly kind: 'interrupted' }
  /** The engine that was joined has gone with its command: reopen and follow again. */
  | { readonly kind: 'engineGone' };

/** @throws what the engine or the client throws, where it says nothing of the operation's end */
export async function followOperation(options: FollowOptions): Promise<Followed> {
  const { handle, interrupts, runtime } = options;
  const done = new AbortController();
  let failDesk: (error: unknown) => void = () => {};
  const deskFailed = new Promise<never>((_, reject) => {
    failDesk = reject;
  });
  const desk = createQuestionDesk({
    answer: (reply, signal) => runtime.withAbortSignal(signal, () => handle.answer(reply)),
    progress: options.progress,
    prepared: options.prepared,
    ask: options.asks && isTerminal() ? (round, signal) => askHuman(round.question, { signal }) : null,
    onLeft: () => interrupts.interrupt(),
    onError: failDesk,
  });
  const looking = showProgress(options, desk, done.signal);
  const ways: Promise<Followed>[] = [
    untilEnd(options, done.signal),
    whenAborted(interrupts.signal).then((): Followed => ({ kind: 'interrupted' })),
    looking.then(never),
    untilGone(runtime, done.signal),
    deskFailed,
    runtime.failed,
  ];
  if (options.stopWaitingAt !== null) ways.push(localTimeout(options.stopWaitingAt, done.signal));
  // Who loses the race must not crash the process.
  for (const way of ways) way.catch(() => {});
  let followed: Followed | undefined;
  try {
    followed = await Promise.race(ways);
    return followed;
  } catch (error) {
    if (ToolOperationError.isInstance(error) || (await runtime.isThere())) throw error;
    followed = { kind: 'engineGone' };
    return followed;
  } finally {
    done.abort();
    desk.close();
    // A request still under way when the connection closes is repeated by the SDK, and that throws in a timer. With
    // the engine gone the connection is left open instead: its requests may be repeated for long.
    if (followed?.kind !== 'engineGone') await looking.catch(() => {});
    options.progress.end();
  }
}

const PRESENCE_CHECK_MS = 1_000;

/** The client would notice by itself only after many repeated requests (measured: 10 s and more). */
async function untilGone(runtime: FollowOptions['runtime'], signal: AbortSignal): Promise<Followed> {
  let misses = 0;
  while (misses < 2) {
    await sleep(PRESENCE_CHECK_MS, undefined, { signal });
    misses = (await runtime.isThere()) ? 0 : misses + 1;
  }
  return { kind: 'engineGone' };
}

function never(): Promise<never> {
  return new Promise(() => {});
}

function isTerminal(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

async function untilEnd({ handle }: FollowOptions, done: AbortSignal): Promise<Followed> {
  try {
    return { kind: 'ended', result: await handle.result({ signal: done }) };
  } catch (error) {
    if (!ToolOperationError.isInstance(error)) throw error;
    if (error.code === 'LocalTimeout') return never();
    if (error.code !== 'OperationUnresolved') throw error;
    return { kind: 'held', sentence: error.message, view: error.view };
  }
}

async function localTimeout(stopWaitingAt: number, signal: AbortSignal): Promise<Followed> {
  await pause(Math.max(0, stopWaitingAt - Date.now()), signal);
  return signal.aborted ? never() : { kind: 'timedOut' };
}

/** How long looks may fail before it is no passing trouble of the engine. */
const TROUBLE_LIMIT_MS = 20_000;
const TROUBLE_PAUSE_MS = 1_000;

/** Resolves when the operation has ended or the signal is aborted, with nothing under way. */
async function showProgress(options: FollowOptions, desk: QuestionDesk, signal: AbortSignal): Promise<void> {
  let troubledSince: number | null = null;
  while (!signal.aborted) {
    try {
      for await (const view of options.handle.watch({ signal })) {
        troubledSince = null;
        if (signal.aborted) return;
        options.progress.show(view);
        desk.consider(view);
      }
      return;
    } catch (error) {
      if (ToolOperationError.isInstance(error) || !(await options.runtime.isThere())) throw error;
      troubledSince ??= Date.now();
      if (Date.now() - troubledSince > TROUBLE_LIMIT_MS) throw error;
      await sleep(TROUBLE_PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  }
}
