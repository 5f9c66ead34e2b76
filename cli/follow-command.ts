// Owns a command that stays with one operation until it ends, is held or the person leaves; over the end of an engine
// that it had only joined. Must never cancel by ending, nor call an operation ended that is not.

import { ToolOperationError, type ToolOperationHandle } from '../client/index.js';
import type { OperationView } from '../client/view.js';
import type { PreparedReply } from './call-request.js';
import { CommandError, EXIT_CODES, exitCodeOf } from './exit-codes.js';
import { followOperation, type Followed } from './follow-operation.js';
import type { Interrupts } from './interrupts.js';
import type { Progress } from './progress.js';
import { closeRuntime, type JsonForm, reportEnd, reportOpen } from './report.js';
import { openRuntime, type Runtime } from './runtime.js';

export interface FollowRequest {
  readonly callNodeId: string;
  readonly stateDir: string;
  readonly configFile: string | null;
  readonly prepared: PreparedReply[];
  readonly asks: boolean;
  readonly stopWaitingAt: number | null;
  readonly isJson: JsonForm;
  /** Starts or finds the operation. What it throws ends the command; nothing was begun then. */
  readonly begin: (runtime: Runtime) => Promise<ToolOperationHandle>;
}

/** @returns the exit code. @throws what `begin` throws, and CommandError */
export async function followCommand(
  request: FollowRequest,
  progress: Progress,
  interrupts: Interrupts,
): Promise<number> {
  for (;;) {
    const exitCode = await followOnce(request, progress, interrupts);
    if (exitCode !== null) return exitCode;
    progress.note('the command whose engine this one used has ended; going on with an engine of its own');
  }
}

/** Null where the engine went away with another command: begin again. */
async function followOnce(
  request: FollowRequest,
  progress: Progress,
  interrupts: Interrupts,
): Promise<number | null> {
  const { stateDir, configFile, prepared, asks, stopWaitingAt } = request;
  const runtime = await openRuntime({ stateDir, configFile, log: progress.note });
  let isOpen = false;
  try {
    if (interrupts.signal.aborted) {
      throw new CommandError('interrupted; this command has started nothing', EXIT_CODES.interrupted);
    }
    const handle = await request.begin(runtime);
    isOpen = true;
    const followed = await followOperation({
      handle,
      runtime,
      progress,
      prepared,
      asks,
      interrupts,
      stopWaitingAt,
    });
    isOpen = followed.kind !== 'ended';
    return await report(followed, handle, request, runtime);
  } catch (error) {
    // Once started, an error of ours says nothing of the operation's end.
    if (!isOpen || ToolOperationError.isInstance(error)) throw error;
    const why = error instanceof Error ? error.message : 'unknown reason';
    throw new CommandError(
      `lost sight of "${request.callNodeId}" (${why}); it goes on`,
      EXIT_CODES.notEnded,
      {
        cause: error,
      },
    );
  } finally {
    await closeRuntime(runtime, progress);
  }
}

async function report(
  followed: Followed,
  handle: ToolOperationHandle,
  request: FollowRequest,
  runtime: Runtime,
): Promise<number | null> {
  const { callNodeId, isJson, prepared } = request;
  switch (followed.kind) {
    case 'engineGone':
      return null;
    case 'ended': {
      const view = await handle.status();
      await reportEnd(view, followed.result.toolResult, { isJson, reader: runtime.reader });
      if (prepared.length > 0)
        process.stderr.write(`${prepared.length} --answer not used: no question was open\n`);
      return exitCodeOf(view);
    }
    case 'held':
      reportOpen(
        followed.view ?? (await lookOnce(handle)),
        `${followed.sentence}. What can be done: dtc unresolved.`,
        request,
        runtime,
      );
      return EXIT_CODES.notEnded;
    case 'timedOut':
      reportOpen(
        await lookOnce(handle),
        `stopped waiting for "${callNodeId}" after --timeout`,
        request,
        runtime,
      );
      return EXIT_CODES.notEnded;
    case 'interrupted':
      reportOpen(await lookOnce(handle), `interrupted; nothing was cancelled`, request, runtime);
      return EXIT_CODES.interrupted;
  }
}

/** The operation as it stands, or null where even that cannot be had now. */
async function lookOnce(handle: ToolOperationHandle): Promise<OperationView | null> {
  return handle.status().catch(() => null);
}
