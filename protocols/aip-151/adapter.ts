// Owns AIP-151 (long-running operations) over REST behind the port: each method is one exchange and its meaning.
// Must never keep state between calls, follow a redirect, or submit in order to look up.

import { requestId } from '../../operation/digests.js';
import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { RemoteReference } from '../../operation/row.js';
import { digests } from '../../primitives/node-primitives.js';
import {
  WireFault,
  withinBound,
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
import type { DeclaredMethod } from '../declared-method.js';
import { redactorOf } from '../redact.js';
import { bytesWithStatus } from '../reply-bounds.js';
import { nameOf, operationOf } from './decode.js';
import { operationUrl, submitRequest, type RestRequest } from './encode.js';
import { isAlreadyExists, isCancelRefused, isUnsupported, readFaultOf, submitFaultOf } from './faults.js';
import { findOperation } from './find-operation.js';
import { locatorOf, readLocator } from './locator.js';
import { TemplateValueError } from './path-template.js';
import { exchangeJson, type RestOutcome } from './rest-exchange.js';

export class Aip151Adapter implements ToolAdapter {
  readonly name = 'aip-151';

  async submit(call: ToolCall, session: JsonObject, hooks: SubmitHooks): Promise<Submission> {
    const args = argumentsOf(call);
    const outcome = await exchangeJson(call.server, requestOf(call, args), {
      timeoutMs: call.synchronousBoundMs,
      tool: call.tool,
      maxReplyBytes: bytesWithStatus(call.maxResultBytes),
      afterSend: hooks.afterSend,
      purpose: 'submission',
    });
    if (outcome.kind === 'object') return submissionOf(call, session, outcome);
    if (isAlreadyExists(outcome)) {
      const found = await findExisting(call, args, session);
      if (found) return found;
    }
    throw submitFaultOf(outcome);
  }

  async findBySubmission(call: ToolCall, session: JsonObject, firstLegClaimedAt: number): Promise<LookUp> {
    const submittedAt = isIdDerived(call) ? null : firstLegClaimedAt;
    try {
      const found = await findOperation(call, argumentsOf(call), readLocator(session), submittedAt);
      if (found.kind !== 'found') return found;
      return { kind: 'found', reference: { remoteId: found.remoteId, locator: session } };
    } catch (error) {
      if (!(error instanceof TemplateValueError)) throw error;
      return { kind: 'cannotTell', evidence: `the list cannot be asked: ${error.message}` };
    }
  }

  async observe(
    server: ToolServer,
    reference: RemoteReference,
    maxResultBytes?: number,
  ): Promise<Observation> {
    const locator = readLocator(reference.locator);
    const outcome = await exchangeJson(server, ownMethod(server, reference, 'GET', locator.get), {
      timeoutMs: LIMITS.requestTimeoutMs,
      tool: locator.tool,
      maxReplyBytes: bytesWithStatus(maxResultBytes),
    });
    if (outcome.kind !== 'object') throw readFaultOf(outcome, 'get');
    const seen = operationOf(outcome.bytes, redactorOf(server));
    if (seen.kind === 'none') throw readFaultOf(outcome, 'get');
    if (seen.kind === 'broken') throw new WireFault('ProtocolViolation', `get: ${seen.why}`);
    if (seen.name !== reference.remoteId) {
      throw new WireFault('ProtocolViolation', 'get: the reply is about another operation');
    }
    return paced(seen.observation, locator.pollIntervalMs, outcome.retryAfterMs);
  }

  /** There is no session. After several misses the paths are read anew: the configuration may have been mended. */
  async renewSession(server: ToolServer, reference: RemoteReference): Promise<RemoteReference> {
    const { tool } = readLocator(reference.locator);
    const method = declared(server, tool);
    return method ? { remoteId: reference.remoteId, locator: locatorOf(tool, method) } : reference;
  }

  async anchor(): Promise<JsonObject | null> {
    return null;
  }

  /** An operation asks nothing. */
  async pickUpQuestions(): Promise<void> {}

  async answer(): Promise<'delivered' | 'roundClosed'> {
    return 'roundClosed';
  }

  /** "Best effort": success is an empty reply and says nothing of the end. */
  async cancel(
    server: ToolServer,
    reference: RemoteReference,
    afterSend: () => Promise<void>,
  ): Promise<CancelAnswer> {
    const { tool, cancel } = readLocator(reference.locator);
    if (cancel === null) return 'unsupported';
    const request = { ...ownMethod(server, reference, 'POST', cancel), body: '{}' };
    const outcome = await exchangeJson(server, request, {
      timeoutMs: LIMITS.cancelTimeoutMs,
      tool,
      afterSend,
    });
    // Also a 204, or a page: a success is a success.
    if (outcome.kind === 'object' || outcome.kind === 'garbled') return 'acknowledged';
    if (isUnsupported(outcome)) return 'unsupported';
    if (isCancelRefused(outcome)) return 'refused';
    const fault = readFaultOf(outcome, 'cancel');
    throw fault.kind === 'NotFound' ? fault : new WireFault('Transient', fault.message, fault);
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
      if (!WireFault.isInstance(error)) throw error;
      if (error.isTooLarge) return { kind: 'tooLarge', evidence: error.message };
      if (error.kind !== 'NotFound' || error.wireCode === 403) throw error;
      return { kind: 'lost', evidence: `${error.message} (the operation is gone)` };
    }
  }

  /** Only what has ended, and only where that is configured: a DELETE loses interest and cancels nothing. */
  async release(server: ToolServer, session: JsonObject, endedId?: string): Promise<void> {
    if (endedId === undefined) return;
    try {
      const { tool, deleteAfterReceipt } = readLocator(session);
      if (deleteAfterReceipt === null) return;
      const reference = { remoteId: endedId, locator: session };
      const request = ownMethod(server, reference, 'DELETE', deleteAfterReceipt);
      await exchangeJson(server, request, { timeoutMs: LIMITS.releaseTimeoutMs, tool });
    } catch {
      // Left to the server, which forgets it in its own time.
    }
  }
}

