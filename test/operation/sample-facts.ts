// Owns one record in every state and one fact of every kind, as tests of the fold need them.
// Must never say what a fact does: the tables of the tests do.

import { apply } from '../../operation/apply.js';
import type { Fact, ObserveFinding, StepFact } from '../../operation/facts.js';
import { newOperation, type ToolOperation } from '../../operation/record.js';
import type { Receipt } from '../../operation/receipt.js';
import type { RowSnapshot } from '../../operation/row.js';
import { CURSOR, MINUTE_MS, REFERENCE, RESULT, sampleLeg, sampleRound, sampleRow, T0 } from './sample-row.js';

export const AT = T0 + 2 * MINUTE_MS;

export function startedRecord(): ToolOperation {
  const { callNodeId, requestDigest, server, tool } = sampleRow();
  return newOperation({ callNodeId, requestDigest, server, tool, startedAt: T0 });
}

export function opened(row: RowSnapshot, at = AT): ToolOperation {
  return apply(startedRecord(), { kind: 'opened', at, row }).record;
}

export function fold(record: ToolOperation, ...facts: readonly Fact[]): ToolOperation {
  return facts.reduce((folded, fact) => apply(folded, fact).record, record);
}

export function observed(
  row: RowSnapshot,
  finding: ObserveFinding,
  at = AT,
  more: Partial<Extract<StepFact, { kind: 'observed' }>> = {},
): Extract<StepFact, { kind: 'observed' }> {
  const said = { remoteStatus: null, statusMessage: null, expiresAt: null, evidence: null };
  return { kind: 'observed', at, row, finding, cursor: CURSOR, ...said, ...more };
}

export function terminal(
  remoteStatus: 'completed' | 'failed' | 'cancelled',
): NonNullable<RowSnapshot['terminalObservation']> {
  return { remoteStatus, failureKind: null, statusMessage: 'over', observedAt: AT, evidence: 'status' };
}

export function sampleReceipt(state: Receipt['state'], outcome: Receipt['outcome']): Receipt {
  const row = sampleRow();
  return {
    schema: 'terminalReceipt.v1',
    callNodeId: row.callNodeId,
    requestDigest: row.requestDigest,
    server: row.server,
    tool: row.tool,
    toolVersion: row.toolVersion,
    descriptorDigest: row.descriptorDigest,
    adapter: row.adapter,
    submissionPolicy: row.submissionPolicy,
    remoteReference: null,
    submissionLegs: [],
    state,
    outcome,
    failureKind: null,
    result: null,
    auditResult: null,
    cancelGeneration: 0,
    executionEpoch: 1,
    createdAt: T0,
    observedAt: null,
    acceptedAt: AT,
    remoteSaid: { remoteStatus: null, statusMessage: null },
    transport: { observations: 0, transientFaults: 0 },
    decision: { evidence: 'status', reason: null },
    effects: 'none-owed',
  };
}

const WORKING = sampleRow({ legs: [sampleLeg('referenced')], remoteReference: REFERENCE });

/** What the store holds for an operation in each state. */
export const ROWS = {
  SUBMITTING: sampleRow(),
  SUBMISSION_UNKNOWN: sampleRow({ legs: [sampleLeg('ambiguous')] }),
  NOT_FOUND_SAFE: sampleRow({ legs: [sampleLeg('ambiguous')], provedAbsentAtLeg: 1 }),
  WORKING,
  INPUT_REQUIRED: { ...WORKING, rounds: [sampleRound('round-1')] },
  CANCEL_REQUESTED: { ...WORKING, cancelGeneration: 1, cancelDelivery: 'acknowledged' },
  TERMINAL_OBSERVED: { ...WORKING, terminalObservation: terminal('completed') },
  FETCHING_RESULT: { ...WORKING, terminalObservation: terminal('completed'), result: RESULT },
  UNRESOLVED: WORKING,
  ACCEPTED: { ...WORKING, receipt: sampleReceipt('ACCEPTED', 'completed') },
  CANCELLED_ACCEPTED: { ...WORKING, receipt: sampleReceipt('CANCELLED_ACCEPTED', 'cancelled') },
  REJECTED: { ...sampleRow(), receipt: sampleReceipt('REJECTED', 'rejected') },
} as const satisfies Record<string, RowSnapshot>;
export type SampleState = keyof typeof ROWS;

/** A record in the given state, reached by facts alone. */
export function recordIn(state: SampleState): ToolOperation {
  const record = opened(ROWS[state]);
  if (state !== 'UNRESOLVED') return record;
  // Three reads in the old session, then one through a fresh one.
  const missed = observed(WORKING, 'sessionLost');
  return fold(record, missed, missed, missed, missed);
}

