// Owns the tests of which end a row proves, and of the receipt built from it.
// Must never accept a success whose result is not stored.

import { describe, expect, it } from 'vitest';
import { buildReceipt, decideEnd, presentedBy, type End } from '../../operation/build-receipt.js';
import type { LegOutcome, RowSnapshot } from '../../operation/row.js';
import { CURSOR, POLICY, REFERENCE, RESULT, sampleLeg, sampleRow, T0 } from './sample-row.js';
import { terminal } from './sample-facts.js';

const working = sampleRow({ legs: [sampleLeg('referenced')], remoteReference: REFERENCE });
const close = { decision: 'close', evidence: 'asked the farm', decidedBy: 'ops' } as const;
const never = { ...close, decision: 'neverCreated' } as const;
const rejection = { code: 'unknown-tool', message: 'no such tool' } as const;

function ended(
  remoteStatus: 'completed' | 'failed' | 'cancelled',
  result: Partial<typeof RESULT> | null,
): RowSnapshot {
  const stored = result && { ...RESULT, ...result };
  return { ...working, terminalObservation: terminal(remoteStatus), result: stored };
}

/** `state outcome failureKind evidence`, or null. */
function endOf(row: RowSnapshot, operator: Parameters<typeof decideEnd>[1] = null): string | null {
  const end = decideEnd(row, operator);
  return end && [end.state, end.outcome, end.failureKind, end.evidence].join(' | ');
}

describe('the end that a row proves', () => {
  it('is completed or failed only with the result stored', () => {
    expect(endOf(ended('completed', null))).toBeNull();
    expect(endOf(ended('failed', null))).toBeNull();
    expect(endOf(ended('completed', {}))).toBe('ACCEPTED | completed |  | status');
  });

  it('tells a tool that failed from a protocol error', () => {
    expect(endOf(ended('failed', {}))).toBe('ACCEPTED | failed | tool | status');
    expect(endOf(ended('failed', { isProtocolError: true }))).toBe('ACCEPTED | failed | protocol | status');
    expect(endOf(ended('completed', { isToolError: true }))).toBe('ACCEPTED | failed | tool | status');
    expect(endOf(ended('completed', { isProtocolError: true }))).toBe(
      'ACCEPTED | failed | protocol | status',
    );
  });

  it('is cancelled where the far side said so, with or without a result', () => {
    expect(endOf(ended('cancelled', null))).toBe('CANCELLED_ACCEPTED | cancelled |  | status');
    expect(endOf(ended('cancelled', {}))).toBe('CANCELLED_ACCEPTED | cancelled |  | status');
  });

  it('is rejected where nothing was started', () => {
    expect(endOf(sampleRow({ rejection }))).toBe('REJECTED | rejected |  | unknown-tool');
    expect(endOf(sampleRow({ rejection, cancelGeneration: 1 }))).toBe(
      'REJECTED | rejected |  | unknown-tool',
    );
  });

  it('is a cancel that was never sent only where nothing can be running', () => {
    const raised = (legs: readonly LegOutcome[], more: Partial<RowSnapshot> = {}): string | null =>
      endOf(sampleRow({ legs: legs.map((leg) => sampleLeg(leg)), cancelGeneration: 1, ...more }));
    const neverSent = 'CANCELLED_ACCEPTED | cancelled |  | never sent';
    expect(raised([])).toBe(neverSent);
    expect(raised(['notSent', 'refused'])).toBe(neverSent);
    expect(raised(['ambiguous'])).toBeNull();
    expect(raised(['open'])).toBeNull();
    expect(raised(['ambiguous'], { provedAbsentAtLeg: 1 })).toBe(
      'CANCELLED_ACCEPTED | cancelled |  | proved absent',
    );
    expect(raised(['ambiguous'], { provedAbsentAtLeg: 1, remoteReference: REFERENCE })).toBeNull();
    expect(raised(['referenced'], { remoteReference: REFERENCE })).toBeNull();
    expect(raised(['answered'], { terminalObservation: terminal('completed') })).toBeNull();
    expect(raised([], { cancelGeneration: 0 })).toBeNull();
  });

  it('is an operator’s word only where the far side proved no end', () => {
    const by = 'operator ops: asked the farm';
    expect(endOf(working)).toBeNull();
    expect(endOf(working, close)).toBe(`ACCEPTED | unresolved |  | ${by}`);
    expect(endOf(working, never)).toBe(`REJECTED | rejected |  | ${by}`);
    expect(endOf(ended('completed', null), close)).toBe(`ACCEPTED | unresolved |  | ${by}`);
    expect(endOf(ended('completed', {}), close)).toBe('ACCEPTED | completed |  | status');
    expect(endOf(ended('cancelled', null), never)).toBe('CANCELLED_ACCEPTED | cancelled |  | status');
  });
});

