// Owns whether a tool's published output schema speaks against what a JSON pointer expects in its answers.
// Must never take silence for a no: most tools publish no output schema, or a loose one.

import { pointerTokens } from './json-pointer.js';
import type { JsonObject, JsonValue } from './json.js';

/** Only a schema that names its members, without one of that name, speaks against a pointer. */
export function isPublished(outputSchema: JsonObject | null, pointer: string): boolean {
  const [first, ...members] = pointerTokens(pointer);
  let schema: JsonValue | undefined = first === 'structuredContent' ? (outputSchema ?? undefined) : undefined;
  for (const member of members) {
    const { properties } = (schema ?? {}) as { readonly properties?: JsonValue };
    if (typeof properties !== 'object' || properties === null) return true;
    if (!Object.hasOwn(properties, member)) return false;
    schema = (properties as JsonObject)[member];
  }
  return true;
}
