// Owns the activities behind `callTool`: the digest of a call, and attaching to an operation that exists.
// Must never start, cancel or end anything.

import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { type DigestPrimitives, requestDigest } from '../operation/digests.js';
import { LIMITS } from '../operation/limits.js';
import { workflowIdOf } from '../operation/names.js';
import type { AttachedCall, CallActivities } from './call-inputs.js';

/** What the engine tells of the last run of a workflow id; null where there is none. */
export interface DescribedCall {
  readonly requestDigest: string | null;
  readonly status: 'running' | 'completed' | 'closed';
  /** Closed, because a person terminated it: not reset, not lost with its engine. */
  readonly isTerminated: boolean;
  /** Of a completed run. */
  readonly end: () => Promise<Extract<AttachedCall, { kind: 'ended' }>['end']>;
}

export interface CallPorts {
  readonly digests: DigestPrimitives;
  readonly hasSearchAttributes: () => Promise<boolean>;
  readonly describe: (workflowId: string) => Promise<DescribedCall | null>;
}

export function createCallActivities(ports: CallPorts): CallActivities {
  return {
    prepareCall: async ({ callNodeId, ...call }) => {
      const last = callNodeId === undefined ? null : await ports.describe(workflowIdOf(callNodeId));
      return {
        requestDigest: requestDigest(call, ports.digests),
        searchAttributes: await ports.hasSearchAttributes(),
        lastRunTerminated: last?.isTerminated ?? false,
      };
    },
    attachCall: async ({ callNodeId, requestDigest: digest }) => {
      Context.current().heartbeat();
      const found = await ports.describe(workflowIdOf(callNodeId));
      if (!found) return { kind: 'gone' };
      if (found.requestDigest !== digest) return { kind: 'conflict' };
      if (found.status === 'completed') return { kind: 'ended', end: await found.end() };
      if (found.status === 'closed') return { kind: 'gone', lastRunTerminated: found.isTerminated };
      throw ApplicationFailure.create({
        type: 'NotReady',
        message: `${callNodeId} is running`,
        nextRetryDelay: LIMITS.attachGapMs,
        category: ApplicationFailureCategory.BENIGN,
      });
    },
  };
}
