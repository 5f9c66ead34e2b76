// Owns how received bytes become a stored result and a terminal observation.
// Must never re-serialise: the digest is of the bytes as they came.

import { createHash } from 'node:crypto';
import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import type { StoredResult, TerminalObservation } from '../../operation/row.js';
import type { ReceivedResult } from '../../protocols/adapter.js';
import type { ResultBytes } from '../../receipts/store.js';
import type { Ports } from '../ports.js';

/** @throws RangeError where the result is over the stored limit (the wire reads no more than that) */
export function resultFrom(
  received: ReceivedResult,
  outputSchema: JsonObject | null,
  ports: Ports,
): ResultBytes {
  if (received.bytes.byteLength > LIMITS.storedResultBytes) {
    throw new RangeError(
      `the result has ${received.bytes.byteLength} bytes, more than ${LIMITS.storedResultBytes}`,
    );
  }
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
