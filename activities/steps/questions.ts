// Owns how a question read from the wire becomes an input round of the row: stored before anyone is asked.
// Must never let go of the source of a question before it is stored.

import { jsonDigest, roundId as roundIdOf } from '../../operation/digests.js';
import { LIMITS } from '../../operation/limits.js';
import type { LiveStatus, OpenRound } from '../../operation/live-status.js';
import { openRounds } from '../../operation/policy.js';
import type { RowSnapshot } from '../../operation/row.js';
import { WireFault, type WireQuestion } from '../../protocols/adapter.js';
import type { NewRound, StoredRound } from '../../receipts/store.js';
import type { Attempt, Ports } from '../ports.js';
import type { ObserveInput } from '../step-inputs.js';
import type { Reach } from './reach.js';

/** One look at the remote operation, as it is carried through the observe step. */
export interface Look {
  readonly input: ObserveInput;
  readonly ports: Ports;
  readonly attempt: Attempt;
  readonly live: LiveStatus;
}

export function showRounds(row: RowSnapshot): readonly OpenRound[] {
  return openRounds(row.rounds).flatMap((round) =>
    round.question
      ? [
          {
            roundId: round.roundId,
            question: round.question,
            schemaDigest: round.schemaDigest,
            deadlineAt: round.deadlineAt,
          },
        ]
      : [],
  );
}

/** The server waits for input: take what is asked and not yet known. Returns the row as it then stands. */
export async function lookAtQuestions(
  look: Look,
  row: RowSnapshot,
  reach: Reach,
  listed: readonly WireQuestion[] | undefined,
): Promise<RowSnapshot> {
  const { ports, attempt } = look;
  const wire = await ports.receipts.wireState(row.callNodeId);
  const take = async (question: WireQuestion): Promise<void> => {
    await attempt.seam('observe:question-read');
    await storeQuestion(look, row, question);
    await attempt.seam('observe:question-stored');
  };
  if (listed) {
    await takeListed(look, row, wire.rounds, listed, take);
  } else {
    const known = {
      anchor: wire.anchor,
      wireKeys: Object.values(wire.rounds).map((round) => round.wireKey),
      wires: Object.values(wire.rounds).map((round) => round.wire),
      // The status is explained already: no need to listen long for another question.
      hasOpenRound: openRounds(row.rounds).some((round) => !round.reply),
    };
    await reach.adapter.pickUpQuestions(reach.server, reach.reference, known, take);
  }
  const asked = await ports.receipts.begin(look.input);
  attempt.show({ ...look.live, openRounds: showRounds(asked) });
  return asked;
}

/**
 * The status lists all that is asked now. What is answered may still be listed for some looks (the acknowledgement of an
 * answer is eventually consistent): it is not asked again. What is listed no more, the server has given up.
 */
async function takeListed(
  look: Look,
  row: RowSnapshot,
  known: Readonly<Record<string, StoredRound>>,
  listed: readonly WireQuestion[],
  take: (question: WireQuestion) => Promise<void>,
): Promise<void> {
  const { ports } = look;
  // Keys of a submission that was asked before there was any work are not the work's.
  const own = Object.values(known).filter(({ leg }) => leg === null);
  for (const asked of listed) {
    const before = own.find((round) => round.wireKey === asked.wireKey);
    if (!before) await take(asked);
    else if (
      jsonDigest({ ...before.question }, ports.digests) !== jsonDigest({ ...asked.question }, ports.digests)
    ) {
      throw new WireFault(
        'ProtocolViolation',
        `the input key ${asked.wireKey} was used again for another question`,
      );
    }
  }
  for (const round of openRounds(row.rounds)) {
    const stored = known[round.roundId];
    const isListed = stored?.leg === null && listed.some(({ wireKey }) => wireKey === stored.wireKey);
    if (round.reply || isListed) continue;
    await ports.receipts.closeRound(row.callNodeId, round.roundId, ports.clock.nowMs());
  }
}

async function storeQuestion(look: Look, row: RowSnapshot, asked: WireQuestion): Promise<void> {
  const { ports, input } = look;
  const openedAt = ports.clock.nowMs();
  const remoteId = row.remoteReference?.remoteId ?? '';
  const expiresAt = look.live.expiresAt ?? input.expiresAt;
  const deadlineAt = Math.min(openedAt + row.policy.inputBudgetMs, expiresAt ?? Number.POSITIVE_INFINITY);
  const round = roundFrom(asked, { remoteId, openedAt, deadlineAt }, ports);
  if (typeof round === 'string')
    await ports.receipts.addEvidence(row.callNodeId, 'protocol-violation', round, openedAt);
  else await ports.receipts.recordRound(row.callNodeId, round);
}

/** `remoteId`: what asks, for the round's own name. A sentence where the question is too large to be taken. */
export function roundFrom(
  { question, wireKey, wire }: WireQuestion,
  { remoteId, openedAt, deadlineAt }: { remoteId: string; openedAt: number; deadlineAt: number },
  ports: Ports,
): NewRound | string {
  const { mode, message, schema, url } = question;
  const request = { mode, message, schema, url };
  const sizeBytes = Buffer.byteLength(JSON.stringify(request));
  if (sizeBytes > LIMITS.questionBytes)
    return `a question of ${sizeBytes} bytes was not taken (limit ${LIMITS.questionBytes})`;
  return {
    roundId: roundIdOf({ remoteId, wireKey, request }, ports.digests),
    schemaDigest: jsonDigest(schema, ports.digests),
    wireKey,
    wire,
    question,
    openedAt,
    deadlineAt,
  };
}
