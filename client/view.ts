// Owns `operationView.v1`: what status, watch and the CLI show of an operation.
// Must never hold arguments or credentials.

import type { JsonValue } from '../operation/json.js';
import type { LiveStatus } from '../operation/live-status.js';
import { type FailureKind, type OperationState, type Outcome, VIEW_SCHEMA } from '../operation/names.js';
import { openRounds } from '../operation/policy.js';
import type { Receipt } from '../operation/receipt.js';
import type { CancelAsked, ToolOperation } from '../operation/record.js';
import type { Question } from '../operation/row.js';

/** A question that waits for an answer. */
export interface PendingInput {
  readonly roundId: string;
  readonly question: Question;
  /** Epoch ms: past it the operation is cancelled. */
  readonly deadlineAt: number;
}

/** A result: parsed where it rides with the run, else only its reference. */
export interface ViewResult {
  readonly digest: string;
  readonly sizeBytes: number;
  readonly mediaType: string;
  /** Absent where the result is read by its digest. */
  readonly value?: JsonValue;
}

/** `operationView.v1`. Times are epoch ms. */
export interface OperationView {
  readonly schema: 'operationView.v1';
  readonly callNodeId: string;
  readonly server: string | null;
  readonly tool: string | null;
  readonly adapter: string | null;
  readonly state: OperationState;
  readonly remoteStatus: string | null;
  readonly statusMessage: string | null;
  readonly outcome: Outcome | null;
  readonly failureKind: FailureKind | null;
  /** Why it ended, is held, or is being cancelled; of a run closed without a receipt, that it is and what to do. */
  readonly reason: string | null;
  /** On what it was decided, or why it is held. */
  readonly evidence: string | null;
  /** Since when it is held; null where it is not, or where no worker tells. */
  readonly heldSince: number | null;
  /** An operator has spoken; the end is being written. */
  readonly decidedByOperator: boolean;
  /** The last fault of a look that is still going on; null once a look succeeded. */
  readonly lastFault: string | null;
  /** What is odd about the last look though it is no fault; null where nothing is, or no look goes on. */
  readonly notice: string | null;
  readonly pendingInput: readonly PendingInput[];
  readonly cancelRequested: boolean;
  readonly result: ViewResult | null;
  readonly receipt: Receipt | null;
  readonly workflowId: string;
  readonly runId: string;
  /** Looks taken at the remote operation so far. */
  readonly polls: number;
  /** Since when work waits for a worker that does not come; null while one is alive or nothing is due. */
  readonly waitingForWorkerSince: number | null;
}

export interface RunIdentity {
  readonly callNodeId: string;
  readonly workflowId: string;
  readonly runId: string;
}

/** From the run's own record, brought up to date by the pending observation's live status. */
export function viewOfRecord(
  record: ToolOperation,
  live: LiveStatus | null,
  run: RunIdentity,
  waitingForWorkerSince: number | null,
): OperationView {
  const { receipt } = record;
  return {
    ...emptyView(run, record.state),
    server: record.server,
    tool: record.tool,
    adapter: record.adapter,
    remoteStatus: live?.remoteStatus ?? record.remoteStatus,
    statusMessage: live?.statusMessage ?? record.statusMessage,
    outcome: receipt?.outcome ?? null,
    failureKind: receipt?.failureKind ?? null,
    reason: reasonOf(record),
    evidence: record.ledgerBehind?.evidence ?? record.hold?.evidence ?? null,
    heldSince: record.ledgerBehind?.at ?? record.hold?.sinceAt ?? null,
    decidedByOperator: hasSpoken(record),
    lastFault: live?.lastFault ?? null,
    notice: live?.notice ?? null,
    pendingInput: openRounds(record.rounds).flatMap((round) =>
      round.question
        ? [{ roundId: round.roundId, question: round.question, deadlineAt: round.deadlineAt }]
        : [],
    ),
    cancelRequested: record.cancelAsked !== null || record.cancelGeneration > 0,
    receipt,
    polls: Math.max(live?.cursor.observationCount ?? 0, record.pollCursor.observationCount),
    waitingForWorkerSince,
  };
}

/** A word given before the ledger fell behind waits with everything else. */
function hasSpoken({ operator, ledgerBehind }: ToolOperation): boolean {
  return ledgerBehind ? operator?.isAboutLedger === true : operator !== null;
}

