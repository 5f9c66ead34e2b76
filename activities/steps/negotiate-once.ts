// Owns what happens before a claim: negotiation, the checks that need the tool's descriptor, the choice of the policy.
// Must never claim or send.

import type { Remark } from '../../operation/facts.js';
import { LIMITS } from '../../operation/limits.js';
import type { JsonObject } from '../../operation/json.js';
import { clip, decideSubmissionPolicy, isAbsenceProved, keyPlaceOf } from '../../operation/policy.js';
import { isPublished } from '../../operation/published-member.js';
import type { Rejection, RowSnapshot } from '../../operation/row.js';
import { type Negotiated, type Negotiation, type ToolServer, WireFault } from '../../protocols/adapter.js';
import type { Ports } from '../ports.js';
import type { SubmitInput } from '../step-inputs.js';
import { serverOf } from './reach.js';

/** The session to send in, and the row once adapter, descriptor and policy are pinned in it. */
export interface Ready {
  readonly row: RowSnapshot;
  readonly session: JsonObject;
  readonly remarks: readonly Remark[];
}

/** Adapter, descriptor and session are pinned before the first claim that counts; the adapter stays for ever. */
export async function negotiateOnce(input: SubmitInput, row: RowSnapshot, ports: Ports): Promise<Ready> {
  const wasSent = row.adapter !== null && row.legs.some((leg) => leg.outcome !== 'notSent');
  // What is proved to have started nothing binds nothing: the next leg gets a session of its own, which is kept.
  if (wasSent && !isAbsenceProved(row))
    return { row, session: await sessionForResend(row, ports), remarks: [] };
  const first = await negotiateFirst(input, row, ports);
  const { session } = await ports.receipts.wireState(row.callNodeId);
  return { ...first, session: session ?? {} };
}

/** The key finds the first submission from any session; the one it was sent in may be gone. */
async function sessionForResend(row: RowSnapshot, ports: Ports): Promise<JsonObject> {
  const negotiation = await negotiate(row, undefined, ports);
  if (negotiation.kind === 'negotiated' && negotiation.negotiated.adapter === row.adapter) {
    const { isDeclared, descriptorDigest, session } = negotiation.negotiated;
    if (!isDeclared || descriptorDigest === row.descriptorDigest) return session;
    throw new WireFault(
      'NotSent',
      `"${row.tool}" is declared otherwise than when it was sent: that is not repeated`,
    );
  }
  throw new WireFault('NotSent', `the server does not offer "${row.tool}" under ${row.adapter} any more`);
}

/** By what was declared when the operation was opened: the worker's configuration may be a later one. */
function negotiate(row: RowSnapshot, lookUpTool: string | undefined, ports: Ports): Promise<Negotiation> {
  return ports.protocols.negotiate(serverOf(ports, row), row.tool, lookUpTool, row.policy.job);
}

async function negotiateFirst(
  input: SubmitInput,
  row: RowSnapshot,
  ports: Ports,
): Promise<Omit<Ready, 'session'>> {
  const reject = async (rejection: Rejection): Promise<Omit<Ready, 'session'>> => ({
    row: await ports.receipts.recordRejection(input, rejection),
    remarks: [],
  });
  const server = serverOf(ports, row);
  const negotiation = await negotiate(row, row.policy.lookUp?.tool, ports);
  if (negotiation.kind === 'unknownTool') {
    return reject({ code: 'unknown-tool', message: negotiation.message });
  }
  if (negotiation.kind === 'unsupported') {
    return reject({ code: 'unsupported-protocol', message: negotiation.message });
  }
  const { negotiated } = negotiation;
  const { argumentsJson } = await ports.receipts.wireState(row.callNodeId);
  const objection = objectionTo(negotiated, row, JSON.parse(argumentsJson) as JsonObject, ports);
  if (objection) return reject(objection);
  const remarks = await remarksOn(negotiated, row, ports);
  const recorded = await ports.receipts.recordNegotiation(input, {
    adapter: negotiated.adapter,
    submissionPolicy: submissionPolicyFor(negotiated, server, row),
    toolVersion: negotiated.toolVersion,
    descriptorDigest: negotiated.descriptorDigest,
    outputSchema: negotiated.outputSchema,
    session: negotiated.session,
  });
  return { row: recorded, remarks };
}

