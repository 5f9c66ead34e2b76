// Owns the look-up by a tool of the server's own (`lookup-tool`): what its answer says about one submission key.
// Must never take for absent what was not read as a whole answer without an error, nor ever ask for a task.

import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { LookUpSettings } from '../../operation/row.js';
import { WireFault, type LookUp, type ToolCall } from '../adapter.js';
import { idAt, type Said } from './answer-members.js';
import type { RpcChannel } from './channel.js';
import { readFaultOf } from './faults.js';
import { isObject } from '../json-members.js';
import { openSession } from './session.js';
import { progressListener, toolResultOf } from './tool-call.js';

type LookUpChannel = Pick<RpcChannel, 'request' | 'redact'>;

/**
 * As the port's look-up; a contract without a way back to its work has no use for `found`. `sessionless`: the channel of a
 * generation that needs no session. `locatorOf`: where the work is reached, by what kind of id it has.
 * @throws WireFault Transient
 */
export async function lookUpByTool(
  call: ToolCall,
  session: JsonObject,
  sessionless?: LookUpChannel,
  locatorOf: (isNumber: boolean) => JsonObject = () => session,
): Promise<LookUp> {
  const { lookUp } = call;
  // A broken invariant of ours: the policy is configured with its look-up.
  if (!lookUp) throw new Error('the submission policy lookup-tool has no look-up');
  const said = sessionless
    ? await readAnswer(sessionless, lookUp, call.submissionKey)
    : await askTool(call, lookUp);
  switch (said.kind) {
    case 'named':
      return {
        kind: 'found',
        reference: { remoteId: said.remoteId, locator: locatorOf(said.isNumber ?? false) },
      };
    case 'absent': {
      const evidence = `${lookUp.tool} knows no work under the submission key`;
      return lookUp.provesAbsence
        ? { kind: 'provedAbsent', evidence }
        : { kind: 'cannotTell', evidence: `${evidence}, which is not declared to prove its absence` };
    }
    case 'unreadable':
      return { kind: 'cannotTell', evidence: clip(`${lookUp.tool}: ${said.why}`, LIMITS.evidenceChars) };
  }
}

/** In a session of its own: the one of the submission may be gone, and a read needs none. */
async function askTool(call: ToolCall, lookUp: LookUpSettings): Promise<Said> {
  const opening = await openSession(call.server);
  if (opening.kind === 'unsupported') return { kind: 'unreadable', why: opening.message };
  const { channel } = opening.opened;
  try {
    return await readAnswer(channel, lookUp, call.submissionKey);
  } finally {
    await channel.end(LIMITS.releaseTimeoutMs);
  }
}

async function readAnswer(channel: LookUpChannel, lookUp: LookUpSettings, key: string): Promise<Said> {
  const params = { name: lookUp.tool, arguments: { [lookUp.argument]: key } };
  const outcome = await channel.request('tools/call', params, {
    timeoutMs: LIMITS.requestTimeoutMs,
    onMessage: progressListener('', () => undefined, channel.redact),
  });
  if (outcome.kind !== 'result') {
    const fault = readFaultOf(outcome, 'look-up');
    // The session was opened for this call: its loss is a passing fault like any other.
    if (fault.kind === 'Transient' || fault.kind === 'SessionLost')
      throw new WireFault('Transient', fault.message, fault);
    return { kind: 'unreadable', why: fault.message };
  }
  const result = toolResultOf(outcome.bytes);
  if (!result || !isObject(outcome.value)) return { kind: 'unreadable', why: 'the reply is no tool result' };
  if (result.isToolError) return { kind: 'unreadable', why: 'it says that it failed' };
  return idAt(outcome.value, lookUp.idPointer);
}
