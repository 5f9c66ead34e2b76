// Owns the turning of a chosen step into the activity call with its input.
// Must never look at outcomes.

import { workflowInfo } from '@temporalio/workflow';
import type { AcceptOutcome } from '../activities/step-inputs.js';
import { operatorWordOf, presentedBy } from '../operation/build-receipt.js';
import type { StepFact } from '../operation/facts.js';
import { LIMITS } from '../operation/limits.js';
import type { ObserveStep, Step } from '../operation/next-step.js';
import { waitDeadlineAt } from '../operation/policy.js';
import type { ToolOperation } from '../operation/record.js';
import type { SeenByRun } from '../operation/row.js';
import type { ToolOperationInput } from './contract.js';
import { opening, type StepContext, stepActivities } from './steps.js';

export type PerformableStep = Exclude<Step, { kind: 'awaitReply' | 'awaitOperator' | 'done' }>;

/** A reset run, or one that has had its row: then a missing row must not be made anew, but on an operator's word. */
function mustExist(record: ToolOperation): boolean {
  if (endsBehind(record)) return false;
  const { firstExecutionRunId, runId } = workflowInfo();
  return firstExecutionRunId !== runId || record.ledgerBehind !== null || record.policy !== null;
}

function endsBehind(record: ToolOperation): boolean {
  return record.ledgerBehind !== null && record.operator?.isAboutLedger === true;
}

/** For a row that may have forgotten it: the store says so, and on an operator's word it goes back into the row. */
function seenBy(record: ToolOperation): SeenByRun {
  const seen = record.terminalObservation;
  return {
    adapter: record.adapter,
    submissionPolicy: record.submissionPolicy,
    toolVersion: record.toolVersion,
    descriptorDigest: record.descriptorDigest,
    legs: record.submissionLegs,
    remoteReference: record.remoteReference,
    cancelGeneration: record.cancelGeneration,
    cancelReason: record.cancelReason,
    cancelDelivery: record.cancelDelivery,
    ...(record.earlierCancels ? { earlierCancels: record.earlierCancels } : {}),
    // Only what the far side said; an operator speaks again.
    terminalObservation: seen?.evidence === 'operator' ? null : seen,
    evidence: record.ledgerBehind?.evidence ?? 'the row misses what its run has seen',
    mayGiveBack: endsBehind(record),
  };
}

function contextOf(record: ToolOperation): StepContext {
  return {
    server: record.server,
    tool: record.tool,
    taskQueue: workflowInfo().taskQueue,
    synchronousBoundMs: record.policy?.synchronousBoundMs ?? LIMITS.synchronousBoundMs,
  };
}

function fenceOf(record: ToolOperation) {
  const { callNodeId, executionEpoch } = record;
  return { callNodeId, executionEpoch };
}

/** Runs one step; its fact, and what accept brings home besides. */
export async function performStep(
  step: PerformableStep,
  record: ToolOperation,
  input: ToolOperationInput,
): Promise<AcceptOutcome> {
  if (step.kind === 'accept') return performAccept(record);
  return { fact: await performFact(step, record, input), inlineResult: null };
}

function performFact(
  step: Exclude<PerformableStep, { kind: 'accept' }>,
  record: ToolOperation,
  input: ToolOperationInput,
): Promise<StepFact> {
  const fence = fenceOf(record);
  const activities = stepActivities(contextOf(record), step.kind === 'askHuman' ? 'observe' : step.kind);
  switch (step.kind) {
    case 'open': {
      const { callNodeId, requestDigest, server, tool, waitBudgetMs } = input;
      return opening.open({
        callNodeId,
        requestDigest,
        server,
        tool,
        waitBudgetMs,
        arguments: input.arguments,
        mustExist: mustExist(record),
        ...(record.policy === null ? {} : { seen: seenBy(record) }),
      });
    }
    case 'submit':
      return activities.submit({ ...fence, deadlineAt: step.deadlineAt, notBeforeAt: step.notBeforeAt });
    case 'lookUp':
      return activities.lookUp({
        ...fence,
        notBeforeAt: step.notBeforeAt,
        deadlineAt: step.deadlineAt,
        given: step.given ?? null,
        ...(step.grounds === undefined ? {} : { grounds: step.grounds }),
      });
    case 'observe':
    case 'askHuman':
      return activities.observe({ ...fence, ...observeInput(step, record) });
    case 'answer':
      return activities.deliverAnswer({ ...fence, reply: step.reply, deadlineAt: step.deadlineAt });
    case 'cancel':
      return activities.sendCancel({ ...fence, reason: step.reason, generation: step.generation });
    case 'fetchResult':
      return activities.fetchResult({
        ...fence,
        notBeforeAt: step.notBeforeAt,
        deadlineAt: record.fetchDeadlineAt,
      });
    case 'recordEnd': {
      const { remoteId, terminalStatus } = presentedBy(record);
      return activities.recordOperatorEnd({
        ...fence,
        ...step.end,
        note: step.note,
        seen: { remoteId, terminalStatus },
      });
    }
  }
}

function observeInput(step: ObserveStep, record: ToolOperation) {
  const isAsking = step.kind === 'askHuman';
  return {
    openRoundIds: step.openRoundIds,
    // Once the question is answered in mid-step, the wait budget counts again.
    waitDeadlineAt: isAsking ? waitDeadlineAt(record) : step.deadlineAt,
    inputDeadlineAt: isAsking ? step.deadlineAt : null,
    notBeforeAt: step.notBeforeAt,
    freshSession: step.freshSession,
    once: step.once,
    cursor: record.pollCursor,
    expiresAt: record.expiresAt,
  };
}

function performAccept(record: ToolOperation): Promise<AcceptOutcome> {
  return stepActivities(contextOf(record), 'accept').acceptTerminal({
    ...fenceOf(record),
    presented: presentedBy(record),
    course: {
      cursor: record.pollCursor,
      remoteStatus: record.remoteStatus,
      statusMessage: record.statusMessage,
      reason: record.hold?.reason ?? record.cancelAsked?.reason ?? null,
    },
    operator: operatorWordOf(record),
    submissionLegs: record.submissionLegs.length,
    cancelAskedAt: record.cancelAsked?.at ?? null,
  });
}
