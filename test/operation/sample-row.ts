// Owns plausible rows, legs, rounds and results for tests of the core.
// Must never follow the core's rules: it only fills in fields.

import type {
  InputRound,
  LookUpSettings,
  OperationPolicy,
  RowSnapshot,
  StoredResult,
  SubmissionLeg,
} from '../../operation/row.js';
import type { PollCursor } from '../../operation/facts.js';

export const T0 = 1_700_000_000_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

export const POLICY: OperationPolicy = {
  waitBudgetMs: 2 * HOUR_MS,
  waitBudgetExplicit: true,
  submitBudgetMs: 5 * MINUTE_MS,
  lookUpBudgetMs: 10 * MINUTE_MS,
  settleBudgetMs: 12 * MINUTE_MS,
  fetchBudgetMs: 7 * MINUTE_MS,
  inputBudgetMs: HOUR_MS,
  synchronousBoundMs: MINUTE_MS,
  submissionPolicy: null,
  keyName: null,
  sideEffects: 'unknown',
  protocol: 'auto',
  onUnresolved: { kind: 'hold' },
};

export const sampleLookUp: LookUpSettings = {
  keyPlace: 'argument',
  tool: 'find',
  argument: 'key',
  idPointer: '/structuredContent/id',
  provesAbsence: true,
  settleAfterMs: 30_000,
};

export function sampleRow(changes: Partial<RowSnapshot> = {}): RowSnapshot {
  return {
    callNodeId: 'graph/node-1',
    requestDigest: 'd'.repeat(64),
    server: 'render-farm',
    tool: 'render',
    argumentsDigest: 'a'.repeat(64),
    submissionKey: 'dtc-0123',
    createdAt: T0,
    policy: POLICY,
    executionEpoch: 1,
    ownerRunId: 'run-1',
    adapter: 'mcp/2025-11-25',
    submissionPolicy: 'session-list',
    toolVersion: '1.2.3',
    descriptorDigest: 'e'.repeat(64),
    legs: [],
    remoteReference: null,
    rounds: [],
    cancelGeneration: 0,
    cancelReason: null,
    cancelDelivery: 'none',
    terminalObservation: null,
    rejection: null,
    result: null,
    provedAbsentAtLeg: null,
    receipt: null,
    ...changes,
  };
}

export function sampleLeg(outcome: SubmissionLeg['outcome'], leg = 1): SubmissionLeg {
  const closedAt = outcome === 'open' ? null : T0 + leg;
  return {
    leg,
    claimToken: `claim-${leg}`,
    claimedAt: T0 + leg,
    closedAt,
    outcome,
    detail: `leg ${leg} ${outcome}`,
  };
}

export const REFERENCE = { remoteId: 'task-7', locator: { sessionId: 's-1' } };

export const RESULT: StoredResult = {
  digest: 'f'.repeat(64),
  sizeBytes: 12,
  mediaType: 'application/json',
  isProtocolError: false,
  isToolError: false,
  outputSchema: 'none',
};

export const CURSOR: PollCursor = {
  observationCount: 4,
  transientFaults: 1,
  lastIntervalMs: 5_000,
  nextPollNotBeforeAt: null,
};

export function sampleRound(roundId: string, changes: Partial<InputRound> = {}): InputRound {
  return {
    roundId,
    schemaDigest: 'c'.repeat(64),
    openedAt: T0 + MINUTE_MS,
    deadlineAt: T0 + HOUR_MS,
    question: { mode: 'form', message: 'Which one?', schema: { type: 'object' }, url: null },
    reply: null,
    closedAt: null,
    ...changes,
  };
}
