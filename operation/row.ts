// Owns the shape of what the store holds about one operation; every step returns it, and the core folds it.
// Must never hold what only a run knows (course, counters, mail): that is record.ts.

import type { JobSettings } from './job-settings.js';
import type { JsonObject } from './json.js';
import type { AdapterName, FailureKind, Outcome, SubmissionPolicyName, TerminalState } from './names.js';
import type { Receipt } from './receipt.js';

/** What finds the remote work again from any process. Opaque to the core except for `remoteId`. */
export interface RemoteReference {
  /** Task id or operation name, exactly as the server gave it. */
  readonly remoteId: string;
  /** All else the adapter needs: session id, negotiated version. Never a credential. */
  readonly locator: JsonObject;
  /** Only an operator's word, and no look has found it yet: it settles no leg, and gives way to what the server names. */
  readonly isUnseen?: true;
}

/**
 * How one attempt to put bytes on the wire ended; `open` = claimed, end unknown; `asked` = over with questions before there
 * was any work, to be gone on from with another leg.
 */
export type LegOutcome = 'open' | 'referenced' | 'answered' | 'asked' | 'notSent' | 'refused' | 'ambiguous';

export interface SubmissionLeg {
  readonly leg: number;
  readonly claimToken: string;
  readonly claimedAt: number;
  readonly closedAt: number | null;
  readonly outcome: LegOutcome;
  /** Short evidence for people, e.g. "socket closed before a reply". */
  readonly detail: string | null;
}

export type InputAction = 'accept' | 'decline' | 'cancel';

export interface RoundReply {
  readonly replyDigest: string;
  /** Token of the message that brought the reply first; tells a retried delivery from a duplicate. */
  readonly replyToken: string;
  readonly action: InputAction;
  readonly recordedAt: number;
  /** Set before its bytes may leave: a later attempt cannot know whether they arrived. */
  readonly sendingAt: number | null;
  readonly deliveredAt: number | null;
}

export interface InputRound {
  readonly roundId: string;
  /** Set where it was asked before there was any work: the leg that brought it. Its reply goes out with the next leg. */
  readonly leg?: number;
  readonly schemaDigest: string;
  readonly openedAt: number;
  /** Absolute time (ms) after which the operation is cancelled, reason `input-deadline`. */
  readonly deadlineAt: number;
  /** What is asked; null once the round is over (the store keeps it). */
  readonly question: Question | null;
  readonly reply: RoundReply | null;
  /** When the server moved on without (or after) a reply. */
  readonly closedAt: number | null;
  /** Replies that the server refused and that stand no more: a run that saw one of them has not met a backup. Absent: none. */
  readonly takenBack?: readonly Recording[];
}

/** One recording of a reply; the same reply recorded again is another. */
export type Recording = Pick<RoundReply, 'replyToken' | 'recordedAt'>;

/** A question as people and programs see it, without wire details. */
export interface Question {
  readonly mode: 'form' | 'url';
  readonly message: string;
  /** JSON schema of the reply's content (form mode). */
  readonly schema: JsonObject | null;
  readonly url: string | null;
}

export type CancelDelivery = 'none' | 'unsent' | 'sent' | 'acknowledged' | 'refused' | 'unsupported';

/** A cancel that was not honoured, and asked for once more: what became of it until then. */
export interface EarlierCancel {
  readonly generation: number;
  readonly reason: string;
  readonly delivery: CancelDelivery;
}

export interface TerminalObservation {
  readonly remoteStatus: 'completed' | 'failed' | 'cancelled';
  readonly failureKind: FailureKind | null;
  readonly statusMessage: string | null;
  readonly observedAt: number;
  /** Where the evidence came from. */
  readonly evidence: 'submit-reply' | 'status' | 'cancel-reply' | 'operator';
  /** Of an operator's: who said so, and on what grounds. */
  readonly note?: string;
}

export interface StoredResult {
  /** SHA-256 (hex) of the received bytes of the result or error value, without its envelope. */
  readonly digest: string;
  readonly sizeBytes: number;
  readonly mediaType: string;
  /** The value is a protocol error object rather than a result. */
  readonly isProtocolError: boolean;
  readonly isToolError: boolean;
  /** `missed`: the structured content does not fit the published output schema; `unchecked`: too large to look. */
  readonly outputSchema: 'fits' | 'missed' | 'none' | 'unchecked';
  /** Set where an operator gave the bytes: who, and on what grounds. */
  readonly note?: string;
}

/** What a run knew of the far side when it took an operator's word. */
export interface SeenEnd {
  readonly remoteId: string | null;
  readonly terminalStatus: string | null;
}

