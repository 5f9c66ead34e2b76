// Owns what a command asks the engine about itself: version, search attributes, queues and their limits.
// Must never change anything there.

import type { Runtime } from './runtime.js';

type Asked = Pick<Runtime, 'temporal' | 'taskQueue'>;

const WORKFLOW_QUEUE = 1;
const ACTIVITY_QUEUE = 2;

/** Workers that asked the queue for work within the last minutes. */
export async function pollersOf({ temporal, taskQueue }: Asked): Promise<number> {
  const { pollers } = await temporal.connection.workflowService.describeTaskQueue({
    namespace: temporal.options.namespace,
    taskQueue: { name: taskQueue },
    taskQueueType: WORKFLOW_QUEUE,
  });
  return pollers?.length ?? 0;
}

export interface QueueLimits {
  /** Polls per second of a server without a weight of its own; null where none is set. */
  readonly defaultPerSecond: number | null;
  readonly weights: Readonly<Record<string, number>>;
}

export async function limitsOf({ temporal }: Asked, queue: string): Promise<QueueLimits> {
  const { config } = await temporal.connection.workflowService.describeTaskQueue({
    namespace: temporal.options.namespace,
    taskQueue: { name: queue },
    taskQueueType: ACTIVITY_QUEUE,
    reportConfig: true,
  });
  return {
    defaultPerSecond: config?.fairnessKeysRateLimitDefault?.rateLimit?.requestsPerSecond ?? null,
    weights: config?.fairnessWeightOverrides ?? {},
  };
}

/** Null where the server does not tell. */
export async function partitionsOf({ temporal }: Asked, queue: string): Promise<number | null> {
  try {
    const { activityTaskQueuePartitions } = await temporal.connection.workflowService.listTaskQueuePartitions(
      {
        namespace: temporal.options.namespace,
        taskQueue: { name: queue },
      },
    );
    return activityTaskQueuePartitions?.length || null;
  } catch {
    return null;
  }
}

/** `IndexedValueType` by number. */
const TYPES = ['Unspecified', 'Text', 'Keyword', 'Int', 'Double', 'Bool', 'Datetime', 'KeywordList'] as const;

export async function searchAttributeTypes({ temporal }: Asked): Promise<Readonly<Record<string, string>>> {
  const { namespace } = temporal.options;
  const { customAttributes } = await temporal.connection.operatorService.listSearchAttributes({ namespace });
  const entries = Object.entries(customAttributes ?? {});
  return Object.fromEntries(entries.map(([name, type]) => [name, TYPES[Number(type)] ?? `type ${type}`]));
}

export async function serverVersion({ temporal }: Asked): Promise<string> {
  const { serverVersion: version } = await temporal.connection.workflowService.getSystemInfo({});
  return version || 'unknown';
}
