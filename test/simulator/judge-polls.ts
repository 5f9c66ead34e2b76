// Owns what must be true of the looks at the server: how far apart they are (promise 6).
// Must never count what an attempt sends after it was given up: nothing can hold a stopped process to a pace.

import type { Attempt } from './activity-task.js';
import type { Poll } from './server-desk.js';
import type { World } from './world.js';

const FLOOR_MS = 1_000;
const CEILING_MS = 300_000;
const DEFAULT_MS = 5_000;
const RETRY_AFTER_CEILING_MS = 3_600_000;

/** What a run may know of the pace: told in its pending step, or carried home by one that ended. */
interface Pace {
  last: Poll | null;
  /** By steps that brought their cursor home. */
  carriedMs: number | null;
  /** By the step that looks now. */
  toldMs: number | null;
}

export function judgePolls(world: World): readonly string[] {
  const paces = new Map<string, Pace>();
  const wrong: string[] = [];
  for (const poll of world.server.ledger.polls) {
    if (poll.isLate) continue;
    const { runId } = attemptOf(poll).task.home.run;
    const pace = paces.get(runId) ?? { last: null, carriedMs: null, toldMs: null };
    paces.set(runId, pace);
    const { last } = pace;
    if (last) {
      const owedMs = gapOwed(last, poll, pace);
      const gapMs = poll.at - last.at;
      if (gapMs < owedMs) wrong.push(`looked again after ${gapMs} ms, owed ${owedMs} ms`);
      if (isOtherStep(last, poll)) {
        if (attemptOf(last).task.hasValue) pace.carriedMs = pace.toldMs ?? pace.carriedMs;
        pace.toldMs = null;
      }
    }
    if (poll.isAnswered) pace.toldMs = knownAfter(poll, pace);
    pace.last = poll;
  }
  return wrong;
}

function attemptOf(poll: Poll): Attempt {
  return poll.by as Attempt;
}

function isOtherStep(a: Poll, b: Poll): boolean {
  return attemptOf(a).task !== attemptOf(b).task;
}

function gapOwed(last: Poll, next: Poll, { carriedMs, toldMs }: Pace): number {
  const knownMs = toldMs ?? carriedMs;
  // A step that was interrupted takes its cursor along; only what was carried home before it is known, and the floor.
  if (isOtherStep(last, next) && !attemptOf(last).task.hasValue) return Math.max(FLOOR_MS, carriedMs ?? 0);
  // Stopped before or after it could write down what it was told: what was known before it may be all there is.
  if (attemptOf(last).wasGivenUp)
    return Math.min(knownMs ?? 0, last.isAnswered ? clamped(last.hintMs) : CEILING_MS);
  if (last.isAnswered) return clamped(last.hintMs);
  const retryAfterMs = Math.min(last.retryAfterMs ?? 0, RETRY_AFTER_CEILING_MS);
  return Math.max(retryAfterMs, knownMs ?? FLOOR_MS);
}

/** An attempt that was given up may or may not have written down what it was told. */
function knownAfter(poll: Poll, { carriedMs, toldMs }: Pace): number | null {
  const hintMs = clamped(poll.hintMs);
  if (!attemptOf(poll).wasGivenUp) return hintMs;
  const knownMs = toldMs ?? carriedMs;
  return knownMs === null ? null : Math.min(knownMs, hintMs);
}

function clamped(hintMs: number | null): number {
  if (hintMs === null) return DEFAULT_MS;
  return Math.min(Math.max(hintMs, FLOOR_MS), CEILING_MS);
}
