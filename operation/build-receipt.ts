// Owns which end an operation has, and how its receipt is built from the row.
// Must never be called for a row whose end is not proved: `decideEnd` gives null and nothing is accepted.

import { RECEIPT_SCHEMA, type Outcome, type TerminalState } from './names.js';
import { isAbsenceProved, mayHaveBeenSent, unsettledLegs } from './policy.js';
import type { PollCursor } from './facts.js';
import type { Receipt } from './receipt.js';
import type { FailureKind } from './names.js';
import type { ToolOperation } from './record.js';
import type { RowSnapshot, StoredResult, TerminalObservation } from './row.js';

export interface End {
  readonly state: TerminalState;
  readonly outcome: Outcome;
  readonly failureKind: FailureKind | null;
  readonly evidence: string;
}

export interface OperatorWord {
  readonly decision: 'neverCreated' | 'close';
  readonly evidence: string;
  readonly decidedBy: string;
}

/** `found` leads back to the work, and `ended` becomes an observation in the row: neither is itself an end. */
export function operatorWordOf({ operator }: Pick<ToolOperation, 'operator'>): OperatorWord | null {
  if (!operator || operator.decision === 'found' || operator.decision === 'ended') return null;
  const { decision, evidence, decidedBy } = operator;
  return { decision, evidence, decidedBy };
}

export function operatorNote(word: { readonly decidedBy: string; readonly evidence: string }): string {
  return `operator ${word.decidedBy}: ${word.evidence}`;
}

/** The end that the row proves, or null. An operator's word counts only where nothing is proved. */
export function decideEnd(row: RowSnapshot, operator: OperatorWord | null): End | null {
  const seen = row.terminalObservation;
  if (seen?.remoteStatus === 'cancelled') {
    return { state: 'CANCELLED_ACCEPTED', outcome: 'cancelled', failureKind: null, evidence: seen.evidence };
  }
  if (seen && row.result) return endWithResult(row, seen.remoteStatus, evidenceOf(seen, row.result));
  if (operator) return endByOperator(operator);
  if (row.rejection) {
    return { state: 'REJECTED', outcome: 'rejected', failureKind: null, evidence: row.rejection.code };
  }
  const isInDoubt = unsettledLegs(row.legs).length > 0;
  const nothingRuns = !row.remoteReference && (!isInDoubt || isAbsenceProved(row));
  if (row.cancelGeneration > 0 && !seen && nothingRuns && !row.hasForgotten) {
    const wasAsked = row.legs.some(({ outcome }) => outcome === 'asked');
    const ended = wasAsked ? 'ended with a question, before there was any work' : 'never sent';
    const evidence = isInDoubt ? 'proved absent' : ended;
    return { state: 'CANCELLED_ACCEPTED', outcome: 'cancelled', failureKind: null, evidence };
  }
  return null;
}

/** Whose word the end is, and whose the result, where an operator gave them. */
function evidenceOf(seen: TerminalObservation, result: StoredResult): string {
  if (seen.evidence === 'operator') return seen.note ?? seen.evidence;
  return result.note === undefined ? seen.evidence : `${seen.evidence}; result by ${result.note}`;
}

function endWithResult(row: RowSnapshot, remoteStatus: string, evidence: string): End {
  const isFailure = remoteStatus === 'failed' || row.result?.isToolError || row.result?.isProtocolError;
  if (!isFailure) return { state: 'ACCEPTED', outcome: 'completed', failureKind: null, evidence };
  const failureKind = row.result?.isProtocolError ? 'protocol' : 'tool';
  return { state: 'ACCEPTED', outcome: 'failed', failureKind, evidence };
}

function endByOperator(operator: OperatorWord): End {
  const evidence = operatorNote(operator);
  return operator.decision === 'neverCreated'
    ? { state: 'REJECTED', outcome: 'rejected', failureKind: null, evidence }
    : { state: 'ACCEPTED', outcome: 'unresolved', failureKind: null, evidence };
}

/** What the run knows of the course and the row does not. */
export interface Course {
  readonly cursor: PollCursor;
  readonly remoteStatus: string | null;
  readonly statusMessage: string | null;
  readonly reason: string | null;
}

