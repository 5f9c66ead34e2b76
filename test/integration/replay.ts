// Owns the replay of a run against the shipped bundle.

import type { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { Runtime, Worker } from '@temporalio/worker';

export const BUNDLE = new URL('../../dist/workflow-bundle.js', import.meta.url).pathname;

let isQuiet = false;

/** @throws DeterminismViolationError where the shipped code takes another course than the history */
export async function replayHistory(history: unknown, workflowId: string): Promise<void> {
  if (!isQuiet) {
    const nothing = (): void => {};
    Runtime.install({
      logger: { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing },
    });
    isQuiet = true;
  }
  await Worker.runReplayHistory({ workflowBundle: { codePath: BUNDLE }, replayName: workflowId }, history, workflowId);
}

export async function replayRun(temporal: Client, workflowId: string, runId: string): Promise<void> {
  const history = await temporal.workflow.getHandle(workflowId, runId).fetchHistory();
  await replayHistory(JSON.parse(historyToJSON(history)), workflowId);
}
