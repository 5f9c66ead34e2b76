// Owns the stand-in for `@temporalio/workflow`, as far as the shipped workflow uses it: same words, virtual engine.
// Must never hold a rule of an operation. What it lacks fails the import of the workflow.

import { ActivityFailure, CancelledFailure } from '@temporalio/common';
import { Scope, type ActivityOptions } from './workflow-sandbox.js';

export { ActivityFailure };

export function isCancellation(error: unknown): boolean {
  if (error instanceof CancelledFailure) return true;
  return error instanceof ActivityFailure && error.cause instanceof CancelledFailure;
}

export const ActivityCancellationType = {
  WAIT_CANCELLATION_COMPLETED: 'WAIT_CANCELLATION_COMPLETED',
} as const;

/** `new CancellationScope` and `current` give the simulated scope itself. */
export const CancellationScope = Object.assign(
  function (options: { cancellable: boolean }) {
    return new Scope(Scope.current().sandbox, options.cancellable);
  },
  {
    current: () => Scope.current(),
    nonCancellable: <T>(fn: () => Promise<T>) => new Scope(Scope.current().sandbox, false).run(fn),
  },
);

export function condition(fn: () => boolean, timeoutMs?: number): Promise<boolean | undefined> {
  return Scope.current().sandbox.condition(fn, timeoutMs);
}

export function allHandlersFinished(): boolean {
  return Scope.current().sandbox.handlersRunning === 0;
}

interface Named {
  readonly kind: string;
  readonly name: string;
}
export const defineQuery = (name: string): Named => ({ kind: 'query', name });
export const defineSignal = (name: string): Named => ({ kind: 'signal', name });
export const defineUpdate = (name: string): Named => ({ kind: 'update', name });

export function setHandler(of: Named, handler: (message: unknown) => unknown): void {
  Scope.current().sandbox.handle(of.name, of.kind, handler);
}

export const uuid4 = (): string => Scope.current().sandbox.uuid();
export const workflowInfo = () => Scope.current().sandbox.info;
export const setCurrentDetails = (): void => {};
export const upsertSearchAttributes = (): void => {};

interface ProxyOptions {
  readonly heartbeatTimeout?: number;
  readonly retry: {
    readonly initialInterval: number;
    readonly backoffCoefficient: number;
    readonly maximumInterval?: number;
  };
}

type Activities = Record<string, (input: unknown) => Promise<unknown>>;

export const proxyActivities = (options: ProxyOptions): Activities => proxyOf(options, false);
export const proxyLocalActivities = (options: ProxyOptions): Activities => proxyOf(options, true);

/** A worker that dies with a local activity is noticed when its workflow task times out, or its queue is given up. */
const LOCAL_TIMEOUT_MS = 10_000;

function proxyOf({ heartbeatTimeout, retry }: ProxyOptions, isLocal: boolean): Activities {
  const options: ActivityOptions = {
    isLocal,
    heartbeatTimeoutMs: heartbeatTimeout ?? LOCAL_TIMEOUT_MS,
    initialIntervalMs: retry.initialInterval,
    backoffCoefficient: retry.backoffCoefficient,
    maximumIntervalMs: retry.maximumInterval ?? 100 * retry.initialInterval,
  };
  return new Proxy(
    {},
    { get: (_, type: string) => (input: unknown) => Scope.current().sandbox.activity(type, input, options) },
  );
}
