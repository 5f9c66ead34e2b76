// Owns the binding of the step bodies to Temporal: heartbeats, cancellation, failures, seams. The only such file.
// Must never hold a rule of an operation; bodies and core do.

import { asyncLocalStorage, Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory, CancelledFailure } from '@temporalio/common';
import { ENGINE_ERRORS, type EngineErrorCode } from '../operation/errors.js';
import type { StepFact } from '../operation/facts.js';
import { LIMITS } from '../operation/limits.js';
import type { LiveStatus } from '../operation/live-status.js';
import { callNodeIdOf, type SeamName } from '../operation/names.js';
import { clip } from '../operation/policy.js';
import { StoreError } from '../receipts/store.js';
import { eventsOf, type OperationEvent } from './events.js';
import { type Attempt, type Ports, StepInterrupted, StepRetry, StepStop } from './ports.js';
import type {
  AcceptInput,
  AcceptOutcome,
  FromWorkflow,
  OpenInput,
  StepActivities,
  StepInput,
} from './step-inputs.js';
import { acceptTerminal } from './steps/accept.js';
import { deliverAnswer } from './steps/answer.js';
import { sendCancel } from './steps/cancel.js';
import { fetchResult } from './steps/fetch-result.js';
import { lookUp } from './steps/look-up.js';
import { observe } from './steps/observe.js';
import { open } from './steps/open.js';
import { recordOperatorEnd } from './steps/record-operator-end.js';
import { submit } from './steps/submit.js';

export interface BindOptions {
  /** Called at every named seam; tests kill the process there. */
  readonly seam?: (name: SeamName, callNodeId: string) => Promise<void>;
  /** Brings the pending observation of a run forward, best effort (a reply was just delivered). */
  readonly wakeObserve?: (workflowId: string, runId: string) => Promise<void>;
  /** Told of every step's end, for logs and metrics; must not throw. */
  readonly onEvent?: (event: OperationEvent) => void;
}

/** The activities of `toolOperation`, for any Worker. Steps that may not answer twice are safe to be retried. */
export function createStepActivities(ports: Ports, options: BindOptions = {}): StepActivities {
  const step = <I extends StepInput>(
    body: (input: I, ports: Ports, attempt: Attempt) => Promise<StepFact>,
  ) => {
    return (input: FromWorkflow<I>) =>
      told(
        input.callNodeId,
        options,
        null,
        (fact: StepFact) => fact,
        () =>
          inAttempt(
            input.callNodeId,
            options,
            (attempt) => body(ofThisRun<I>(input), ports, attempt),
            ledgerMissing,
          ),
      );
  };
  const deliver = step(deliverAnswer);
  return {
    open: (input) =>
      told(
        input.callNodeId,
        options,
        null,
        (fact: StepFact) => fact,
        () =>
          asFailure(
            () => open(ofThisRun<OpenInput>(input), ports),
            options,
            input.callNodeId,
            (error): StepFact => ({ ...ledgerMissing(error), isOpening: true }),
          ),
      ),
    submit: step(submit),
    lookUp: step(lookUp),
    observe: step(observe),
    deliverAnswer: async (input) => {
      const fact = await deliver(input);
      const { workflowExecution } = Context.current().info;
      if (workflowExecution)
        await options.wakeObserve?.(workflowExecution.workflowId, workflowExecution.runId);
      return fact;
    },
    sendCancel: step(sendCancel),
    fetchResult: step(fetchResult),
    recordOperatorEnd: step(recordOperatorEnd),
    acceptTerminal: (input) =>
      told(
        input.callNodeId,
        options,
        input.cancelAskedAt,
        (outcome: AcceptOutcome) => outcome.fact,
        () =>
          inAttempt<AcceptOutcome>(
            input.callNodeId,
            options,
            (attempt) => acceptTerminal(ofThisRun<AcceptInput>(input), ports, attempt),
            (error) => ({ fact: ledgerMissing(error), inlineResult: null }),
          ),
      ),
  };
}

/** The operation that the calling code works for, wherever in a step it stands; null outside of steps. */
export function callNodeIdInProgress(): string | null {
  const workflowId = asyncLocalStorage.getStore()?.info.workflowExecution?.workflowId;
  return workflowId === undefined ? null : callNodeIdOf(workflowId);
}

function ofThisRun<I extends { readonly runId: string }>(input: FromWorkflow<I>): I {
  const { workflowExecution } = Context.current().info;
  if (!workflowExecution) throw new Error('a step runs only for a workflow');
  return { ...input, runId: workflowExecution.runId } as unknown as I;
}

