// Owns what is read of a tool that a server publishes, whichever generation it speaks.
// Must never carry on a text of the server's that quotes a credential, nor what no digest can be made of.

import { jsonDigest } from '../../operation/digests.js';
import type { JsonObject } from '../../operation/json.js';
import type { AdapterName } from '../../operation/names.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import { editDistance } from '../../primitives/edit-distance.js';
import { digests } from '../../primitives/node-primitives.js';
import type { Negotiated, Negotiation, PublishedTool, ToolServer } from '../adapter.js';
import { withCleanTexts, type Redact } from '../redact.js';
import { violation } from './faults.js';
import { isObject } from '../json-members.js';
import { isDigestible } from './json-rpc.js';
import { COUNTS } from './pace.js';

export type Found =
  | { readonly kind: 'found'; readonly descriptor: JsonObject }
  | Exclude<Negotiation, { kind: 'negotiated' }>;

/** The descriptor of one tool, or the sentence that says why there is none to use. */
export function findDescriptor(
  tools: readonly JsonObject[],
  server: ToolServer,
  tool: string,
  redact: Redact,
): Found {
  const descriptor = tools.find((candidate) => candidate['name'] === tool);
  if (!descriptor) {
    const near = nearNames(
      tool,
      tools.map((candidate) => redact(candidate['name'] as string)),
    );
    const hint = near.length === 0 ? 'it publishes none' : `near: ${near.join(', ')}`;
    return {
      kind: 'unknownTool',
      message: clip(`${server.name} has no tool "${tool}"; ${hint}`, LIMITS.evidenceChars),
    };
  }
  if (isDigestible(descriptor)) return { kind: 'found', descriptor };
  return unsupported(
    server,
    `what the server publishes about the tool "${tool}" holds a number or a text that no digest can ` +
      'be made of (a number beyond a double such as 1e999, or half a character). The server has to mend it.',
  );
}

/** A sentence about the server: what is lacking, and what to mend. */
export function unsupported(server: ToolServer, why: string): Extract<Negotiation, { kind: 'unsupported' }> {
  return { kind: 'unsupported', message: clip(`${server.name}: ${why}`, LIMITS.evidenceChars) };
}

/** With what is published about the tool that looks submissions up, where one is wanted. */
export function withLookUpTool(
  negotiated: Negotiated,
  lookUpTool: string | undefined,
  tools: readonly JsonObject[],
  publish: (descriptor: JsonObject) => PublishedTool,
): Negotiation {
  if (lookUpTool === undefined) return { kind: 'negotiated', negotiated };
  const second = tools.find((candidate) => candidate['name'] === lookUpTool);
  return { kind: 'negotiated', negotiated: { ...negotiated, lookUpTool: second ? publish(second) : null } };
}

export interface Described {
  readonly adapter: AdapterName;
  readonly session: JsonObject;
  readonly serverVersion: string | null;
  readonly canList: boolean;
  readonly hasTasks: boolean;
  readonly canCancel: boolean;
  readonly redact: Redact;
}

/** @throws WireFault ProtocolViolation where it publishes no input schema */
export function describeTool(descriptor: JsonObject, described: Described): Negotiated {
  const { adapter, session, serverVersion, canList, hasTasks, canCancel, redact } = described;
  const inputSchema = descriptor['inputSchema'];
  if (!isObject(inputSchema)) throw violation('the tool publishes no input schema');
  const outputSchema = descriptor['outputSchema'];
  const annotations = isObject(descriptor['annotations']) ? descriptor['annotations'] : {};
  return {
    adapter,
    session,
    toolVersion: serverVersion,
    descriptorDigest: jsonDigest(descriptor, digests),
    inputSchema: withCleanTexts(inputSchema, redact),
    outputSchema: isObject(outputSchema) ? withCleanTexts(outputSchema, redact) : null,
    canList,
    hasTasks,
    canCancel,
    annotations: {
      readOnly: annotations['readOnlyHint'] === true,
      idempotent: annotations['idempotentHint'] === true,
      destructive: annotations['destructiveHint'] === true,
    },
  };
}

/** @throws WireFault ProtocolViolation where it publishes no input schema */
export function publishedTool(descriptor: JsonObject, requiresTasks: boolean, redact: Redact): PublishedTool {
  const { inputSchema, outputSchema } = descriptor;
  if (!isObject(inputSchema)) throw violation('a tool publishes no input schema');
  return {
    requiresTasks,
    inputSchema: withCleanTexts(inputSchema, redact),
    outputSchema: isObject(outputSchema) ? withCleanTexts(outputSchema, redact) : null,
  };
}

/** The published names least unlike `wanted`, nearest first. */
function nearNames(wanted: string, names: readonly string[]): readonly string[] {
  return names
    .map((name) => ({
      name: clip(name, 80),
      distance: editDistance(wanted.slice(0, 80), name.slice(0, 80)),
    }))
    .sort((a, b) => a.distance - b.distance || a.name.localeCompare(b.name))
    .slice(0, COUNTS.nearNames)
    .map(({ name }) => name);
}
