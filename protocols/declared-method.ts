// Owns the shape of a method that the configuration declares, for contracts whose servers publish no tools.
// Must never hold anything read from a server.

import type { JsonObject } from '../operation/json.js';

export const METHOD_VERBS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET'] as const;

/** One method that starts work. Arguments of the call are the fields of its request, as in google.api.http. */
export interface DeclaredMethod {
  readonly verb: (typeof METHOD_VERBS)[number];
  /** Template of path and query below the server's URL, e.g. `/{parent=projects/*}/backups?backupId={id}`. */
  readonly path: string;
  /** `*`: all arguments that the path does not take; a name: that argument; null: no body, they become the query. */
  readonly body: string | null;
  /** May hold credentials: never stored, never logged. */
  readonly headers: Readonly<Record<string, string>>;
  /** The request's field for a request id (AIP-155), where the server deduplicates by one. */
  readonly requestIdField: string | null;
  readonly inputSchema: JsonObject | null;
  readonly operation: OperationMethods;
}

/** How the started operation is reached afterwards; templates whose variable is its `name`. */
export interface OperationMethods {
  readonly get: string;
  /** Null: not offered. */
  readonly cancel: string | null;
  /** Null: the operation is left to its server once the receipt is written. */
  readonly deleteAfterReceipt: string | null;
  readonly list: OperationList | null;
  readonly pollIntervalMs: number;
}

/** Where the operation that a lost submission made is found: a template over the call's own arguments. */
export interface OperationList {
  readonly path: string;
  /** Members that ours must hold: JSON pointer into a listed operation, and a template of the value's text. */
  readonly match: Readonly<Record<string, string>>;
  /** JSON pointer to the time at which a listed operation began; one from before our submission is not ours. */
  readonly startedAt: string | null;
  /** Declared by the operator: nobody else chooses the ids that this list is about. */
  readonly idIsOurs: boolean;
}
