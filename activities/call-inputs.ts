// Owns what `callTool` asks of the tool operation workers. Types only.
// Must never import workflow code: the end of an operation is written out here as its two parts.

import type { JsonObject } from '../operation/json.js';
import type { Receipt } from '../operation/receipt.js';

export interface PreparedCall {
  readonly requestDigest: string;
  /** Whether this cluster has our search attributes. */
  readonly searchAttributes: boolean;
  /** A person terminated the last run of this name. */
  readonly lastRunTerminated?: boolean;
}

export type AttachedCall =
  | {
      readonly kind: 'ended';
      readonly end: { readonly receipt: Receipt; readonly resultJson: string | null };
    }
  /** The last run closed without a receipt, or there is none. */
  | { readonly kind: 'gone'; readonly lastRunTerminated?: boolean }
  | { readonly kind: 'conflict' };

export interface CallActivities {
  readonly prepareCall: (input: {
    readonly server: string;
    readonly tool: string;
    readonly arguments: JsonObject;
    readonly callNodeId?: string;
  }) => Promise<PreparedCall>;
  /** One look per attempt; attempts go on while the operation runs. */
  readonly attachCall: (input: {
    readonly callNodeId: string;
    readonly requestDigest: string;
  }) => Promise<AttachedCall>;
}
