// Owns what an observation finds odd though it is no fault: a status that waits for nobody, a word of no contract.
// Must never end anything: it is said to people, and looked at ever more slowly; the wait budget bounds it.

import { LIMITS } from '../../operation/limits.js';
import type { LiveStatus } from '../../operation/live-status.js';
import { backOffMs, clip, openRounds } from '../../operation/policy.js';
import type { RowSnapshot } from '../../operation/row.js';
import type { Observation } from '../../protocols/adapter.js';
import type { Look } from './questions.js';

/** The look, with what is odd about it. `row` as it stands after the questions were read. */
export async function withNotice(look: Look, row: RowSnapshot, seen: Observation): Promise<Look> {
  const isWaiting = seen.meaning === 'inputRequired';
  const waitsForPeople = openRounds(row.rounds).some((round) => !round.reply);
  const silentAsks = isWaiting && !waitsForPeople ? (look.live.silentAsks ?? 0) + 1 : 0;
  const notice = noticeOf(silentAsks, seen, row);
  const live: LiveStatus = { ...look.live, silentAsks, notice };
  // Once, when the patience is spent: who decides about a held operation finds it in the evidence.
  if (notice !== null && silentAsks === LIMITS.silentAsks) {
    await look.ports.receipts.addEvidence(row.callNodeId, 'question-lost', notice, look.ports.clock.nowMs());
  }
  return { ...look, live };
}

function noticeOf(silentAsks: number, seen: Observation, row: RowSnapshot): string | null {
  if (seen.meaning === 'other') {
    return clip(`the server says "${seen.remoteStatus}", a status of no known meaning`, LIMITS.evidenceChars);
  }
  // One such look is what an answer under way looks like.
  if (silentAsks < 2) return null;
  return row.rounds.some((round) => round.reply)
    ? 'the server says input_required although every question it asked has its answer'
    : 'the server says input_required and hands out no question';
}

/** An answer takes some looks to show; a server that stays so is asked ever less (each look opens a stream there). */
export function silenceGapMs({ silentAsks = 0 }: LiveStatus): number {
  const over = silentAsks - LIMITS.silentAsks;
  if (over < 0) return 0;
  return backOffMs(LIMITS.silentAskGapMs, LIMITS.silentAskCeilingMs, over + 1);
}
