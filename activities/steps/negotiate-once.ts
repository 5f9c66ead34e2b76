// Owns what happens before a claim: negotiation, the checks that need the tool's descriptor, the choice of the policy.
// Must never claim or send.

import { LIMITS } from '../../operation/limits.js';
import type { JsonObject } from '../../operation/json.js';
import { clip, decideSubmissionPolicy } from '../../operation/policy.js';
import type { Rejection, RowSnapshot } from '../../operation/row.js';
import { type Negotiated, type ToolServer, WireFault } from '../../protocols/adapter.js';
import type { Ports } from '../ports.js';
import type { SubmitInput } from '../step-inputs.js';
import { serverOf } from './reach.js';

/** The session to send in, and the row once adapter, descriptor and policy are pinned in it. */
export interface Ready {
  readonly row: RowSnapshot;
  readonly session: JsonObject;
}

/** Adapter, descriptor and session are pinned before the first claim that counts; the adapter stays for ever. */
export async function negotiateOnce(input: SubmitInput, row: RowSnapshot, ports: Ports): Promise<Ready> {
  const wasSent = row.adapter !== null && row.legs.some((leg) => leg.outcome !== 'notSent');
  if (wasSent) return { row, session: await sessionForResend(row, ports) };
  const negotiated = await negotiateFirst(input, row, ports);
  const { session } = await ports.receipts.wireState(row.callNodeId);
  return { row: negotiated, session: session ?? {} };
}

/** The key finds the first submission from any session; the one it was sent in may be gone. */
async function sessionForResend(row: RowSnapshot, ports: Ports): Promise<JsonObject> {
  const negotiation = await ports.protocols.negotiate(serverOf(ports, row), row.tool);
  if (negotiation.kind === 'negotiated' && negotiation.negotiated.adapter === row.adapter) {
    return negotiation.negotiated.session;
  }
  throw new WireFault('NotSent', `the server does not offer "${row.tool}" under ${row.adapter} any more`);
}

async function negotiateFirst(input: SubmitInput, row: RowSnapshot, ports: Ports): Promise<RowSnapshot> {
  const server = serverOf(ports, row);
  const negotiation = await ports.protocols.negotiate(server, row.tool);
  if (negotiation.kind === 'unknownTool') {
    return ports.receipts.recordRejection(input, { code: 'unknown-tool', message: negotiation.message });
  }
  if (negotiation.kind === 'unsupported') {
    return ports.receipts.recordRejection(input, {
      code: 'unsupported-protocol',
      message: negotiation.message,
    });
  }
  const { negotiated } = negotiation;
  const { argumentsJson } = await ports.receipts.wireState(row.callNodeId);
  const objection = objectionTo(negotiated, row, JSON.parse(argumentsJson) as JsonObject, ports);
  if (objection) return ports.receipts.recordRejection(input, objection);
  return ports.receipts.recordNegotiation(input, {
    adapter: negotiated.adapter,
    submissionPolicy: submissionPolicyFor(negotiated, server, row),
    toolVersion: negotiated.toolVersion,
    descriptorDigest: negotiated.descriptorDigest,
    outputSchema: negotiated.outputSchema,
    session: negotiated.session,
  });
}

function submissionPolicyFor(negotiated: Negotiated, server: ToolServer, row: RowSnapshot) {
  return decideSubmissionPolicy({
    configured: row.policy.submissionPolicy,
    sideEffects: row.policy.sideEffects,
    trustAnnotations: server.trustAnnotations,
    readOnly: negotiated.annotations.readOnly,
    idempotent: negotiated.annotations.idempotent,
    canList: negotiated.canList,
  });
}

/** Proofs, found before any claim, that this call must not be sent. */
function objectionTo(
  negotiated: Negotiated,
  row: RowSnapshot,
  args: JsonObject,
  ports: Ports,
): Rejection | null {
  const { policy } = row;
  if (
    negotiated.adapter === 'synchronous' &&
    policy.waitBudgetExplicit &&
    policy.waitBudgetMs > policy.synchronousBoundMs
  ) {
    const message =
      `tool "${row.tool}" runs without tasks and is bounded at ${policy.synchronousBoundMs} ms, ` +
      `under the wait budget of ${policy.waitBudgetMs} ms: shorten the budget or configure synchronousBound`;
    return { code: 'LongTaskUnsupported', message };
  }
  const keyMiss = keyObjection(negotiated, row);
  if (keyMiss) return keyMiss;
  const keyed =
    policy.submissionPolicy === 'key-argument' && policy.keyName
      ? { ...args, [policy.keyName]: row.submissionKey }
      : args;
  const miss = ports.checkSchema(negotiated.inputSchema, keyed);
  return miss
    ? { code: 'bad-arguments', message: clip(`arguments of "${row.tool}": ${miss}`, LIMITS.evidenceChars) }
    : null;
}

/** A key that the tool has no argument for deduplicates nothing: to send again under it would run it twice. */
function keyObjection({ inputSchema }: Negotiated, { policy, tool }: RowSnapshot): Rejection | null {
  const { properties } = inputSchema;
  if (policy.submissionPolicy !== 'key-argument' || policy.keyName === null) return null;
  if (typeof properties !== 'object' || properties === null || policy.keyName in properties) return null;
  const message = `tool "${tool}" has no argument "${policy.keyName}" to carry the key: mend submission.argument`;
  return { code: 'bad-arguments', message };
}
