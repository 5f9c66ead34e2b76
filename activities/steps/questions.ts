// Owns how a question read from the wire becomes an input round of the row: stored before anyone is asked.
// Must never let go of the source of a question before it is stored.

import { jsonDigest, roundId as roundIdOf } from '../../operation/digests.js';
import { LIMITS } from '../../operation/limits.js';
import type { LiveStatus, OpenRound } from '../../operation/live-status.js';
import { openRounds } from '../../operation/policy.js';
import type { RowSnapshot } from '../../operation/row.js';
import type { WireQuestion } from '../../protocols/adapter.js';
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
export async function lookAtQuestions(look: Look, row: RowSnapshot, reach: Reach): Promise<RowSnapshot> {
  const { ports, attempt } = look;
  const wire = await ports.receipts.wireState(row.callNodeId);
  const known = {
    anchor: wire.anchor,
    wireKeys: Object.values(wire.rounds).map((round) => round.wireKey),
    wires: Object.values(wire.rounds).map((round) => round.wire),
    // The status is explained already: no need to listen long for another question.
    hasOpenRound: openRounds(row.rounds).some((round) => !round.reply),
  };
  await reach.adapter.pickUpQuestions(reach.server, reach.reference, known, async (question) => {
    await attempt.seam('observe:question-read');
    await storeQuestion(look, row, question);
    await attempt.seam('observe:question-stored');
  });
  const asked = await ports.receipts.begin(look.input);
  attempt.show({ ...look.live, openRounds: showRounds(asked) });
  return asked;
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
