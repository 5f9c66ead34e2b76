// Owns the fetching of a result and the record of a terminal status.
// Must never make a result up: lost is lost, and `completed` without its bytes is not an end (promise 3).

import type { FetchFinding, StepFact } from '../../operation/facts.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { RowSnapshot, TerminalObservation } from '../../operation/row.js';
import { type FetchedResult, type Observation, WireFault, withinBound } from '../../protocols/adapter.js';
import { type Attempt, type Ports, StepRetry } from '../ports.js';
import type { FetchInput } from '../step-inputs.js';
import type { Look } from './questions.js';
import { type Reach, reachOf } from './reach.js';
import { maxResultBytesOf, resultFrom, tooLargeEvidence } from './results.js';

export async function fetchResult(input: FetchInput, ports: Ports, attempt: Attempt): Promise<StepFact> {
  const row = await ports.receipts.begin(input);
  const ended = (settled: RowSnapshot, finding: FetchFinding, evidence: string | null): StepFact => ({
    kind: 'resultFetched',
    at: ports.clock.nowMs(),
    row: settled,
    finding,
    evidence,
  });
  if (row.result || row.receipt) return ended(row, 'stored', null);
  const nowMs = ports.clock.nowMs();
  const waitMs = (input.notBeforeAt ?? 0) - nowMs;
  const isLastTry = input.deadlineAt !== null && nowMs >= input.deadlineAt;
  if (waitMs > 0 && !isLastTry) {
    const leftMs = (input.deadlineAt ?? Number.POSITIVE_INFINITY) - nowMs;
    throw new StepRetry('NotReady', 'the next fetch is not due yet', Math.min(waitMs, leftMs));
  }
  try {
    const reach = reachOf(ports, row);
    const fetched = await fetchAnywhere(input, reach, row, ports);
    await attempt.seam('fetchResult:after-reply');
    if (fetched.kind === 'tooLarge') return ended(row, 'tooLarge', tooLargeEvidence(fetched.evidence, row));
    if (fetched.kind === 'lost') return ended(row, 'lost', clip(fetched.evidence, LIMITS.evidenceChars));
    if (fetched.kind === 'notYet') {
      if (isLastTry) return ended(row, 'notYet', null);
      throw new StepRetry('NotReady', 'the server does not hand the result out yet', LIMITS.fetchRetryMs);
    }
    const stored = await storeResult(row, fetched, ports);
    await attempt.seam('fetchResult:after-commit');
    return ended(stored, 'stored', null);
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    if (isLastTry) return ended(row, 'notYet', clip(error.message, LIMITS.evidenceChars));
    const leftMs = (input.deadlineAt ?? Number.POSITIVE_INFINITY) - nowMs;
    const delayMs = Math.min(Math.max(error.retryAfterMs ?? 0, LIMITS.fetchRetryMs), leftMs);
    throw new StepRetry('NotReady', clip(error.message, LIMITS.failureMessageChars), delayMs);
  }
}

function fetchFrom(reach: Reach, row: RowSnapshot): Promise<FetchedResult> {
  return reach.adapter.fetchResult(reach.server, reach.reference, maxResultBytesOf(row));
}

/**
 * A result may outlive the session in which its end was seen, as the task itself may. Only a result counts: what a fresh
 * session does not know may still be in the old one, whose 404 may have been a stray one.
 */
async function fetchAnywhere(
  input: FetchInput,
  reach: Reach,
  row: RowSnapshot,
  ports: Ports,
): Promise<FetchedResult> {
  try {
    return await fetchFrom(reach, row);
  } catch (error) {
    if (!WireFault.isInstance(error) || error.kind !== 'SessionLost') throw error;
    const { adapter, server } = reach;
    const reference = await adapter.renewSession(server, reach.reference);
    const fetched = await fetchFrom({ ...reach, reference }, row).catch(() => null);
    if (fetched?.kind !== 'result') {
      await adapter.release(server, reference.locator);
      throw error;
    }
    await ports.receipts.replaceLocator(input, reference);
    return fetched;
  }
}

async function storeResult(
  row: RowSnapshot,
  fetched: Extract<FetchedResult, { kind: 'result' }>,
  ports: Ports,
): Promise<RowSnapshot> {
  const { outputSchema } = await ports.receipts.wireState(row.callNodeId);
  return ports.receipts.recordResult(row.callNodeId, resultFrom(fetched.result, outputSchema, ports));
}

interface RecordedEnd {
  readonly row: RowSnapshot;
  readonly retryAfterMs: number | null;
  /** The result was refused for its size: the evidence. */
  readonly tooLarge?: string;
}

/**
 * A look saw the end. The observation is committed first: it is evidence, whatever becomes of the result.
 * The result is fetched in the same attempt; if that fails, the fetch step tries on.
 */
export async function recordEnd(
  look: Look,
  row: RowSnapshot,
  reach: Reach,
  seen: Observation,
): Promise<RecordedEnd> {
  const { ports, attempt } = look;
  const remoteStatus = seen.meaning as TerminalObservation['remoteStatus'];
  const observation: TerminalObservation = {
    remoteStatus,
    failureKind: null,
    statusMessage: seen.statusMessage === null ? null : clip(seen.statusMessage, LIMITS.statusMessageChars),
    observedAt: ports.clock.nowMs(),
    evidence: 'status',
  };
  const recorded = await ports.receipts.recordTerminal(row.callNodeId, observation, null);
  if (remoteStatus === 'cancelled') return { row: recorded, retryAfterMs: null };
  try {
    const fetched = seen.inline
      ? withinBound(seen.inline, maxResultBytesOf(recorded))
      : await fetchFrom(reach, recorded);
    await attempt.seam('observe:result-fetched');
    if (fetched.kind === 'tooLarge') {
      const tooLarge = tooLargeEvidence(fetched.evidence, recorded);
      return { row: recorded, retryAfterMs: null, tooLarge };
    }
    const row = fetched.kind === 'result' ? await storeResult(recorded, fetched, ports) : recorded;
    return { row, retryAfterMs: null };
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    return { row: recorded, retryAfterMs: error.retryAfterMs };
  }
}
