// Owns the one way from the tables to a RowSnapshot.
// Must never write, and never carry what only step bodies need (arguments, session, wire of the rounds).

import type { Selectable } from 'kysely';

import { isRoundOpen } from '../operation/policy.js';
import type {
  EarlierCancel,
  InputRound,
  OperationPolicy,
  Question,
  Rejection,
  RemoteReference,
  RoundReply,
  RowSnapshot,
  StoredResult,
  SubmissionLeg,
  TerminalObservation,
} from '../operation/row.js';
import { fromReceiptText } from './receipt-json.js';
import type { TakenBack } from './rounds.js';
import type { Db, InputRoundTable, SubmissionLegTable } from './schema.js';

const SNAPSHOT_COLUMNS = [
  'call_node_id',
  'request_digest',
  'server',
  'tool',
  'arguments_digest',
  'submission_key',
  'policy_json',
  'execution_epoch',
  'owner_run_id',
  'adapter',
  'submission_policy',
  'tool_version',
  'descriptor_digest',
  'remote_reference_json',
  'cancel_generation',
  'cancel_reason',
  'cancel_delivery',
  'terminal_json',
  'rejection_json',
  'result_json',
  'proved_absent_at_leg',
  'created_at',
] as const;

/** Reads five tables: call it inside a transaction, or the parts may be of different moments. */
export async function readSnapshot(db: Db, callNodeId: string): Promise<RowSnapshot | null> {
  const row = await readRow(db, callNodeId);
  if (!row) return null;
  const receipt = await db
    .selectFrom('receipt')
    .select(['receipt_json as json', 'receipt_digest as digest'])
    .where('call_node_id', '=', callNodeId)
    .executeTakeFirst();
  return { ...row, receipt: receipt ? fromReceiptText(receipt) : null };
}

/** The row without what was made of it. */
export type RowBeforeReceipt = Omit<RowSnapshot, 'receipt'>;

/** Reads three tables: call it inside a transaction. */
export async function readRow(db: Db, callNodeId: string): Promise<RowBeforeReceipt | null> {
  const row = await db
    .selectFrom('operation')
    .select(SNAPSHOT_COLUMNS)
    .where('call_node_id', '=', callNodeId)
    .executeTakeFirst();
  if (!row) return null;
  return {
    callNodeId: row.call_node_id,
    requestDigest: row.request_digest,
    server: row.server,
    tool: row.tool,
    argumentsDigest: row.arguments_digest,
    submissionKey: row.submission_key,
    createdAt: row.created_at,
    policy: JSON.parse(row.policy_json) as OperationPolicy,
    executionEpoch: row.execution_epoch,
    ownerRunId: row.owner_run_id,
    adapter: row.adapter,
    submissionPolicy: row.submission_policy,
    toolVersion: row.tool_version,
    descriptorDigest: row.descriptor_digest,
    legs: await readLegs(db, callNodeId),
    remoteReference: fromJson<RemoteReference>(row.remote_reference_json),
    rounds: await readRounds(db, callNodeId),
    cancelGeneration: row.cancel_generation,
    cancelReason: row.cancel_reason,
    cancelDelivery: row.cancel_delivery,
    ...(row.cancel_generation > 1 ? { earlierCancels: await readEarlierCancels(db, callNodeId) } : {}),
    terminalObservation: fromJson<TerminalObservation>(row.terminal_json),
    rejection: fromJson<Rejection>(row.rejection_json),
    result: fromJson<StoredResult>(row.result_json),
    provedAbsentAtLeg: row.proved_absent_at_leg,
    // Rows are history: what is almost never so is not written into every fact.
    ...((await hasForgotten(db, callNodeId)) ? { hasForgotten: true } : {}),
  };
}

/** Told by its run, or by the sweeper of a run that had completed. */
export async function hasForgotten(db: Db, callNodeId: string): Promise<boolean> {
  const told = await db
    .selectFrom('evidence')
    .select('id')
    .where('call_node_id', '=', callNodeId)
    .where('kind', 'in', ['ledger-behind', 'receipt-lost'])
    .limit(1)
    .executeTakeFirst();
  return told !== undefined;
}

