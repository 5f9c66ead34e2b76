// Owns one look-up of a submission nobody knows the end of.
// Must never submit; "absent" counts only where the adapter proved it.

import type { StepFact } from '../../operation/facts.js';
import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { isAbsenceProved } from '../../operation/policy.js';
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
  ): StepFact => ({
    kind: 'lookedUp',
    at: ports.clock.nowMs(),
    row: settled,
    finding,
    evidence,
    ...(input.given === null ? {} : { given: input.given }),
  });
  if (row.terminalObservation || row.receipt || isKnown(row, input)) return ended(row, 'found', null);
  const deadlineAt = input.deadlineAt ?? Number.POSITIVE_INFINITY;
  const waitMs = Math.min(input.notBeforeAt ?? 0, deadlineAt) - ports.clock.nowMs();
  if (waitMs > 0) throw new StepRetry('NotReady', 'the next look-up is not due yet', waitMs);

  const closed = await closeOpenLegs(input, row, ports);
  const lookedAt = ports.clock.nowMs();
  const finding =
    input.given === null
      ? await findSubmission(closed, deadlineAt, ports)
      : await adopt(closed, input.given, ports);
  if (finding.kind === 'found') {
    await attempt.seam('lookUp:after-found');
    const at = ports.clock.nowMs();
    const recorded = await ports.receipts.recordReference(row.callNodeId, null, finding.reference, at);
    if (input.given !== null) await keepWord(input, at, ports);
    if (recorded.ownedBy === undefined) return ended(recorded.row, 'found', null);
    const { remoteId } = finding.reference;
    return ended(recorded.row, 'cannotTell', `${remoteId} is the work of operation ${recorded.ownedBy}`);
  }
  if (finding.kind === 'provedAbsent') {
    const proved = await ports.receipts.recordAbsence(input, finding.evidence, lookedAt);
    if (isAbsenceProved(proved)) return ended(proved, 'provedAbsent', finding.evidence);
    return ended(proved, 'cannotTell', `${finding.evidence}; too early for that to count`);
  }
  return ended(closed, 'cannotTell', finding.evidence);
}

/** A word that names other work than one that was itself only a word is still to be followed. */
function isKnown({ remoteReference: known }: RowSnapshot, { given }: LookUpInput): boolean {
  return known !== null && !(known.isUnseen && given !== null && given !== known.remoteId);
}

/** Of a run that is gone: an end has to be found for them, and nothing is proved while one is open. */
async function closeOpenLegs(input: LookUpInput, row: RowSnapshot, ports: Ports): Promise<RowSnapshot> {
  if (row.legs.every((leg) => leg.outcome !== 'open')) return row;
  const detail = 'the worker was lost while the submission was under way';
  return ports.receipts.abandonOpenLegs(input, detail, ports.clock.nowMs());
}

/** An operator's find lives in the operation's own session; whether it is really there, the next look says. */
async function adopt(row: RowSnapshot, remoteId: string, ports: Ports): Promise<LookUp> {
  const { session } = await ports.receipts.wireState(row.callNodeId);
  return { kind: 'found', reference: { remoteId, locator: session ?? {}, isUnseen: true } };
}

async function keepWord(input: LookUpInput, at: number, ports: Ports): Promise<void> {
  const detail = `remote id ${input.given}: ${input.grounds ?? 'no grounds kept'}`;
  await ports.receipts.addEvidence(input.callNodeId, 'operator-found', detail, at);
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
    ...(row.policy.lookUp ? { lookUp: row.policy.lookUp } : {}),
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
