// Owns fetching the result of a task that was seen terminal, and telling its stored error from a failing server.
// Must never take an error for the end of the operation unless the server also says that the task failed.

import { LIMITS } from '../../operation/limits.js';
import { WireFault, type FetchedResult, type Observation } from '../adapter.js';
import type { RpcChannel } from '../mcp/channel.js';
import type { RpcOutcome } from '../mcp/rpc-outcome.js';
import { isSessionLost, readFaultOf, violation } from '../mcp/faults.js';
import { memberOf } from '../json-members.js';
import { relatedTaskOf } from '../mcp/related-task.js';
import { protocolErrorOf, toolResultOf } from '../mcp/tool-call.js';
import { bytesWithResult } from '../reply-bounds.js';
import { taskParams } from './encode.js';

/** @throws WireFault Transient | SessionLost | ProtocolViolation */
export async function fetchTaskResult(
  channel: RpcChannel,
  remoteId: string,
  observe: () => Promise<Observation>,
  maxResultBytes: number = LIMITS.storedResultBytes,
): Promise<FetchedResult> {
  const outcome = await channel.request('tasks/result', taskParams(remoteId), {
    timeoutMs: LIMITS.requestTimeoutMs,
    maxReplyBytes: bytesWithResult(maxResultBytes),
  });
  if (outcome.kind === 'lost' && outcome.isTooLarge) return { kind: 'tooLarge', evidence: outcome.detail };
  if (outcome.kind === 'result') {
    const { bytes } = outcome;
    if (bytes.byteLength > maxResultBytes)
      return { kind: 'tooLarge', evidence: `the result has ${bytes.byteLength} bytes` };
    const result = toolResultOf(bytes);
    if (!result) throw violation('tasks/result: the reply is not a tool result');
    const related = relatedTaskOf({ _meta: memberOf(bytes, '_meta') ?? null });
    if (related !== undefined && related !== remoteId)
      throw violation('tasks/result: the reply is about another task');
    return { kind: 'result', result };
  }
  if (outcome.kind !== 'error' || outcome.status >= 500 || isSessionLost(outcome)) {
    const fault = readFaultOf(outcome, 'tasks/result');
    // Only a 5xx that claims -32602: a gateway's word is no proof that the task is unknown.
    throw fault.kind === 'NotFound' ? new WireFault('Transient', fault.message, fault) : fault;
  }
  return readError(outcome, observe);
}

/**
 * "tasks/result MUST return that error" where the request failed with one (2025-11-25), so any code may be a failed
 * task's own. The status, read again, tells: only a task that failed has such an error. -32603 is never taken, failed
 * or not: it is also the word for a storage outage, and a task's real content would be lost behind it.
 */
async function readError(
  outcome: Extract<RpcOutcome, { kind: 'error' }>,
  observe: () => Promise<Observation>,
): Promise<FetchedResult> {
  const { code } = outcome;
  const evidence = `tasks/result: JSON-RPC ${code}`;
  if (code === -32603)
    throw new WireFault('Transient', evidence, { wireCode: code, retryAfterMs: outcome.retryAfterMs });
  let observation: Observation;
  try {
    observation = await observe();
  } catch (error) {
    if (WireFault.isInstance(error) && error.kind === 'NotFound')
      return { kind: 'lost', evidence: `${evidence}, task unknown` };
    throw error;
  }
  switch (observation.meaning) {
    case 'failed':
      if (!outcome.isOurs) throw new WireFault('Transient', `${evidence} without an id`, { wireCode: code });
      return { kind: 'result', result: protocolErrorOf(outcome.bytes) };
    case 'completed':
    case 'cancelled':
      if (code === -32602)
        return { kind: 'lost', evidence: `${evidence} although ${observation.remoteStatus}` };
      throw new WireFault('Transient', evidence, { wireCode: code, retryAfterMs: outcome.retryAfterMs });
    default:
      return { kind: 'notYet' };
  }
}
