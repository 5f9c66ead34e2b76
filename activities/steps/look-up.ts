// Owns one look-up of a submission nobody knows the end of.
// Must never submit; "absent" counts only where the adapter proved it.

import type { StepFact } from '../../operation/facts.js';
import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { type LookUp, WireFault } from '../../protocols/adapter.js';
import type { RowSnapshot } from '../../operation/row.js';
import { type Attempt, type Ports, StepRetry } from '../ports.js';
import type { LookUpInput } from '../step-inputs.js';
import { serverOf } from './reach.js';

export async function lookUp(input: LookUpInput, ports: Ports, attempt: Attempt): Promise<StepFact> {
  const row = await ports.receipts.begin(input);
  const ended = (
    settled: RowSnapshot,
    finding: 'found' | 'provedAbsent' | 'cannotTell',
    evidence: string | null,
  ): StepFact => ({ kind: 'lookedUp', at: ports.clock.nowMs(), row: settled, finding, evidence });
  if (row.remoteReference || row.terminalObservation || row.receipt) return ended(row, 'found', null);
  const deadlineAt = input.deadlineAt ?? Number.POSITIVE_INFINITY;
  const waitMs = Math.min(input.notBeforeAt ?? 0, deadlineAt) - ports.clock.nowMs();
  if (waitMs > 0) throw new StepRetry('NotReady', 'the next look-up is not due yet', waitMs);

  const finding =
    input.given === null
      ? await findSubmission(row, deadlineAt, ports)
      : await adopt(row, input.given, ports);
  if (finding.kind === 'found') {
    await attempt.seam('lookUp:after-found');
    const recorded = await ports.receipts.recordReference(
      row.callNodeId,
      null,
      finding.reference,
      ports.clock.nowMs(),
    );
    return ended(recorded.row, 'found', null);
  }
  if (finding.kind === 'provedAbsent') {
    const proved = await ports.receipts.recordAbsence(input, finding.evidence, ports.clock.nowMs());
    return ended(proved, 'provedAbsent', finding.evidence);
  }
  return ended(row, 'cannotTell', finding.evidence);
}

/** An operator's find lives in the operation's own session; whether it is really there, the next look says. */
async function adopt(row: RowSnapshot, remoteId: string, ports: Ports): Promise<LookUp> {
  const { session } = await ports.receipts.wireState(row.callNodeId);
  return { kind: 'found', reference: { remoteId, locator: session ?? {} } };
}

async function findSubmission(row: RowSnapshot, deadlineAt: number, ports: Ports): Promise<LookUp> {
  const wire = await ports.receipts.wireState(row.callNodeId);
  const adapter = ports.protocols.adapter(row.adapter ?? 'synchronous');
  const call = {
    server: serverOf(ports, row),
    tool: row.tool,
    arguments: JSON.parse(wire.argumentsJson) as JsonObject,
    submissionKey: row.submissionKey,
    submissionPolicy: row.submissionPolicy ?? 'at-most-once',
    keyName: row.policy.keyName,
    synchronousBoundMs: row.policy.synchronousBoundMs,
  } as const;
  try {
    return await adapter.findBySubmission(call, wire.session ?? {}, row.legs[0]?.claimedAt ?? row.createdAt);
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    const leftMs = deadlineAt - ports.clock.nowMs();
    const isPassing = error.kind === 'Transient' || error.kind === 'NotSent';
    // Past the deadline the step must end: only a fact lets the core hold the operation.
    if (isPassing && leftMs > 0) {
      const delayMs = Math.max(error.retryAfterMs ?? 0, LIMITS.lookUpGapMs);
      throw new StepRetry('NotReady', error.message, Math.min(delayMs, leftMs));
    }
    return { kind: 'cannotTell', evidence: `${error.kind}: ${error.message}` };
  }
}
