// Owns what an audit asks of an end: the receipt itself, its row, its ready row, and what is owed with it.
// Must never share a rule with the code that wrote the end: it would agree with its mistakes.

import type { Receipt } from '../../operation/receipt.js';
import type { SubmissionLeg } from '../../operation/row.js';
import { canonicalText, sha256Hex } from '../receipt-json.js';
import type { RowBeforeReceipt } from '../row-snapshot.js';
import { fault, faults, type Fault } from './findings.js';
import type { AuditedOperation } from './reads.js';

export function faultsOfEnd(operation: AuditedOperation): readonly Fault[] {
  const { row } = operation;
  // A ready row without a receipt is an orphan, and told as one.
  if (!operation.receipt) return row ? faults('effects', keptWrongs(operation, row, false)) : [];
  const receipt = wholeReceipt(operation.receipt);
  if (!receipt) return [fault('receipt', 'its receipt is not the one that its digest says')];
  return [
    ...faults('ready', readyWrongs(operation, receipt)),
    ...(row ? faults('facts', factWrongs(receipt, row)) : []),
    ...(row ? faults('end', [endWrong(receipt, row)]) : []),
    ...(row ? faults('effects', effectWrongs(operation, receipt, row)) : []),
  ];
}

/** Null where a character of it was changed, or its digest. */
function wholeReceipt({ json, digest }: { readonly json: string; readonly digest: string }): Receipt | null {
  if (sha256Hex(json) !== digest) return null;
  try {
    const value: unknown = JSON.parse(json);
    return canonicalText(value) === json ? (value as Receipt) : null;
  } catch {
    return null;
  }
}

function readyWrongs(
  { ready, receipt: text }: AuditedOperation,
  receipt: Receipt,
): readonly (string | false)[] {
  if (!ready) return ['its receipt has no ready row'];
  return [
    ready.receiptDigest !== text?.digest && 'its ready row names another receipt',
    ready.outcome !== receipt.outcome &&
      `its ready row says ${ready.outcome}, and the receipt ${receipt.outcome}`,
    ready.advances !== (receipt.outcome === 'completed') &&
      `its ready row ${ready.advances ? 'advances' : 'holds back'} an operation that ended ${receipt.outcome}`,
  ];
}

/** The row's facts as the receipt must say them. The epoch may move on after the end, legs may be told of later. */
function factWrongs(receipt: Receipt, row: RowBeforeReceipt): readonly (string | false)[] {
  const hasPayload = receipt.outcome === 'completed' || receipt.outcome === 'failed';
  const held: Partial<Record<keyof Receipt, unknown>> = {
    callNodeId: row.callNodeId,
    requestDigest: row.requestDigest,
    server: row.server,
    tool: row.tool,
    toolVersion: row.toolVersion,
    descriptorDigest: row.descriptorDigest,
    adapter: row.adapter,
    submissionPolicy: row.submissionPolicy,
    remoteReference: row.remoteReference,
    result: hasPayload ? row.result : null,
    auditResult: hasPayload ? null : row.result,
    cancelGeneration: row.cancelGeneration,
    earlierCancels: row.earlierCancels,
    createdAt: row.createdAt,
    observedAt: row.terminalObservation?.observedAt ?? null,
  };
  const said = receipt as unknown as Record<string, unknown>;
  const differing = Object.entries(held)
    .filter(([name, value]) => canonicalText(said[name] ?? null) !== canonicalText(value ?? null))
    .map(([name]) => name);
  const seen = row.terminalObservation;
  // An operator's word about the end is none of the server's.
  const isServers = seen !== null && seen.evidence !== 'operator';
  if (isServers && receipt.remoteSaid.remoteStatus !== seen.remoteStatus) differing.push('remoteStatus');
  if (receipt.executionEpoch > row.executionEpoch) differing.push('executionEpoch');
  // A gap is told of where submissions are looked at.
  const hasGap = row.legs.some(({ leg }, index) => leg !== index + 1);
  if (!hasGap && !isLaterWordOf(receipt.submissionLegs, row.legs)) differing.push('submissionLegs');
  return [differing.length > 0 && `receipt and row differ in ${differing.join(', ')}`];
}

/** A lost attempt may still settle its leg after the end; all else of a leg is as the receipt holds it. */
function isLaterWordOf(before: readonly SubmissionLeg[], now: readonly SubmissionLeg[]): boolean {
  return (
    before.length === now.length &&
    before.every((leg, index) => {
      const later = now[index];
      if (!later) return false;
      const isSame = canonicalText(leg) === canonicalText(later);
      const isSameLeg =
        leg.leg === later.leg && leg.claimToken === later.claimToken && leg.claimedAt === later.claimedAt;
      const mayChange = isUnsettled(leg) || later.outcome === 'referenced' || later.outcome === 'answered';
      return isSame || (isSameLeg && mayChange);
    })
  );
}

