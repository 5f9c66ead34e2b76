// Owns the building and running of workers: one for workflows and steps, one for polls, on one connection.
// Must never hold a rule of an operation.

import { randomUUID } from 'node:crypto';
import type { DataConverter } from '@temporalio/common';
import {
  type NativeConnection,
  Worker,
  type WorkerInterceptors,
  type WorkerOptions,
} from '@temporalio/worker';
import { callNodeIdInProgress, createStepActivities } from '../activities/bind.js';
import { createCallActivities } from '../activities/calls.js';
import type { OperationEvent } from '../activities/events.js';
import type { Ports } from '../activities/ports.js';
import type { StepActivities } from '../activities/step-inputs.js';
import { createSweepActivities } from '../activities/sweep.js';
import { LIMITS } from '../operation/limits.js';
import { ACTIVITIES, DEFAULT_TASK_QUEUE, pollQueueOf, type SeamName } from '../operation/names.js';
import { checkSchema, digests } from '../primitives/node-primitives.js';
import type { ToolServer } from '../protocols/adapter.js';
import { endProgram } from '../protocols/mcp/stdio-channel.js';
import { createProtocolRegistry } from '../protocols/registry.js';
import type { ReceiptStore } from '../receipts/store.js';
import { workflowBundle } from './bundle.js';
import { callPorts } from './call-ports.js';
import { observedRegistry } from './observed-registry.js';
import { limitPollRate } from './poll-rate.js';
import { type Budgets, longestPlainCallMs, serverDirectory } from './server-directory.js';
import { ensureSweeper, type SweeperOptions, sweepPorts } from './sweeper.js';
import type { ToolServersConfig } from './tool-servers.js';

const DRAIN_MARGIN_MS = 5_000;

export interface ToolOperationWorkerOptions {
  readonly connection: NativeConnection;
  /** Default `default`. */
  readonly namespace?: string;
  /** Default `durable-tool-calls`; polls use `<taskQueue>-poll`. */
  readonly taskQueue?: string;
  /** From `loadToolServers` or `parseToolServers`. */
  readonly servers: ToolServersConfig;
  /** From `openSqliteStore`. The worker does not close it. */
  readonly store: ReceiptStore;
  readonly dataConverter?: DataConverter;
  readonly interceptors?: WorkerInterceptors;
  /** Budgets of new operations (ms); default: operation/limits.ts. Running ones keep theirs. */
  readonly budgets?: Budgets;
  /** ms that a running step may take after shutdown was asked; default: the longest plain call configured, and 5,000. */
  readonly shutdownGraceMs?: number;
  readonly maxCachedWorkflows?: number;
  readonly maxConcurrentSteps?: number;
  readonly maxConcurrentPolls?: number;
  /**
   * ms between two sweeps of this task queue (a schedule on the engine), which start open operations again whose run is
   * gone; default 60,000. 0: this worker makes no schedule.
   */
  readonly sweepEveryMs?: number;
  /** Told of every step and every exchange, for structured logs and metrics; must not throw. */
  readonly onEvent?: (event: OperationEvent) => void;
  /** Called with warnings and with faults of step bodies; default: standard error. */
  readonly log?: (message: string) => void;
  /** Called at named crash windows; tests kill the process there. */
  readonly seam?: (name: SeamName, callNodeId: string) => Promise<void>;
}

export interface ToolOperationWorker {
  /** Resolves when the worker has shut down; rejects where it failed. */
  run(): Promise<void>;
  shutdown(): void;
}

/** The activities of `toolOperation` over a store and servers, for people with their own Worker. */
export function createToolOperationActivities(
  options: Pick<
    ToolOperationWorkerOptions,
    'connection' | 'namespace' | 'servers' | 'store' | 'budgets' | 'log' | 'onEvent' | 'seam'
  >,
): StepActivities {
  const namespace = options.namespace ?? 'default';
  const log = options.log ?? ((message: string) => console.error(message));
  const tell = (event: OperationEvent): void => {
    if (event.kind === 'stepFault') {
      log(`step ${event.step} of ${event.callNodeId} will be tried again: ${event.message}`);
    }
    options.onEvent?.(event);
  };
  const ports: Ports = {
    receipts: options.store,
    protocols: observedRegistry(createProtocolRegistry(), tell, callNodeIdInProgress),
    servers: serverDirectory(options.servers, options.budgets),
    clock: { nowMs: () => Date.now() },
    random: Math.random,
    newToken: randomUUID,
    digests,
    checkSchema,
  };
  return createStepActivities(ports, {
    ...(options.seam ? { seam: options.seam } : {}),
    onEvent: tell,
    wakeObserve: (workflowId, runId) => wakeObserve(options.connection, namespace, workflowId, runId),
  });
}

