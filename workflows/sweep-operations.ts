// Owns one sweep as the schedule starts it: a single activity, so that each look has its own history and no more.
// Must never decide an outcome: what it finds is started again, and that run decides.

import { proxyActivities } from '@temporalio/workflow';
import type { SweepActivities, SweepCounts } from '../activities/sweep.js';

/** The beat is a row: a store or an engine that answers slowly must not look dead. */
const SWEEP_HEARTBEAT_MS = 30_000;

export async function sweepOperations(): Promise<SweepCounts> {
  const { sweep } = proxyActivities<SweepActivities>({
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: SWEEP_HEARTBEAT_MS,
    // The next sweep comes anyway.
    retry: { initialInterval: 1_000, maximumAttempts: 3 },
  });
  return sweep();
}