/** Tells of a step that ended with a fact. */
async function told<T>(
  callNodeId: string,
  options: BindOptions,
  cancelAskedAt: number | null,
  factOf: (outcome: T) => StepFact,
  run: () => Promise<T>,
): Promise<T> {
  const beganAt = performance.now();
  const outcome = await run();
  const durationMs = Math.round(performance.now() - beganAt);
  for (const event of eventsOf(factOf(outcome), identityOf(callNodeId), durationMs, cancelAskedAt)) {
    options.onEvent?.(event);
  }
  return outcome;
}

function identityOf(callNodeId: string): { callNodeId: string; step: string; attempt: number } {
  const { activityType, attempt } = Context.current().info;
  return { callNodeId, step: activityType, attempt };
}

function ledgerMissing(error: StoreError): Extract<StepFact, { kind: 'ledgerMissing' }> {
  return { kind: 'ledgerMissing', at: Date.now(), evidence: clip(error.message, LIMITS.evidenceChars) };
}

async function inAttempt<T>(
  callNodeId: string,
  options: BindOptions,
  body: (attempt: Attempt) => Promise<T>,
  onLedgerMissing: (error: StoreError) => T,
): Promise<T> {
  const context = Context.current();
  let shown = (context.info.heartbeatDetails as LiveStatus | undefined) ?? null;
  const beat = (): void => context.heartbeat(shown ?? undefined);
  beat();
  // The whole object with each beat: the engine keeps only the last one.
  const timer = setInterval(beat, LIMITS.heartbeatMs);
  const attempt: Attempt = {
    signal: context.cancellationSignal,
    attempt: context.info.attempt,
    seam: async (name) => options.seam?.(name, callNodeId),
    show: (live) => {
      shown = live;
      beat();
    },
    lastShown: () => shown,
  };
  try {
    return await asFailure(() => body(attempt), options, callNodeId, onLedgerMissing);
  } finally {
    clearInterval(timer);
  }
}

async function asFailure<T>(
  body: () => Promise<T>,
  options: BindOptions,
  callNodeId: string,
  onLedgerMissing: (error: StoreError) => T,
): Promise<T> {
  try {
    return await body();
  } catch (error) {
    if (StoreError.isInstance(error) && error.code === 'LedgerMissing') return onLedgerMissing(error);
    tellOfError(error, options, callNodeId);
    throw toFailure(error);
  }
}

function tellOfError(error: unknown, options: BindOptions, callNodeId: string): void {
  if (error instanceof StepInterrupted) return;
  const identity = identityOf(callNodeId);
  if (error instanceof StepRetry) {
    const { code, delayMs } = error;
    options.onEvent?.({ ...identity, kind: 'stepRetried', code, delayMs });
    return;
  }
  const message = clip(error instanceof Error ? error.message : 'unknown fault', LIMITS.failureMessageChars);
  options.onEvent?.({ ...identity, kind: 'stepFault', message });
}

/** The one place where a body's end becomes an ApplicationFailure. Messages are short: longer ones lose their type. */
function toFailure(error: unknown): Error {
  if (error instanceof StepInterrupted) return new CancelledFailure(error.message);
  if (error instanceof StepRetry) return failure(error.code, error.message, error.delayMs);
  if (error instanceof StepStop) return failure(error.code, error.message, null);
  if (StoreError.isInstance(error)) {
    if (error.code === 'Superseded') return failure('Superseded', error.message, null);
    return failure('StoreUnavailable', error.message, LIMITS.fetchRetryMs);
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown error';
  return ApplicationFailure.create({
    type: 'StepFailed',
    message: clip(message, LIMITS.failureMessageChars),
    nonRetryable: false,
  });
}

function failure(code: EngineErrorCode, message: string, delayMs: number | null): ApplicationFailure {
  const isStop = ENGINE_ERRORS[code].retry === 'stop';
  const isExpected = code === 'NotReady' || code === 'NotSent';
  return ApplicationFailure.create({
    type: code,
    message: clip(message, LIMITS.failureMessageChars),
    nonRetryable: isStop,
    // A delay of 0 would end the activity at once.
    ...(delayMs === null ? {} : { nextRetryDelay: Math.max(Math.ceil(delayMs), 1) }),
    ...(isExpected ? { category: ApplicationFailureCategory.BENIGN } : {}),
  });
}
