// Owns how tests of jobs start one and name its end. Must never count by our own side.

import type { ToolOperationHandle } from '../../client/index.js';
import type { FaultCall, LabEngine } from './fault-lab.js';
import { endOf } from './lab.js';

/** A job under `at-most-once`, unless the call says otherwise. */
export function startJob(lab: LabEngine, call: FaultCall): Promise<ToolOperationHandle> {
  return lab.start({ tool: 'start_job', server: 'at-most-once', ...call });
}

export async function endOfJob(lab: LabEngine, call: FaultCall): Promise<string> {
  return endOf(await startJob(lab, call));
}
