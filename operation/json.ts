// Owns the plain-data shapes that may cross the wire, the store and the history.
// Must never parse or print: that belongs to the edges.

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}
