// Owns what people see of a run in the Temporal UI: search attributes and current details.
// Must never show arguments, replies or results.

import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import { defineSearchAttributeKey } from '@temporalio/common';
import { LIMITS } from '../operation/limits.js';
import type { OperationState, SearchAttributeName } from '../operation/names.js';
import { clip, openRounds } from '../operation/policy.js';
import type { ToolOperation } from '../operation/record.js';

const keyOf = (name: SearchAttributeName) => defineSearchAttributeKey(name, 'KEYWORD');

/** One upsert per state in which an operation can rest: each is an event of history. */
export function createShownState(searchAttributes: boolean): (record: ToolOperation) => void {
  let shown: OperationState = 'SUBMITTING';
  return (record) => {
    setCurrentDetails(clip(detailsOf(record), LIMITS.uiDetailsChars));
    if (!searchAttributes || record.state === shown) return;
    shown = record.state;
    upsertSearchAttributes([
      { key: keyOf('OperationState'), value: record.state },
      ...(record.adapter ? [{ key: keyOf('ProtocolAdapter'), value: record.adapter }] : []),
      ...(record.receipt ? [{ key: keyOf('OperationOutcome'), value: record.receipt.outcome }] : []),
    ]);
  };
}

function detailsOf(record: ToolOperation): string {
  const lines = [`**${record.state}** ${record.server}/${record.tool}`];
  if (record.remoteStatus) lines.push(`remote: ${record.remoteStatus} ${record.statusMessage ?? ''}`);
  if (record.remoteReference) lines.push(`reference: \`${record.remoteReference.remoteId}\``);
  for (const round of openRounds(record.rounds))
    lines.push(`asked (${round.roundId}): ${round.question?.message ?? ''}`);
  if (record.cancelAsked)
    lines.push(`cancel asked by ${record.cancelAsked.requestedBy}: ${record.cancelAsked.reason}`);
  if (record.hold) lines.push(`held: ${record.hold.reason} — ${record.hold.evidence}`);
  if (record.ledgerBehind) lines.push(`ledger behind: ${record.ledgerBehind.evidence}`);
  if (record.receipt) lines.push(`outcome: ${record.receipt.outcome} (${record.receipt.decision.evidence})`);
  return lines.join('\n\n');
}
