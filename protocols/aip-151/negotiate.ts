// Owns what stands in for a published tool where servers publish none: the method that the configuration declares.
// Must never contact the server: there is nothing to ask it without starting work.

import { jsonDigest } from '../../operation/digests.js';
import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import { editDistance } from '../../primitives/edit-distance.js';
import { digests } from '../../primitives/node-primitives.js';
import type { Negotiation, ToolServer } from '../adapter.js';
import type { DeclaredMethod } from '../declared-method.js';
import { objectionTo } from './encode.js';
import { locatorOf } from './locator.js';

export function negotiateDeclared(server: ToolServer, tool: string): Negotiation {
  const methods = server.methods ?? {};
  const method = Object.hasOwn(methods, tool) ? methods[tool] : undefined;
  if (!method) return unknownTool(server, tool, Object.keys(methods));
  const { requestIdField, operation } = method;
  const offered =
    requestIdField === null ? (operation.list === null ? undefined : 'operation-list') : 'request-id';
  return {
    kind: 'negotiated',
    negotiated: {
      adapter: 'aip-151',
      session: locatorOf(tool, method),
      toolVersion: null,
      descriptorDigest: jsonDigest(descriptorOf(method), digests),
      inputSchema: method.inputSchema ?? { type: 'object' },
      outputSchema: null,
      canList: false,
      hasTasks: true,
      canCancel: operation.cancel !== null,
      annotations: { readOnly: false, idempotent: false, destructive: false },
      offered,
      objectionTo: (args) => objectionTo(server.url, method, args),
      isDeclared: true,
    },
  };
}

/** All of the declaration but the values of its headers: a digest of a credential is a way to guess it. */
function descriptorOf(method: DeclaredMethod): JsonObject {
  const { headers, operation, ...rest } = method;
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  return {
    ...rest,
    headers: names.sort(),
    operation: { ...operation, list: operation.list === null ? null : { ...operation.list } },
  };
}

function unknownTool(server: ToolServer, tool: string, names: readonly string[]): Negotiation {
  const [near] = names.toSorted((a, b) => editDistance(tool, a) - editDistance(tool, b));
  const hint = near === undefined ? 'none is declared' : `did you mean "${near}"?`;
  const message = `${server.name} has no declared method "${tool}" under "durable.tools"; ${hint}`;
  return { kind: 'unknownTool', message: clip(message, LIMITS.evidenceChars) };
}
