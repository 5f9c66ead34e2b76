// Owns a native runtime that says nothing, for commands that tell themselves what they found.
// Must never be used where a worker works: its warnings would be lost.

import { Runtime } from '@temporalio/worker';

/** Once per process, before anything else of the SDK's native part. */
export function silenceWorkerRuntime(): void {
  const nothing = (): void => {};
  Runtime.install({
    logger: { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing },
    telemetryOptions: { logging: { filter: 'OFF', forward: {} } },
  });
}
