// An observe step that was given up and goes on late, beside the next attempt of the same step. The store is the real one.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import type { ObserveInput } from '../../activities/step-inputs.js';
import { observe } from '../../activities/steps/observe.js';
import type { SeamName } from '../../operation/names.js';
import { digests } from '../../primitives/node-primitives.js';
import type { Observation, ToolAdapter, WireQuestion } from '../../protocols/adapter.js';
import { openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { CALL, fence, working } from '../receipts/suite-fixtures.js';

let dir: string;
let store: ReceiptStore;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-steps-'));
  store = await openSqliteStore(join(dir, 'operations.sqlite'));
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

const QUESTION: WireQuestion = {
  wireKey: 'a',
  wire: { key: 'a' },
  question: { mode: 'form', message: 'Which?', schema: { type: 'object' }, url: null },
};
const INPUT: ObserveInput = {
  ...fence(),
  openRoundIds: [],
  waitDeadlineAt: null,
  inputDeadlineAt: null,
  notBeforeAt: null,
  freshSession: false,
  once: false,
  cursor: { observationCount: 0, transientFaults: 0, lastIntervalMs: null, nextPollNotBeforeAt: null },
  expiresAt: null,
};

function portsOn(meaning: 'working' | 'inputRequired'): Ports {
  const seen: Observation = {
    meaning,
    remoteStatus: meaning,
    statusMessage: null,
    expiresAt: null,
    intervalMs: 1_000,
    ...(meaning === 'inputRequired' ? { questions: [QUESTION] } : {}),
  };
  const adapter = {
    observe: async () => seen,
    anchor: async () => null,
  } as unknown as ToolAdapter;
  return {
    receipts: store,
    protocols: { adapter: () => adapter },
    servers: { find: () => ({}) },
    clock: { nowMs: () => 1_000 },
    random: () => 0,
    digests,
  } as unknown as Ports;
}

function attempt(seam: (name: SeamName) => Promise<void> = async () => undefined): Attempt {
  const { signal } = new AbortController();
  return { signal, attempt: 1, seam, show: () => undefined, lastShown: () => null };
}

test('a late look leaves the question alone that another attempt was asked after it', async () => {
  await working(store);
  const late = observe(
    INPUT,
    portsOn('working'),
    attempt(async (name) => {
      // It has read "working" and stalls; meanwhile the next attempt is asked.
      if (name !== 'observe:after-reply') return;
      expect(await observe(INPUT, portsOn('inputRequired'), attempt())).toMatchObject({
        finding: 'inputRequired',
      });
    }),
  );
  await expect(late).rejects.toMatchObject({ code: 'NotReady' });
  expect((await store.read(CALL))?.rounds).toMatchObject([{ closedAt: null, reply: null }]);
});

test('a look that saw the work go on closes what was asked before it and has no reply', async () => {
  await working(store);
  await observe(INPUT, portsOn('inputRequired'), attempt());
  expect(await observe({ ...INPUT, openRoundIds: [] }, portsOn('inputRequired'), attempt())).toMatchObject({
    finding: 'inputRequired',
  });
  const roundId = (await store.read(CALL))?.rounds[0]?.roundId ?? '';
  const later = { ...INPUT, openRoundIds: [roundId] };
  expect(await observe(later, portsOn('working'), attempt())).toMatchObject({ finding: 'roundClosed' });
});
