// Owns the single acceptance: one receipt and one ready row, in one transaction of the store.
// Must never end without an answer from the store; it may be run any number of times.

import { buildReceipt, decideEnd } from '../../operation/build-receipt.js';
import { LIMITS } from '../../operation/limits.js';
import type { Receipt } from '../../operation/receipt.js';
import type { RowSnapshot } from '../../operation/row.js';
import { type Attempt, type Ports, StepRetry } from '../ports.js';
import type { AcceptInput, AcceptOutcome } from '../step-inputs.js';

export async function acceptTerminal(
  input: AcceptInput,
  ports: Ports,
  attempt: Attempt,
): Promise<AcceptOutcome> {
  await attempt.seam('accept:before-commit');
  const at = ports.clock.nowMs();
  const acceptance = await ports.receipts.acceptTerminal(
    input,
    input.presented,
    (row) => {
      if (row.legs.length < (input.submissionLegs ?? 0)) return null;
      const end = decideEnd(row, input.operator);
      return end && { end, receipt: buildReceipt(row, end, input.course, at) };
    },
    at,
  );
  if (acceptance.kind === 'refused') {
    const evidence = `${acceptance.fact}: ${acceptance.evidence}`;
    return {
      fact: { kind: 'accepted', at, row: acceptance.row, finding: 'refused', evidence },
      inlineResult: null,
    };
  }
  await attempt.seam('accept:after-commit');
  await releaseSession(acceptance.row, ports);
  return {
    fact: { kind: 'accepted', at, row: acceptance.row, finding: 'accepted', evidence: null },
    inlineResult: await inlineResultOf(acceptance.receipt, ports),
  };
}

/** Best effort, after the commit: a server that keeps the session a little longer harms nothing. */
async function releaseSession(row: RowSnapshot, ports: Ports): Promise<void> {
  const server = ports.servers.find(row.server);
  const { session } = await ports.receipts.wireState(row.callNodeId);
  // A renewed session lives in the reference.
  const current = row.remoteReference?.locator ?? session;
  if (!server || !current || !row.adapter) return;
  const endedId = row.terminalObservation ? row.remoteReference?.remoteId : undefined;
  await ports.protocols.adapter(row.adapter).release(server, current, endedId);
}

async function inlineResultOf(receipt: Receipt, ports: Ports): Promise<string | null> {
  const { result } = receipt;
  // A result without a byte has no JSON text either.
  if (!result || result.sizeBytes === 0 || result.sizeBytes > LIMITS.inlineResultBytes) return null;
  const bytes = await ports.receipts.readResult(result.digest);
  if (!bytes)
    throw new StepRetry('StoreUnavailable', 'the store does not give the result back', LIMITS.fetchRetryMs);
  return Buffer.from(bytes).toString('utf8');
}
