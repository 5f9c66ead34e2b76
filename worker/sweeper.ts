// Owns the sweeper as a worker has it: its schedule on the engine, and how a sweep sees the engine.
// Must never hold a rule of the sweep, nor keep a worker from running where the engine allows no schedules.
//
// A sweep sees one store and one namespace. Where two engines share a store, an open row whose run lives on the other one
// looks like a row without a run: it is started here too and takes the epoch. Nothing is submitted twice, the other run
// is superseded, and the one receipt is written here. That is chosen for an engine that was lost, whose operations must
// end all the same; beside an engine that lives, switch the sweeper off in the workers of one of the two (`sweepEveryMs: 0`).
// An operation that the other engine has taken back is left alone, so that the two never take turns for ever.

import {
  Client,
  ScheduleAlreadyRunning,
  ScheduleOverlapPolicy,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import {
  ApplicationFailure,
  type DataConverter,
  defineSearchAttributeKey,
  TypedSearchAttributes,
} from '@temporalio/common';
import type { NativeConnection } from '@temporalio/worker';
import type { OperationEvent } from '../activities/events.js';
import type { SweepCounts, SweepPorts, SweptRun } from '../activities/sweep.js';
import type { JsonObject } from '../operation/json.js';
import { SWEEP_WORKFLOW_TYPE, sweeperIdOf, WORKFLOW_TYPE } from '../operation/names.js';
import { runStartOf } from '../operation/run-start.js';
import type { OpenRow, ReceiptStore } from '../receipts/store.js';

export interface SweeperOptions {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly dataConverter: DataConverter | undefined;
  readonly store: ReceiptStore;
  readonly hasSearchAttributes: () => Promise<boolean>;
  readonly onEvent: (event: OperationEvent) => void;
  readonly log: (message: string) => void;
}

/** A missed sweep is not made up for: the next one sees the same rows. The engine takes no less than this. */
const CATCH_UP_MS = 10_000;
/** Of one sweep; without a worker it must not stay open for ever. */
const SWEEP_TIMEOUT = '15 minutes';

/** Makes the schedule, or brings it up to date; one that a person has paused stays paused. Never throws. */
export async function ensureSweeper(options: SweeperOptions, everyMs: number): Promise<void> {
  const { schedule } = clientOf(options);
  const scheduleId = sweeperIdOf(options.taskQueue);
  const spec = { intervals: [{ every: Math.max(everyMs, 1_000) }] };
  const policies = { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCH_UP_MS };
  const action = {
    type: 'startWorkflow' as const,
    workflowType: SWEEP_WORKFLOW_TYPE,
    workflowId: scheduleId,
    taskQueue: options.taskQueue,
    args: [],
    workflowExecutionTimeout: SWEEP_TIMEOUT,
  } as const;
  try {
    try {
      await schedule.create({ scheduleId, spec, policies, action });
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
      const handle = schedule.getHandle(scheduleId);
      await handle.update(({ state }) => ({ spec, policies, action, state }));
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown reason';
    options.log(
      `the schedule ${scheduleId} could not be made (${why}); an operation whose run was terminated goes on with the next same call`,
    );
  }
}

function clientOf({ connection, namespace, dataConverter }: SweeperOptions): Client {
  return new Client({ connection, namespace, ...(dataConverter ? { dataConverter } : {}) });
}

export function sweepPorts(options: SweeperOptions): SweepPorts {
  const { workflow } = clientOf(options);
  let lastTold = '';
  return {
    receipts: options.store,
    nowMs: () => Date.now(),
    runningIds: async () => {
      const ids = new Set<string>();
      const query = `WorkflowType = '${WORKFLOW_TYPE}' AND ExecutionStatus = 'Running'`;
      try {
        for await (const { workflowId } of workflow.list({ query, pageSize: 1_000 })) ids.add(workflowId);
      } catch {
        // No visibility: each one is asked for.
      }
      return ids;
    },
    describe: (workflowId) => describeLast(workflow, workflowId),
    knowsRun: (workflowId, runId) => isKnown(workflow.getHandle(workflowId, runId).describe()),
    start: async (row, lastRunTerminated) => startAgain(workflow, row, lastRunTerminated, options),
    tell: (counts) => {
      options.onEvent({ kind: 'swept', ...counts });
      const told = sentenceOn(counts);
      // What waits for an operator is said once, not every minute.
      if (told !== '' && (counts.started > 0 || told !== lastTold)) options.log(told);
      lastTold = told;
    },
    tellFault: (callNodeId, message) => options.log(`the sweep has passed over ${callNodeId}: ${message}`),
  };
}

function sentenceOn({ started, behind, elsewhere }: SweepCounts): string {
  const told: string[] = [];
  if (started > 0) told.push(`started again: ${started} without an open run`);
  if (behind > 0) told.push(`receipts lost from the store: ${behind}, see "dtc restored"`);
  if (elsewhere > 0) told.push(`owned by runs of another engine: ${elsewhere}`);
  return told.length === 0 ? '' : `sweep: ${told.join('; ')}`;
}

async function describeLast(workflow: Client['workflow'], workflowId: string): Promise<SweptRun | null> {
  try {
    const { status, runId } = await workflow.getHandle(workflowId).describe();
    const isTerminated = status.name === 'TERMINATED';
    const isSuperseded =
      status.name === 'FAILED' && (await failedAs(workflow, workflowId, runId, 'Superseded'));
    if (status.name === 'RUNNING') return { status: 'running', isTerminated, isSuperseded };
    return { status: status.name === 'COMPLETED' ? 'completed' : 'closed', isTerminated, isSuperseded };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

async function failedAs(
  workflow: Client['workflow'],
  workflowId: string,
  runId: string,
  type: string,
): Promise<boolean> {
  try {
    await workflow.getHandle(workflowId, runId, { followRuns: false }).result();
    return false;
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    for (let cause: unknown = error.cause; cause instanceof Error; cause = cause.cause) {
      if (cause instanceof ApplicationFailure && cause.type === type) return true;
    }
    return false;
  }
}

async function isKnown(described: Promise<unknown>): Promise<boolean> {
  try {
    await described;
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

/** As the caller started it: what a row holds is the request, and its `open` finds the rest. */
async function startAgain(
  workflow: Client['workflow'],
  row: OpenRow,
  lastRunTerminated: boolean,
  options: SweeperOptions,
): Promise<boolean> {
  const searchAttributes = await options.hasSearchAttributes();
  const { attributes, workflowId, ...start } = runStartOf(row);
  const { callNodeId, requestDigest, server, tool, waitBudgetMs } = row;
  const typed = new TypedSearchAttributes(
    attributes.map(([name, value]) => ({ key: defineSearchAttributeKey(name, 'KEYWORD'), value })),
  );
  try {
    await workflow.start(WORKFLOW_TYPE, {
      ...start,
      workflowId,
      taskQueue: options.taskQueue,
      args: [
        {
          callNodeId,
          requestDigest,
          server,
          tool,
          arguments: JSON.parse(row.argumentsJson) as JsonObject,
          waitBudgetMs,
          searchAttributes,
          ...(lastRunTerminated ? { lastRunTerminated } : {}),
        },
      ],
      workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
      workflowIdConflictPolicy: 'USE_EXISTING',
      ...(searchAttributes ? { typedSearchAttributes: typed } : {}),
    });
    return true;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
    throw error;
  }
}
