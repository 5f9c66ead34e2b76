// Owns the transactions of the store: each method is one, and returns the row as it then stands.
// Must never hold a rule; rules live beside their tables, and in operation/policy.ts.

import type { Presented } from '../operation/build-receipt.js';
import type { JsonObject } from '../operation/json.js';
import type { ClaimRuling } from '../operation/policy.js';
import type { Receipt } from '../operation/receipt.js';
import type {
  CancelDelivery,
  Rejection,
  RemoteReference,
  RoundReply,
  RowSnapshot,
  SeenEnd,
  TerminalObservation,
} from '../operation/row.js';
import { acceptInside, type Decide } from './acceptance.js';
import { raiseCancel, writeCancelDelivery } from './cancellation.js';
import { settleInside, type Settlement, type SettlementWord } from './effects.js';
import { missingRow, openRow, passFence, requireRow } from './ownership.js';
import { closeRound, retractReply, writeDelivery, writeReply, writeRound, writeSending } from './rounds.js';
import { readSnapshot } from './row-snapshot.js';
import { keepEvidence, patchOperation, type RowWork } from './row-work.js';
import type { Db, Tx } from './schema.js';
import {
  readContinuation,
  readDescriptorBefore,
  readOpenRows,
  readReceipt,
  readResult,
  readWireState,
} from './store-reads.js';
import type {
  Acceptance,
  AskedBeforeWork,
  EvidenceKind,
  Fence,
  NegotiationRecord,
  NewRound,
  OpenRequest,
  OpenRow,
  OpenRowsQuery,
  OpenResult,
  ReceiptStore,
  ResultBytes,
  StoredContinuation,
  WireState,
} from './store.js';
import {
  abandonOpenLegs,
  claimLeg,
  closeLeg,
  writeAbsence,
  writeAsked,
  writeLocator,
  writeNegotiation,
  writeReference,
  writeRejection,
  type LegEnd,
} from './submission.js';
import { writeOperatorEnd, writeResult, writeTerminal } from './terminal.js';

/** One moment of several tables, without the write lock. */
export function readInOne<T>(db: Db, read: (tx: Tx) => Promise<T>): Promise<T> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(read);
}

export class KyselyReceiptStore implements ReceiptStore {
  readonly #db: Db;
  readonly #nowMs: () => number;

  constructor(db: Db, nowMs: () => number) {
    this.#db = db;
    this.#nowMs = nowMs;
  }

  // --- reading and owning