/** Resetting the pending activity brings its next attempt forward and adds no history. Best effort. */
async function wakeObserve(
  connection: NativeConnection,
  namespace: string,
  workflowId: string,
  runId: string,
): Promise<void> {
  try {
    await connection.workflowService.resetActivity({
      namespace,
      execution: { workflowId, runId },
      identity: 'durable-tool-calls',
      type: ACTIVITIES.observe,
    });
  } catch {
    // Nothing pending, or a server without it: the next poll comes in its time.
  }
}

/**
 * Builds a worker for tool operations. Polls run on their own queue, so that their rate limits hold nothing else up.
 * @throws Error where the connection or namespace cannot be used
 */
export async function createToolOperationWorker(
  options: ToolOperationWorkerOptions,
): Promise<ToolOperationWorker> {
  const namespace = options.namespace ?? 'default';
  const taskQueue = options.taskQueue ?? DEFAULT_TASK_QUEUE;
  const log = options.log ?? ((message: string) => console.error(message));
  const { payloadConverterPath, failureConverterPath } = options.dataConverter ?? {};
  const workflowInterceptorModules = options.interceptors?.workflowModules;
  const bundle = await workflowBundle({
    ...(payloadConverterPath === undefined ? {} : { payloadConverterPath }),
    ...(failureConverterPath === undefined ? {} : { failureConverterPath }),
    ...(workflowInterceptorModules === undefined ? {} : { workflowInterceptorModules }),
  });
  const activities = createToolOperationActivities(options);
  const engine = callPorts(options.connection, namespace, options.dataConverter);
  const calls = createCallActivities(engine);
  const sweeper: SweeperOptions = {
    connection: options.connection,
    namespace,
    taskQueue,
    dataConverter: options.dataConverter,
    store: options.store,
    hasSearchAttributes: engine.hasSearchAttributes,
    onEvent: (event) => options.onEvent?.(event),
    log,
  };
  const shared: WorkerOptions = {
    connection: options.connection,
    namespace,
    taskQueue,
    // A submission cut short by a deploy would be in doubt.
    shutdownGraceTime: options.shutdownGraceMs ?? longestPlainCallMs(options.servers) + DRAIN_MARGIN_MS,
    ...(options.dataConverter ? { dataConverter: options.dataConverter } : {}),
    ...(options.interceptors ? { interceptors: options.interceptors } : {}),
  };
  const { observe, ...steps } = activities;
  const stepWorker = await Worker.create({
    ...shared,
    workflowBundle: bundle,
    activities: { ...steps, ...calls, ...createSweepActivities(sweepPorts(sweeper)) },
    // A killed worker must cost its workflows a second, not the default of ten.
    stickyQueueScheduleToStartTimeout: LIMITS.stickyTimeoutMs,
    maxConcurrentActivityTaskExecutions: options.maxConcurrentSteps ?? 100,
    ...(options.maxCachedWorkflows === undefined ? {} : { maxCachedWorkflows: options.maxCachedWorkflows }),
  });
  const pollWorker = await Worker.create({
    ...shared,
    taskQueue: pollQueueOf(taskQueue),
    activities: { observe },
    maxConcurrentActivityTaskExecutions: options.maxConcurrentPolls ?? 100,
  });
  await limitPollRate(options.connection, namespace, pollQueueOf(taskQueue), options.servers).catch(
    (error: Error) => {
      log(
        `poll rate limits could not be set on this cluster (${error.message}); polls are only spaced per operation`,
      );
    },
  );
  const sweepEveryMs = options.sweepEveryMs ?? LIMITS.sweepEveryMs;
  if (sweepEveryMs > 0) await ensureSweeper(sweeper, sweepEveryMs);
  const programs = programServers(options.servers);
  if (programs.length > 0) {
    const names = programs.map(({ name }) => name).join(', ');
    log(
      `${names}: a program of this worker process alone; a second worker on "${taskQueue}" would start another that knows ` +
        'nothing of its tasks, so run one worker',
    );
  }
  return runBoth(stepWorker, pollWorker, async () => {
    await Promise.all(programs.map((server) => endProgram(server)));
  });
}

function programServers({ servers }: ToolServersConfig): readonly ToolServer[] {
  return [...servers.values()].map(({ server }) => server).filter(({ program }) => program !== undefined);
}

/** `afterwards`: when no step runs any more. */
function runBoth(
  stepWorker: Worker,
  pollWorker: Worker,
  afterwards: () => Promise<void>,
): ToolOperationWorker {
  const shutdown = (): void => {
    for (const worker of [stepWorker, pollWorker]) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  return {
    run: async () => {
      const running = [stepWorker.run(), pollWorker.run()];
      try {
        await Promise.all(running);
      } finally {
        // One of them failed: the other must not go on alone.
        shutdown();
        await Promise.allSettled(running);
        await afterwards();
      }
    },
    shutdown,
  };
}
