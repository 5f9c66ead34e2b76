// Waits of this side: any length, and only durations that make sense.

import type { Client } from '@temporalio/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ToolOperationHandle } from '../../client/handle.js';
import { ToolOperationClient } from '../../client/index.js';
import { LONGEST_TIMER_MS, pause } from '../../client/pause.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('a pause longer than a timer can be takes its whole time', async () => {
  const ms = 3e9;
  let isOver = false;
  const waiting = pause(ms).then(() => (isOver = true));
  await vi.advanceTimersByTimeAsync(LONGEST_TIMER_MS + 1_000);
  expect(isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(ms - LONGEST_TIMER_MS);
  expect(isOver).toBe(true);
  await waiting;
});

test('an aborted pause ends at once and leaves no timer behind', async () => {
  const stop = new AbortController();
  const waiting = pause(3e9, stop.signal);
  stop.abort();
  await waiting;
  expect(vi.getTimerCount()).toBe(0);
});

/** Refuses whatever is asked: the durations are checked before anything is sent. */
const NO_CLIENT = new Proxy({} as Client, {
  get() {
    throw new Error('something was asked of the engine');
  },
});

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5' as never])(
  'a duration of %s is refused before anything is asked of the engine',
  async (timeoutMs) => {
    const handle = new ToolOperationHandle(NO_CLIENT, 'durations', null);
    const client = new ToolOperationClient({ client: NO_CLIENT });
    const call = { callNodeId: 'durations', server: 's', tool: 't', arguments: {} };
    const refused = { code: 'InvalidRequest' };
    await expect(handle.result({ timeoutMs })).rejects.toMatchObject(refused);
    await expect(handle.answer({ timeoutMs })).rejects.toMatchObject(refused);
    await expect(handle.watch({ everyMs: timeoutMs }).next()).rejects.toMatchObject(refused);
    await expect(client.execute({ ...call, timeoutMs })).rejects.toMatchObject(refused);
  },
);
