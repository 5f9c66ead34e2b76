// Owns the one table of error codes: whether the engine retries, who acts, and what to do next.
// Must never hold a message about one operation; those are made where the error is raised.

export interface ErrorRule {
  /** What the engine does with an activity that fails so. */
  readonly retry: 'retry' | 'stop';
  readonly actor: 'nobody' | 'caller' | 'operator' | 'developer';
  readonly nextStep: string;
}

/** Codes that cross Temporal as the `type` of an ApplicationFailure. */
export const ENGINE_ERRORS = {
  NotReady: { retry: 'retry', actor: 'nobody', nextStep: 'the next attempt looks again' },
  NotSent: { retry: 'retry', actor: 'nobody', nextStep: 'sent again until the submit deadline' },
  StoreUnavailable: { retry: 'retry', actor: 'operator', nextStep: 'bring the store back; nothing is lost' },
  ServerNotConfigured: {
    retry: 'retry',
    actor: 'operator',
    nextStep: 'add the server to the configuration of this worker; nothing is lost',
  },
  Superseded: { retry: 'stop', actor: 'nobody', nextStep: 'a newer run owns this operation' },
  CallNodeConflict: {
    retry: 'stop',
    actor: 'caller',
    nextStep: 'use another callNodeId, or call again with the same server, tool and arguments',
  },
} as const satisfies Record<string, ErrorRule>;
export type EngineErrorCode = keyof typeof ENGINE_ERRORS;

/** Codes that callers of the client get. */
export const CALLER_ERRORS = {
  CallNodeConflict: ENGINE_ERRORS.CallNodeConflict,
  LocalTimeout: {
    retry: 'stop',
    actor: 'caller',
    nextStep: 'the operation goes on; ask for its result again',
  },
  OperationUnresolved: {
    retry: 'stop',
    actor: 'operator',
    nextStep: 'look at the evidence; never call again under another callNodeId',
  },
  OperationNotFound: { retry: 'stop', actor: 'caller', nextStep: 'check the callNodeId and the namespace' },
  InvalidRequest: { retry: 'stop', actor: 'caller', nextStep: 'mend the request; nothing was started' },
  ResultElsewhere: {
    retry: 'stop',
    actor: 'caller',
    nextStep: 'read the result by its digest with the receipts reader',
  },
} as const satisfies Record<string, ErrorRule>;
export type CallerErrorCode = keyof typeof CALLER_ERRORS;
