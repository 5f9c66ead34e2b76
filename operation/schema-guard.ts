// Owns what may be asked of a schema that a stranger wrote, before any validator sees it.
// Must never loosen a type or a required member: only patterns that can hang a matcher are taken out.

import type { JsonObject, JsonValue } from './json.js';
import { LIMITS } from './limits.js';

export type GuardedSchema =
  | { readonly kind: 'usable'; readonly schema: JsonObject }
  | { readonly kind: 'refused'; readonly reason: string };

export function guardSchema(schema: JsonObject): GuardedSchema {
  if (depthOf(schema, 0) > LIMITS.schemaDepth) {
    return { kind: 'refused', reason: `the schema is nested deeper than ${LIMITS.schemaDepth}` };
  }
  // References may double the work at each level: twenty of them take seconds, forty never end.
  if (countRefs(schema) > LIMITS.schemaRefs) {
    return { kind: 'refused', reason: `the schema has more than ${LIMITS.schemaRefs} references` };
  }
  return { kind: 'usable', schema: withoutHostilePatterns(schema) as JsonObject };
}

function depthOf(value: JsonValue, depth: number): number {
  if (typeof value !== 'object' || value === null || depth > LIMITS.schemaDepth) return depth;
  const members = Array.isArray(value) ? value : Object.values(value as JsonObject);
  return members.reduce<number>(
    (deepest, member) => Math.max(deepest, depthOf(member as JsonValue, depth + 1)),
    depth,
  );
}

function countRefs(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = '$ref' in value || '$dynamicRef' in value ? 1 : 0;
  const members: readonly JsonValue[] = Array.isArray(value) ? value : Object.values(value as JsonObject);
  return members.reduce<number>((sum, member) => sum + countRefs(member), own);
}

function withoutHostilePatterns(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((member) => withoutHostilePatterns(member as JsonValue));
  if (typeof value !== 'object' || value === null) return value;
  const kept: [string, JsonValue][] = [];
  for (const [name, member] of Object.entries(value as JsonObject)) {
    if (name === 'pattern' && typeof member === 'string' && !isTamePattern(member)) continue;
    if (name === 'patternProperties' && isObject(member) && !Object.keys(member).every(isTamePattern))
      continue;
    kept.push([name, withoutHostilePatterns(member)]);
  }
  // Not by assignment: a member named __proto__ would set a prototype.
  return Object.fromEntries(kept);
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const NARROW_REPEATS = 3;

/** Quantified groups, back-references and look-arounds can take exponential time; the server checks them itself. */
export function isTamePattern(pattern: string): boolean {
  if (pattern.length > LIMITS.schemaPatternChars) return false;
  if (/\)[*+?{]|\\[1-9k]|\(\?/.test(pattern)) return false;
  const wide = (pattern.match(/[*+]|\{\d+,(?:\d{2,})?\}/g) ?? []).length;
  const narrow = (pattern.match(/\?|\{\d+,\d\}/g) ?? []).length;
  // Each optional piece doubles the ways to match; a few are enough for people's formats.
  if (narrow > NARROW_REPEATS) return false;
  // Unanchored, even one wide repeat is tried at every place; two side by side backtrack at each of them.
  return wide === 0 || (wide === 1 && pattern.startsWith('^') && !pattern.includes('|'));
}