/** Proof that nothing was started, or that nothing may be. */
export interface Rejection {
  readonly code: RejectionCode;
  readonly message: string;
}
export type RejectionCode =
  | 'refused-by-server'
  /** A person did not consent to what the server demands before it begins. */
  | 'declined'
  | 'submit-deadline'
  | 'bad-arguments'
  | 'unknown-server'
  | 'unknown-tool'
  /** What the server publishes about the tool is not what the configuration pins. */
  | 'descriptor-changed'
  | 'LongTaskUnsupported'
  | 'unsupported-protocol'
  | 'operator';

/** How work is found again by its submission key (`lookup-tool`). */
export interface LookUpSettings {
  /** Where the submission itself carries the key. */
  readonly keyPlace: 'argument' | 'meta';
  /** The tool that looks, and the argument that takes the key there. */
  readonly tool: string;
  readonly argument: string;
  /** JSON pointer (RFC 6901) to the id of the work in the tool's answer. */
  readonly idPointer: string;
  /** Declared by the operator: where this tool finds nothing, nothing was started. */
  readonly provesAbsence: boolean;
  /** How long after the last leg was closed "absent" begins to count. */
  readonly settleAfterMs: number;
}

/** The policy of one operation, fixed when its row is created; later configuration edits touch new operations only. */
export interface OperationPolicy {
  readonly waitBudgetMs: number;
  /** True where caller or configuration named the wait budget; the default is not a demand. */
  readonly waitBudgetExplicit: boolean;
  readonly submitBudgetMs: number;
  readonly lookUpBudgetMs: number;
  readonly settleBudgetMs: number;
  readonly fetchBudgetMs: number;
  readonly inputBudgetMs: number;
  readonly synchronousBoundMs: number;
  /** The largest result that is taken (bytes); absent: the default of limits.ts. */
  readonly maxResultBytes?: number;
  /** The first look at a held operation comes after this, each further one after twice as long; default: the limits'. */
  readonly recheckGapMs?: number;
  /** As configured; null = decided from what the server declares when the operation is submitted. */
  readonly submissionPolicy: SubmissionPolicyName | null;
  /** Argument name, `_meta` key or request field (request-id) that takes the submission key. */
  readonly keyName: string | null;
  /** The only descriptor of the tool that is called; absent: any. */
  readonly descriptorDigest?: string;
  /** Of `lookup-tool` only; rows of earlier releases lack it. */
  readonly lookUp?: LookUpSettings;
  /** Of `request-id` only: how long the server remembers one (AIP-155); absent = the limit's. */
  readonly requestIdWindowMs?: number;
  /** The tool starts a job that other tools of its server look after; rows of earlier releases lack it. */
  readonly job?: JobSettings;
  readonly sideEffects: 'none' | 'unknown';
  readonly protocol: AdapterName | 'auto';
  readonly onUnresolved:
    | { readonly kind: 'hold' }
    | { readonly kind: 'closeAfter'; readonly afterMs: number };
}

export interface RowSnapshot {
  readonly callNodeId: string;
  readonly requestDigest: string;
  readonly server: string;
  readonly tool: string;
  /** SHA-256 of the canonical arguments: the body of the request. */
  readonly argumentsDigest: string;
  readonly submissionKey: string;
  readonly createdAt: number;
  readonly policy: OperationPolicy;
  readonly executionEpoch: number;
  readonly ownerRunId: string;
  /** Set by the submit step when it negotiates; null before. */
  readonly adapter: AdapterName | null;
  readonly submissionPolicy: SubmissionPolicyName | null;
  readonly toolVersion: string | null;
  readonly descriptorDigest: string | null;
  readonly legs: readonly SubmissionLeg[];
  readonly remoteReference: RemoteReference | null;
  readonly rounds: readonly InputRound[];
  readonly cancelGeneration: number;
  readonly cancelReason: string | null;
  readonly cancelDelivery: CancelDelivery;
  /** Oldest first; absent where a cancel was asked for once at most. */
  readonly earlierCancels?: readonly EarlierCancel[];
  readonly terminalObservation: TerminalObservation | null;
  readonly rejection: Rejection | null;
  readonly result: StoredResult | null;
  /** The last leg that a look-up proved absent, with every leg closed; a later leg in doubt makes it history. */
  readonly provedAbsentAtLeg: number | null;
  /** Evidence says that this store was restored from before a submission: no leg here proves nothing, none is claimed again. */
  readonly hasForgotten?: boolean;
  readonly receipt: Receipt | null;
}

/** What a run has seen and its row may have forgotten. */
export interface SeenByRun extends Pick<
  RowSnapshot,
  | 'adapter'
  | 'submissionPolicy'
  | 'toolVersion'
  | 'descriptorDigest'
  | 'legs'
  | 'remoteReference'
  | 'cancelGeneration'
  | 'cancelReason'
  | 'cancelDelivery'
  | 'earlierCancels'
  | 'terminalObservation'
> {
  /** What showed that the row is behind. */
  readonly evidence: string;
  /** An operator ends the operation all the same: what is missing is written back. */
  readonly mayGiveBack: boolean;
}

export type { Outcome, TerminalState };
