// Owns every fact that can enter the fold, and every verdict the fold can give.
// Must never decide anything: apply.ts does.

import type { InputAction, RowSnapshot } from './row.js';
import type { JsonValue } from './json.js';

/** Where a poll stands; lives in heartbeat details while polling and is folded in when observe ends. */
export interface PollCursor {
  readonly observationCount: number;
  readonly transientFaults: number;
  readonly lastIntervalMs: number | null;
  readonly nextPollNotBeforeAt: number | null;
}

/** For people: nothing is decided by it. */
export interface Remark {
  readonly what: 'descriptor-changed' | 'no-cancel';
  readonly detail: string;
}

/** The first word about the work: the hint in it sets the earliest first look. */
export interface FirstSight {
  readonly remoteStatus: string;
  readonly statusMessage: string | null;
  readonly expiresAt: number | null;
  readonly lastIntervalMs: number;
  readonly nextPollNotBeforeAt: number;
}

export type ObserveFinding =
  | 'terminal' // the row holds the terminal observation (and maybe the result)
  | 'inputRequired' // the row holds a new open round
  | 'roundClosed' // every round the step was given is over, by reply or by the server
  | 'notFound' // the server says it does not know the reference
  | 'sessionLost' // the session is gone
  | 'violation' // the reply breaks the contract
  | 'deadlinePassed'; // a deadline of the step's input passed with nothing new

export type LookUpFinding = 'found' | 'provedAbsent' | 'cannotTell';
export type CancelReply = 'confirmed' | 'acknowledged' | 'refused' | 'unsupported' | 'lost' | 'neverSent';
export type FetchFinding = 'stored' | 'notYet' | 'lost' | 'tooLarge';
export type AcceptFinding = 'accepted' | 'refused';

/** Verdicts on a reply. The first four come from the row; `waiting` means the delivery is under way. */
export type ReplyVerdict =
  | { readonly kind: 'applied' }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'alreadyAnswered'; readonly whenAt: number }
  | { readonly kind: 'roundClosed' }
  | { readonly kind: 'refused'; readonly reason: string };

export type CancelVerdict =
  | { readonly kind: 'requested' }
  | { readonly kind: 'alreadyRequested' }
  | { readonly kind: 'tooLate' };

export interface ReplyMail {
  readonly roundId: string;
  readonly replyDigest: string;
  /** Unique per message: tells a retried delivery from a second delivery. */
  readonly replyToken: string;
  readonly action: InputAction;
  readonly content: JsonValue;
}

/**
 * Outcomes of our own steps. All carry the row as the store holds it; `notBeforeAt` is the server's Retry-After: the same
 * is not asked again before it.
 */
export type StepFact =
  | { readonly kind: 'opened'; readonly at: number; readonly row: RowSnapshot }
  | {
      readonly kind: 'submitted';
      readonly at: number;
      readonly row: RowSnapshot;
      /** What the reply itself said of the work; absent where another attempt had it. */
      readonly seen?: FirstSight;
      /** The work was done, and its result is larger than what may be taken: the evidence. */
      readonly tooLarge?: string;
      /** What is odd about the tool, told once for the operation. */
      readonly remarks?: readonly Remark[];
      /** Asked before there is any work in a way that cannot be gone on from: the evidence. */
      readonly violation?: string;
      readonly notBeforeAt?: number;
    }
  | {
      readonly kind: 'lookedUp';
      readonly at: number;
      readonly row: RowSnapshot;
      readonly finding: LookUpFinding;
      readonly evidence: string | null;
      /** The remote id an operator gave, where the step followed that word; absent in a look-up of our own. */
      readonly given?: string;
    }
  | {
      readonly kind: 'observed';
      readonly at: number;
      readonly row: RowSnapshot;
      readonly finding: ObserveFinding;
      readonly cursor: PollCursor;
      readonly remoteStatus: string | null;
      readonly statusMessage: string | null;
      readonly expiresAt: number | null;
      readonly evidence: string | null;
      /** The result is larger than what may be taken, or with `violation` the status that may carry it: the evidence. */
      readonly tooLarge?: string;
      readonly notBeforeAt?: number;
    }
  | {
      readonly kind: 'answered';
      readonly at: number;
      readonly row: RowSnapshot;
      readonly replyToken: string;
      readonly verdict: ReplyVerdict;
    }
  | {
      readonly kind: 'cancelSent';
      readonly at: number;
      readonly row: RowSnapshot;
      readonly reply: CancelReply;
      readonly notBeforeAt?: number;
    }
  | {
      readonly kind: 'resultFetched';
      readonly at: number;
      readonly row: RowSnapshot;
      readonly finding: FetchFinding;
      readonly evidence: string | null;
    }
  /** An operator's end is in the row, or something else came first: the row says which. */
  | { readonly kind: 'endRecorded'; readonly at: number; readonly row: RowSnapshot }
  | {
      readonly kind: 'accepted';
      readonly at: number;
      readonly row: RowSnapshot;
      readonly finding: AcceptFinding;
      readonly evidence: string | null;
    }
  /** The row of a run that is not new is gone (a restored backup): LedgerBehind. */
  | {
      readonly kind: 'ledgerMissing';
      readonly at: number;
      readonly evidence: string;
      /** It was the opening itself that found none. */
      readonly isOpening?: boolean;
    };

/** How an operator says the work ended; success and failure need the result, as JSON text. */
export interface OperatorEnd {
  readonly outcome: 'completed' | 'failed';
  readonly resultJson: string;
}

/**
 * `found`: the far side's own name of the work, for a submission whose reply was lost. `ended`: how the work ended, as the
 * operator saw it at the far side.
 */
export type OperatorDecision =
  | ({ readonly kind: 'ended' } & OperatorEnd)
  | { readonly kind: 'found'; readonly remoteId: string }
  | { readonly kind: 'neverCreated' }
  | { readonly kind: 'close' };

/** Facts from outside, and the two the engine makes for us: `apply` is total for them in every state. */
export type OutsideFact =
  | {
      readonly kind: 'cancelRequested';
      readonly at: number;
      readonly reason: string;
      readonly requestedBy: string;
      readonly requestToken?: string;
    }
  | { readonly kind: 'replyGiven'; readonly at: number; readonly reply: ReplyMail }
  | {
      readonly kind: 'operatorDecided';
      readonly at: number;
      readonly decision: OperatorDecision;
      readonly evidence: string;
      readonly decidedBy: string;
    }
  /** An interruptible step ended without an outcome because something more urgent came. */
  | { readonly kind: 'interrupted'; readonly at: number }
  /** Somebody put a backup in the place of the store: the row is opened again. */
  | { readonly kind: 'storeRestored'; readonly at: number }
  /** A step of this run was refused under an older epoch. */
  | { readonly kind: 'superseded'; readonly at: number }
  | { readonly kind: 'timePassed'; readonly at: number };

export type Fact = StepFact | OutsideFact;

/** What the sender of a fact is told. `folded` for our own steps. */
export type Verdict =
  | { readonly kind: 'folded' }
  | { readonly kind: 'waiting' }
  | { readonly kind: 'ignored' }
  | ReplyVerdict
  | CancelVerdict;