function declared(server: ToolServer, tool: string): DeclaredMethod | null {
  const { methods } = server;
  return methods && Object.hasOwn(methods, tool) ? (methods[tool] ?? null) : null;
}

/** The id that tells the work apart is made of the call's own key: what bears it is ours, whenever it began. */
function isIdDerived(call: ToolCall): boolean {
  return call.submissionPolicy === 'key-argument';
}

function argumentsOf(call: ToolCall): JsonObject {
  const { submissionPolicy, keyName, submissionKey } = call;
  if (keyName === null) return call.arguments;
  if (submissionPolicy === 'key-argument') return { ...call.arguments, [keyName]: submissionKey };
  if (submissionPolicy !== 'request-id') return call.arguments;
  return { ...call.arguments, [keyName]: requestId(submissionKey, digests) };
}

/** @throws WireFault NotSent */
function requestOf(call: ToolCall, args: JsonObject): RestRequest {
  const method = declared(call.server, call.tool);
  if (!method) throw new WireFault('NotSent', `"${call.tool}" is not declared any more`);
  try {
    return submitRequest(call.server.url, method, args);
  } catch (error) {
    if (!(error instanceof TemplateValueError)) throw error;
    throw new WireFault('NotSent', error.message);
  }
}

type ObjectReply = Extract<RestOutcome, { kind: 'object' }>;

/** @throws WireFault Ambiguous */
function submissionOf(call: ToolCall, session: JsonObject, reply: ObjectReply): Submission {
  const seen = operationOf(reply.bytes, redactorOf(call.server));
  if (seen.kind === 'operation') {
    const { name, observation } = seen;
    const result = observation.inline?.kind === 'result' ? observation.inline.result : null;
    const sizeBytes = result?.bytes.byteLength ?? 0;
    const isTooLarge = sizeBytes > (call.maxResultBytes ?? LIMITS.storedResultBytes);
    // An end in hand is not asked for again: it may be gone by then.
    if (result && !isTooLarge) {
      const named = name === '' ? {} : { reference: { remoteId: name, locator: session } };
      return { kind: 'answered', result, ...named };
    }
    // Where it has a name, the next look says for good that its end cannot be taken.
    if (name !== '') return referenced(name, session, observation, reply.retryAfterMs);
    if (isTooLarge)
      throw new WireFault('Ambiguous', `submit: the result has ${sizeBytes} bytes`, { isTooLarge });
  }
  // What the server named was made, whatever else is wrong with the reply.
  const named = seen.kind === 'broken' ? nameOf(reply.bytes) : null;
  if (named !== null && named !== '') return referenced(named, session, UNREADABLE, reply.retryAfterMs);
  throw submitFaultOf(reply);
}

const UNREADABLE: Observation = {
  remoteStatus: 'unreadable',
  meaning: 'other',
  statusMessage: null,
  intervalMs: null,
  expiresAt: null,
};

function referenced(
  remoteId: string,
  session: JsonObject,
  seen: Observation,
  retryAfterMs: number | null,
): Submission {
  const { pollIntervalMs } = readLocator(session);
  const observation = paced(seen, pollIntervalMs, retryAfterMs);
  return { kind: 'referenced', reference: { remoteId, locator: session }, observation };
}

/** The contract has no interval of its own: the configured one, or what the server asked for where that is longer. */
function paced(seen: Observation, pollIntervalMs: number, retryAfterMs: number | null): Observation {
  return { ...seen, intervalMs: Math.max(pollIntervalMs, retryAfterMs ?? 0) };
}

/** Only where what exists can be nobody else's; else the look-up decides, which knows when the first leg was sent. */
async function findExisting(
  call: ToolCall,
  args: JsonObject,
  session: JsonObject,
): Promise<Submission | null> {
  const locator = readLocator(session);
  if (!isIdDerived(call) && locator.list?.idIsOurs !== true) return null;
  try {
    const found = await findOperation(call, args, locator, null);
    if (found.kind !== 'found') return null;
    return referenced(found.remoteId, session, FOUND, null);
  } catch (error) {
    // The submission stays ambiguous, and is looked up in its own time.
    if (WireFault.isInstance(error) || error instanceof TemplateValueError) return null;
    throw error;
  }
}

const FOUND: Observation = { ...UNREADABLE, remoteStatus: 'found', meaning: 'working' };

/** @throws WireFault ProtocolViolation where no path can hold the name */
function ownMethod(
  server: ToolServer,
  { remoteId }: RemoteReference,
  verb: RestRequest['verb'],
  template: string,
): RestRequest {
  try {
    return { verb, url: operationUrl(server.url, template, remoteId), body: null };
  } catch (error) {
    if (!(error instanceof TemplateValueError)) throw error;
    const why = clip(redactorOf(server)(error.message), LIMITS.evidenceChars);
    throw new WireFault('ProtocolViolation', `the operation's name cannot be asked for: ${why}`);
  }
}
