// Questions that ride in each status: taken once, closed when listed no more, and a key that is used twice is a breach.
// The store is the real one; what a status lists is given.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Look, lookAtQuestions } from '../../activities/steps/questions.js';
import type { Reach } from '../../activities/steps/reach.js';
import type { RowSnapshot } from '../../operation/row.js';
import { digests } from '../../primitives/node-primitives.js';
import type { WireQuestion } from '../../protocols/adapter.js';
import { openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { CALL, fence, working } from '../receipts/suite-fixtures.js';

let dir: string;
let store: ReceiptStore;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-steps-'));
  store = await openSqliteStore(join(dir, 'operations.sqlite'));
  await working(store);
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

const asked = (wireKey: string, message = 'Which?'): WireQuestion => ({
  wireKey,
  wire: { key: wireKey },
  question: { mode: 'form', message, schema: { type: 'object' }, url: null },
});

/** One look at a status that lists these. */
async function look(...listed: readonly WireQuestion[]): Promise<RowSnapshot> {
  const row = await store.begin(fence());
  const attempt = { seam: async () => undefined, show: () => undefined };
  const ports = { receipts: store, clock: { nowMs: () => 1_000 }, digests };
  const input = { ...fence(), expiresAt: null };
  const seen = { input, ports, attempt, live: { expiresAt: null } } as unknown as Look;
  return lookAtQuestions(seen, row, {} as Reach, listed);
}

const roundsOf = ({ rounds }: RowSnapshot) =>
  rounds.map(({ question, closedAt }) => [question?.message, closedAt === null ? 'open' : 'closed']);

test('a key is taken once, however often it is listed, also beside others', async () => {
  await look(asked('a'));
  expect(roundsOf(await look(asked('a'), asked('b', 'And which?')))).toEqual([
    ['Which?', 'open'],
    ['And which?', 'open'],
  ]);
});

test('a key that is listed no more is closed, and not asked again where it comes back', async () => {
  await look(asked('a'), asked('b', 'And which?'));
  expect(roundsOf(await look(asked('b', 'And which?')))).toEqual([
    [undefined, 'closed'],
    ['And which?', 'open'],
  ]);
  expect((await look(asked('a'), asked('b', 'And which?'))).rounds).toHaveLength(2);
});

test('a key that is used again for another question is a broken contract, and nobody is asked', async () => {
  await look(asked('a'));
  await expect(look(asked('a', 'Your password?'))).rejects.toMatchObject({
    kind: 'ProtocolViolation',
    message: 'the input key a was used again for another question',
  });
  expect((await store.read(CALL))?.rounds ?? []).toHaveLength(1);
});
