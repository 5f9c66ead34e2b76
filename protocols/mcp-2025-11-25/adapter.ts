// Owns MCP 2025-11-25 tasks behind the port: each method is one exchange (or a bounded few) and its meaning.
// Must never keep state between calls: another process goes on with nothing but the reference.

import { LIMITS } from '../../operation/limits.js';
import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import {
  WireFault,
  type AnswerHooks,
  type CancelAnswer,
  type FetchedResult,
  type InputReply,
  type KnownQuestions,
  type LookUp,
  type Observation,
  type Submission,
  type SubmitHooks,
  type ToolAdapter,
  type ToolCall,
  type ToolServer,
  type WireQuestion,
} from '../adapter.js';
import {
  answerFaultOf,
  isSessionLost,
  readFaultOf,
  submitFaultOf,
  transientFrom,
  violation,
} from '../mcp/faults.js';
import { lookUpByTool } from '../mcp/look-up-tool.js';
import { PACE } from '../mcp/pace.js';
import { channelOf, openSession, readSession, releaseSession, sessionJson } from '../mcp/session.js';
import { memberOf } from '../json-members.js';
import { linksBeforeWork } from '../mcp/question.js';
import { answeredWith, progressListener, toolResultOf } from '../mcp/tool-call.js';
import { bytesWithResult } from '../reply-bounds.js';
import { taskOf } from './decode.js';
import { createTaskParams, elicitationResponse, taskParams } from './encode.js';
import { fetchTaskResult } from './fetch-result.js';
import { findTask } from './find-task.js';
import { pickUp } from './questions.js';

export class Mcp20251125Adapter implements ToolAdapter {
  readonly name = 'mcp/2025-11-25';

  async submit(call: ToolCall, session: JsonObject, hooks: SubmitHooks): Promise<Submission> {
    const channel = channelOf(call.server, readSession(session));
    const outcome = await channel.request('tools/call', createTaskParams(call), {
      timeoutMs: LIMITS.requestTimeoutMs,
      afterSend: hooks.afterSend,
      purpose: 'submission',
      onMessage: progressListener('', () => undefined, channel.redact),
      maxReplyBytes: bytesWithResult(call.maxResultBytes),
    });
    const links = linksBeforeWork(outcome, channel.redact);
    if (links) return links;
    if (outcome.kind !== 'result') throw submitFaultOf(outcome);
    const { bytes } = outcome;
    const task = taskOf(memberOf(bytes, 'task'), channel.redact);
    if (task) {
      const reference = { remoteId: task.taskId, locator: session };
      return { kind: 'referenced', reference, observation: task.observation };
    }
    const result = toolResultOf(bytes);
    if (result) return answeredWith(result, call);
    throw new WireFault('Ambiguous', 'tools/call: the reply is neither a task nor a tool result');
  }

  findBySubmission(call: ToolCall, session: JsonObject, firstLegClaimedAt: number): Promise<LookUp> {
    if (call.submissionPolicy === 'lookup-tool') return lookUpByTool(call, session);
    return findTask(call.server, readSession(session), session, firstLegClaimedAt);
  }

  async observe(server: ToolServer, reference: RemoteReference): Promise<Observation> {
    const channel = channelOf(server, readSession(reference.locator));
    const outcome = await channel.request('tasks/get', taskParams(reference.remoteId), {
      timeoutMs: LIMITS.requestTimeoutMs,
    });
    if (outcome.kind !== 'result') {
      const fault = readFaultOf(outcome, 'tasks/get');
      // No result rides in this status: its size says nothing of one.
      throw fault.isTooLarge ? violation(fault.message) : fault;
    }
    const task = taskOf(outcome.value, channel.redact);
    if (!task) throw violation('tasks/get: the reply is not a task');
    if (task.taskId !== reference.remoteId) throw violation('tasks/get: the reply is about another task');
    return task.observation;
  }

  async renewSession(server: ToolServer, reference: RemoteReference): Promise<RemoteReference> {
    const opening = await openSession(server).catch((error: unknown) => {
      throw transientFrom(error);
    });
    if (opening.kind === 'unsupported') throw new WireFault('Transient', `a new session: ${opening.message}`);
    const { session, hasTaskCalls, channel } = opening.opened;
    if (!hasTaskCalls) {
      await channel.end(LIMITS.releaseTimeoutMs);
      throw new WireFault('Transient', 'a new session: the server no longer declares tasks');
    }
    return { remoteId: reference.remoteId, locator: sessionJson(session) };
  }

