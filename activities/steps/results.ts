// Owns how received bytes become a stored result and a terminal observation.
// Must never re-serialise: the digest is of the bytes as they came.

import { createHash } from 'node:crypto';
import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { RowSnapshot, StoredResult, TerminalObservation } from '../../operation/row.js';
import type { ReceivedResult } from '../../protocols/adapter.js';
import type { ResultBytes } from '../../receipts/store.js';
import type { Ports } from '../ports.js';

/** The largest result this operation takes (bytes): as configured when it was opened. */
export function maxResultBytesOf(row: RowSnapshot): number {
  return row.policy.maxResultBytes ?? LIMITS.storedResultBytes;
}

/** What a person needs to know of a result that was not taken. */
export function tooLargeEvidence(detail: string, row: RowSnapshot): string {
  const limit = `the limit of this operation is ${maxResultBytesOf(row)} bytes (durable.maxResultBytes)`;
  const advice = 'raise it for later calls, and close this one or give its result by hand';
  return clip(`${detail}; ${limit}: ${advice}`, LIMITS.evidenceChars);
}

export function resultFrom(
  received: ReceivedResult,
  outputSchema: JsonObject | null,
  ports: Ports,
): ResultBytes {
  const stored: StoredResult = {
    digest: createHash('sha256').update(received.bytes).digest('hex'),
    sizeBytes: received.bytes.byteLength,
    mediaType: received.mediaType,
    isProtocolError: received.isProtocolError,
    isToolError: received.isToolError,
    outputSchema: outputSchemaFlag(received, outputSchema, ports),
  };
  return { stored, bytes: received.bytes };
}

/** A miss is a flag on the receipt, not a failure: the tool did its work. */
function outputSchemaFlag(
  received: ReceivedResult,
  outputSchema: JsonObject | null,
  ports: Ports,
): StoredResult['outputSchema'] {
  if (!outputSchema || received.isToolError || received.isProtocolError) return 'none';
  if (received.bytes.byteLength > LIMITS.checkedResultBytes) return 'unchecked';
  if (received.structuredContent === undefined) return 'missed';
  return ports.checkSchema(outputSchema, received.structuredContent) === null ? 'fits' : 'missed';
}

/** The submit's own reply was the end. */
export function terminalFromReply(
  received: ReceivedResult,
  outputSchema: JsonObject | null,
  at: number,
  ports: Ports,
): { observation: TerminalObservation; result: ResultBytes } {
  const isFailure = received.isProtocolError || received.isToolError;
  const observation: TerminalObservation = {
    remoteStatus: isFailure ? 'failed' : 'completed',
    failureKind: isFailure ? (received.isProtocolError ? 'protocol' : 'tool') : null,
    statusMessage: null,
    observedAt: at,
    evidence: 'submit-reply',
  };
  return { observation, result: resultFrom(received, outputSchema, ports) };
}