describe('the receipt', () => {
  const course = { cursor: CURSOR, remoteStatus: 'working', statusMessage: 'half way', reason: 'enough' };
  const end = (outcome: End['outcome']): End => {
    return { state: 'ACCEPTED', outcome, failureKind: null, evidence: 'status' };
  };

  it('carries the whole operation and keeps the three facts apart', () => {
    const row = ended('completed', {});
    const failed = { ...end('failed'), failureKind: 'tool' } as const;
    expect(buildReceipt(row, failed, course, T0 + 99)).toEqual({
      schema: 'terminalReceipt.v1',
      callNodeId: 'graph/node-1',
      requestDigest: 'd'.repeat(64),
      server: 'render-farm',
      tool: 'render',
      toolVersion: '1.2.3',
      descriptorDigest: 'e'.repeat(64),
      adapter: 'mcp/2025-11-25',
      submissionPolicy: 'session-list',
      remoteReference: REFERENCE,
      submissionLegs: row.legs,
      state: 'ACCEPTED',
      outcome: 'failed',
      failureKind: 'tool',
      result: RESULT,
      auditResult: null,
      cancelGeneration: 0,
      executionEpoch: 1,
      createdAt: T0,
      observedAt: terminal('completed').observedAt,
      acceptedAt: T0 + 99,
      remoteSaid: { remoteStatus: 'completed', statusMessage: 'over' },
      transport: { observations: 4, transientFaults: 1 },
      decision: { evidence: 'status', reason: 'enough' },
      effects: 'none-owed',
    });
  });

  it('says what was heard last where the far side never came to an end', () => {
    const receipt = buildReceipt(working, end('unresolved'), course, T0);
    expect(receipt.remoteSaid).toEqual({ remoteStatus: 'working', statusMessage: 'half way' });
    expect(receipt.observedAt).toBeNull();
  });

  it('gives the reason of the row before the reason of the run', () => {
    const reason = (changes: Partial<RowSnapshot>): string | null =>
      buildReceipt({ ...working, ...changes }, end('cancelled'), course, T0).decision.reason;
    expect(reason({})).toBe('enough');
    expect(reason({ cancelReason: 'wait-budget' })).toBe('wait-budget');
    expect(reason({ cancelReason: 'wait-budget', rejection })).toBe('no such tool');
  });

  it('shows a result as payload only of completed and failed, else for audit', () => {
    const row = ended('cancelled', {});
    const shown = (outcome: End['outcome']): string => {
      const receipt = buildReceipt(row, end(outcome), course, T0);
      return `${receipt.result ? 'payload' : ''}${receipt.auditResult ? 'audit' : ''}`;
    };
    const outcomes = ['completed', 'failed', 'cancelled', 'rejected', 'unresolved'] as const;
    expect(outcomes.map(shown)).toEqual(['payload', 'payload', 'audit', 'audit', 'audit']);
  });

  it('does not name work that was only an operator’s word and was then taken back', () => {
    const named = (outcome: End['outcome'], isUnseen: boolean): boolean => {
      const remoteReference = isUnseen ? { ...REFERENCE, isUnseen } : REFERENCE;
      return buildReceipt({ ...working, remoteReference }, end(outcome), course, T0).remoteReference !== null;
    };
    expect([named('rejected', true), named('unresolved', true)]).toEqual([false, true]);
    expect([named('rejected', false), named('unresolved', false)]).toEqual([true, true]);
  });

  it('owes a reconciliation where bytes may have left and nothing was accepted', () => {
    const effects = (outcome: End['outcome'], legs: readonly LegOutcome[], harmless = false): string => {
      const policy = harmless ? { ...POLICY, sideEffects: 'none' as const } : POLICY;
      const row = sampleRow({ policy, legs: legs.map((leg) => sampleLeg(leg)) });
      return buildReceipt(row, end(outcome), course, T0).effects;
    };
    const owed = 'EFFECT_RECONCILIATION_REQUIRED';
    expect(effects('cancelled', ['referenced'])).toBe(owed);
    expect(effects('unresolved', ['notSent', 'ambiguous'])).toBe(owed);
    expect(effects('cancelled', ['notSent'])).toBe('none-owed');
    expect(effects('cancelled', [])).toBe('none-owed');
    expect(effects('unresolved', ['ambiguous'], true)).toBe('none-owed');
    for (const outcome of ['completed', 'failed', 'rejected'] as const) {
      expect(effects(outcome, ['referenced'])).toBe('none-owed');
    }
  });
});

describe('what a run presents', () => {
  it('is eight facts, read off the row', () => {
    expect(presentedBy({ ...ended('completed', {}), cancelGeneration: 2, executionEpoch: 3 })).toEqual({
      callNodeId: 'graph/node-1',
      requestDigest: 'd'.repeat(64),
      remoteId: 'task-7',
      toolVersion: '1.2.3',
      executionEpoch: 3,
      cancelGeneration: 2,
      terminalStatus: 'completed',
      resultDigest: 'f'.repeat(64),
    });
    const bare = presentedBy(sampleRow({ toolVersion: null }));
    expect([bare.remoteId, bare.toolVersion, bare.terminalStatus, bare.resultDigest]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });
});