  async anchor(server: ToolServer, reference: RemoteReference): Promise<JsonObject | null> {
    try {
      const session = readSession(reference.locator);
      // Without event ids a dropped stream may take the only copy of a question with it.
      if (!session.canReplay) return null;
      const params = taskParams(reference.remoteId);
      const eventId = await channelOf(server, session).firstEventId('tasks/result', params, PACE.anchorMs);
      return eventId === null ? null : { sessionId: session.sessionId, eventId };
    } catch {
      return null;
    }
  }

  async pickUpQuestions(
    server: ToolServer,
    reference: RemoteReference,
    known: KnownQuestions,
    onQuestion: (question: WireQuestion) => Promise<void>,
  ): Promise<void> {
    const session = readSession(reference.locator);
    const { sessionId } = session;
    await pickUp({
      channel: channelOf(server, session),
      sessionId,
      remoteId: reference.remoteId,
      known,
      onQuestion,
    });
  }

  async answer(
    server: ToolServer,
    reference: RemoteReference,
    wire: JsonObject,
    reply: InputReply,
    hooks: AnswerHooks,
  ): Promise<'delivered' | 'roundClosed'> {
    // A response is accepted with 202 whether or not anyone waits for it, so the status is the only witness.
    const isWaiting = await this.isInputRequired(server, reference);
    const askedIn = wire['sessionId'];
    const jsonRpcId = wire['jsonRpcId'];
    if (!isWaiting || jsonRpcId === undefined || (typeof askedIn !== 'string' && askedIn !== null))
      return 'roundClosed';
    const session = { ...readSession(reference.locator), sessionId: askedIn };
    await hooks.beforeSend();
    const response = elicitationResponse(jsonRpcId, reply, reference.remoteId);
    const outcome = await channelOf(server, session).post(response, {
      timeoutMs: LIMITS.requestTimeoutMs,
      afterSend: hooks.afterSend,
    });
    if (outcome.kind === 'status' && outcome.status >= 200 && outcome.status < 300) return 'delivered';
    const wasRenewed = askedIn !== reference.locator['sessionId'];
    // The question died with its session; the task lives on in the new one and may ask again.
    if (wasRenewed && isSessionLost(outcome)) return 'roundClosed';
    if (outcome.kind === 'result') throw new WireFault('Transient', 'the answer was itself answered');
    throw answerFaultOf(outcome);
  }

  private async isInputRequired(server: ToolServer, reference: RemoteReference): Promise<boolean> {
    try {
      return (await this.observe(server, reference)).meaning === 'inputRequired';
    } catch (error) {
      if (WireFault.isInstance(error) && error.kind === 'NotFound') throw error;
      throw transientFrom(error);
    }
  }

  async cancel(
    server: ToolServer,
    reference: RemoteReference,
    afterSend: () => Promise<void>,
  ): Promise<CancelAnswer> {
    const session = readSession(reference.locator);
    if (!session.canCancel) return 'unsupported';
    const channel = channelOf(server, session);
    const outcome = await channel.request('tasks/cancel', taskParams(reference.remoteId), {
      timeoutMs: LIMITS.cancelTimeoutMs,
      afterSend,
    });
    if (outcome.kind === 'result') {
      const task = taskOf(outcome.value, channel.redact);
      if (!task) return 'acknowledged';
      if (task.taskId !== reference.remoteId)
        throw new WireFault('Transient', 'tasks/cancel: a reply about another task');
      return task.observation.meaning === 'cancelled' ? 'confirmed' : 'acknowledged';
    }
    if (outcome.kind === 'error' && outcome.status < 500 && !isSessionLost(outcome)) {
      if (outcome.code === -32601) return 'unsupported';
      // -32602: terminal or unknown; -32600: the SDK's word for a store that refused. A read tells which.
      if (outcome.code === -32602 || outcome.code === -32600) return 'refused';
    }
    throw transientFrom(readFaultOf(outcome, 'tasks/cancel'));
  }

  fetchResult(
    server: ToolServer,
    reference: RemoteReference,
    maxResultBytes?: number,
  ): Promise<FetchedResult> {
    const channel = channelOf(server, readSession(reference.locator));
    const { remoteId } = reference;
    return fetchTaskResult(channel, remoteId, () => this.observe(server, reference), maxResultBytes);
  }

  release(server: ToolServer, session: JsonObject): Promise<void> {
    return releaseSession(server, session);
  }
}