const STATES: Readonly<Record<Receipt['outcome'], Receipt['state']>> = {
  completed: 'ACCEPTED',
  failed: 'ACCEPTED',
  unresolved: 'ACCEPTED',
  cancelled: 'CANCELLED_ACCEPTED',
  rejected: 'REJECTED',
};

/** DESIGN section 4, outcome by outcome. */
function endWrong(receipt: Receipt, row: RowBeforeReceipt): string | false {
  const { outcome, state, failureKind } = receipt;
  if (state !== STATES[outcome]) return `an operation that ended ${outcome} is in state ${String(state)}`;
  const kind = row.result?.isProtocolError ? 'protocol' : 'tool';
  if (failureKind !== (outcome === 'failed' ? kind : null)) {
    return `an operation that ended ${outcome} has the failure kind ${failureKind ?? 'none'}`;
  }
  return !isProved(receipt, row) && `nothing in its row proves the end ${outcome}`;
}

function isProved({ outcome, submissionLegs, decision }: Receipt, row: RowBeforeReceipt): boolean {
  const seen = row.terminalObservation?.remoteStatus ?? null;
  const isWorkKnown = seen !== null || row.remoteReference !== null;
  const isOperator = decision.evidence.startsWith('operator ');
  const result = seen === 'cancelled' ? null : row.result;
  const isFailure = seen === 'failed' || result?.isToolError || result?.isProtocolError;
  switch (outcome) {
    case 'completed':
      return seen === 'completed' && result !== null && !isFailure;
    case 'failed':
      return seen !== null && result !== null && Boolean(isFailure);
    case 'cancelled':
      return (
        seen === 'cancelled' || (row.cancelGeneration > 0 && !isWorkKnown && nothingRuns(submissionLegs, row))
      );
    case 'rejected':
      return (
        !isWorkKnown &&
        (isOperator || (row.rejection !== null && submissionLegs.every((leg) => isNothing(leg, row))))
      );
    case 'unresolved':
      return isOperator && (seen === null || (seen !== 'cancelled' && result === null));
  }
}

/** Of the submissions that may have reached the server: settled otherwise, or proved absent afterwards. */
function nothingRuns(legs: readonly SubmissionLeg[], row: RowBeforeReceipt): boolean {
  return legs.every((leg) => !isUnsettled(leg) || isNothing(leg, row));
}

/** This submission started nothing: it was not sent, was refused or asked, or a later look proved that nothing is there. */
function isNothing(leg: SubmissionLeg, { provedAbsentAtLeg }: RowBeforeReceipt): boolean {
  if (['notSent', 'refused', 'asked'].includes(leg.outcome)) return true;
  return isUnsettled(leg) && provedAbsentAtLeg !== null && leg.leg <= provedAbsentAtLeg;
}

function isUnsettled({ outcome }: SubmissionLeg): boolean {
  return outcome === 'open' || outcome === 'ambiguous';
}

function effectWrongs(
  operation: AuditedOperation,
  receipt: Receipt,
  row: RowBeforeReceipt,
): readonly (string | false)[] {
  const isDoubtful = receipt.outcome === 'cancelled' || receipt.outcome === 'unresolved';
  // A store from before a submission cannot tell that there was none.
  const hasForgotten = operation.evidence.has('ledger-behind') || operation.evidence.has('receipt-lost');
  const wasSent = hasForgotten || receipt.submissionLegs.some(({ outcome }) => outcome !== 'notSent');
  const isOwed = isDoubtful && wasSent && row.policy.sideEffects !== 'none';
  const saysOwed = receipt.effects === 'EFFECT_RECONCILIATION_REQUIRED';
  if (saysOwed !== isOwed) return [`its receipt says of its effects ${receipt.effects}`];
  return keptWrongs(operation, row, isOwed);
}

/** Of what is kept, ended or not: it has a reason, and its status is its last entry's. */
function keptWrongs(
  { reconciliation, evidence }: AuditedOperation,
  row: RowBeforeReceipt,
  isOwed: boolean,
): readonly (string | false)[] {
  const isDoubled = evidence.has('second-reference') && row.policy.sideEffects !== 'none';
  if (!reconciliation) return [(isOwed || isDoubled) && 'no reconciliation is kept for it'];
  const { status, entries } = reconciliation;
  const isContradicted =
    evidence.has('second-reference') ||
    evidence.has('terminal-contradiction') ||
    evidence.has('result-contradiction');
  const last = entries.at(-1)?.kind === 'settled' ? 'settled' : 'open';
  return [
    !isContradicted && !isOwed && 'a reconciliation is kept for it, with no reason',
    status !== last && `its reconciliation is ${status}, and its last entry says ${last}`,
  ];
}