/** Told to people; what is refused is refused before. */
async function remarksOn(
  { descriptorDigest, canCancel, hasTasks, annotations }: Negotiated,
  { callNodeId, tool }: RowSnapshot,
  ports: Ports,
): Promise<readonly Remark[]> {
  const before = await ports.receipts.descriptorBefore(callNodeId);
  const isChanged = before !== null && before !== descriptorDigest;
  const changed = `what the server publishes about "${tool}" has changed: ${before ?? ''} is now ${descriptorDigest}`;
  const why = annotations.destructive ? 'destructive' : 'long';
  const stuck = `"${tool}" is ${why}, and the server cannot be asked to stop it`;
  return [
    ...(isChanged ? [{ what: 'descriptor-changed', detail: changed } as const] : []),
    ...(!canCancel && (hasTasks || annotations.destructive)
      ? [{ what: 'no-cancel', detail: stuck } as const]
      : []),
  ];
}

function submissionPolicyFor(negotiated: Negotiated, server: ToolServer, row: RowSnapshot) {
  return decideSubmissionPolicy({
    configured: row.policy.submissionPolicy,
    sideEffects: row.policy.sideEffects,
    trustAnnotations: server.trustAnnotations,
    readOnly: negotiated.annotations.readOnly,
    idempotent: negotiated.annotations.idempotent,
    canList: negotiated.canList,
    offered: negotiated.offered,
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
  const pinned = policy.descriptorDigest;
  if (pinned !== undefined && pinned !== negotiated.descriptorDigest) {
    const message =
      `what the server publishes about "${row.tool}" has the digest ${negotiated.descriptorDigest}, and ` +
      `"descriptor" of this tool pins ${pinned}: look at what has changed, then pin the new one`;
    return { code: 'descriptor-changed', message };
  }
  if (!negotiated.hasTasks && policy.waitBudgetExplicit && policy.waitBudgetMs > policy.synchronousBoundMs) {
    const message =
      `tool "${row.tool}" runs without tasks and is bounded at ${policy.synchronousBoundMs} ms, ` +
      `under the wait budget of ${policy.waitBudgetMs} ms: shorten the budget or configure synchronousBound`;
    return { code: 'LongTaskUnsupported', message };
  }
  const mistake = keyObjection(negotiated, row) ?? lookUpObjection(negotiated, row, ports);
  if (mistake !== null) return { code: 'bad-arguments', message: clip(mistake, LIMITS.evidenceChars) };
  const keyed =
    keyPlaceOf(policy.submissionPolicy, policy.lookUp) === 'argument' && policy.keyName
      ? { ...args, [policy.keyName]: row.submissionKey }
      : args;
  const miss = ports.checkSchema(negotiated.inputSchema, keyed) ?? negotiated.objectionTo?.(keyed) ?? null;
  return miss
    ? { code: 'bad-arguments', message: clip(`arguments of "${row.tool}": ${miss}`, LIMITS.evidenceChars) }
    : null;
}

/** A key that the tool has no argument for deduplicates nothing: to send again under it would run it twice. */
function keyObjection({ inputSchema }: Negotiated, { policy, tool }: RowSnapshot): string | null {
  const { properties } = inputSchema;
  if (keyPlaceOf(policy.submissionPolicy, policy.lookUp) !== 'argument' || policy.keyName === null)
    return null;
  if (typeof properties !== 'object' || properties === null || policy.keyName in properties) return null;
  return `tool "${tool}" has no argument "${policy.keyName}" to carry the key: mend submission.argument`;
}

/** A look-up that can never answer, or would take every answer for "absent", is a mistake to be told before the first leg. */
function lookUpObjection({ lookUpTool }: Negotiated, { policy, submissionKey }: RowSnapshot, ports: Ports) {
  const { lookUp } = policy;
  if (policy.submissionPolicy !== 'lookup-tool' || !lookUp) return null;
  const { tool, argument, idPointer } = lookUp;
  if (!lookUpTool)
    return `the server has no tool "${tool}" to look submissions up with: mend submission.lookUp.tool`;
  if (lookUpTool.requiresTasks)
    return `tool "${tool}" runs as a task only, a look-up is a plain call: mend submission.lookUp.tool`;
  const miss = ports.checkSchema(lookUpTool.inputSchema, { [argument]: submissionKey });
  if (miss !== null)
    return `tool "${tool}" does not take { "${argument}": key }: ${miss}; mend submission.lookUp`;
  return isPublished(lookUpTool.outputSchema, idPointer)
    ? null
    : `tool "${tool}" publishes no ${idPointer} in its output: mend submission.lookUp.id`;
}
