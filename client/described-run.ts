// Owns what the engine tells of a run without any worker: pending work, live status, memo, search attributes.
// Must never wait for a worker.

import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { decodeArrayFromPayloads } from '@temporalio/common/lib/internal-non-workflow/index.js';
import type { LiveStatus } from '../operation/live-status.js';
import { ACTIVITIES, OPERATION_STATES, type OperationState } from '../operation/names.js';

/** Work overdue by more than this waits for a worker; pollers stay listed for minutes after their death. */
const OVERDUE_MS = 5_000;

export interface DescribedRun {
  readonly runId: string;
  readonly status: WorkflowExecutionDescription['status']['name'];
  readonly historyLength: number;
  readonly requestDigest: string | null;
  readonly server: string | null;
  readonly tool: string | null;
  readonly state: OperationState;
  readonly adapter: string | null;
  readonly live: LiveStatus | null;
  readonly waitingForWorkerSince: number | null;
}

interface Timestamp {
  readonly seconds?: unknown;
  readonly nanos?: number | null;
}
interface PendingActivity {
  readonly activityType?: { readonly name?: string | null } | null;
  readonly state?: unknown;
  readonly heartbeatDetails?: { readonly payloads?: unknown[] | null } | null;
  readonly scheduledTime?: Timestamp | null;
  readonly nextAttemptScheduleTime?: Timestamp | null;
}

const ACTIVITY_STARTED = 2;
const WORKFLOW_TASK_SCHEDULED = 1;

export async function describeRun(client: Client, workflowId: string, runId?: string): Promise<DescribedRun> {
  const description = await client.workflow.getHandle(workflowId, runId).describe();
  const raw = description.raw as unknown as {
    pendingActivities?: PendingActivity[] | null;
    pendingWorkflowTask?: { state?: unknown; scheduledTime?: Timestamp | null } | null;
  };
  const pending = raw.pendingActivities ?? [];
  const live = await liveStatusOf(client, pending);
  const memo = (description.memo ?? {}) as Record<string, unknown>;
  const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  const attributes = (description.searchAttributes ?? {}) as Record<string, unknown[] | undefined>;
  return {
    runId: description.runId,
    status: description.status.name,
    historyLength: description.historyLength,
    requestDigest: text(memo['requestDigest']),
    server: text(memo['server']),
    tool: text(memo['tool']),
    state: stateOf(text(attributes['OperationState']?.[0]), pending, live, Boolean(raw.pendingWorkflowTask)),
    adapter: text(attributes['ProtocolAdapter']?.[0]),
    live,
    waitingForWorkerSince: description.status.name === 'RUNNING' ? overdueSince(raw, pending) : null,
  };
}

/** The search attribute where there is one; else what the pending work says. */
function stateOf(
  attribute: string | null,
  pending: readonly PendingActivity[],
  live: LiveStatus | null,
  isBetweenSteps: boolean,
): OperationState {
  if (attribute && (OPERATION_STATES as readonly string[]).includes(attribute))
    return attribute as OperationState;
  const names = pending.map((activity) => activity.activityType?.name);
  if (names.includes(ACTIVITIES.lookUp)) return 'SUBMISSION_UNKNOWN';
  if (names.includes(ACTIVITIES.cancel)) return 'CANCEL_REQUESTED';
  if (names.includes(ACTIVITIES.fetchResult) || names.includes(ACTIVITIES.accept)) return 'FETCHING_RESULT';
  if (names.includes(ACTIVITIES.observe))
    return live && live.openRounds.length > 0 ? 'INPUT_REQUIRED' : 'WORKING';
  // Nothing pending and nothing due: only a held operation rests like that.
  return names.length === 0 && !isBetweenSteps ? 'UNRESOLVED' : 'SUBMITTING';
}

async function liveStatusOf(client: Client, pending: readonly PendingActivity[]): Promise<LiveStatus | null> {
  for (const activity of pending) {
    const payloads = activity.heartbeatDetails?.payloads;
    if (!payloads || payloads.length === 0) continue;
    const [details] = await decodeArrayFromPayloads(client.options.loadedDataConverter, payloads as never);
    if (isLiveStatus(details)) return details;
  }
  return null;
}

function isLiveStatus(details: unknown): details is LiveStatus {
  return (
    typeof details === 'object' && details !== null && (details as LiveStatus).schema === 'liveStatus.v1'
  );
}

function overdueSince(
  raw: { pendingWorkflowTask?: { state?: unknown; scheduledTime?: Timestamp | null } | null },
  pending: readonly PendingActivity[],
): number | null {
  const due: number[] = [];
  const task = raw.pendingWorkflowTask;
  if (task && Number(task.state) === WORKFLOW_TASK_SCHEDULED)
    due.push(epochMs(task.scheduledTime) ?? Number.NaN);
  for (const activity of pending) {
    if (Number(activity.state) === ACTIVITY_STARTED) continue;
    due.push(epochMs(activity.nextAttemptScheduleTime) ?? epochMs(activity.scheduledTime) ?? Number.NaN);
  }
  const overdue = due.filter((at) => Number.isFinite(at) && Date.now() - at > OVERDUE_MS);
  return overdue.length === 0 ? null : Math.min(...overdue);
}

function epochMs(timestamp: Timestamp | null | undefined): number | null {
  if (!timestamp) return null;
  return Number(timestamp.seconds ?? 0) * 1_000 + Math.floor((timestamp.nanos ?? 0) / 1e6);
}
