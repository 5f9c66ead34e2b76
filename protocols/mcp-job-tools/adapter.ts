// Owns jobs behind the port: a start tool, a status tool and what else is declared, each called by plain `tools/call`
// over whichever MCP generation the server speaks.
// Must never keep state between calls, nor know a tool, a word or a pointer that the declaration does not name.

import { randomUUID } from 'node:crypto';
import type { JobTool } from '../../operation/job-settings.js';
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
import type { RequestOptions } from '../mcp/channel.js';
import {
  answerFaultOf,
  isSessionLost,
  readFaultOf,
  sessionless,
  submitFaultOf,
  transientFrom,
  violation,
} from '../mcp/faults.js';
import { parseJson } from '../json-members.js';
import { lookUpByTool } from '../mcp/look-up-tool.js';
import type { RpcOutcome } from '../mcp/rpc-outcome.js';
import { openSession, releaseSession, sessionJson } from '../mcp/session.js';
import { progressListener, toolCallParams } from '../mcp/tool-call.js';
import { bytesWithResult } from '../reply-bounds.js';
import { errorTextOf, plainResultOf, startOf, statusOf } from './decode.js';
import {
  idArgument,
  isSessionless,
  jobChannelOf,
  jobSessionJson,
  type JobSession,
  locatorOf,
  type PlainChannel,
  readJobSession,
  type SessionlessChannel,
} from './job-session.js';

export class McpJobToolsAdapter implements ToolAdapter {
  readonly name = 'mcp/job-tools';
  private readonly sessionless: SessionlessChannel;

  constructor(sessionless: SessionlessChannel) {
    this.sessionless = sessionless;
  }

  async submit(call: ToolCall, session: JsonObject, hooks: SubmitHooks): Promise<Submission> {
    const { job } = readJobSession(session);
    const progressToken = randomUUID();
    const channel = jobChannelOf(call.server, session, this.sessionless);
    const outcome = await channel.request('tools/call', toolCallParams(call, { progressToken }), {
      timeoutMs: call.synchronousBoundMs,
      afterSend: hooks.afterSend,
      purpose: 'submission',
      onMessage: progressListener(progressToken, hooks.onProgress, channel.redact),
    });
    if (outcome.kind !== 'result') throw submitFaultOf(outcome);
    const start = startOf(outcome.bytes, job, channel.redact);
    switch (start.kind) {
      case 'started': {
        const { remoteId, isNumber, observation } = start;
        return {
          kind: 'referenced',
          reference: { remoteId, locator: locatorOf(session, isNumber) },
          observation,
        };
      }
      case 'error': {
        // MCP lets a tool fail after it has done half of its work: only the operator knows that this one does not.
        const kind = job.refusedByError ? 'RefusedByServer' : 'Ambiguous';
        throw new WireFault(kind, `tools/call: the tool says that it failed: ${start.said}`);
      }
      case 'unreadable':
        throw new WireFault('Ambiguous', `tools/call: ${start.why}`);
    }
  }

  findBySubmission(call: ToolCall, session: JsonObject): Promise<LookUp> {
    if (call.submissionPolicy !== 'lookup-tool') {
      const evidence = 'a start tool leaves nothing that could be looked up without a look-up tool';
      return Promise.resolve({ kind: 'cannotTell', evidence });
    }
    const channel = isSessionless(session) ? this.sessionless(call.server) : undefined;
    return lookUpByTool(call, session, channel, (isNumber) => locatorOf(session, isNumber));
  }

  async observe(server: ToolServer, reference: RemoteReference): Promise<Observation> {
    const reach = this.reachOf(server, reference);
    const { status, result } = reach.session.job;
    const outcome = await callTool(reach, status, {
      // Where it is the result too; a larger one needs a result tool.
      maxReplyBytes: result === null ? LIMITS.wireListBytes : LIMITS.wireReplyBytes,
    });
    if (outcome.kind !== 'result') throw reach.readFault(outcome, status.tool);
    const seen = statusOf(outcome.bytes, reference.remoteId, reach.session, reach.channel.redact);
    switch (seen.kind) {
      case 'seen':
        return seen.observation;
      case 'notFound':
        throw new WireFault('NotFound', `${status.tool}: ${seen.said}`);
      case 'error':
        throw new WireFault('Transient', `${status.tool}: the tool says that it failed: ${seen.said}`);
      case 'unreadable':
        throw violation(`${status.tool}: ${seen.why}`);
    }
  }

