// Owns MCP 2026-07-28 and its tasks extension behind the port: each method is one exchange and its meaning.
// Must never keep state between calls, nor lose a task id between the wire and its caller.

import { randomUUID } from 'node:crypto';
import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import type { RemoteReference } from '../../operation/row.js';
import {
  WireFault,
  withinBound,
  type AnswerHooks,
  type CancelAnswer,
  type FetchedResult,
  type InputReply,
  type LookUp,
  type Observation,
  type Submission,
  type SubmitHooks,
  type ToolAdapter,
  type ToolCall,
  type ToolServer,
} from '../adapter.js';
import {
  answerFaultOf,
  plainFaultOf,
  readFaultOf,
  sessionless,
  transientFrom,
  violation,
} from '../mcp/faults.js';
import { lookUpByTool } from '../mcp/look-up-tool.js';
import { answeredWith, plainCallOptions, toolResultOf } from '../mcp/tool-call.js';
import { bytesWithStatus } from '../reply-bounds.js';
import { inputBeforeTaskOf, resultTypeOf, taskOf } from './decode.js';
import { callParams, taskParams, updateParams } from './encode.js';
import { ModernChannel } from './modern-channel.js';

export class Mcp20260728Adapter implements ToolAdapter {
  readonly name = 'mcp/2026-07-28';

  async submit(call: ToolCall, _session: JsonObject, hooks: SubmitHooks): Promise<Submission> {
    const progressToken = randomUUID();
    const params = callParams(call, progressToken);
    const channel = new ModernChannel(call.server);
    // The server alone decides whether this becomes a task, so the bound of a plain call holds for all.
    const options = plainCallOptions(call, hooks, progressToken, channel.redact);
    const outcome = await channel.request('tools/call', params, options);
    if (outcome.kind !== 'result') throw plainFaultOf(outcome);
    const { bytes } = outcome;
    switch (resultTypeOf(bytes)) {
      case 'task': {
        const task = taskOf(bytes, channel.redact);
        if (!task) break;
        const reference = { remoteId: task.taskId, locator: {} };
        return { kind: 'referenced', reference, observation: task.observation };
      }
      case 'input_required': {
        const asked = inputBeforeTaskOf(bytes, channel.redact);
        if (asked) return { kind: 'inputBeforeTask', ...asked };
        break;
      }
      case 'complete': {
        const result = toolResultOf(bytes);
        if (result) return answeredWith(result, call);
      }
    }
    throw new WireFault('Ambiguous', 'tools/call: the reply is neither a task, a tool result nor a question');
  }

  async findBySubmission(call: ToolCall): Promise<LookUp> {
    if (call.submissionPolicy === 'lookup-tool')
      return lookUpByTool(call, {}, new ModernChannel(call.server));
    return { kind: 'cannotTell', evidence: 'MCP 2026-07-28 has no list of tasks' };
  }

  async observe(
    server: ToolServer,
    reference: RemoteReference,
    maxResultBytes?: number,
  ): Promise<Observation> {
    const channel = new ModernChannel(server);
    const params = taskParams(reference.remoteId);
    const outcome = await channel.request('tasks/get', params, {
      timeoutMs: LIMITS.requestTimeoutMs,
      maxReplyBytes: bytesWithStatus(maxResultBytes),
    });
    if (outcome.kind !== 'result') throw sessionless(readFaultOf(outcome, 'tasks/get'));
    // Only one that nobody defined: a server may repeat the word of the create reply.
    const resultType = resultTypeOf(outcome.bytes);
    const task = ['complete', 'task'].includes(resultType) ? taskOf(outcome.bytes, channel.redact) : null;
    if (!task) throw violation('tasks/get: the reply is not a task');
    if (task.taskId !== reference.remoteId) throw violation('tasks/get: the reply is about another task');
    return task.observation;
  }

  /** There is no session: the same reference finds the work from anywhere. */
  async renewSession(_server: ToolServer, reference: RemoteReference): Promise<RemoteReference> {
    return reference;
  }

  async anchor(): Promise<JsonObject | null> {
    return null;
  }

  /** Questions ride in each status: there is nothing to pick up elsewhere. */
  async pickUpQuestions(): Promise<void> {}

  async answer(
    server: ToolServer,
    reference: RemoteReference,
    wire: JsonObject,
    reply: InputReply,
    hooks: AnswerHooks,
  ): Promise<'delivered' | 'roundClosed'> {
    const key = wire['key'];
    // An update of a key that is answered or unknown is taken in silence, so the status is the only witness.
    if (typeof key !== 'string' || !(await this.isAsking(server, reference, key))) return 'roundClosed';
    const params = updateParams(reference.remoteId, key, reply);
    await hooks.beforeSend();
    const outcome = await new ModernChannel(server).request('tasks/update', params, {
      timeoutMs: LIMITS.requestTimeoutMs,
      afterSend: hooks.afterSend,
    });
    if (outcome.kind === 'result') return 'delivered';
    throw answerFaultOf(outcome);
  }

  private async isAsking(server: ToolServer, reference: RemoteReference, key: string): Promise<boolean> {
    try {
      const { questions } = await this.observe(server, reference);
      return questions?.some(({ wireKey }) => wireKey === key) ?? false;
    } catch (error) {
      if (WireFault.isInstance(error) && error.kind === 'NotFound') throw error;
      throw transientFrom(error);
    }
  }

  /** Only ever an acknowledgement: "cooperative", the task may still complete. */
  async cancel(
    server: ToolServer,
    reference: RemoteReference,
    afterSend: () => Promise<void>,
  ): Promise<CancelAnswer> {
    const outcome = await new ModernChannel(server).request('tasks/cancel', taskParams(reference.remoteId), {
      timeoutMs: LIMITS.cancelTimeoutMs,
      afterSend,
    });
    if (outcome.kind === 'result') return 'acknowledged';
    if (outcome.kind === 'error' && outcome.status < 500) {
      if (outcome.code === -32601) return 'unsupported';
      // Unknown, or refused as a request: a read tells which.
      if (outcome.code === -32602 || outcome.code === -32600) return 'refused';
    }
    throw transientFrom(sessionless(readFaultOf(outcome, 'tasks/cancel')));
  }

  async fetchResult(
    server: ToolServer,
    reference: RemoteReference,
    maxResultBytes: number = LIMITS.storedResultBytes,
  ): Promise<FetchedResult> {
    try {
      const { inline } = await this.observe(server, reference, maxResultBytes);
      return inline ? withinBound(inline, maxResultBytes) : { kind: 'notYet' };
    } catch (error) {
      if (WireFault.isInstance(error) && error.isTooLarge)
        return { kind: 'tooLarge', evidence: error.message };
      if (!WireFault.isInstance(error) || error.kind !== 'NotFound') throw error;
      return { kind: 'lost', evidence: `${error.message} (the task is gone)` };
    }
  }

  async release(): Promise<void> {}
}
