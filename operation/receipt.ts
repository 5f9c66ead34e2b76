// Owns the shape of the one terminal receipt.
// Must never be built anywhere but in build-receipt.ts and written anywhere but in acceptTerminal.

import type { AdapterName, FailureKind, Outcome, SubmissionPolicyName, TerminalState } from './names.js';
import type { EarlierCancel, RemoteReference, StoredResult, SubmissionLeg } from './row.js';

/** `terminalReceipt.v1`: the unique, immutable end of one tool operation. Times are epoch ms. */
export interface Receipt {
  readonly schema: 'terminalReceipt.v1';
  readonly callNodeId: string;
  readonly requestDigest: string;
  readonly server: string;
  readonly tool: string;
  readonly toolVersion: string | null;
  readonly descriptorDigest: string | null;
  readonly adapter: AdapterName | null;
  readonly submissionPolicy: SubmissionPolicyName | null;
  readonly remoteReference: RemoteReference | null;
  readonly submissionLegs: readonly SubmissionLeg[];
  readonly state: TerminalState;
  readonly outcome: Outcome;
  readonly failureKind: FailureKind | null;
  /** The accepted result; null unless the outcome is `completed` or `failed`. */
  readonly result: StoredResult | null;
  /** A result seen although the operation ended otherwise: for audit, never a payload. */
  readonly auditResult: StoredResult | null;
  readonly cancelGeneration: number;
  /** Cancels before the last one, oldest first; absent where one was asked for at most. */
  readonly earlierCancels?: readonly EarlierCancel[];
  readonly executionEpoch: number;
  readonly createdAt: number;
  readonly observedAt: number | null;
  readonly acceptedAt: number;
  /** Three facts kept apart. */
  readonly remoteSaid: { readonly remoteStatus: string | null; readonly statusMessage: string | null };
  readonly transport: { readonly observations: number; readonly transientFaults: number };
  readonly decision: { readonly evidence: string; readonly reason: string | null };
  /** `EFFECT_RECONCILIATION_REQUIRED` where effects may exist although nothing was accepted. */
  readonly effects: 'none-owed' | 'EFFECT_RECONCILIATION_REQUIRED';
}
