// Owns the port to the store: what must be unique across runs, engines and retention.
// Must never decide an outcome: it keeps first writes, compares, and refuses.

import type { End, Presented } from '../operation/build-receipt.js';
import type { JsonObject } from '../operation/json.js';
import type { AdapterName, SubmissionPolicyName } from '../operation/names.js';
import type { ClaimRuling } from '../operation/policy.js';
import type { Receipt } from '../operation/receipt.js';
import type {
  CancelDelivery,
  LegOutcome,
  OperationPolicy,
  Question,
  Rejection,
  RemoteReference,
  RoundReply,
  RowSnapshot,
  SeenByRun,
  SeenEnd,
  StoredResult,
  TerminalObservation,
} from '../operation/row.js';
import type { Settlement, SettlementWord } from './effects.js';

/** Which run writes, and under which epoch it believes to be the owner. */
export interface Fence {
  readonly callNodeId: string;
  readonly runId: string;
  readonly executionEpoch: number;
}

export interface OpenRequest {
  readonly callNodeId: string;
  readonly requestDigest: string;
  readonly server: string;
  readonly tool: string;
  /** The arguments' JSON text, as given. */
  readonly argumentsJson: string;
  readonly argumentsDigest: string;
  readonly submissionKey: string;
  readonly policy: OperationPolicy;
  /** Set where the worker knows no such server: a new row is born rejected; an adopted one is left alone. */
  readonly rejection: Rejection | null;
  readonly runId: string;
  /** A missing row is `LedgerMissing` instead of a new one. */
  readonly mustExist: boolean;
  /**
   * What the run has seen and the row may have forgotten: then that becomes evidence, which bars every further claim;
   * `mayGiveBack` also writes what is missing, in the same transaction.
   */
  readonly seen?: SeenByRun | null;
  readonly at: number;
}

export type OpenResult =
  | { readonly kind: 'opened'; readonly row: RowSnapshot }
  | { readonly kind: 'conflict'; readonly storedDigest: string };

export interface NegotiationRecord {
  readonly adapter: AdapterName;
  readonly submissionPolicy: SubmissionPolicyName;
  readonly toolVersion: string | null;
  readonly descriptorDigest: string;
  readonly outputSchema: JsonObject | null;
  readonly session: JsonObject;
}

/** What only step bodies need and no snapshot carries. */
export interface WireState {
  readonly argumentsJson: string;
  readonly session: JsonObject | null;
  readonly outputSchema: JsonObject | null;
  readonly anchor: JsonObject | null;
  /** By round id: what the answer needs on the wire, the question, and the reply's text once recorded. */
  readonly rounds: Readonly<Record<string, StoredRound>>;
}

/** A submission that was asked before there was any work: how it goes on. */
export interface StoredContinuation {
  /** The server's own state, untouched; null where it gave none. */
  readonly requestState: string | null;
  /** Goes on only where every reply accepts: nobody else is told of one that does not. */
  readonly needsConsent: boolean;
  /** Of the same leg: by wire key, the replies' texts as recorded. */
  readonly replies: readonly { readonly wireKey: string; readonly replyJson: string }[];
}

export interface StoredRound {
  readonly wireKey: string;
  readonly wire: JsonObject;
  readonly question: Question;
  readonly replyJson: string | null;
  /** Asked before there was any work, by this leg; null where the work asked. */
  readonly leg: number | null;
}

export interface NewRound extends Omit<StoredRound, 'replyJson' | 'leg'> {
  readonly roundId: string;
  readonly schemaDigest: string;
  readonly openedAt: number;
  readonly deadlineAt: number;
}

export interface AskedBeforeWork {
  readonly requestState: string | null;
  readonly needsConsent: boolean;
  readonly rounds: readonly NewRound[];
  readonly at: number;
}

export interface ResultBytes {
  readonly stored: StoredResult;
  readonly bytes: Uint8Array;
}

export type Acceptance =
  | {
      readonly kind: 'accepted';
      readonly row: RowSnapshot;
      readonly receipt: Receipt;
      readonly isFirst: boolean;
    }
  /** `fact`: the first of the eight facts that differed, or `end` where the row proves none. */
  | { readonly kind: 'refused'; readonly row: RowSnapshot; readonly fact: string; readonly evidence: string };

