// Owns the Node bindings of what the pure core takes as parameters: SHA-256, canonical JSON, the schema check.
// Must never be imported by operation/ or workflows/; beside them, every room may.

import { createHash } from 'node:crypto';
import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema';
import canonicalizeJson from 'canonicalize';
import type { DigestPrimitives } from '../operation/digests.js';
import type { JsonObject, JsonValue } from '../operation/json.js';
import { guardSchema } from '../operation/schema-guard.js';

export const digests: DigestPrimitives = {
  canonicalize: (value) => canonicalizeJson(value) ?? 'null',
  sha256Hex: (text) => createHash('sha256').update(text, 'utf8').digest('hex'),
};

/**
 * Null where the value fits the schema, else one sentence naming the first place that does not.
 * Interprets (compiles no code), and takes out of the schema what could hang it: schemas come from strangers.
 */
export function checkSchema(schema: JsonObject, value: JsonValue): string | null {
  const guarded = guardSchema(schema);
  if (guarded.kind === 'refused') return guarded.reason;
  try {
    const { valid, errors } = new Validator(guarded.schema as Schema, '2020-12', true).validate(value);
    if (valid) return null;
    return sentenceOf(errors);
  } catch (error) {
    return `the schema cannot be checked: ${error instanceof Error ? error.message : 'unknown reason'}`;
  }
}

/** Names the deepest place that does not fit; alternatives are named as such, not by the last of them. */
function sentenceOf(errors: readonly OutputUnit[]): string {
  const deepest = errors.reduce<OutputUnit | undefined>(
    (found, error) => (!found || depthOf(error) >= depthOf(found) ? error : found),
    undefined,
  );
  if (!deepest) return 'does not fit the schema';
  const place = deepest.instanceLocation.replace(/^#/, '') || '/';
  const there = errors.filter((error) => error.instanceLocation === deepest.instanceLocation);
  const isChoice = there.some(
    ({ keyword }) => keyword === 'oneOf' || keyword === 'anyOf' || keyword === 'enum',
  );
  return isChoice ? `${place}: none of the allowed choices` : `${place}: ${deepest.error}`;
}

function depthOf(error: OutputUnit): number {
  return error.instanceLocation.split('/').length;
}