export function buildReceipt(row: RowSnapshot, end: End, course: Course, acceptedAt: number): Receipt {
  const hasPayload = end.outcome === 'completed' || end.outcome === 'failed';
  const seen = row.terminalObservation;
  const saidByRemote = seen?.evidence === 'operator' ? null : seen;
  return {
    schema: RECEIPT_SCHEMA,
    callNodeId: row.callNodeId,
    requestDigest: row.requestDigest,
    server: row.server,
    tool: row.tool,
    toolVersion: row.toolVersion,
    descriptorDigest: row.descriptorDigest,
    adapter: row.adapter,
    submissionPolicy: row.submissionPolicy,
    remoteReference: isTakenBack(row, end) ? null : row.remoteReference,
    submissionLegs: row.legs,
    state: end.state,
    outcome: end.outcome,
    failureKind: end.failureKind,
    result: hasPayload ? row.result : null,
    auditResult: hasPayload ? null : row.result,
    cancelGeneration: row.cancelGeneration,
    ...(row.earlierCancels ? { earlierCancels: row.earlierCancels } : {}),
    executionEpoch: row.executionEpoch,
    createdAt: row.createdAt,
    observedAt: row.terminalObservation?.observedAt ?? null,
    acceptedAt,
    remoteSaid: {
      remoteStatus: saidByRemote?.remoteStatus ?? course.remoteStatus,
      statusMessage: saidByRemote?.statusMessage ?? course.statusMessage,
    },
    transport: {
      observations: course.cursor.observationCount,
      transientFaults: course.cursor.transientFaults,
    },
    decision: { evidence: end.evidence, reason: row.rejection?.message ?? row.cancelReason ?? course.reason },
    effects: owesReconciliation(row, end) ? 'EFFECT_RECONCILIATION_REQUIRED' : 'none-owed',
  };
}

/** "Never created" takes back what an operator's own word named and no look has found. */
export function isTakenBack(
  { remoteReference }: Pick<RowSnapshot, 'remoteReference'>,
  { outcome }: Pick<End, 'outcome'>,
): boolean {
  return remoteReference?.isUnseen === true && outcome === 'rejected';
}

/** Bytes may have been sent, nothing was accepted, and the tool is not declared free of side effects. */
function owesReconciliation(row: RowSnapshot, end: End): boolean {
  if (end.outcome !== 'cancelled' && end.outcome !== 'unresolved') return false;
  return row.policy.sideEffects !== 'none' && (row.hasForgotten === true || row.legs.some(mayHaveBeenSent));
}

/** The eight facts that the run presents and the store matches before it writes the receipt (promise 2). */
export interface Presented {
  readonly callNodeId: string;
  readonly requestDigest: string;
  readonly remoteId: string | null;
  readonly toolVersion: string | null;
  readonly executionEpoch: number;
  readonly cancelGeneration: number;
  readonly terminalStatus: string | null;
  readonly resultDigest: string | null;
}

export const PRESENTED_FACTS = [
  'callNodeId',
  'requestDigest',
  'remoteId',
  'toolVersion',
  'executionEpoch',
  'cancelGeneration',
  'terminalStatus',
  'resultDigest',
] as const satisfies readonly (keyof Presented)[];

/** A row or a record: both hold the eight facts. */
export type Presentable = Pick<
  RowSnapshot,
  | 'callNodeId'
  | 'requestDigest'
  | 'remoteReference'
  | 'toolVersion'
  | 'executionEpoch'
  | 'cancelGeneration'
  | 'terminalObservation'
  | 'result'
>;

export function presentedBy(row: Presentable): Presented {
  return {
    callNodeId: row.callNodeId,
    requestDigest: row.requestDigest,
    remoteId: row.remoteReference?.remoteId ?? null,
    toolVersion: row.toolVersion,
    executionEpoch: row.executionEpoch,
    cancelGeneration: row.cancelGeneration,
    terminalStatus: row.terminalObservation?.remoteStatus ?? null,
    resultDigest: row.result?.digest ?? null,
  };
}
