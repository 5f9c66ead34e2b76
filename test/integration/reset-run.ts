// Owns the reset of a run as a person does it in the Temporal UI. Must never know what the run is about.

import type { Client } from '@temporalio/client';

/** The newest run of a workflow id, and its completed workflow tasks: the points it can be reset to. */
export async function workflowTasks(
  temporal: Client,
  workflowId: string,
): Promise<{ runId: string; tasks: number[] }> {
  const { runId } = await temporal.workflow.getHandle(workflowId).describe();
  const { events } = await temporal.workflow.getHandle(workflowId, runId).fetchHistory();
  const tasks = (events ?? []).flatMap((event) =>
    event.workflowTaskCompletedEventAttributes ? Number(event.eventId) : [],
  );
  return { runId, tasks };
}

export async function resetRun(
  temporal: Client,
  workflowId: string,
  runId: string,
  workflowTaskFinishEventId: number,
): Promise<void> {
  await temporal.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId, runId },
    reason: 'a person in the UI',
    requestId: crypto.randomUUID(),
    workflowTaskFinishEventId: workflowTaskFinishEventId as never,
  });
}
