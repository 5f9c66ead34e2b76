// The configured poll rate of a server holds over all workers, as its own socket sees it; what is not a poll is never held up.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

const PER_SECOND = 2;
const OPERATIONS = 12;
const WINDOW_MS = 20_000;
/** The engine lets tokens gather while nothing polls, and lets them go at once (measured: up to 8 at this rate). */
const BURST = 8;

let lab: FaultLab;
beforeAll(async () => {
  lab = await openFaultLab({ maxPollsPerSecond: PER_SECOND });
  await Promise.all([lab.startWorker(), lab.startWorker()]);
});
afterAll(async () => {
  await lab?.close();
});

const polls = () =>
  lab.faults
    .journal()
    .filter((entry) => entry.kind === 'polled')
    .map(({ connectedAt = 0 }) => connectedAt);

test('two workers and twelve operations that each would poll every second share two polls a second', async () => {
  const handles = await Promise.all(
    Array.from({ length: OPERATIONS }, (_, n) =>
      lab.start({
        label: `rate ${n}`,
        durationMs: 600_000,
        plan: { cancel: 'honour' },
      }),
    ),
  );
  await lab.faults.until((entry) => entry.kind === 'polled');
  const beganAt = polls()[0] ?? 0;
  const [first] = handles;
  if (!first) throw new Error('nothing was started');
  await until(first, () => Date.now() >= beganAt + WINDOW_MS);
  const seen = polls().filter((at) => at < beganAt + WINDOW_MS);
  const most = (PER_SECOND * WINDOW_MS) / 1_000;
  expect(seen.length).toBeLessThanOrEqual(most + BURST);
  // The cap is a rate, not a stop: it is used.
  expect(seen.length).toBeGreaterThanOrEqual(most * 0.7);

  // Cancels do not queue behind the polls: all of them are through within a few seconds, at twelve to two a second.
  const askedAt = Date.now();
  await Promise.all(handles.map((handle) => handle.cancel('enough')));
  const ends = await Promise.all(handles.map((handle) => handle.result()));
  expect(ends.map(({ outcome }) => outcome)).toEqual(handles.map(() => 'cancelled'));
  const sent = lab.faults.journal().filter((entry) => entry.kind === 'cancelReceived');
  expect(sent).toHaveLength(OPERATIONS);
  expect(Math.max(...sent.map(({ at }) => at)) - askedAt).toBeLessThan(10_000);
});