/**
 * The store of operations. Every write is one transaction and returns the row as it then stands.
 * Fenced writes compare the run with the row's owner: the owner passes; another run under the row's epoch takes the
 * next epoch and passes; an older epoch is refused with `StoreError` `Superseded`. A missing row is `LedgerMissing`.
 * Evidence (legs closed, references, rounds, terminal observations) is never fenced; the first write wins and a
 * contradiction is kept in the evidence table.
 */
export interface ReceiptStore {
  /** Creates the row or adopts it; either way this run takes the epoch (unless it is the owner already). */
  open(request: OpenRequest): Promise<OpenResult>;
  /** Fenced read: the first thing every step body does. */
  begin(fence: Fence): Promise<RowSnapshot>;
  read(callNodeId: string): Promise<RowSnapshot | null>;
  wireState(callNodeId: string): Promise<WireState>;
  /** Of the last leg that was asked before there was any work; null where none was. */
  continuation(callNodeId: string): Promise<StoredContinuation | null>;

  /** First wins once a leg that may have been sent exists; before that a newer session replaces the older. Fenced. */
  recordNegotiation(fence: Fence, negotiation: NegotiationRecord): Promise<RowSnapshot>;
  /** Of the newest other operation of the same tool, what was published about it then; null where there is none. */
  descriptorBefore(callNodeId: string): Promise<string | null>;
  /** Recorded only where `mayReject(legs)` holds and nothing else ended the operation; first wins. Fenced. */
  recordRejection(fence: Fence, rejection: Rejection): Promise<RowSnapshot>;
  /** Compare-and-set by `rulingOnClaim` inside the transaction. Fenced. */
  claimLeg(fence: Fence, claimToken: string, at: number): Promise<{ ruling: ClaimRuling; row: RowSnapshot }>;
  /** Only the leg with this token, and only while `open` or `ambiguous`. Not fenced. */
  closeLeg(
    callNodeId: string,
    claimToken: string,
    end: { outcome: LegOutcome; detail: string | null; at: number },
  ): Promise<RowSnapshot>;
  /**
   * The leg ended with questions instead of work. Nobody is asked where the row has moved past that leg: a later one was
   * claimed, or the work or its end is known. Not fenced.
   */
  recordAsked(callNodeId: string, claimToken: string, asked: AskedBeforeWork): Promise<RowSnapshot>;
  /** Closes every leg that another attempt left open as `ambiguous`. Fenced. */
  abandonOpenLegs(fence: Fence, detail: string, at: number): Promise<RowSnapshot>;
  /**
   * Also closes the leg as `referenced` (claimToken null: found by look-up, the last unsettled leg). An operator's word
   * (`isUnseen`) closes none, and gives way to another word or to what the server names. `ownedBy`: another operation
   * of the same server holds this work, so it is not adopted; its leg is `ambiguous`. Not fenced.
   */
  recordReference(
    callNodeId: string,
    claimToken: string | null,
    reference: RemoteReference,
    at: number,
  ): Promise<{ row: RowSnapshot; contradicts: boolean; ownedBy?: string }>;
  /** A new session for the same remote id. Fenced. */
  replaceLocator(fence: Fence, reference: RemoteReference): Promise<RowSnapshot>;
  /** `at`: when the look was sent. Recorded only where `mayProveAbsence` holds and no work is known. Fenced. */
  recordAbsence(fence: Fence, evidence: string, at: number): Promise<RowSnapshot>;
  recordAnchor(callNodeId: string, anchor: JsonObject): Promise<void>;

  recordRound(callNodeId: string, round: NewRound): Promise<RowSnapshot>;
  /** The server moved on. Not fenced. */
  closeRound(callNodeId: string, roundId: string, at: number): Promise<RowSnapshot>;
  /** Compare-and-set: only while the round is open and has no reply. Returns the row; the caller reads whose reply it is. Fenced. */
  recordReply(fence: Fence, roundId: string, reply: RoundReply, replyJson: string): Promise<RowSnapshot>;
  /** Just before the reply's bytes may leave; first wins. Not fenced. */
  recordSending(callNodeId: string, roundId: string, replyDigest: string, at: number): Promise<RowSnapshot>;
  recordDelivery(callNodeId: string, roundId: string, replyDigest: string, at: number): Promise<RowSnapshot>;
  /**
   * The server refused this reply for good: the round stands again as if nobody had replied. Only an undelivered reply
   * with this digest on a round that is open; anything else is left as it is. Not fenced.
   */
  retractReply(callNodeId: string, roundId: string, replyDigest: string): Promise<RowSnapshot>;

