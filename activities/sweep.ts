// Owns the sweep: open rows of the store whose run is gone are started again.
// Must never decide an outcome, start a second run beside one that is open, or begin anew what a receipt has ended.

import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { LIMITS } from '../operation/limits.js';
import { workflowIdOf } from '../operation/names.js';
import type { OpenRow, ReceiptStore } from '../receipts/store.js';

export interface SweepCounts {
  /** Open rows that were old enough. */
  readonly looked: number;
  readonly started: number;
  /** Open rows whose run has completed, so that there was a receipt: the store is older than its runs. */
  readonly behind: number;
  /** Open rows that a run of another engine took from ours. */
  readonly elsewhere: number;
  /** Not to be looked at or started this time; the next sweep tries again. */
  readonly failed: number;
}

export interface SweepActivities {
  readonly sweep: () => Promise<SweepCounts>;
}

/** The last run of an operation, as the engine describes it. */
export interface SweptRun {
  readonly status: 'running' | 'completed' | 'closed';
  readonly isTerminated: boolean;
  /** It failed because another run owns the row. */
  readonly isSuperseded: boolean;
}

export interface SweepPorts {
  readonly receipts: Pick<ReceiptStore, 'openRows' | 'readReceipt' | 'addEvidence'>;
  readonly nowMs: () => number;
  /** Workflow ids of open runs. May lag: what is missing is asked for, one by one. */
  readonly runningIds: () => Promise<ReadonlySet<string>>;
  readonly describe: (workflowId: string) => Promise<SweptRun | null>;
  /** Whether this engine has, or remembers, that very run. */
  readonly knowsRun: (workflowId: string, runId: string) => Promise<boolean>;
  /** False where another start came first. */
  readonly start: (row: OpenRow, lastRunTerminated: boolean) => Promise<boolean>;
  readonly tell: (counts: SweepCounts) => void;
  readonly tellFault: (callNodeId: string, message: string) => void;
}

/** One attempt of a sweep: where it goes on, and how it says that it lives. */
export interface SweepCourse {
  readonly after: string | null;
  readonly beat: (callNodeId: string) => void;
  readonly isStopped: () => boolean;
}

const PAGE_ROWS = 200;

export function createSweepActivities(ports: SweepPorts): SweepActivities {
  return {
    sweep: async () => {
      const { info, cancellationSignal } = Context.current();
      const course: SweepCourse = {
        after: typeof info.heartbeatDetails === 'string' ? info.heartbeatDetails : null,
        beat: (callNodeId) => Context.current().heartbeat(callNodeId),
        isStopped: () => cancellationSignal.aborted,
      };
      const counts = await sweep(ports, course);
      if (counts.looked > 0 && counts.failed === counts.looked)
        throw ApplicationFailure.retryable('nothing could be looked at', 'SweepFailed');
      return counts;
    },
  };
}

/**
 * A crash anywhere in it is harmless: a start is idempotent by its workflow id, and the next attempt goes on after the
 * last row it has beaten for.
 */
export async function sweep(ports: SweepPorts, course: SweepCourse): Promise<SweepCounts> {
  const counts = { looked: 0, started: 0, behind: 0, elsewhere: 0, failed: 0 };
  const createdBeforeAt = ports.nowMs() - LIMITS.sweepAgeMs;
  const running = await ports.runningIds();
  let { after } = course;
  for (;;) {
    const rows = await ports.receipts.openRows({ after, limit: PAGE_ROWS, createdBeforeAt });
    for (const row of rows) {
      if (course.isStopped()) return counts;
      counts.looked += 1;
      const came = running.has(workflowIdOf(row.callNodeId)) ? 'running' : await sweepRow(row, ports);
      if (came !== 'running') counts[came] += 1;
      course.beat(row.callNodeId);
    }
    after = rows.at(-1)?.callNodeId ?? null;
    if (after === null || rows.length < PAGE_ROWS) break;
  }
  ports.tell(counts);
  return counts;
}

type Came = 'running' | 'started' | 'behind' | 'elsewhere' | 'failed';

async function sweepRow(row: OpenRow, ports: SweepPorts): Promise<Came> {
  try {
    return await lookAt(row, ports);
  } catch (error) {
    // One row must not keep the others from their turn.
    ports.tellFault(row.callNodeId, error instanceof Error ? error.message : 'unknown fault');
    return 'failed';
  }
}

async function lookAt(row: OpenRow, ports: SweepPorts): Promise<Came> {
  const workflowId = workflowIdOf(row.callNodeId);
  const last = await ports.describe(workflowId);
  if (last?.status === 'running') return 'running';
  if (last?.status === 'completed') return findReceiptLost(row, ports);
  // The engine has forgotten since that it had completed, the store has not.
  if (row.isReceiptLost) return 'behind';
  if (last?.isSuperseded && !(await ports.knowsRun(workflowId, row.ownerRunId))) return 'elsewhere';
  return (await ports.start(row, last?.isTerminated ?? false)) ? 'started' : 'running';
}

/** A run completes only with a receipt; where the store has none, a backup took its place. */
async function findReceiptLost(row: OpenRow, ports: SweepPorts): Promise<Came> {
  // Or it ended between our two looks.
  if (await ports.receipts.readReceipt(row.callNodeId)) return 'running';
  const detail = 'its run has completed, so there was a receipt: the store is older than its runs';
  await ports.receipts.addEvidence(row.callNodeId, 'receipt-lost', detail, ports.nowMs());
  return 'behind';
}
