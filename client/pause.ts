// Owns waiting on this side: pauses of any length, and whether a timeout makes sense.
// Must never decide what the end of a pause means.

import { ToolOperationError } from './errors.js';

/** Timers are 32-bit: a longer one ends at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** @throws ToolOperationError `InvalidRequest` */
export function checkDurationMs(name: string, durationMs: number | undefined): void {
  if (durationMs === undefined || (Number.isFinite(durationMs) && durationMs > 0)) return;
  throw new ToolOperationError('InvalidRequest', `${name} is a positive number of milliseconds`);
}

/** Also ends, without an error, when the signal is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  const untilMs = performance.now() + ms;
  let leftMs = ms;
  do {
    await timer(Math.min(leftMs, LONGEST_TIMER_MS), signal);
    leftMs = untilMs - performance.now();
  } while (leftMs > 0 && !signal?.aborted);
}

function timer(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timeout = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timeout);
      signal?.removeEventListener('abort', done);
      resolve();
    }
    signal?.addEventListener('abort', done);
  });
}
