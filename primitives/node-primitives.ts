// Owns the Node bindings of what the pure core takes as parameters: SHA-256, canonical JSON, the schema check.
// Must never be imported by operation/ or workflows/; beside them, every room may.

import { createHash } from 'node:crypto';
import { type OutputUnit, type Schema, type SchemaDraft, Validator } from '@cfworker/json-schema';
import canonicalizeJson from 'canonicalize';
import type { DigestPrimitives } from '../operation/digests.js';
import type { JsonObject, JsonValue } from '../operation/json.js';
import { guardSchema } from '../operation/schema-guard.js';

export const digests: DigestPrimitives = {
  canonicalize: (value) => canonicalizeJson(value) ?? 'null',
  sha256Hex: (text) => createHash('sha256').update(text, 'utf8').digest('hex'),
};

/** The dialects that are checked, by `$schema` without its scheme and empty fragment; without one it is 2020-12 (MCP, base protocol). */
const DIALECTS: Readonly<Record<string, SchemaDraft>> = {
  'json-schema.org/draft/2020-12/schema': '2020-12',
  'json-schema.org/draft/2019-09/schema': '2019-09',
  'json-schema.org/draft-07/schema': '7',
  'json-schema.org/draft-04/schema': '4',
};

/**
 * Null where the value fits the schema, else one sentence naming the first place that does not.
 * Interprets (compiles no code), and takes out of the schema what could hang it: schemas come from strangers.
 */
export function checkSchema(schema: JsonObject, value: JsonValue): string | null {
  const guarded = guardSchema(schema);
  if (guarded.kind === 'refused') return guarded.reason;
  const dialect = dialectOf(schema['$schema']);
  if (dialect === null)
    return 'the schema cannot be checked: its $schema names a dialect that is not supported';
  try {
    const { valid, errors } = new Validator(guarded.schema as Schema, dialect, true).validate(value);
    if (valid) return null;
    return sentenceOf(errors);
  } catch (error) {
    return `the schema cannot be checked: ${error instanceof Error ? error.message : 'unknown reason'}`;
  }
}

function dialectOf(declared: JsonValue | undefined): SchemaDraft | null {
  if (declared === undefined) return '2020-12';
  if (typeof declared !== 'string') return null;
  const name = declared.replace(/^https?:\/\//, '').replace(/#$/, '');
  return Object.hasOwn(DIALECTS, name) ? (DIALECTS[name] ?? null) : null;
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
