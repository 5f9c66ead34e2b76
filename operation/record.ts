// Owns the record of one tool operation: the fold of every fact its run has seen.
// Must never hold anything that cannot be rebuilt by replaying those facts.

import type { OperatorEnd, PollCursor, ReplyMail, ReplyVerdict } from './facts.js';
import type { AdapterName, OperationState, SubmissionPolicyName } from './names.js';
import type { Receipt } from './receipt.js';
import type {
  CancelDelivery,
  EarlierCancel,
  InputRound,
  OperationPolicy,
  Rejection,
  RemoteReference,
  StoredResult,
  SubmissionLeg,
  TerminalObservation,
} from './row.js';

export type HoldReason =
  | 'ambiguous-submission'
  | 'look-up-deadline'
  | 'handle-lost'
  | 'expired'
  | 'result-lost'
  | 'result-too-large'
  | 'cancel-never-settled'
  | 'wait-budget'
  | 'protocol-violation'
  | 'acceptance-refused'
  /** The store had forgotten what the run has seen, and an operator ends the operation all the same. */
  | 'ledger-behind';

/** Why an operation is UNRESOLVED, since when, and what was seen. */
export interface Hold {
  readonly reason: HoldReason;
  readonly sinceAt: number;
  readonly evidence: string;
  /** Looks taken while held, and when the next one is due; null = looking again cannot help. */
  readonly rechecks: number;
  readonly nextRecheckAt: number | null;
}

export interface CancelAsked {
  readonly reason: string;
  readonly requestedBy: string;
  readonly at: number;
  /** The one its sending raises the row to; absent: the first. */
  readonly generation?: number;
  /** Of the message that asked, so that its sender can tell its own request from another's. */
  readonly requestToken?: string;
}

/** `toolOperation.v1`. Times are epoch ms. */
export interface ToolOperation {
  readonly schema: 'toolOperation.v1';
  /** Fixed at start; `nextStep` honours it, so that a deploy never flips rules in mid-operation. */
  readonly rulesRevision: 1;

  // the request, fixed
  readonly callNodeId: string;
  readonly requestDigest: string;
  readonly server: string;
  readonly tool: string;
  readonly argumentsDigest: string | null;
  readonly submissionKey: string | null;
  readonly policy: OperationPolicy | null;
  readonly createdAt: number;

  readonly state: OperationState;

  // as the store's row holds it
  readonly adapter: AdapterName | null;
  readonly submissionPolicy: SubmissionPolicyName | null;
  readonly toolVersion: string | null;
  readonly descriptorDigest: string | null;
  readonly executionEpoch: number;
  readonly ownerRunId: string | null;
  readonly submissionLegs: readonly SubmissionLeg[];
  readonly provedAbsentAtLeg: number | null;
  readonly hasForgotten: boolean;
  readonly remoteReference: RemoteReference | null;
  readonly rounds: readonly InputRound[];
  readonly cancelGeneration: number;
  readonly cancelReason: string | null;
  readonly cancelDelivery: CancelDelivery;
  readonly earlierCancels?: readonly EarlierCancel[];
  readonly terminalObservation: TerminalObservation | null;
  readonly rejection: Rejection | null;
  readonly result: StoredResult | null;
  readonly receipt: Receipt | null;

  // what the far side said last
  readonly remoteStatus: string | null;
  readonly statusMessage: string | null;
  readonly expiresAt: number | null;
  readonly pollCursor: PollCursor;

  // the course of this run
  readonly cancelAsked: CancelAsked | null;
  readonly cancelSends: number;
  readonly nextCancelAt: number | null;
  readonly settleDeadlineAt: number | null;
  readonly lookUps: number;
  readonly nextLookUpAt: number | null;
  readonly lookUpDeadlineAt: number | null;
  readonly fetches: number;
  readonly nextFetchAt: number | null;
  readonly fetchDeadlineAt: number | null;
  /** Looks in a row for which the reference or its session was unknown. */
  readonly missedReads: number;
  readonly sessionsRenewed: number;
  readonly violations: number;
  readonly nextLookAt: number | null;
  readonly acceptRefusals: number;
  /** A backup may be in the place of the store: the row is opened again before anything else. */
  readonly reopen: boolean;
  /** As the start says; holds only until the row is opened for the first time. */
  readonly lastRunTerminated: boolean;
  /** How often this run found itself superseded and opened the row again. */
  readonly takeovers: number;
  readonly heldMs: number;
  readonly hold: Hold | null;
  readonly ledgerBehind: {
    readonly at: number;
    readonly evidence: string;
    readonly rechecks: number;
    readonly nextRecheckAt: number;
  } | null;
  readonly operator: {
    readonly decision: 'neverCreated' | 'close' | 'found' | 'ended';
    /** Of `found` only. */
    readonly remoteId: string | null;
    /** Of `ended` only, until it is in the row: the result is not carried any further. */
    readonly end?: OperatorEnd;
    /** Given while the ledger was behind: only such a word lets the row be made anew. */
    readonly isAboutLedger?: true;
    readonly evidence: string;
    readonly decidedBy: string;
  } | null;

  /** Replies that wait for their delivery, in order of arrival. */
  readonly waitingReplies: readonly ReplyMail[];
  /** Verdicts by reply token, the newest last; bounded. */
  readonly replyVerdicts: readonly { readonly replyToken: string; readonly verdict: ReplyVerdict }[];
}

export interface NewOperation {
  readonly callNodeId: string;
  readonly requestDigest: string;
  readonly server: string;
  readonly tool: string;
  readonly startedAt: number;
  /** A person terminated the run before this one. */
  readonly lastRunTerminated?: boolean;
}

/** The record before its run has opened the store's row. */
export function newOperation(start: NewOperation): ToolOperation {
  return {
    schema: 'toolOperation.v1',
    rulesRevision: 1,
    callNodeId: start.callNodeId,
    requestDigest: start.requestDigest,
    server: start.server,
    tool: start.tool,
    argumentsDigest: null,
    submissionKey: null,
    policy: null,
    createdAt: start.startedAt,
    state: 'SUBMITTING',
    adapter: null,
    submissionPolicy: null,
    toolVersion: null,
    descriptorDigest: null,
    executionEpoch: 0,
    ownerRunId: null,
    submissionLegs: [],
    provedAbsentAtLeg: null,
    hasForgotten: false,
    remoteReference: null,
    rounds: [],
    cancelGeneration: 0,
    cancelReason: null,
    cancelDelivery: 'none',
    terminalObservation: null,
    rejection: null,
    result: null,
    receipt: null,
    remoteStatus: null,
    statusMessage: null,
    expiresAt: null,
    pollCursor: { observationCount: 0, transientFaults: 0, lastIntervalMs: null, nextPollNotBeforeAt: null },
    cancelAsked: null,
    cancelSends: 0,
    nextCancelAt: null,
    settleDeadlineAt: null,
    lookUps: 0,
    nextLookUpAt: null,
    lookUpDeadlineAt: null,
    fetches: 0,
    nextFetchAt: null,
    fetchDeadlineAt: null,
    missedReads: 0,
    sessionsRenewed: 0,
    violations: 0,
    nextLookAt: null,
    acceptRefusals: 0,
    reopen: false,
    lastRunTerminated: start.lastRunTerminated ?? false,
    takeovers: 0,
    heldMs: 0,
    hold: null,
    ledgerBehind: null,
    operator: null,
    waitingReplies: [],
    replyVerdicts: [],
  };
}
