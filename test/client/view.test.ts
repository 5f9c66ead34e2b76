// What a view and a record say: held or not, too late to cancel or not.

import { expect, test } from 'vitest';
import { cancelVerdictOf, emptyView, isHeld, viewOfRecord } from '../../client/view.js';
import { newOperation, type ToolOperation } from '../../operation/record.js';

const RUN = { callNodeId: 'v', workflowId: 'tool-operation/v', runId: 'run' };
const RECORD = newOperation({ callNodeId: 'v', requestDigest: 'd', server: 's', tool: 't', startedAt: 1 });
const SEEN = { failureKind: null, statusMessage: null, observedAt: 5, evidence: 'status' } as const;
const RESULT: NonNullable<ToolOperation['result']> = {
  digest: 'd',
  sizeBytes: 2,
  mediaType: 'application/json',
  isProtocolError: false,
  isToolError: false,
} as never;

test('an undecided hold and a ledger that is behind are held, a decided hold and a look-up are not', () => {
  const held = emptyView(RUN, 'UNRESOLVED');
  expect(isHeld(held)).toBe(true);
  expect(isHeld({ ...held, decidedByOperator: true })).toBe(false);
  expect(isHeld(emptyView(RUN, 'SUBMISSION_UNKNOWN'))).toBe(false);
  expect(isHeld(emptyView(RUN, 'WORKING'))).toBe(false);
});

test('a ledger that is behind outranks the hold it came upon', () => {
  const hold = {
    reason: 'handle-lost',
    sinceAt: 2,
    evidence: 'gone',
    rechecks: 0,
    nextRecheckAt: null,
  } as const;
  const ledgerBehind = { at: 3, evidence: 'the row misses a submission leg', rechecks: 0, nextRecheckAt: 3 };
  const view = viewOfRecord({ ...RECORD, state: 'SUBMISSION_UNKNOWN', hold, ledgerBehind }, null, RUN, null);
  expect(view).toMatchObject({ reason: 'ledger-behind', evidence: ledgerBehind.evidence, heldSince: 3 });
  expect(isHeld(view)).toBe(true);
});

const REQUEST = { requestedBy: 'c', requestToken: 't1' };

test.each([
  ['nothing is seen', {}, { kind: 'requested' }],
  ['completed, no result yet', { remoteStatus: 'completed' }, { kind: 'tooLate', outcome: null }],
  ['failed, no result yet', { remoteStatus: 'failed' }, { kind: 'tooLate', outcome: null }],
  ['completed', { remoteStatus: 'completed', result: RESULT }, { kind: 'tooLate', outcome: 'completed' }],
  [
    'completed with an error for a result',
    { remoteStatus: 'completed', result: { ...RESULT, isToolError: true } },
    { kind: 'tooLate', outcome: 'failed' },
  ],
  ['failed', { remoteStatus: 'failed', result: RESULT }, { kind: 'tooLate', outcome: 'failed' }],
  ['cancelled by itself', { remoteStatus: 'cancelled' }, { kind: 'tooLate', outcome: 'cancelled' }],
  ['working on an earlier one', { cancelGeneration: 1 }, { kind: 'alreadyRequested' }],
  [
    'cancelled on an earlier one',
    { remoteStatus: 'cancelled', cancelGeneration: 1 },
    { kind: 'tooLate', outcome: 'cancelled' },
  ],
] as const)('a cancel where the far side is %s is told so', (_, facts, verdict) => {
  const { remoteStatus, ...known } = { remoteStatus: null, ...facts };
  const terminalObservation = remoteStatus && { ...SEEN, remoteStatus };
  expect(cancelVerdictOf({ ...RECORD, ...known, terminalObservation }, REQUEST)).toEqual(verdict);
});

test('a cancel that the record took up is requested, though the end has been seen since', () => {
  const cancelAsked = { reason: 'r', at: 4, ...REQUEST };
  const terminalObservation = { ...SEEN, remoteStatus: 'completed' } as const;
  expect(cancelVerdictOf({ ...RECORD, cancelAsked, terminalObservation }, REQUEST)).toEqual({
    kind: 'requested',
  });
});

test.each([
  ['its own', { requestedBy: 'c', requestToken: 't1' }, 'requested'],
  ['another message of the same caller', { requestedBy: 'c', requestToken: 't0' }, 'alreadyRequested'],
  ['the executor', { requestedBy: 'executor' }, 'alreadyRequested'],
  ['the same caller, as a run of an earlier release keeps it', { requestedBy: 'c' }, 'requested'],
] as const)('a cancel that the record holds from %s is told so', (_, who, kind) => {
  const cancelAsked = { reason: 'r', at: 4, ...who };
  expect(cancelVerdictOf({ ...RECORD, cancelAsked }, REQUEST)).toEqual({ kind });
});
