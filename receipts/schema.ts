// Owns the shape of every table, for every dialect: times are bigint ms, JSON is text, booleans are integers.
// Must never be changed in place once released: a new column is a new migration.

import type { Generated, Kysely, Transaction } from 'kysely';

import type { AdapterName, Outcome, SubmissionPolicyName } from '../operation/names.js';
import type { CancelDelivery, InputAction, LegOutcome } from '../operation/row.js';
import type { EvidenceKind } from './store.js';

export interface StoreTables {
  store_version: StoreVersionTable;
  operation: OperationTable;
  submission_leg: SubmissionLegTable;
  earlier_cancel: EarlierCancelTable;
  input_round: InputRoundTable;
  result_blob: ResultBlobTable;
  receipt: ReceiptTable;
  ready_outbox: ReadyOutboxTable;
  effect_reconciliation: EffectReconciliationTable;
  reconciliation_entry: ReconciliationEntryTable;
  evidence: EvidenceTable;
}

export type Db = Kysely<StoreTables>;
export type Tx = Transaction<StoreTables>;

/** One row per applied migration; the highest is the version of the store. */
export interface StoreVersionTable {
  version: number;
  applied_at: number;
}

/** One row per callNodeId: the register of what must be unique across runs, engines and retention. */
export interface OperationTable {
  call_node_id: string;
  request_digest: string;
  server: string;
  tool: string;
  arguments_json: string;
  arguments_digest: string;
  submission_key: string;
  policy_json: string;
  execution_epoch: number;
  owner_run_id: string;
  adapter: AdapterName | null;
  submission_policy: SubmissionPolicyName | null;
  tool_version: string | null;
  descriptor_digest: string | null;
  session_json: string | null;
  output_schema_json: string | null;
  /** The whole reference as JSON: ids are opaque, and JSON text keeps even what UTF-8 cannot. */
  remote_reference_json: string | null;
  /** The same id once more, only so that an operation is found by it. */
  remote_id: string | null;
  anchor_json: string | null;
  cancel_generation: number;
  cancel_reason: string | null;
  cancel_delivery: CancelDelivery;
  terminal_json: string | null;
  rejection_json: string | null;
  result_digest: string | null;
  result_json: string | null;
  proved_absent_at_leg: number | null;
  created_at: number;
  updated_at: number;
}

export interface SubmissionLegTable {
  call_node_id: string;
  leg: number;
  claim_token: string;
  claimed_at: number;
  closed_at: number | null;
  outcome: LegOutcome;
  detail: string | null;
  /** Version 2. Of a leg that was asked: what the server wants back with the replies. */
  continuation_json: string | null;
}

/** Version 3. A cancel that was not honoured, written when the next one is raised. */
export interface EarlierCancelTable {
  call_node_id: string;
  generation: number;
  reason: string;
  delivery: CancelDelivery;
}

export interface InputRoundTable {
  call_node_id: string;
  round_id: string;
  /** Version 2. The leg that brought the question before there was any work; null where the work asked. */
  leg: number | null;
  /** Order of arrival, from 1. */
  position: number;
  schema_digest: string;
  opened_at: number;
  deadline_at: number;
  closed_at: number | null;
  question_json: string;
  wire_key: string;
  wire_json: string;
  reply_digest: string | null;
  reply_token: string | null;
  reply_action: InputAction | null;
  reply_json: string | null;
  reply_recorded_at: number | null;
  reply_sending_at: number | null;
  reply_delivered_at: number | null;
}

export interface ResultBlobTable {
  digest: string;
  media_type: string;
  size_bytes: number;
  bytes: Uint8Array;
}

export interface ReceiptTable {
  call_node_id: string;
  /** Canonical JSON (RFC 8785). */
  receipt_json: string;
  /** SHA-256 of `receipt_json`. */
  receipt_digest: string;
}

export interface ReadyOutboxTable {
  call_node_id: string;
  receipt_digest: string;
  /** 1 only for `completed`: the only thing that lets downstream move. */
  advances: 0 | 1;
  outcome: Outcome;
  created_at: number;
}

export interface EffectReconciliationTable {
  call_node_id: string;
  status: 'open' | 'settled';
  opened_at: number;
  note: string;
}

/** Version 2. Why it is owed, and each person's word; the newest decides the status. */
export interface ReconciliationEntryTable {
  id: Generated<number>;
  call_node_id: string;
  kind: 'owed' | 'settled';
  note: string;
  settled_by: string | null;
  at: number;
}

export interface EvidenceTable {
  id: Generated<number>;
  call_node_id: string;
  kind: EvidenceKind;
  detail: string;
  at: number;
}