  async open(request: OpenRequest): Promise<OpenResult> {
    const result = await this.#inOne(async (tx): Promise<OpenResult | null> => {
      const opening = await openRow(tx, request, this.#nowMs());
      if (opening.kind === 'conflict') return opening;
      if (opening.kind === 'missing') return null;
      return { kind: 'opened', row: await requireRow(tx, request.callNodeId) };
    });
    // After the commit: the evidence stays.
    if (!result) throw missingRow(request.callNodeId);
    return result;
  }

  async begin(fence: Fence): Promise<RowSnapshot> {
    // The usual case takes no write lock. An owner that loses the row a moment later meets the fence at its next write.
    const row = await this.read(fence.callNodeId);
    if (row?.ownerRunId === fence.runId) return row;
    return this.#inOne(async (tx) => (await passFence(tx, fence, this.#nowMs())).row);
  }

  read(callNodeId: string): Promise<RowSnapshot | null> {
    return readInOne(this.#db, (tx) => readSnapshot(tx, callNodeId));
  }

  wireState(callNodeId: string): Promise<WireState> {
    return readInOne(this.#db, (tx) => readWireState(tx, callNodeId));
  }

  continuation(callNodeId: string): Promise<StoredContinuation | null> {
    return readInOne(this.#db, (tx) => readContinuation(tx, callNodeId));
  }

  openRows(query: OpenRowsQuery): Promise<readonly OpenRow[]> {
    return readOpenRows(this.#db, query);
  }

  readReceipt(callNodeId: string): Promise<Receipt | null> {
    return readReceipt(this.#db, callNodeId);
  }

  readResult(digest: string): Promise<Uint8Array | null> {
    return readResult(this.#db, digest);
  }

  // --- submitting

  recordNegotiation(fence: Fence, negotiation: NegotiationRecord): Promise<RowSnapshot> {
    return this.#decideOpen(fence, (work) => writeNegotiation(work, negotiation));
  }

  descriptorBefore(callNodeId: string): Promise<string | null> {
    return readDescriptorBefore(this.#db, callNodeId);
  }

  recordRejection(fence: Fence, rejection: Rejection): Promise<RowSnapshot> {
    return this.#decideOpen(fence, (work) => writeRejection(work, rejection));
  }

  async claimLeg(
    fence: Fence,
    claimToken: string,
    at: number,
  ): Promise<{ ruling: ClaimRuling; row: RowSnapshot }> {
    const { said, row } = await this.#decide(fence, (work) => claimLeg(work, claimToken, at));
    return { ruling: said, row };
  }

  async abandonOpenLegs(fence: Fence, detail: string, at: number): Promise<RowSnapshot> {
    return (await this.#decide(fence, (work) => abandonOpenLegs(work, detail, at))).row;
  }

  async closeLeg(callNodeId: string, claimToken: string, end: LegEnd): Promise<RowSnapshot> {
    return (await this.#witness(callNodeId, (work) => closeLeg(work, claimToken, end))).row;
  }

  async recordAsked(callNodeId: string, claimToken: string, asked: AskedBeforeWork): Promise<RowSnapshot> {
    return (await this.#witness(callNodeId, (work) => writeAsked(work, claimToken, asked))).row;
  }

  async recordReference(
    callNodeId: string,
    claimToken: string | null,
    reference: RemoteReference,
    at: number,
  ): Promise<{ row: RowSnapshot; contradicts: boolean; ownedBy?: string }> {
    const { said, row } = await this.#witness(callNodeId, (work) =>
      writeReference(work, claimToken, reference, at),
    );
    return { row, ...said };
  }

  replaceLocator(fence: Fence, reference: RemoteReference): Promise<RowSnapshot> {
    return this.#decideOpen(fence, (work) => writeLocator(work, reference));
  }

  recordAbsence(fence: Fence, evidence: string, at: number): Promise<RowSnapshot> {
    return this.#decideOpen(fence, (work) => writeAbsence(work, evidence, at));
  }

  async recordAnchor(callNodeId: string, anchor: JsonObject): Promise<void> {
    await this.#witnessOpen(callNodeId, (work) =>
      patchOperation(work, { anchor_json: JSON.stringify(anchor) }),
    );
  }

  // --- input rounds

  recordRound(callNodeId: string, round: NewRound): Promise<RowSnapshot> {
    return this.#witnessOpen(callNodeId, (work) => writeRound(work, round));
  }

  closeRound(callNodeId: string, roundId: string, at: number): Promise<RowSnapshot> {
    return this.#witnessOpen(callNodeId, (work) => closeRound(work, roundId, at));
  }

  recordReply(fence: Fence, roundId: string, reply: RoundReply, replyJson: string): Promise<RowSnapshot> {
    return this.#decideOpen(fence, (work) => writeReply(work, roundId, reply, replyJson));
  }

  recordSending(callNodeId: string, roundId: string, replyDigest: string, at: number): Promise<RowSnapshot> {
    return this.#witnessOpen(callNodeId, (work) => writeSending(work, roundId, replyDigest, at));
  }

  recordDelivery(callNodeId: string, roundId: string, replyDigest: string, at: number): Promise<RowSnapshot> {
    return this.#witnessOpen(callNodeId, (work) => writeDelivery(work, roundId, replyDigest, at));
  }

  retractReply(callNodeId: string, roundId: string, replyDigest: string): Promise<RowSnapshot> {
    return this.#witnessOpen(callNodeId, (work) => retractReply(work, roundId, replyDigest));
  }

  // --- cancelling

  raiseCancel(fence: Fence, fromGeneration: number, reason: string): Promise<RowSnapshot> {
    return this.#decideOpen(fence, (work) => raiseCancel(work, fromGeneration, reason));
  }

  recordCancelDelivery(
    callNodeId: string,
    generation: number,
    delivery: CancelDelivery,
  ): Promise<RowSnapshot> {
    return this.#witnessOpen(callNodeId, (work) => writeCancelDelivery(work, generation, delivery));
  }

  // --- ending

  async recordTerminal(
    callNodeId: string,
    observation: TerminalObservation,
    result: ResultBytes | null,
    leg?: { claimToken: string; at: number },
  ): Promise<RowSnapshot> {
    return (await this.#witness(callNodeId, (work) => writeTerminal(work, observation, result, leg))).row;
  }

  async recordResult(callNodeId: string, result: ResultBytes): Promise<RowSnapshot> {
    return (await this.#witness(callNodeId, (work) => writeResult(work, result, work.nowAt))).row;
  }

  recordOperatorEnd(
    fence: Fence,
    seen: SeenEnd,
    observation: TerminalObservation,
    result: ResultBytes,
  ): Promise<RowSnapshot> {
    return this.#decideOpen(fence, (work) => writeOperatorEnd(work, seen, observation, result));
  }

  async acceptTerminal(fence: Fence, presented: Presented, decide: Decide, at: number): Promise<Acceptance> {
    const acceptance = await this.#inOne(async (tx): Promise<Acceptance | Error> => {
      const nowAt = this.#nowMs();
      const ruling = await acceptInside(tx, { fence, presented, decide, at, nowAt });
      if (ruling.kind === 'superseded') return ruling.error;
      const row = await requireRow(tx, fence.callNodeId);
      if (ruling.kind === 'refused') return { ...ruling, row };
      // Returned as stored, not as built: what the run folds is what every later reader sees.
      if (!row.receipt)
        throw new Error(`the receipt of ${fence.callNodeId} is not there after it was written`);
      return { kind: 'accepted', row, receipt: row.receipt, isFirst: ruling.kind === 'written' };
    });
    // Thrown only now: thrown inside, it would undo the record of the refusal.
    if (acceptance instanceof Error) throw acceptance;
    return acceptance;
  }

  addEvidence(callNodeId: string, kind: EvidenceKind, detail: string, at: number): Promise<void> {
    return this.#inOne(async (tx) => {
      await keepEvidence(tx, { callNodeId, kind, detail, at });
    });
  }

  settleReconciliation(callNodeId: string, word: SettlementWord, at: number): Promise<Settlement> {
    return this.#inOne((tx) => settleInside(tx, callNodeId, word, at));
  }

  close(): Promise<void> {
    return this.#db.destroy();
  }

  // --- the four ways to write

  /** Fenced: only the run that owns the row, or takes it now. */
  #decide<T>(fence: Fence, step: (work: RowWork) => Promise<T>): Promise<{ said: T; row: RowSnapshot }> {
    return this.#inOne(async (tx) => {
      const nowAt = this.#nowMs();
      const { row } = await passFence(tx, fence, nowAt);
      return this.#perform({ tx, row, nowAt }, step);
    });
  }

  /** Fenced, and nothing is changed once a receipt exists. */
  async #decideOpen(fence: Fence, step: (work: RowWork) => Promise<void>): Promise<RowSnapshot> {
    return (await this.#decide(fence, unlessReceipt(step))).row;
  }

  /** Evidence: any process may bring it, at any time. */
  #witness<T>(
    callNodeId: string,
    step: (work: RowWork) => Promise<T>,
  ): Promise<{ said: T; row: RowSnapshot }> {
    return this.#inOne(async (tx) => {
      const row = await requireRow(tx, callNodeId);
      return this.#perform({ tx, row, nowAt: this.#nowMs() }, step);
    });
  }

  /** Evidence that changes nothing once a receipt exists. */
  async #witnessOpen(callNodeId: string, step: (work: RowWork) => Promise<void>): Promise<RowSnapshot> {
    return (await this.#witness(callNodeId, unlessReceipt(step))).row;
  }

  async #perform<T>(
    work: RowWork,
    step: (work: RowWork) => Promise<T>,
  ): Promise<{ said: T; row: RowSnapshot }> {
    const said = await step(work);
    return { said, row: await requireRow(work.tx, work.row.callNodeId) };
  }

  /** Serializable, because every rule reads the row before it writes; on SQLite the write lock alone gives that. */
  #inOne<T>(step: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#db.transaction().setIsolationLevel('serializable').execute(step);
  }
}

function unlessReceipt(step: (work: RowWork) => Promise<void>): (work: RowWork) => Promise<void> {
  return async (work) => {
    if (!work.row.receipt) await step(work);
  };
}
