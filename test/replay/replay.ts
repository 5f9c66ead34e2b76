// Owns the replay of a run against the shipped bundle.

import type { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { Runtime, Worker } from '@temporalio/worker';

export const BUNDLE = new URL('../../dist/workflow-bundle.js', import.meta.url).pathname;

let isQuiet = false;

/** Before anything else makes a runtime in this process. */
export function quietRuntime(): void {
  if (isQuiet) return;
  const nothing = (): void => {};
  Runtime.install({
    logger: { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing },
  });
  isQuiet = true;
}

/**
 * @param workflowsPath workflows of a caller; default: the shipped bundle
 * @throws DeterminismViolationError where the code takes another course than the history
 */
export async function replayHistory(
  history: unknown,
  workflowId: string,
  workflowsPath?: string,
): Promise<void> {
  quietRuntime();
  const code = workflowsPath === undefined ? { workflowBundle: { codePath: BUNDLE } } : { workflowsPath };
  const replay = () => Worker.runReplayHistory({ ...code, replayName: workflowId }, history, workflowId);
  const mine = last.then(replay, replay);
  last = mine.catch(() => undefined);
  await mine;
}

/** One at a time: the SDK ends its runtime with the last worker, also under a replay that is about to begin. */
let last: Promise<unknown> = Promise.resolve();

/** The history as JSON, without what tells of the machine it was recorded on. */
export async function readHistory(temporal: Client, workflowId: string, runId?: string): Promise<unknown> {
  const history = await temporal.workflow.getHandle(workflowId, runId).fetchHistory();
  return JSON.parse(historyToJSON(history), (key, value: unknown) =>
    key === 'identity' ? 'recorded' : value,
  );
}

export async function replayRun(temporal: Client, workflowId: string, runId: string): Promise<void> {
  await replayHistory(await readHistory(temporal, workflowId, runId), workflowId);
}
