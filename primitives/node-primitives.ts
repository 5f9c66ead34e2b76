// Owns the Node bindings of what the pure core takes as parameters: SHA-256, canonical JSON, the schema check.
// Must never be imported by operation/ or workflows/; beside them, every room may.

import { createHash } from 'node:crypto';
import { type Schema, Validator } from '@cfworker/json-schema';
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
    const deepest = errors.at(-1);
    return deepest
      ? `${deepest.instanceLocation.replace(/^#/, '') || '/'}: ${deepest.error}`
      : 'does not fit the schema';
  } catch (error) {
    return `the schema cannot be checked: ${error instanceof Error ? error.message : 'unknown reason'}`;
  }
}