  async renewSession(server: ToolServer, reference: RemoteReference): Promise<RemoteReference> {
    const { locator } = reference;
    if (isSessionless(locator)) return reference;
    const opening = await openSession(server).catch((error: unknown) => {
      throw transientFrom(error);
    });
    if (opening.kind === 'unsupported') throw new WireFault('Transient', `a new session: ${opening.message}`);
    const wire = sessionJson(opening.opened.session);
    return { ...reference, locator: jobSessionJson(wire, readJobSession(locator)) };
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
    try {
      return await this.deliver(server, reference, wire, reply, hooks);
    } catch (error) {
      // A question of a job outlives the session it was read in: the looks find a new one, and the reply goes there.
      if (!WireFault.isInstance(error) || error.kind !== 'SessionLost') throw error;
      throw new WireFault('Transient', error.message, error);
    }
  }

  private async deliver(
    server: ToolServer,
    reference: RemoteReference,
    wire: JsonObject,
    reply: InputReply,
    hooks: AnswerHooks,
  ): Promise<'delivered' | 'roundClosed'> {
    const reach = this.reachOf(server, reference);
    const { input } = reach.session.job;
    if (input === null || !(await this.isAsking(server, reference, wire))) return 'roundClosed';
    if (reply.action !== 'accept')
      throw new WireFault('RefusedByServer', `"${reply.action}" is nothing that ${input.tool} takes`);
    await hooks.beforeSend();
    const outcome = await callTool(reach, input, {
      afterSend: hooks.afterSend,
      more: replyArguments(reach.session, wire, reply),
    });
    if (outcome.kind !== 'result') throw answerFaultOf(outcome);
    const result = plainResultOf(outcome.bytes);
    if (result && !result.isToolError) return 'delivered';
    // A tool that failed may have taken the reply all the same: the status, read again, is the witness.
    if (!(await this.isAsking(server, reference, wire))) return 'delivered';
    if (!result) throw new WireFault('Transient', `${input.tool}: the reply is not a tool result`);
    const said = errorSaid(result.bytes, reach.channel);
    throw new WireFault('RefusedByServer', `${input.tool}: the tool says that it failed: ${said}`);
  }

  private async isAsking(server: ToolServer, reference: RemoteReference, wire: JsonObject): Promise<boolean> {
    try {
      const { questions } = await this.observe(server, reference);
      return questions?.some(({ wireKey }) => wireKey === wire['wireKey']) ?? false;
    } catch (error) {
      if (WireFault.isInstance(error) && error.kind === 'NotFound') return false;
      throw transientFrom(error);
    }
  }

  /** Only ever an acknowledgement: the status alone says that the job was cancelled. */
  async cancel(
    server: ToolServer,
    reference: RemoteReference,
    afterSend: () => Promise<void>,
  ): Promise<CancelAnswer> {
    const reach = this.reachOf(server, reference);
    const { cancel } = reach.session.job;
    if (cancel === null) return 'unsupported';
    const outcome = await callTool(reach, cancel, { timeoutMs: LIMITS.cancelTimeoutMs, afterSend });
    if (outcome.kind === 'result') {
      const result = plainResultOf(outcome.bytes);
      if (result) return result.isToolError ? 'refused' : 'acknowledged';
      throw new WireFault('Transient', `${cancel.tool}: the reply is not a tool result`);
    }
    const isRefusal =
      outcome.kind === 'error' &&
      outcome.status < 500 &&
      !isSessionLost(outcome) &&
      REFUSING_CODES.includes(outcome.code);
    if (isRefusal) return 'refused';
    throw transientFrom(reach.readFault(outcome, cancel.tool));
  }

