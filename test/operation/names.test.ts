// Owns the pins of every name and number that the outside can see.
// Must never be regenerated: a changed pin is a changed contract.

import { describe, expect, it } from 'vitest';
import { PRESENTED_FACTS } from '../../operation/build-receipt.js';
import { CALLER_ERRORS, ENGINE_ERRORS } from '../../operation/errors.js';
import { LIMITS } from '../../operation/limits.js';
import * as names from '../../operation/names.js';
import { newOperation } from '../../operation/record.js';

describe('names', () => {
  it('pins states, outcomes, contracts and policies', () => {
    expect([names.WORKFLOW_TYPE, names.SWEEP_WORKFLOW_TYPE]).toEqual(['toolOperation', 'sweepOperations']);
    expect(names.sweeperIdOf('render')).toBe('tool-operation-sweeper/render');
    expect([names.RECORD_SCHEMA, names.RECEIPT_SCHEMA, names.VIEW_SCHEMA]).toEqual([
      'toolOperation.v1',
      'terminalReceipt.v1',
      'operationView.v1',
    ]);
    expect(names.OPERATION_STATES).toEqual([
      'SUBMITTING',
      'SUBMISSION_UNKNOWN',
      'NOT_FOUND_SAFE',
      'WORKING',
      'INPUT_REQUIRED',
      'CANCEL_REQUESTED',
      'TERMINAL_OBSERVED',
      'FETCHING_RESULT',
      'UNRESOLVED',
      'ACCEPTED',
      'CANCELLED_ACCEPTED',
      'REJECTED',
    ]);
    expect(names.TERMINAL_STATES).toEqual(['ACCEPTED', 'CANCELLED_ACCEPTED', 'REJECTED']);
    expect(names.OUTCOMES).toEqual(['completed', 'failed', 'cancelled', 'rejected', 'unresolved']);
    expect(names.ADAPTERS).toEqual([
      'mcp/2025-11-25',
      'mcp/2026-07-28',
      'mcp/job-tools',
      'aip-151',
      'synchronous',
    ]);
    expect(names.SUBMISSION_POLICIES).toEqual([
      'key-argument',
      'key-meta',
      'lookup-tool',
      'request-id',
      'operation-list',
      'session-list',
      'repeatable',
      'at-most-once',
    ]);
  });

  it('pins activities, messages, search attributes, queues and workflow ids', () => {
    expect(names.ACTIVITIES).toEqual({
      open: 'open',
      submit: 'submit',
      lookUp: 'lookUp',
      observe: 'observe',
      answer: 'deliverAnswer',
      cancel: 'sendCancel',
      fetchResult: 'fetchResult',
      recordEnd: 'recordOperatorEnd',
      accept: 'acceptTerminal',
    });
    expect(names.MESSAGES).toEqual({
      answerUpdate: 'answer',
      answerSignal: 'answerOperation',
      cancelSignal: 'cancelOperation',
      operatorSignal: 'decideOperation',
      restoredSignal: 'storeRestored',
      operationQuery: 'operation',
    });
    expect(names.SEARCH_ATTRIBUTES).toEqual([
      'ToolServer',
      'ToolName',
      'OperationState',
      'OperationOutcome',
      'ProtocolAdapter',
    ]);
    expect(names.DEFAULT_TASK_QUEUE).toBe('durable-tool-calls');
    expect(names.pollQueueOf('render')).toBe('render-poll');
    expect(names.workflowIdOf('graph/node-1')).toBe('tool-operation/graph/node-1');
    expect(names.callNodeIdOf('tool-operation/graph/node-1')).toBe('graph/node-1');
    expect(names.callNodeIdOf('graph/node-1')).toBeNull();
  });

  it('pins the seams at which tests kill', () => {
    expect(names.SEAMS).toEqual([
      'submit:before-claim',
      'submit:after-claim',
      'submit:after-send',
      'submit:after-reply',
      'submit:after-commit',
      'lookUp:after-found',
      'observe:after-reply',
      'observe:question-read',
      'observe:question-stored',
      'observe:result-fetched',
      'answer:after-record',
      'answer:after-send',
      'answer:after-commit',
      'cancel:after-raise',
      'cancel:after-send',
      'cancel:after-commit',
      'fetchResult:after-reply',
      'fetchResult:after-commit',
      'recordEnd:before-commit',
      'recordEnd:after-commit',
      'accept:before-commit',
      'accept:after-commit',
    ]);
  });

  it('pins who retries and who acts for every error code', () => {
    const rules = (table: Record<string, { retry: string; actor: string; nextStep: string }>): object =>
      Object.fromEntries(Object.entries(table).map(([code, rule]) => [code, `${rule.retry}, ${rule.actor}`]));
    expect(rules(ENGINE_ERRORS)).toEqual({
      NotReady: 'retry, nobody',
      NotSent: 'retry, nobody',
      StoreUnavailable: 'retry, operator',
      ServerNotConfigured: 'retry, operator',
      Superseded: 'stop, nobody',
      CallNodeConflict: 'stop, caller',
    });
    expect(rules(CALLER_ERRORS)).toEqual({
      CallNodeConflict: 'stop, caller',
      LocalTimeout: 'stop, caller',
      OperationUnresolved: 'stop, operator',
      OperationNotFound: 'stop, caller',
      InvalidRequest: 'stop, caller',
      ResultElsewhere: 'stop, caller',
    });
    for (const rule of [...Object.values(ENGINE_ERRORS), ...Object.values(CALLER_ERRORS)]) {
      expect(rule.nextStep.length).toBeGreaterThan(10);
    }
  });

  it('pins the eight facts that a run presents', () => {
    expect(PRESENTED_FACTS).toEqual([
      'callNodeId',
      'requestDigest',
      'remoteId',
      'toolVersion',
      'executionEpoch',
      'cancelGeneration',
      'terminalStatus',
      'resultDigest',
    ]);
  });
});

