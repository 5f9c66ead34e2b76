// Owns how a receipt looks to a person who wants all of it. Must never merge its three facts: what the remote said,
// what the transport did, what was decided.

import type { Receipt } from '../operation/receipt.js';
import type { Reconciliation } from '../receipts/effect-reads.js';
import type { ReadyRow } from '../receipts/store-reads.js';
import { oneLine } from './printable.js';
import { time } from './render-view.js';

export interface ReceiptSurroundings {
  readonly ready: ReadyRow | null;
  readonly reconciliation: Reconciliation | null;
}

export function receiptDetails(receipt: Receipt, around: ReceiptSurroundings): readonly string[] {
  const kind = receipt.failureKind === null ? '' : ` (${receipt.failureKind})`;
  const { remoteSaid, transport, decision, result, auditResult } = receipt;
  const said = [remoteSaid.remoteStatus, remoteSaid.statusMessage].filter((part) => part !== null);
  const reason = decision.reason === null ? '' : `, reason ${decision.reason}`;
  const lines: [string, string | null][] = [
    ['state', receipt.state],
    ['created', time(receipt.createdAt)],
    ['accepted', time(receipt.acceptedAt)],
    ['receipt', around.ready && `sha256 ${around.ready.receiptDigest}`],
    ['advances', around.ready && (around.ready.advances ? 'yes' : 'no')],
    ['request', `sha256 ${receipt.requestDigest}`],
    ['adapter', receipt.adapter],
    ['policy', receipt.submissionPolicy],
    ['remote id', receipt.remoteReference?.remoteId ?? null],
    ['sent', `${receipt.submissionLegs.length} submission(s)`],
    ['remote', said.length === 0 ? null : said.join(': ')],
    ['transport', `${transport.observations} poll(s), ${transport.transientFaults} transient fault(s)`],
    ['cancels', earlierCancelsOf(receipt)],
    ['decision', `${decision.evidence}${reason}`],
    ['result', result && `sha256 ${result.digest}, ${result.sizeBytes} bytes, ${result.mediaType}`],
    ['audit', auditResult && `a result was seen, and not accepted: sha256 ${auditResult.digest}`],
    ['effects', effectsOf(receipt, around.reconciliation)],
  ];
  const head = `${receipt.outcome}${kind}  ${receipt.server}/${receipt.tool}  ${receipt.callNodeId}`;
  const shown = lines.flatMap(([name, value]) =>
    value === null ? [] : [`  ${name.padEnd(9)} ${oneLine(value)}`],
  );
  return [head, ...shown];
}

function earlierCancelsOf({ earlierCancels, cancelGeneration }: Receipt): string | null {
  const before = earlierCancels?.map(
    ({ generation, reason, delivery }) => `${generation} ${delivery} (${reason})`,
  );
  return before === undefined ? null : `asked ${cancelGeneration} times; not honoured: ${before.join(', ')}`;
}

function effectsOf(receipt: Receipt, reconciliation: Reconciliation | null): string | null {
  const last = reconciliation?.entries.at(-1);
  if (reconciliation && last?.kind === 'settled') {
    return `reconciliation settled by ${last.settledBy} at ${time(last.at)}: ${last.note}`;
  }
  if (reconciliation) return `reconciliation ${reconciliation.status}: ${last?.note ?? reconciliation.note}`;
  return receipt.effects === 'none-owed' ? null : 'may exist although nothing was accepted: reconcile them';
}
