// What is odd about a look though it is no fault: said to people, kept as evidence once, and looked at ever more slowly.

import { expect, test } from 'vitest';
import { silenceGapMs, withNotice } from '../../activities/steps/notice.js';
import type { Look } from '../../activities/steps/questions.js';
import type { LiveStatus } from '../../operation/live-status.js';
import type { InputRound, RowSnapshot } from '../../operation/row.js';
import type { Observation } from '../../protocols/adapter.js';

const ROUND: InputRound = {
  roundId: 'r',
  schemaDigest: 's',
  openedAt: 1,
  deadlineAt: 100,
  question: { mode: 'form', message: 'which?', schema: {}, url: null },
  reply: null,
  closedAt: null,
};
const REPLY = { replyDigest: 'd', replyToken: 't', action: 'accept', recordedAt: 2 } as const;
const ANSWERED: InputRound = { ...ROUND, reply: { ...REPLY, sendingAt: 2, deliveredAt: 3 } };
const SEEN: Observation = {
  remoteStatus: 'input_required',
  meaning: 'inputRequired',
  statusMessage: null,
  intervalMs: null,
  expiresAt: null,
};
const WORKING: Observation = { ...SEEN, remoteStatus: 'working', meaning: 'working' };

/** So many looks in a row that saw this; what was said after each, and what became evidence. */
async function looks(count: number, rounds: readonly InputRound[], seen: Observation) {
  const evidence: string[] = [];
  const said: (string | null | undefined)[] = [];
  const gaps: number[] = [];
  const row = { callNodeId: 'n', rounds } as unknown as RowSnapshot;
  const addEvidence = async (_: string, kind: string): Promise<void> => void evidence.push(kind);
  const ports = { receipts: { addEvidence }, clock: { nowMs: () => 7 } };
  let look = { ports, live: {} as LiveStatus } as unknown as Look;
  for (let n = 0; n < count; n += 1) {
    look = await withNotice(look, row, seen);
    said.push(look.live.notice);
    gaps.push(silenceGapMs(look.live));
  }
  return { evidence, said, gaps, look, row };
}

test('a status that asks for input and hands out no question is said from its second look on', async () => {
  const { said, evidence } = await looks(3, [], SEEN);
  const silence = 'the server says input_required and hands out no question';
  expect(said).toEqual([null, silence, silence]);
  expect(evidence).toEqual([]);
});

test('one that stays after the answer is evidence once, and its looks double up to a minute', async () => {
  const { said, evidence, gaps } = await looks(12, [ANSWERED], SEEN);
  expect(said.at(-1)).toBe('the server says input_required although every question it asked has its answer');
  expect(evidence).toEqual(['question-lost']);
  expect(gaps).toEqual([0, 0, 0, 2, 4, 8, 16, 32, 60, 60, 60, 60].map((seconds) => seconds * 1_000));
});

test('while a person is asked, and while the work goes on, nothing is odd', async () => {
  for (const [rounds, seen] of [
    [[ROUND], SEEN],
    [[ANSWERED], WORKING],
  ] as const) {
    const { said, evidence, gaps } = await looks(6, rounds, seen);
    expect(new Set(said)).toEqual(new Set([null]));
    expect([evidence, new Set(gaps)]).toEqual([[], new Set([0])]);
  }
});

test('a look that sees the work go on ends the silence', async () => {
  const { look, row } = await looks(8, [ANSWERED], SEEN);
  const moved = await withNotice(look, row, WORKING);
  expect([moved.live.notice, silenceGapMs(moved.live)]).toEqual([null, 0]);
});

test('a status of no known meaning is said as it is', async () => {
  const { said } = await looks(1, [], { ...SEEN, remoteStatus: 'auth_required', meaning: 'other' });
  expect(said).toEqual(['the server says "auth_required", a status of no known meaning']);
});
