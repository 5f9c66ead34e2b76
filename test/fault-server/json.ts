// Owns JSON as the fault server reads it. Must never know MCP.
// Its own, not the product's: what judges the product shares no code with it.

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: JsonValue | undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same text for the same value, whatever the order of members. */
export function sortedJson(value: JsonValue | undefined): string {
  return JSON.stringify(value ?? null, (_name, member: unknown) =>
    isObject(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : member,
  );
}
