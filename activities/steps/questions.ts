// Owns how a question read from the wire becomes an input round of the row: stored before anyone is asked.
// Must never let go of the source of a question before it is stored.

import { jsonDigest, roundId as roundIdOf } from '../../operation/digests.js';
import { LIMITS } from '../../operation/limits.js';
import type { LiveStatus, OpenRound } from '../../operation/live-status.js';
import { openRounds } from '../../operation/policy.js';
import type { RowSnapshot } from '../../operation/row.js';
import { WireFault, type WireQuestion } from '../../protocols/adapter.js';
import type { StoredRound } from '../../receipts/store.js';
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
  for (const asked of listed) {
    const before = Object.values(known).find((round) => round.wireKey === asked.wireKey);
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
    const wireKey = known[round.roundId]?.wireKey;
    const isListed = listed.some((asked) => asked.wireKey === wireKey);
    if (round.reply || isListed) continue;
    await ports.receipts.closeRound(row.callNodeId, round.roundId, ports.clock.nowMs());
  }
}

async function storeQuestion(look: Look, row: RowSnapshot, asked: WireQuestion): Promise<void> {
  const { ports, input } = look;
  const { question, wireKey, wire } = asked;
  const openedAt = ports.clock.nowMs();
  const askedJson = {
    mode: question.mode,
    message: question.message,
    schema: question.schema,
    url: question.url,
  };
  const sizeBytes = Buffer.byteLength(JSON.stringify(askedJson));
  if (sizeBytes > LIMITS.questionBytes) {
    const detail = `a question of ${sizeBytes} bytes was not taken (limit ${LIMITS.questionBytes})`;
    await ports.receipts.addEvidence(row.callNodeId, 'protocol-violation', detail, openedAt);
    return;
  }
  const remoteId = row.remoteReference?.remoteId ?? '';
  const expiresAt = look.live.expiresAt ?? input.expiresAt;
  const deadlineAt = Math.min(openedAt + row.policy.inputBudgetMs, expiresAt ?? Number.POSITIVE_INFINITY);
  await ports.receipts.recordRound(row.callNodeId, {
    roundId: roundIdOf({ remoteId, wireKey, request: askedJson }, ports.digests),
    schemaDigest: jsonDigest(question.schema, ports.digests),
    wireKey,
    wire,
    question,
    openedAt,
    deadlineAt,
  });
}