export function fromJson<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}

function readEarlierCancels(db: Db, callNodeId: string): Promise<readonly EarlierCancel[]> {
  return db
    .selectFrom('earlier_cancel')
    .select(['generation', 'reason', 'delivery'])
    .where('call_node_id', '=', callNodeId)
    .orderBy('generation')
    .execute();
}

async function readLegs(db: Db, callNodeId: string): Promise<readonly SubmissionLeg[]> {
  const legs = await db
    .selectFrom('submission_leg')
    .selectAll()
    .where('call_node_id', '=', callNodeId)
    .orderBy('leg')
    .execute();
  return legs.map(toLeg);
}

function toLeg(leg: Selectable<SubmissionLegTable>): SubmissionLeg {
  return {
    leg: leg.leg,
    claimToken: leg.claim_token,
    claimedAt: leg.claimed_at,
    closedAt: leg.closed_at,
    outcome: leg.outcome,
    detail: leg.detail,
  };
}

const ROUND_COLUMNS = [
  'round_id',
  'leg',
  'schema_digest',
  'opened_at',
  'deadline_at',
  'closed_at',
  'question_json',
  'reply_digest',
  'reply_token',
  'reply_action',
  'reply_recorded_at',
  'reply_sending_at',
  'reply_delivered_at',
] as const;

type RoundColumns = Pick<Selectable<InputRoundTable>, (typeof ROUND_COLUMNS)[number]>;

async function readRounds(db: Db, callNodeId: string): Promise<readonly InputRound[]> {
  const rounds = await db
    .selectFrom('input_round')
    .select(ROUND_COLUMNS)
    .where('call_node_id', '=', callNodeId)
    .orderBy('position')
    .execute();
  const takenBack = rounds.length > 0 ? await readTakenBack(db, callNodeId) : [];
  return rounds.map((round) => withTakenBack(toRound(round), takenBack));
}

/** The newest: without an older one a run is held for a person, and that is safe. */
const TAKEN_BACK_READ = 16;

async function readTakenBack(db: Db, callNodeId: string): Promise<readonly TakenBack[]> {
  const told = await db
    .selectFrom('evidence')
    .select('detail')
    .where('call_node_id', '=', callNodeId)
    .where('kind', '=', 'reply-taken-back')
    .orderBy('id', 'desc')
    .limit(TAKEN_BACK_READ)
    .execute();
  return told.map(({ detail }) => JSON.parse(detail) as TakenBack);
}

function withTakenBack(round: InputRound, all: readonly TakenBack[]): InputRound {
  const takenBack = all.flatMap(({ roundId, replyToken, recordedAt }) =>
    roundId === round.roundId ? [{ replyToken, recordedAt }] : [],
  );
  return takenBack.length > 0 ? { ...round, takenBack } : round;
}

/** A round that is over loses its question: the snapshot goes into the history of its run with every step. */
function toRound(columns: RoundColumns): InputRound {
  const round: InputRound = {
    roundId: columns.round_id,
    ...(columns.leg === null ? {} : { leg: columns.leg }),
    schemaDigest: columns.schema_digest,
    openedAt: columns.opened_at,
    deadlineAt: columns.deadline_at,
    question: null,
    reply: toReply(columns),
    closedAt: columns.closed_at,
  };
  return isRoundOpen(round) ? { ...round, question: JSON.parse(columns.question_json) as Question } : round;
}

function toReply(columns: RoundColumns): RoundReply | null {
  const { reply_digest, reply_token, reply_action, reply_recorded_at } = columns;
  if (reply_digest === null || reply_token === null || reply_action === null || reply_recorded_at === null) {
    return null;
  }
  return {
    replyDigest: reply_digest,
    replyToken: reply_token,
    action: reply_action,
    recordedAt: reply_recorded_at,
    sendingAt: columns.reply_sending_at,
    deliveredAt: columns.reply_delivered_at,
  };
}
