// Owns how each step is asked of the engine: queues, timeouts, retries, summaries.
// Must never decide which step comes next.

import { proxyActivities, proxyLocalActivities, ActivityCancellationType } from '@temporalio/workflow';
import type { RetryPolicy } from '@temporalio/common';
import type { StepActivities } from '../activities/step-inputs.js';
import { LIMITS } from '../operation/limits.js';
import { pollQueueOf } from '../operation/names.js';
import { clip } from '../operation/policy.js';

/** Steps are retried for ever: a body ends with an outcome, or is not done. */
const RETRY: RetryPolicy = {
  initialInterval: 1_000,
  backoffCoefficient: 2,
  maximumInterval: 30_000,
};
/** A poll's spacing comes with each attempt's end; this is only the pace after a crash. */
const POLL_RETRY: RetryPolicy = { initialInterval: 1_000, backoffCoefficient: 1 };

const STEP_TIMEOUT_MS = 2 * LIMITS.requestTimeoutMs;
/** Results of tens of megabytes cross the wire and the store. */
const FETCH_TIMEOUT_MS = 4 * LIMITS.requestTimeoutMs;
/** A busy worker must not look dead while a submission is in flight: that would make it ambiguous. */
const SUBMIT_HEARTBEAT_MS = 5_000;

export interface StepContext {
  readonly server: string;
  readonly tool: string;
  readonly taskQueue: string;
  readonly synchronousBoundMs: number;
}

export const opening = proxyLocalActivities<Pick<StepActivities, 'open'>>({
  startToCloseTimeout: STEP_TIMEOUT_MS,
  retry: RETRY,
});

export function stepActivities(context: StepContext, kind: string): Omit<StepActivities, 'open'> {
  const summary = clip(`${kind} ${context.server}/${context.tool}`, LIMITS.uiSummaryChars);
  const cancellationType = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED;
  const common = { retry: RETRY, cancellationType, summary, heartbeatTimeout: LIMITS.heartbeatTimeoutMs };
  switch (kind) {
    case 'submit':
      return proxyActivities({
        ...common,
        startToCloseTimeout: context.synchronousBoundMs + STEP_TIMEOUT_MS,
        heartbeatTimeout: SUBMIT_HEARTBEAT_MS,
      });
    case 'observe':
      return proxyActivities({
        ...common,
        startToCloseTimeout: FETCH_TIMEOUT_MS,
        retry: POLL_RETRY,
        taskQueue: pollQueueOf(context.taskQueue),
        priority: { fairnessKey: fairnessKeyOf(context.server) },
      });
    case 'fetchResult':
    case 'accept':
      return proxyActivities({ ...common, startToCloseTimeout: FETCH_TIMEOUT_MS });
    default:
      return proxyActivities({ ...common, startToCloseTimeout: STEP_TIMEOUT_MS });
  }
}

/** Over 64 bytes the engine refuses the command and bricks the run. Server names are checked for it too. */
function fairnessKeyOf(server: string): string {
  return server.slice(0, LIMITS.fairnessKeyBytes);
}
