// Owns the stand-in for `@temporalio/activity`: the context of the attempt that asks.
// Must never decide how an attempt ends; the engine does.

import { AsyncLocalStorage } from 'node:async_hooks';

export interface AttemptContext {
  readonly info: {
    readonly activityType: string;
    readonly attempt: number;
    readonly heartbeatDetails: unknown;
    readonly workflowExecution: { readonly workflowId: string; readonly runId: string };
  };
  readonly cancellationSignal: AbortSignal;
  heartbeat(details: unknown): void;
}

export const attempts = new AsyncLocalStorage<AttemptContext>();

export const Context = {
  current(): AttemptContext {
    const attempt = attempts.getStore();
    if (!attempt) throw new Error('no activity runs here');
    return attempt;
  },
};