  /** Raises `cancelGeneration` from `fromGeneration` by one, delivery `unsent`, and keeps what became of the one before; a no-op unless it stands there. Fenced. */
  raiseCancel(fence: Fence, fromGeneration: number, reason: string): Promise<RowSnapshot>;
  /** A no-op where the row holds another generation: a lost attempt's word is about the cancel that it sent. Not fenced. */
  recordCancelDelivery(
    callNodeId: string,
    generation: number,
    delivery: CancelDelivery,
  ): Promise<RowSnapshot>;

  /** Terminal observation, with the result where it is in hand, in one transaction. First wins. Not fenced. */
  recordTerminal(
    callNodeId: string,
    observation: TerminalObservation,
    result: ResultBytes | null,
    leg?: { claimToken: string; at: number },
  ): Promise<RowSnapshot>;
  recordResult(callNodeId: string, result: ResultBytes): Promise<RowSnapshot>;
  /**
   * An operator's end with its result. Fenced, unlike what the far side says: it is written only while the row knows no
   * more of the far side than `seen`, and no result. Else the row stays as it is, and a contradiction is kept as evidence.
   */
  recordOperatorEnd(
    fence: Fence,
    seen: SeenEnd,
    observation: TerminalObservation,
    result: ResultBytes,
  ): Promise<RowSnapshot>;

  /**
   * The single acceptance point. One transaction: fence, compare all eight presented facts with the row, `decide` the
   * end from the row, write receipt, ready row and (where owed) the effect reconciliation. An existing receipt is
   * returned as it is. A refusal is recorded in the evidence table.
   */
  acceptTerminal(
    fence: Fence,
    presented: Presented,
    decide: (row: RowSnapshot) => { end: End; receipt: Receipt } | null,
    at: number,
  ): Promise<Acceptance>;

  /**
   * A person's word that the effects were looked after. Changes no receipt; new evidence opens it again.
   * @throws TypeError without a note or a name
   */
  settleReconciliation(callNodeId: string, word: SettlementWord, at: number): Promise<Settlement>;

  /** One page of the rows without a receipt. */
  openRows(query: OpenRowsQuery): Promise<readonly OpenRow[]>;
  readReceipt(callNodeId: string): Promise<Receipt | null>;
  /** Bytes of a stored result by its digest, verified against it. */
  readResult(digest: string): Promise<Uint8Array | null>;
  addEvidence(callNodeId: string, kind: EvidenceKind, detail: string, at: number): Promise<void>;
  close(): Promise<void>;
}

/** An operation without a receipt, as it was asked for. */
export interface OpenRow {
  readonly callNodeId: string;
  readonly requestDigest: string;
  readonly server: string;
  readonly tool: string;
  readonly argumentsJson: string;
  /** ms; null where the caller named none. */
  readonly waitBudgetMs: number | null;
  readonly ownerRunId: string;
  /** Evidence says that it had a receipt, which a restored store has lost. */
  readonly isReceiptLost: boolean;
}

export interface OpenRowsQuery {
  /** Rows are in the order of their callNodeId; null = from the first. */
  readonly after: string | null;
  readonly limit: number;
  readonly createdBeforeAt: number;
}

export type EvidenceKind =
  | 'second-reference'
  | 'foreign-reference'
  | 'operator-found'
  | 'reference-replaced'
  | 'reference-dropped'
  | 'terminal-contradiction'
  | 'result-contradiction'
  | 'acceptance-refused'
  | 'absence-proved'
  | 'question-lost'
  | 'reply-refused'
  | 'reply-taken-back'
  | 'protocol-violation'
  | 'ledger-behind'
  | 'receipt-lost';

export type StoreErrorCode = 'Superseded' | 'LedgerMissing' | 'StoreVersion' | 'StoreUnusable';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;
  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
  static isInstance(value: unknown): value is StoreError {
    return value instanceof Error && value.name === 'StoreError' && 'code' in value;
  }
}
