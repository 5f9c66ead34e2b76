// Owns `call --detach`: start a call and come back at once. Must never start what no living worker would go on with.

import type { ToolOperationHandle } from '../../client/index.js';
import { usesCluster } from '../config-file.js';
import { pollersOf } from '../engine-looks.js';
import { CommandError, EXIT_CODES } from '../exit-codes.js';
import { withRuntime } from '../open-place.js';
import { shellWord, writeView } from '../report.js';
import type { Runtime } from '../runtime.js';
import type { EngineNote } from '../state-directory.js';

interface Detachable {
  readonly answer: readonly string[];
  readonly timeout?: string;
  readonly stateDir: string;
}

/** @throws CommandError, before anything is read or written */
export function refuseUndetachable(options: Detachable, live: EngineNote | null): void {
  if (options.answer.length > 0 || options.timeout !== undefined) {
    throw new CommandError('--detach waits for nothing: leave out --timeout and --answer');
  }
  if (live?.kind === 'up' || usesCluster(process.env)) return;
  throw new CommandError(
    `--detach needs a running "dtc up" on ${options.stateDir}: without it nobody would go on with the call`,
  );
}

export interface DetachedCall {
  readonly callNodeId: string;
  readonly stateDir: string;
  readonly isJson: boolean;
  readonly begin: (runtime: Runtime) => Promise<ToolOperationHandle>;
}

/** @returns 0 where it was started, or is there already */
export function detachCall(call: DetachedCall): Promise<number> {
  return withRuntime({ stateDir: call.stateDir, configFile: null }, async (runtime) => {
    // Joined, the engine's own command has the worker; on a cluster it must be looked for.
    if (runtime.isEmbedded && (await pollersOf(runtime)) === 0) {
      throw new CommandError(
        `--detach needs a worker on the task queue "${runtime.taskQueue}" of ${runtime.temporalAddress}, and none is ` +
          'there: start "dtc up"',
      );
    }
    const handle = await call.begin(runtime);
    if (call.isJson) writeView(await handle.status(), true);
    else process.stdout.write(`${call.callNodeId}\n`);
    process.stderr.write(`started; to follow it: dtc watch ${shellWord(call.callNodeId)}\n`);
    return EXIT_CODES.completed;
  });
}
