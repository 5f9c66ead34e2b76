// Owns the plain `tools/call`: one request whose reply is the whole operation.
// Must never add `task` (a tool that forbids it may run its body and then answer an error), and never cancel remote
// work because our own patience ended.

import { randomUUID } from 'node:crypto';
import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import {
  WireFault,
  type CancelAnswer,
  type FetchedResult,
  type LookUp,
  type Observation,
  type Submission,
  type SubmitHooks,
  type ToolAdapter,
  type ToolCall,
  type ToolServer,
} from '../adapter.js';
import { plainFaultOf, violation } from '../mcp/faults.js';
import { lookUpByTool } from '../mcp/look-up-tool.js';
import { linksBeforeWork } from '../mcp/question.js';
import { channelOf, readSession, releaseSession } from '../mcp/session.js';
import { answeredWith, plainCallOptions, toolCallParams, toolResultOf } from '../mcp/tool-call.js';

export class SynchronousAdapter implements ToolAdapter {
  readonly name = 'synchronous';

  /**
   * Past `synchronousBoundMs` the call is ambiguous: the work may go on and nothing can find it again. A JSON-RPC
   * error that is no proof of "not started" is ambiguous too; only a result answers.
   */
  async submit(call: ToolCall, session: JsonObject, hooks: SubmitHooks): Promise<Submission> {
    const progressToken = randomUUID();
    const params = toolCallParams(call, { progressToken });
    const channel = channelOf(call.server, readSession(session));
    const options = plainCallOptions(call, hooks, progressToken, channel.redact);
    const outcome = await channel.request('tools/call', params, options);
    const links = linksBeforeWork(outcome, channel.redact);
    if (links) return links;
    if (outcome.kind !== 'result') throw plainFaultOf(outcome);
    const result = toolResultOf(outcome.bytes);
    if (result) return answeredWith(result, call);
    throw new WireFault('Ambiguous', 'tools/call: the reply is not a tool result');
  }

  async findBySubmission(call: ToolCall, session: JsonObject): Promise<LookUp> {
    if (call.submissionPolicy === 'lookup-tool') {
      const found = await lookUpByTool(call, session);
      if (found.kind !== 'found') return found;
      const { remoteId } = found.reference;
      return { kind: 'cannotTell', evidence: `it was started, as ${remoteId}; a plain call has no way back` };
    }
    return { kind: 'cannotTell', evidence: 'a plain call leaves nothing that could be looked up' };
  }

  async observe(): Promise<Observation> {
    throw noReference();
  }

  async renewSession(): Promise<RemoteReference> {
    throw noReference();
  }

  async anchor(): Promise<JsonObject | null> {
    return null;
  }

  async pickUpQuestions(): Promise<void> {
    throw noReference();
  }

  async answer(): Promise<'delivered' | 'roundClosed'> {
    throw noReference();
  }

  async cancel(): Promise<CancelAnswer> {
    return 'unsupported';
  }

  async fetchResult(): Promise<FetchedResult> {
    throw noReference();
  }

  release(server: ToolServer, session: JsonObject): Promise<void> {
    return releaseSession(server, session);
  }
}

function noReference(): WireFault {
  return violation('a plain call has no remote reference');
}
