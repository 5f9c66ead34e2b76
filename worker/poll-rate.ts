// Owns the poll rate per server over all workers: limits of the poll queue, kept by the engine.
// Must never hold up a worker's start: a cluster that refuses them is warned about.

import type { NativeConnection } from '@temporalio/worker';
import { LIMITS } from '../operation/limits.js';
import type { ToolServersConfig } from './tool-servers.js';

/** Fairness key = server: 1 poll/s by default, a weight override = its polls per second. */
export async function limitPollRate(
  connection: NativeConnection,
  namespace: string,
  pollQueue: string,
  config: ToolServersConfig,
): Promise<void> {
  const weights: Record<string, number> = {};
  for (const [name, configured] of config.servers) {
    weights[name.slice(0, LIMITS.fairnessKeyBytes)] = configured.server.maxPollsPerSecond;
  }
  await connection.workflowService.updateTaskQueueConfig({
    namespace,
    identity: 'durable-tool-calls',
    taskQueue: pollQueue,
    taskQueueType: 2, // TASK_QUEUE_TYPE_ACTIVITY
    updateFairnessKeyRateLimitDefault: {
      rateLimit: { requestsPerSecond: 1 },
      reason: 'maxPollsPerSecond of the tool servers',
    },
    setFairnessWeightOverrides: weights,
  });
}
