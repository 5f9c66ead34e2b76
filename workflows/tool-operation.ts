// Owns the loop of one tool operation: perform the next step, fold its fact, fold the mail, ask again.
// Must never hold a rule: `apply` and `nextStep` do. Handlers only post; a throw in one would brick the run.

import {
  ActivityFailure,
  allHandlersFinished,
  CancellationScope,
  condition,
  isCancellation,
  setHandler,
  uuid4,
  workflowInfo,
} from '@temporalio/workflow';
import { ApplicationFailure, RetryState } from '@temporalio/common';
import type { AcceptOutcome } from '../activities/step-inputs.js';
import { apply } from '../operation/apply.js';
import type { Fact, OutsideFact } from '../operation/facts.js';
import { LIMITS } from '../operation/limits.js';
import { nextStep, type Step } from '../operation/next-step.js';
import { newOperation, type ToolOperation } from '../operation/record.js';
import { verdictOf } from '../operation/replies.js';
import * as contract from './contract.js';
import { type PerformableStep, performStep } from './perform-step.js';
import { readCancel, readOperatorWord, readReply } from './read-messages.js';
import { createShownState } from './shown-state.js';

/** A step under way; `outcome` is null where it was interrupted. */
interface Running {
  readonly step: PerformableStep;
  readonly scope: CancellationScope;
  settled: { outcome: AcceptOutcome | null } | { error: unknown } | null;
}

/** One long tool call, from submission to receipt. Completes only with a receipt, whatever the outcome. */
export async function toolOperation(input: contract.ToolOperationInput): Promise<contract.OperationEnd> {
  const native = CancellationScope.current().cancelRequested;
  return CancellationScope.nonCancellable(() => run(input, native));
}

async function run(
  input: contract.ToolOperationInput,
  native: Promise<never>,
): Promise<contract.OperationEnd> {
  const { callNodeId, requestDigest, server, tool } = input;
  const startedAt = workflowInfo().startTime.getTime();
  const lastRunTerminated = input.lastRunTerminated ?? false;
  let record = newOperation({ callNodeId, requestDigest, server, tool, startedAt, lastRunTerminated });
  let clockMs = startedAt;
  let inlineResult: string | null = null;
  const mail: OutsideFact[] = [];
  const show = createShownState(input.searchAttributes);

  // Time never runs backwards in the fold, whichever machine's clock brought the news.
  const now = (): number => (clockMs = Math.max(clockMs, Date.now()));
  const fold = (fact: Fact): void => {
    clockMs = Math.max(clockMs, fact.at, Date.now());
    record = apply(record, { ...fact, at: clockMs }).record;
  };
  const foldMail = (): void => {
    for (const fact of mail.splice(0)) fold(fact);
  };

  listen(mail, () => record, native);

  let watching: Running | null = null;
  const settle = (running: Running): void => {
    const { settled } = running;
    if (!settled) return;
    if ('error' in settled) {
      if (!isSuperseded(settled.error) || record.takeovers >= LIMITS.takeovers) throw settled.error;
      return fold({ kind: 'superseded', at: now() });
    }
    if (settled.outcome) {
      inlineResult = settled.outcome.inlineResult ?? inlineResult;
      fold(settled.outcome.fact);
    } else {
      fold({ kind: 'interrupted', at: now() });
    }
  };

  for (;;) {
    foldMail();
    const step = nextStep(record, now());
    if (watching && !goesBeside(step)) {
      // More urgent than looking: a result that arrives while being interrupted wins.
      const stopped: Running = watching;
      watching = null;
      await interrupt(stopped);
      settle(stopped);
      continue;
    }
    if (step.kind === 'done') break;
    if (step.kind === 'awaitReply' || step.kind === 'awaitOperator') {
      show(record);
      await waitForMail(mail, step.untilAt === null ? null : step.untilAt - now());
      fold({ kind: 'timePassed', at: now() });
      continue;
    }
    if (step.kind === 'observe' || step.kind === 'askHuman') {
      show(record);
      watching ??= begin(step, record, input);
      const current: Running = watching;
      await condition(() => current.settled !== null || mail.length > 0);
      if (current.settled) {
        watching = null;
        settle(current);
      }
      continue;
    }
    const running = begin(step, record, input);
    for (;;) {
      await condition(() => running.settled !== null || mail.length > 0);
      if (running.settled) break;
      foldMail();
      if (isInterruptible(step) && nextStep(record, now()).kind !== step.kind) await interrupt(running);
    }
    settle(running);
  }

  // Replies that came while the end was written get their verdict; so does the last of the mail.
  do {
    foldMail();
    await condition(() => mail.length > 0 || allHandlersFinished());
  } while (mail.length > 0);
  inlineResult ??= await inlineResultOf(record, input);
  show(record);
  if (!record.receipt) throw new Error('a run ended without a receipt');
  return { receipt: record.receipt, resultJson: inlineResult };
}

