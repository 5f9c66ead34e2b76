// Owns what an audit asks of an operation's row, whether it has ended or not: identity, submissions, questions, cancel,
// result. Must never read the store, nor share a rule with the code that wrote the row.

import { jsonDigest, replyDigest, requestDigest, submissionKey } from '../../operation/digests.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import type { Question } from '../../operation/row.js';
import { digests } from '../../primitives/node-primitives.js';
import type { RowBeforeReceipt } from '../row-snapshot.js';
import type { InputRoundTable } from '../schema.js';
import { fault, faults, type Fault } from './findings.js';
import type { AuditedOperation } from './reads.js';

export function faultsOfRow(operation: AuditedOperation): readonly Fault[] {
  const { row } = operation;
  if (!row) return [fault('row', 'a column of its row cannot be read')];
  return [
    ...identity(operation, row),
    ...faults('legs', legs(operation, row)),
    ...faults('rounds', operation.rounds.flatMap(roundWrongs)),
    ...faults(
      'rounds',
      operation.rounds.map((round) => strayRound(round, row)),
    ),
    ...faults('cancel', [cancel(row)]),
    ...faults('result', [result(operation, row)]),
  ];
}

function identity(operation: AuditedOperation, row: RowBeforeReceipt): readonly Fault[] {
  const args = parsed(operation.argumentsJson) as JsonObject | undefined;
  if (args === undefined) return [fault('row', 'its arguments cannot be read')];
  const { server, tool, callNodeId } = row;
  const asked = { server, tool, arguments: args };
  return faults('row', [
    row.argumentsDigest !== jsonDigest(args, digests) && 'its arguments have another digest',
    row.requestDigest !== requestDigest(asked, digests) && 'its request has another digest',
    row.submissionKey !== submissionKey(callNodeId, digests) && 'its submission key is not its own',
    operation.remoteId !== (row.remoteReference?.remoteId ?? null) &&
      'it is found by another remote id than its reference has',
    operation.resultDigest !== (row.result?.digest ?? null) &&
      'its result has another digest than it is found by',
  ]);
}

/** Sent again under one key, because a repeat does no harm, or after a look: then several may be taken up. */
const REPEATED: readonly string[] = ['key-argument', 'key-meta', 'request-id', 'repeatable', 'lookup-tool'];

function legs({ evidence }: AuditedOperation, row: RowBeforeReceipt): readonly (string | false)[] {
  const gap = row.legs.findIndex(({ leg }, index) => leg !== index + 1);
  const taken = row.legs.filter(({ outcome }) => outcome === 'referenced' || outcome === 'answered');
  const isExplained =
    REPEATED.includes(row.submissionPolicy ?? 'none') ||
    evidence.has('second-reference') ||
    evidence.has('terminal-contradiction') ||
    evidence.has('result-contradiction');
  const isOpenAndClosed = row.legs.some(
    ({ outcome, closedAt }) => (outcome === 'open') !== (closedAt === null),
  );
  return [
    gap >= 0 && `submission ${gap + 1} is missing`,
    taken.length > 1 && !isExplained && `${taken.length} submissions were taken up, with no evidence of it`,
    isOpenAndClosed && 'a submission is open and closed at once',
  ];
}

function roundWrongs(round: InputRoundTable, index: number): readonly (string | false)[] {
  const which = `question ${round.position}`;
  const reply = [
    round.reply_digest,
    round.reply_token,
    round.reply_action,
    round.reply_json,
    round.reply_recorded_at,
  ];
  const has = reply.filter((part) => part !== null).length;
  const isHalf = has !== 0 && has !== reply.length;
  const question = parsed(round.question_json) as Question | undefined;
  const isSent = round.reply_sending_at !== null || round.reply_delivered_at !== null;
  return [
    round.position !== index + 1 && `question ${index + 1} is missing`,
    question === undefined && `${which} cannot be read`,
    question !== undefined &&
      round.schema_digest !== jsonDigest(question.schema, digests) &&
      `${which} has another schema than its digest says`,
    isHalf && `half of the reply to ${which} is missing`,
    has === 0 && isSent && `a reply to ${which} was sent that was never recorded`,
    round.reply_delivered_at !== null &&
      round.reply_sending_at === null &&
      `the reply to ${which} was delivered without being sent`,
    has === reply.length && replyWrong(round, which),
  ];
}

/** Asked before there was any work: then that submission was, and nothing else has come of it. */
function strayRound({ leg, position }: InputRoundTable, { legs: known }: RowBeforeReceipt): string | false {
  if (leg === null || known.some((one) => one.leg === leg && one.outcome === 'asked')) return false;
  return `question ${position} was brought by submission ${leg}, which was not asked`;
}

function replyWrong(round: InputRoundTable, which: string): string | false {
  const reply = parsed(round.reply_json ?? '') as { action: string; content: JsonValue } | undefined;
  if (reply === undefined) return `the reply to ${which} cannot be read`;
  const isOther = round.reply_digest !== replyDigest(reply, digests) || round.reply_action !== reply.action;
  return isOther && `the reply to ${which} is not the one its digest says`;
}

function cancel(row: RowBeforeReceipt): string | false {
  const { cancelGeneration, cancelReason, cancelDelivery, earlierCancels = [] } = row;
  const isNone = [cancelGeneration === 0, cancelReason === null, cancelDelivery === 'none'];
  const isWhole = isNone.every(Boolean) || !isNone.some(Boolean);
  const has = `generation ${cancelGeneration}, reason ${cancelReason ?? 'none'}, delivery ${cancelDelivery}`;
  if (!isWhole) return `its cancel does not fit together (${has})`;
  const before = earlierCancels.map(({ generation }) => generation);
  const isGap =
    before.length !== Math.max(cancelGeneration - 1, 0) || before.some((each, at) => each !== at + 1);
  return (
    isGap && `of ${cancelGeneration} cancels it keeps those before the last as ${before.join(', ') || 'none'}`
  );
}

/** Whether the bytes are the right ones is seen where the bytes are read, once for all operations that share them. */
function result({ blob }: AuditedOperation, { result: named }: RowBeforeReceipt): string | false {
  if (!named) return false;
  if (!blob) return `the bytes of its result ${named.digest} are not in the store`;
  const isWhole = blob.sizeBytes === blob.storedBytes;
  return (
    isWhole &&
    named.sizeBytes !== blob.sizeBytes &&
    `its result has ${blob.sizeBytes} bytes, and the row says ${named.sizeBytes}`
  );
}

/** Undefined where the text is no JSON: no JSON value is undefined. */
function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