  async fetchResult(
    server: ToolServer,
    reference: RemoteReference,
    maxResultBytes: number = LIMITS.storedResultBytes,
  ): Promise<FetchedResult> {
    const reach = this.reachOf(server, reference);
    const { result: tool } = reach.session.job;
    if (tool === null) return this.fetchFromStatus(server, reference, maxResultBytes);
    const outcome = await callTool(reach, tool, { maxReplyBytes: bytesWithResult(maxResultBytes) });
    if (outcome.kind === 'lost' && outcome.isTooLarge) return { kind: 'tooLarge', evidence: outcome.detail };
    if (outcome.kind !== 'result') {
      const fault = reach.readFault(outcome, tool.tool);
      // -32602 is the word for a tool that is not there as well: no proof that the result is gone.
      throw fault.kind === 'NotFound' ? new WireFault('Transient', fault.message, fault) : fault;
    }
    const result = plainResultOf(outcome.bytes);
    if (!result) throw violation(`${tool.tool}: the reply is not a tool result`);
    if (result.isToolError && tool.retryErrors) {
      const said = errorSaid(result.bytes, reach.channel);
      throw new WireFault('Transient', `${tool.tool}: the tool says that it failed: ${said}`);
    }
    return withinBound({ kind: 'result', result }, maxResultBytes);
  }

  private async fetchFromStatus(
    server: ToolServer,
    reference: RemoteReference,
    maxResultBytes: number,
  ): Promise<FetchedResult> {
    try {
      const { inline } = await this.observe(server, reference);
      return inline ? withinBound(inline, maxResultBytes) : { kind: 'notYet' };
    } catch (error) {
      if (!WireFault.isInstance(error) || error.kind !== 'NotFound') throw error;
      return { kind: 'lost', evidence: `${error.message} (the job is gone)` };
    }
  }

  async release(server: ToolServer, session: JsonObject): Promise<void> {
    if (!isSessionless(session)) await releaseSession(server, session);
  }

  private reachOf(server: ToolServer, { remoteId, locator }: RemoteReference): JobReach {
    const session = readJobSession(locator);
    const channel = jobChannelOf(server, locator, this.sessionless);
    return {
      session,
      channel,
      remoteId,
      readFault: (outcome, what) => {
        const fault = readFaultOf(outcome, what);
        return isSessionless(locator) ? sessionless(fault) : fault;
      },
    };
  }
}

/** Parameters or method that the server does not take: a read tells what became of the job. */
const REFUSING_CODES: readonly number[] = [-32602, -32601, -32600];

interface JobReach {
  readonly session: JobSession;
  readonly channel: PlainChannel;
  readonly remoteId: string;
  readFault(outcome: Exclude<RpcOutcome, { kind: 'result' }>, what: string): WireFault;
}

interface CallOptions extends Pick<RequestOptions, 'afterSend' | 'maxReplyBytes'> {
  readonly timeoutMs?: number;
  readonly more?: JsonObject;
}

/** One of the job's tools, with its id; `more` never stands in for the id. */
function callTool(
  { channel, remoteId, session }: JobReach,
  { tool, argument }: JobTool,
  { more, timeoutMs = LIMITS.requestTimeoutMs, ...options }: CallOptions,
): Promise<RpcOutcome> {
  const args: JsonObject = { ...more, [argument]: idArgument(remoteId, session) };
  return channel.request(
    'tools/call',
    { name: tool, arguments: args },
    {
      ...options,
      timeoutMs,
      onMessage: progressListener('', () => undefined, channel.redact),
    },
  );
}

/** The members of the reply, and the key of its question where the tool takes one. */
function replyArguments({ job }: JobSession, wire: JsonObject, { content }: InputReply): JsonObject {
  const members =
    typeof content === 'object' && !Array.isArray(content) ? (content as JsonObject | null) : null;
  const keyArgument = job.input?.key?.argument ?? null;
  return { ...members, ...(keyArgument === null ? {} : { [keyArgument]: wire['key'] ?? null }) };
}

function errorSaid(bytes: Uint8Array, { redact }: PlainChannel): string {
  // An error is for people; nobody reads a megabyte of it.
  if (bytes.byteLength > LIMITS.wireReplyBytes) return `${bytes.byteLength} bytes`;
  return errorTextOf(parseJson(bytes) as JsonObject, redact);
}