/** A run that adopted an ended row has not seen its result: accepting again brings it, and writes nothing. */
async function inlineResultOf(
  record: ToolOperation,
  input: contract.ToolOperationInput,
): Promise<string | null> {
  const sizeBytes = record.receipt?.result?.sizeBytes ?? Number.POSITIVE_INFINITY;
  if (sizeBytes > LIMITS.inlineResultBytes) return null;
  return (await performStep({ kind: 'accept' }, record, input)).inlineResult;
}

/** Handlers only post facts. The update waits for the verdict that the fold gives its reply. */
function listen(mail: OutsideFact[], record: () => ToolOperation, native: Promise<never>): void {
  const postReply = (reply: contract.ReplyMessage): string => {
    const replyToken = uuid4();
    mail.push({ kind: 'replyGiven', at: Date.now(), reply: { ...reply, replyToken } });
    return replyToken;
  };
  setHandler(
    contract.answerUpdate,
    async (message) => {
      const reply = readReply(message);
      if (typeof reply === 'string') return { kind: 'refused', reason: reply };
      const replyToken = postReply(reply);
      await condition(() => verdictOf(record(), replyToken) !== null);
      return verdictOf(record(), replyToken) ?? { kind: 'roundClosed' };
    },
    {
      // A refusal here leaves no event; the schema is checked by the answer step.
      validator: (message) => {
        const reply = readReply(message);
        if (typeof reply === 'string') throw new TypeError(reply);
      },
    },
  );
  setHandler(contract.answerSignal, (message) => {
    const reply = readReply(message);
    if (typeof reply !== 'string') postReply(reply);
  });
  setHandler(contract.cancelSignal, (message) => {
    mail.push({ kind: 'cancelRequested', at: Date.now(), ...readCancel(message) });
  });
  setHandler(contract.operatorSignal, (message) => {
    const word = readOperatorWord(message);
    if (word) mail.push({ kind: 'operatorDecided', at: Date.now(), ...word });
  });
  setHandler(contract.restoredSignal, () => {
    mail.push({ kind: 'storeRestored', at: Date.now() });
  });
  // Who restored the store asks until the row has been compared: the mail may still hold the news of it.
  const isToReopen = (): boolean => mail.some(({ kind }) => kind === 'storeRestored');
  setHandler(contract.operationQuery, () => (isToReopen() ? { ...record(), reopen: true } : record()));
  // Native cancellation means the same as the signal: a request, never an end.
  native.catch(() => {
    mail.push({
      kind: 'cancelRequested',
      at: Date.now(),
      reason: 'workflow cancelled',
      requestedBy: 'engine',
    });
  });
}

/** An observation stays pending while people are asked and while their reply is delivered. */
function goesBeside(step: Step): boolean {
  return step.kind === 'observe' || step.kind === 'askHuman' || step.kind === 'answer';
}

function isInterruptible(step: PerformableStep): boolean {
  return ['submit', 'lookUp', 'answer', 'fetchResult'].includes(step.kind);
}

function begin(step: PerformableStep, record: ToolOperation, input: contract.ToolOperationInput): Running {
  const running: Running = { step, scope: new CancellationScope({ cancellable: true }), settled: null };
  running.scope
    .run(() => performStep(step, record, input))
    .then(
      (outcome) => (running.settled = { outcome }),
      (error: unknown) => (running.settled = isInterruption(error) ? { outcome: null } : { error }),
    );
  return running;
}

/** A cancelled attempt that then fails says CANCEL_REQUESTED instead of being a cancellation. */
function isInterruption(error: unknown): boolean {
  if (isCancellation(error)) return true;
  return error instanceof ActivityFailure && error.retryState === RetryState.CANCEL_REQUESTED;
}

/** Another run wrote under a newer epoch, and yet this one lives: a reset of an older run. It opens the row again. */
function isSuperseded(error: unknown): boolean {
  if (!(error instanceof ActivityFailure)) return false;
  return error.cause instanceof ApplicationFailure && error.cause.type === 'Superseded';
}

async function interrupt(running: Running): Promise<void> {
  running.scope.cancel();
  await condition(() => running.settled !== null);
}

async function waitForMail(mail: OutsideFact[], timeoutMs: number | null): Promise<void> {
  if (timeoutMs === null) await condition(() => mail.length > 0);
  else await condition(() => mail.length > 0, Math.max(timeoutMs, 1));
}