/** One fact of every kind, with the row that a store would give with it. */
export function sampleFact(name: string, row: RowSnapshot): Fact {
  const at = AT + 1_000;
  const legs = [...row.legs, sampleLeg('ambiguous', row.legs.length + 1)];
  const found = { ...row, remoteReference: REFERENCE };
  const raised = { ...row, cancelGeneration: 1, cancelDelivery: 'acknowledged' } as const;
  const reply = {
    roundId: 'round-1',
    replyDigest: 'r1',
    replyToken: 't1',
    action: 'accept',
    content: {},
  } as const;
  const ended = { ...found, terminalObservation: row.terminalObservation ?? terminal('completed') };
  const receipt = sampleReceipt('ACCEPTED', 'completed');
  const facts: Record<string, Fact> = {
    opened: { kind: 'opened', at, row },
    'submitted, reference': { kind: 'submitted', at, row: { ...found, legs } },
    'submitted, nothing': { kind: 'submitted', at, row },
    'submitted, ambiguous': { kind: 'submitted', at, row: { ...row, legs } },
    'submitted, answered': { kind: 'submitted', at, row: { ...ended, result: RESULT } },
    'lookedUp, found': { kind: 'lookedUp', at, row: found, finding: 'found', evidence: null },
    'lookedUp, absent': {
      kind: 'lookedUp',
      at,
      row: { ...row, provedAbsentAtLeg: row.legs.length },
      finding: 'provedAbsent',
      evidence: null,
    },
    'lookedUp, cannot tell': { kind: 'lookedUp', at, row, finding: 'cannotTell', evidence: null },
    'observed, input': observed(
      { ...found, rounds: [...row.rounds, sampleRound('round-2')] },
      'inputRequired',
      at,
    ),
    'observed, rounds over': observed(
      { ...row, rounds: row.rounds.map((round) => ({ ...round, closedAt: at })) },
      'roundClosed',
      at,
    ),
    'observed, terminal': observed(ended, 'terminal', at),
    'observed, cancelled': observed({ ...found, terminalObservation: terminal('cancelled') }, 'terminal', at),
    'observed, not found': observed(row, 'notFound', at),
    'observed, session lost': observed(row, 'sessionLost', at),
    'observed, violation': observed(row, 'violation', at),
    'observed, deadline': observed(row, 'deadlinePassed', at),
    'answered, applied': { kind: 'answered', at, row, replyToken: 't1', verdict: { kind: 'applied' } },
    'cancelSent, acknowledged': { kind: 'cancelSent', at, row: raised, reply: 'acknowledged' },
    'cancelSent, confirmed': {
      kind: 'cancelSent',
      at,
      row: { ...raised, terminalObservation: row.terminalObservation ?? terminal('cancelled') },
      reply: 'confirmed',
    },
    'resultFetched, stored': {
      kind: 'resultFetched',
      at,
      row: { ...row, result: RESULT },
      finding: 'stored',
      evidence: null,
    },
    'resultFetched, not yet': { kind: 'resultFetched', at, row, finding: 'notYet', evidence: null },
    'resultFetched, too large': {
      kind: 'resultFetched',
      at,
      row,
      finding: 'tooLarge',
      evidence: 'more than 7 bytes',
    },
    'resultFetched, lost': { kind: 'resultFetched', at, row, finding: 'lost', evidence: null },
    accepted: { kind: 'accepted', at, row: { ...row, receipt }, finding: 'accepted', evidence: null },
    'accepted, cancelled': {
      kind: 'accepted',
      at,
      row: { ...row, receipt: sampleReceipt('CANCELLED_ACCEPTED', 'cancelled') },
      finding: 'accepted',
      evidence: null,
    },
    'accepted, rejected': {
      kind: 'accepted',
      at,
      row: { ...row, receipt: sampleReceipt('REJECTED', 'rejected') },
      finding: 'accepted',
      evidence: null,
    },
    'accepted, refused': { kind: 'accepted', at, row, finding: 'refused', evidence: null },
    ledgerMissing: { kind: 'ledgerMissing', at, evidence: 'no row' },
    cancelRequested: { kind: 'cancelRequested', at, reason: 'enough', requestedBy: 'caller' },
    replyGiven: { kind: 'replyGiven', at, reply },
    operatorDecided: {
      kind: 'operatorDecided',
      at,
      decision: { kind: 'close' },
      evidence: 'seen',
      decidedBy: 'ops',
    },
    'endRecorded, in the row': {
      kind: 'endRecorded',
      at,
      row: { ...row, terminalObservation: row.terminalObservation ?? terminal('completed'), result: RESULT },
    },
    'endRecorded, overtaken': { kind: 'endRecorded', at, row },
    superseded: { kind: 'superseded', at },
    storeRestored: { kind: 'storeRestored', at },
    interrupted: { kind: 'interrupted', at },
    timePassed: { kind: 'timePassed', at },
  };
  const fact = facts[name];
  if (!fact) throw new Error(`no such sample fact: ${name}`);
  return fact;
}
