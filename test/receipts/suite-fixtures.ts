// Owns the facts that the store suite plays with, and the port to whatever store it runs on.
// Must never know SQLite, nor import the test runner: the racing processes use these facts too.

import { createHash } from 'node:crypto';

import {
  buildReceipt,
  decideEnd,
  presentedBy,
  type End,
  type OperatorWord,
} from '../../operation/build-receipt.js';
import type { Receipt } from '../../operation/receipt.js';
import type {
  OperationPolicy,
  RemoteReference,
  RoundReply,
  RowSnapshot,
  TerminalObservation,
} from '../../operation/row.js';
import type { ReceiptsReader } from '../../receipts/open-store.js';
import type {
  Acceptance,
  Fence,
  NegotiationRecord,
  NewRound,
  OpenRequest,
  ReceiptStore,
  ResultBytes,
} from '../../receipts/store.js';

/** A store under test, and what a test may do to it behind its back. */
export interface StoreHarness {
  readonly store: ReceiptStore;
  readonly reader: ReceiptsReader;
  /** From now on the database refuses every ready row; returns how to undo it. */
  readonly refuseReadyRows: () => () => void;
  readonly forgetResult: (digest: string) => void;
  readonly damageResult: (digest: string) => void;
  /** The row's receipt text is changed by one character. */
  readonly damageReceipt: (callNodeId: string) => void;
  close(): Promise<void>;
}

export type MakeStore = () => Promise<StoreHarness>;

export const CALL = 'node-1';
export const AT = 1_700_000_000_000;

export const POLICY: OperationPolicy = {
  waitBudgetMs: 86_400_000,
  waitBudgetExplicit: false,
  submitBudgetMs: 300_000,
  lookUpBudgetMs: 600_000,
  settleBudgetMs: 600_000,
  fetchBudgetMs: 600_000,
  inputBudgetMs: 86_400_000,
  synchronousBoundMs: 60_000,
  submissionPolicy: null,
  keyName: null,
  sideEffects: 'unknown',
  protocol: 'auto',
  onUnresolved: { kind: 'hold' },
};

export function request(patch: Partial<OpenRequest> = {}): OpenRequest {
  return {
    callNodeId: CALL,
    requestDigest: 'digest-of-request',
    server: 'reports',
    tool: 'build-report',
    argumentsJson: '{"year":2024}',
    argumentsDigest: 'digest-of-arguments',
    submissionKey: `key-of-${patch.callNodeId ?? CALL}`,
    policy: POLICY,
    rejection: null,
    runId: 'run-1',
    mustExist: false,
    at: AT,
    ...patch,
  };
}

export function fence(runId = 'run-1', executionEpoch = 1, callNodeId = CALL): Fence {
  return { callNodeId, runId, executionEpoch };
}

export const NEGOTIATION: NegotiationRecord = {
  adapter: 'mcp/2025-11-25',
  submissionPolicy: 'at-most-once',
  toolVersion: '1.2.0',
  descriptorDigest: 'digest-of-descriptor',
  outputSchema: { type: 'object' },
  session: { sessionId: 'session-1' },
};

/** The end of a leg whose reply was lost. */
export const LOST = { outcome: 'ambiguous', detail: 'the socket closed', at: AT + 5 } as const;

export const REFERENCE: RemoteReference = {
  remoteId: 'task/ä+/=\u{1F600}',
  locator: { sessionId: 'session-1', protocolVersion: '2025-11-25' },
};

export function ended(
  remoteStatus: TerminalObservation['remoteStatus'],
  patch: Partial<TerminalObservation> = {},
): TerminalObservation {
  return {
    remoteStatus,
    failureKind: null,
    statusMessage: null,
    observedAt: AT + 50,
    evidence: 'status',
    ...patch,
  };
}

export function resultOf(text: string, patch: Partial<ResultBytes['stored']> = {}): ResultBytes {
  const bytes = new TextEncoder().encode(text);
  return {
    bytes,
    stored: {
      digest: createHash('sha256').update(bytes).digest('hex'),
      sizeBytes: bytes.byteLength,
      mediaType: 'application/json',
      isProtocolError: false,
      isToolError: false,
      outputSchema: 'none',
      ...patch,
    },
  };
}

export function newRound(roundId: string, patch: Partial<NewRound> = {}): NewRound {
  return {
    roundId,
    schemaDigest: `schema-of-${roundId}`,
    openedAt: AT + 10,
    deadlineAt: AT + 1_000,
    wireKey: `session-1/0/${roundId}`,
    wire: { id: 0 },
    question: { mode: 'form', message: 'Which year?', schema: { type: 'object' }, url: null },
    ...patch,
  };
}

export function reply(replyDigest: string, replyToken = `token-of-${replyDigest}`): RoundReply {
  return {
    replyDigest,
    replyToken,
    action: 'accept',
    recordedAt: AT + 20,
    sendingAt: null,
    deliveredAt: null,
  };
}

/** Opened, negotiated, one leg claimed and referenced, by run-1. */
export async function working(store: ReceiptStore, patch: Partial<OpenRequest> = {}): Promise<RowSnapshot> {
  const opened = request(patch);
  const owner = fence(opened.runId, 1, opened.callNodeId);
  await store.open(opened);
  await store.recordNegotiation(owner, NEGOTIATION);
  await store.claimLeg(owner, 'claim-1', AT + 1);
  return (await store.recordReference(opened.callNodeId, 'claim-1', REFERENCE, AT + 2)).row;
}

/** As `working`, with the result in hand. */
export async function finished(store: ReceiptStore, patch: Partial<OpenRequest> = {}): Promise<RowSnapshot> {
  const { callNodeId } = await working(store, patch);
  return store.recordTerminal(callNodeId, ended('completed'), resultOf('{"total":1}'));
}

const QUIET_COURSE = {
  cursor: { observationCount: 3, transientFaults: 1, lastIntervalMs: 1_000, nextPollNotBeforeAt: null },
  remoteStatus: null,
  statusMessage: null,
  reason: null,
};

/** What the accept step hands to the store. */
export function deciding(
  operator: OperatorWord | null = null,
): (row: RowSnapshot) => { end: End; receipt: Receipt } | null {
  return (row) => {
    const end = decideEnd(row, operator);
    return end && { end, receipt: buildReceipt(row, end, QUIET_COURSE, AT + 100) };
  };
}

/** Accepts as the row's owner, presenting what the row holds. */
export function accept(
  store: ReceiptStore,
  row: RowSnapshot,
  operator: OperatorWord | null = null,
): Promise<Acceptance> {
  const owner = fence(row.ownerRunId, row.executionEpoch, row.callNodeId);
  return store.acceptTerminal(owner, presentedBy(row), deciding(operator), AT + 100);
}

/** The code of the StoreError that the promise must fail with. */
export async function codeOf(failing: Promise<unknown>): Promise<unknown> {
  try {
    await failing;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return error.code;
    throw error;
  }
  throw new Error('nothing was thrown');
}