const LEDGER_BEHIND = 'ledger-behind';

/** The store is older than the run: nothing is sent, and an operator may end it. Only the run itself tells. */
export function isLedgerBehind(view: OperationView): boolean {
  return view.state === 'SUBMISSION_UNKNOWN' && view.reason === LEDGER_BEHIND;
}

function reasonOf(record: ToolOperation): string | null {
  if (record.receipt) return record.receipt.decision.reason;
  // As in the state: a ledger that is behind outranks a hold.
  if (record.ledgerBehind) return LEDGER_BEHIND;
  if (record.hold) return record.hold.reason;
  return record.rejection?.message ?? record.cancelAsked?.reason ?? null;
}

/** Nothing goes on before an operator has acted: held and undecided, or the ledger is behind. */
export function isHeld(view: OperationView): boolean {
  if (view.decidedByOperator) return false;
  return view.state === 'UNRESOLVED' || (view.state === 'SUBMISSION_UNKNOWN' && view.heldSince !== null);
}

/**
 * What became of a request to cancel. `alreadyRequested`: an earlier one is on its way to the server, or watched there;
 * nothing more is sent. `tooLate`: the end is there or on its way; the outcome is null where it is not known yet.
 */
export type CancelResult =
  | { readonly kind: 'requested' }
  | { readonly kind: 'alreadyRequested' }
  | { readonly kind: 'tooLate'; readonly outcome: Outcome | null };

interface Request {
  readonly requestToken: string;
  readonly requestedBy: string;
}

/** `request`: the one whose sender asks, and which the record has seen. */
export function cancelVerdictOf(record: ToolOperation, request: Request): CancelResult {
  const { cancelAsked: asked } = record;
  if (asked && isOf(request, asked)) return { kind: 'requested' };
  if (record.receipt || record.terminalObservation)
    return { kind: 'tooLate', outcome: record.receipt?.outcome ?? comingOutcome(record) };
  return { kind: asked || record.cancelGeneration > 0 ? 'alreadyRequested' : 'requested' };
}

function isOf(request: Request, { requestToken, requestedBy }: CancelAsked): boolean {
  // A run of an earlier release keeps no token: who asked is the next best.
  return requestToken === undefined
    ? requestedBy === request.requestedBy
    : requestToken === request.requestToken;
}

/** Null where the result decides and is not here yet: it may be an error, or lost. */
function comingOutcome({ terminalObservation: seen, result }: ToolOperation): Outcome | null {
  if (seen?.remoteStatus === 'cancelled') return 'cancelled';
  if (!seen || !result) return null;
  return seen.remoteStatus === 'failed' || result.isToolError || result.isProtocolError
    ? 'failed'
    : 'completed';
}

/** From the receipt alone: the end, as a closed run or the store tells it. */
export function viewOfEnd(receipt: Receipt, resultJson: string | null, run: RunIdentity): OperationView {
  const { result } = receipt;
  const value = resultJson === null ? {} : { value: JSON.parse(resultJson) as JsonValue };
  return {
    ...emptyView(run, receipt.state),
    server: receipt.server,
    tool: receipt.tool,
    adapter: receipt.adapter,
    remoteStatus: receipt.remoteSaid.remoteStatus,
    statusMessage: receipt.remoteSaid.statusMessage,
    outcome: receipt.outcome,
    failureKind: receipt.failureKind,
    reason: receipt.decision.reason,
    evidence: receipt.decision.evidence,
    cancelRequested: receipt.cancelGeneration > 0,
    result: result && {
      digest: result.digest,
      sizeBytes: result.sizeBytes,
      mediaType: result.mediaType,
      ...value,
    },
    receipt,
    polls: receipt.transport.observations,
  };
}

export function emptyView(run: RunIdentity, state: OperationState): OperationView {
  return {
    schema: VIEW_SCHEMA,
    callNodeId: run.callNodeId,
    server: null,
    tool: null,
    adapter: null,
    state,
    remoteStatus: null,
    statusMessage: null,
    outcome: null,
    failureKind: null,
    reason: null,
    evidence: null,
    heldSince: null,
    decidedByOperator: false,
    lastFault: null,
    notice: null,
    pendingInput: [],
    cancelRequested: false,
    result: null,
    receipt: null,
    workflowId: run.workflowId,
    runId: run.runId,
    polls: 0,
    waitingForWorkerSince: null,
  };
}
