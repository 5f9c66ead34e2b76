// Replays the golden histories of every release against the shipped bundle; each has a twin that must fail.

import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { replayHistory } from './replay.js';

const HISTORIES = new URL('../histories/', import.meta.url);

interface ScheduledEvent {
  readonly activityTaskScheduledEventAttributes?: { activityType: { name: string } };
}

const goldens = readdirSync(HISTORIES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .flatMap((release) =>
    readdirSync(new URL(`${release.name}/`, HISTORIES)).map((file) => `${release.name}/${file}`),
  );

test('there is a golden history of every terminal path', () => {
  const paths = goldens.filter((golden) => golden.startsWith('0.1.0/')).map((golden) => golden.slice(6, -5));
  expect(paths.toSorted()).toEqual([
    'cancel-beaten',
    'cancelled',
    'completed',
    'failed',
    'fetched-again',
    'input',
    'looked-up',
    'never-sent',
    'rejected',
    'synchronous',
    'unresolved',
    'wait-budget',
  ]);
});

test.each(goldens)('%s replays', async (golden) => {
  await replayHistory(read(golden), 'golden');
});

test.each(goldens)('the twin of %s, with another last step, does not', async (golden) => {
  const history = read(golden);
  const steps = history.events.flatMap((event) => event.activityTaskScheduledEventAttributes ?? []);
  const last = steps.at(-1);
  if (!last) throw new Error('a history without a step');
  expect(last.activityType.name).toBe('acceptTerminal');
  last.activityType.name = 'fetchResult';
  await expect(replayHistory(history, 'twin')).rejects.toThrow(/[Nn]ondeterminism/);
});

function read(golden: string): { events: ScheduledEvent[] } {
  return JSON.parse(readFileSync(new URL(golden, HISTORIES), 'utf8')) as { events: ScheduledEvent[] };
}
