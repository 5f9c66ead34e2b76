// Owns the recording of an end that an operator saw at the far side: the observation and its result, in one transaction.
// Must never overtake the far side: where the row knows more than the run did, the row stays as it is.

import type { StepFact } from '../../operation/facts.js';
import type { JsonValue } from '../../operation/json.js';
import type { RowSnapshot, TerminalObservation } from '../../operation/row.js';
import type { ResultBytes } from '../../receipts/store.js';
import type { Attempt, Ports } from '../ports.js';
import type { EndInput } from '../step-inputs.js';
import { resultFrom } from './results.js';

/** A crash before the commit leaves nothing, one after it finds the same end again: the next attempt changes nothing. */
export async function recordOperatorEnd(input: EndInput, ports: Ports, attempt: Attempt): Promise<StepFact> {
  const row = await ports.receipts.begin(input);
  const { outputSchema } = await ports.receipts.wireState(row.callNodeId);
  const result = resultFrom(receivedFrom(input.resultJson), outputSchema, ports);
  const noted: ResultBytes = { ...result, stored: { ...result.stored, note: input.note } };
  await attempt.seam('recordEnd:before-commit');
  const recorded = await ports.receipts.recordOperatorEnd(
    input,
    input.seen,
    observationOf(input, row, noted, ports.clock.nowMs()),
    noted,
  );
  await attempt.seam('recordEnd:after-commit');
  return { kind: 'endRecorded', at: ports.clock.nowMs(), row: recorded };
}

function observationOf(
  input: EndInput,
  row: RowSnapshot,
  { stored }: ResultBytes,
  observedAt: number,
): TerminalObservation {
  // What the server itself said of the end stays as it is; only the result was missing.
  const remoteStatus = row.terminalObservation?.remoteStatus ?? input.outcome;
  const failureKind = remoteStatus === 'failed' || stored.isToolError ? 'tool' : null;
  return {
    remoteStatus,
    failureKind,
    statusMessage: null,
    observedAt,
    evidence: 'operator',
    note: input.note,
  };
}

/** Taken for the result of a tool: the bytes are those of the text, exactly. */
function receivedFrom(resultJson: string) {
  const value = JSON.parse(resultJson) as {
    readonly isError?: unknown;
    readonly structuredContent?: JsonValue;
  } | null;
  return {
    bytes: Buffer.from(resultJson, 'utf8'),
    mediaType: 'application/json',
    isProtocolError: false,
    isToolError: value?.isError === true,
    structuredContent: value?.structuredContent,
  };
}