describe('limits', () => {
  it('pins every number', () => {
    expect(LIMITS).toEqual({
      callNodeIdChars: 200,
      argumentsBytes: 262_144,
      replyBytes: 65_536,
      questionBytes: 32_768,
      openQuestions: 32,
      schemaDepth: 16,
      schemaPatternChars: 256,
      schemaRefs: 12,
      inlineResultBytes: 65_536,
      storedResultBytes: 67_108_864,
      storedResultCeilingBytes: 268_435_456,
      checkedResultBytes: 1_048_576,
      wireReplyBytes: 1_048_576,
      wireListBytes: 4_194_304,
      wireSlackBytes: 1_048_576,
      operatorResultBytes: 524_288,
      wireJsonDepth: 512,
      evidenceChars: 400,
      messageIdChars: 200,
      remoteIdChars: 4_096,
      statusMessageChars: 300,
      failureMessageChars: 480,
      reasonChars: 300,
      uiSummaryChars: 180,
      uiDetailsChars: 8_000,
      fairnessKeyBytes: 64,
      waitBudgetMs: 86_400_000,
      submitBudgetMs: 300_000,
      lookUpBudgetMs: 600_000,
      settleBudgetMs: 600_000,
      fetchBudgetMs: 600_000,
      inputBudgetMs: 86_400_000,
      synchronousBoundMs: 60_000,
      requestIdWindowMs: 3_600_000,
      pollFloorMs: 1_000,
      pollCeilingMs: 300_000,
      pollDefaultMs: 5_000,
      pollJitterShare: 0.1,
      inputPollMs: 15_000,
      lookUpGapMs: 2_000,
      lookUpGapCeilingMs: 60_000,
      cancelResendMs: 2_000,
      cancelResendCeilingMs: 120_000,
      fetchRetryMs: 2_000,
      answerRetryCeilingMs: 30_000,
      submitRetryMs: 2_000,
      missedGapMs: 3_000,
      silentAskGapMs: 2_000,
      silentAskCeilingMs: 60_000,
      createLagMs: 30_000,
      attachGapMs: 2_000,
      ledgerGapMs: 30_000,
      recheckGapMs: 600_000,
      recheckCeilingMs: 21_600_000,
      sweepEveryMs: 60_000,
      sweepAgeMs: 60_000,
      retryAfterCeilingMs: 3_600_000,
      requestIdUsableShare: 0.9,
      requestTimeoutMs: 30_000,
      connectTimeoutMs: 10_000,
      cancelTimeoutMs: 30_000,
      releaseTimeoutMs: 2_000,
      tokenTimeoutMs: 10_000,
      heartbeatMs: 700,
      heartbeatTimeoutMs: 2_000,
      stickyTimeoutMs: 1_000,
      submissionLegs: 3,
      missedReads: 3,
      acceptRefusals: 3,
      takeovers: 3,
      violationReads: 3,
      silentAsks: 4,
      continuations: 16,
    });
  });
});

describe('a new record', () => {
  it('holds what it was started with and has seen nothing', () => {
    const start = { callNodeId: 'n', requestDigest: 'd', server: 's', tool: 't', startedAt: 42 };
    const { policy, hold, receipt, ...rest } = newOperation(start);
    expect([policy, hold, receipt]).toEqual([null, null, null]);
    const { startedAt, ...request } = start;
    expect(rest).toMatchObject({
      ...request,
      createdAt: startedAt,
      schema: 'toolOperation.v1',
      rulesRevision: 1,
      state: 'SUBMITTING',
      executionEpoch: 0,
      cancelDelivery: 'none',
      cancelGeneration: 0,
      missedReads: 0,
      takeovers: 0,
      heldMs: 0,
      pollCursor: {
        observationCount: 0,
        transientFaults: 0,
        lastIntervalMs: null,
        nextPollNotBeforeAt: null,
      },
    });
    expect([rest.submissionLegs, rest.rounds, rest.waitingReplies, rest.replyVerdicts]).toEqual([
      [],
      [],
      [],
      [],
    ]);
  });
});

describe('search attributes of a cluster', () => {
  it('are missing where they are absent or of another type', () => {
    const all = Object.fromEntries(names.SEARCH_ATTRIBUTES.map((name) => [name, 2]));
    expect(names.missingSearchAttributes(all)).toEqual([]);
    expect(names.missingSearchAttributes({ ...all, ToolName: 1 })).toEqual(['ToolName']);
    expect(names.missingSearchAttributes({})).toEqual([...names.SEARCH_ATTRIBUTES]);
    expect(names.missingSearchAttributes(null)).toEqual([...names.SEARCH_ATTRIBUTES]);
  });
});
