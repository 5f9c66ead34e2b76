// Owns the oracle's own view of facts and rows: only what its rules look at.
// Must never import from operation/: a shared mistake would agree with itself.

export interface OracleLeg {
  readonly claimToken: string;
  readonly claimedAt: number;
  readonly outcome: string;
}

export interface OracleRound {
  readonly roundId: string;
  readonly openedAt: number;
  readonly deadlineAt: number;
  readonly closedAt: number | null;
  readonly reply: {
    readonly replyDigest: string;
    readonly replyToken: string;
    readonly recordedAt: number;
    readonly deliveredAt: number | null;
  } | null;
  readonly takenBack?: readonly { readonly replyToken: string; readonly recordedAt: number }[];
}

export interface OracleRow {
  readonly createdAt: number;
  readonly policy: {
    readonly waitBudgetMs: number;
    readonly lookUpBudgetMs: number;
    readonly settleBudgetMs: number;
    readonly fetchBudgetMs: number;
    readonly requestIdWindowMs?: number;
    readonly onUnresolved:
      | { readonly kind: 'hold' }
      | { readonly kind: 'closeAfter'; readonly afterMs: number };
  };
  readonly executionEpoch: number;
  readonly submissionPolicy: string | null;
  readonly legs: readonly OracleLeg[];
  readonly remoteReference: object | null;
  readonly rounds: readonly OracleRound[];
  readonly cancelGeneration: number;
  readonly cancelDelivery: string;
  readonly terminalObservation: { readonly remoteStatus: string; readonly evidence: string } | null;
  readonly rejection: object | null;
  readonly result: object | null;
  readonly provedAbsentAtLeg: number | null;
  readonly hasForgotten?: boolean;
  readonly receipt: { readonly state: string; readonly outcome: string } | null;
}

export interface OracleReply {
  readonly roundId: string;
  readonly replyDigest: string;
  readonly replyToken: string;
}

export type OracleVerdict = { readonly kind: string; readonly whenAt?: number; readonly reason?: string };

export type OracleFact =
  | { readonly kind: 'opened' | 'endRecorded'; readonly at: number; readonly row: OracleRow }
  | {
      readonly kind: 'submitted';
      readonly at: number;
      readonly row: OracleRow;
      readonly tooLarge?: string;
      readonly violation?: string;
    }
  | {
      readonly kind: 'lookedUp';
      readonly at: number;
      readonly row: OracleRow;
      readonly finding: string;
    }
  | {
      readonly kind: 'observed';
      readonly at: number;
      readonly row: OracleRow;
      readonly finding: string;
      /** Null when no look of the step was answered. */
      readonly remoteStatus: string | null;
      readonly expiresAt: number | null;
      readonly tooLarge?: string;
    }
  | {
      readonly kind: 'answered';
      readonly at: number;
      readonly row: OracleRow;
      readonly replyToken: string;
      readonly verdict: OracleVerdict;
    }
  | { readonly kind: 'cancelSent'; readonly at: number; readonly row: OracleRow; readonly reply: string }
  | {
      readonly kind: 'resultFetched' | 'accepted';
      readonly at: number;
      readonly row: OracleRow;
      readonly finding: string;
    }
  | {
      readonly kind: 'cancelRequested' | 'superseded' | 'storeRestored' | 'interrupted' | 'timePassed';
      readonly at: number;
    }
  | { readonly kind: 'ledgerMissing'; readonly at: number; readonly isOpening?: boolean }
  | { readonly kind: 'replyGiven'; readonly at: number; readonly reply: OracleReply }
  | {
      readonly kind: 'operatorDecided';
      readonly at: number;
      readonly decision: { readonly kind: string; readonly outcome?: string; readonly resultJson?: string };
    };

export interface OracleHold {
  readonly reason: string;
  readonly sinceAt: number;
}

/** What the judge holds true right after one fact. */
export interface Moment {
  readonly fact: OracleFact;
  readonly verdict: OracleVerdict;
  readonly row: OracleRow | null;
  readonly state: string;
  readonly hold: OracleHold | null;
  readonly behind: boolean;
  /** This very fact found the row behind: nothing else of it counts. */
  readonly foundBehind: boolean;
  /** An operator ends what the row has forgotten: the row is taken as it is, held, and never worked on again. */
  readonly endsBehind: boolean;
  /** The executor itself asked for a cancel at this fact, for this reason. */
  readonly askedItself: string | null;
}
