// Owns what a step body may reach: the store, the wire, the clock, and one attempt's context.
// Must never name Temporal: bind.ts does, so that tests can run the shipped bodies anywhere.

import type { DigestPrimitives } from '../operation/digests.js';
import type { EngineErrorCode } from '../operation/errors.js';
import type { JsonObject, JsonValue } from '../operation/json.js';
import type { LiveStatus } from '../operation/live-status.js';
import type { SeamName } from '../operation/names.js';
import type { OperationPolicy } from '../operation/row.js';
import type { ProtocolRegistry, ToolServer } from '../protocols/adapter.js';
import { type ReceiptStore, StoreError } from '../receipts/store.js';

export interface Ports {
  readonly receipts: ReceiptStore;
  readonly protocols: ProtocolRegistry;
  readonly servers: ServerDirectory;
  readonly clock: { nowMs(): number };
  /** In [0, 1). */
  readonly random: () => number;
  readonly newToken: () => string;
  readonly digests: DigestPrimitives;
  /** Null where the value fits the schema, else one sentence. Interprets, never compiles: schemas come from strangers. */
  readonly checkSchema: (schema: JsonObject, value: JsonValue) => string | null;
}

/** The tool servers this worker may reach; nothing else is ever contacted (promise 10). */
export interface ServerDirectory {
  find(server: string): ToolServer | null;
  /** Why a configured server cannot be used yet, or null. */
  unavailable(server: string): string | null;
  policyOf(server: string, tool: string, overrides: { waitBudgetMs: number | null }): OperationPolicy;
}

/** One attempt of one step. */
export interface Attempt {
  /** Set when something more urgent came; a body heeds it only where nothing is in flight. */
  readonly signal: AbortSignal;
  readonly attempt: number;
  seam(name: SeamName): Promise<void>;
  /** Live status for people and for the next attempt; written with every beat from now on. */
  show(live: LiveStatus): void;
  lastShown(): LiveStatus | null;
}

/** Ends an attempt: the engine starts the next one after `delayMs`, with no history. */
export class StepRetry extends Error {
  override readonly name = 'StepRetry';
  readonly code: EngineErrorCode;
  readonly delayMs: number;
  constructor(code: EngineErrorCode, message: string, delayMs: number) {
    super(message);
    this.code = code;
    this.delayMs = delayMs;
  }
}

/** Ends the step for good: the run fails with this code. */
export class StepStop extends Error {
  override readonly name = 'StepStop';
  readonly code: EngineErrorCode;
  constructor(code: EngineErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** A fault of the database under the store (locked, full, gone): tried again, never taken for the server's. */
export function isStoreFault(error: unknown): boolean {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined;
  return StoreError.isInstance(error) || (typeof code === 'string' && /^(SQLITE|E[A-Z]+)/.test(code));
}

/** The step was interrupted before it did anything that counts. */
export class StepInterrupted extends Error {
  override readonly name = 'StepInterrupted';
}
