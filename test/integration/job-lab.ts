// Owns how tests of jobs start one and name its end. Must never count by our own side.

import { ToolOperationError, type ToolOperationHandle } from '../../client/index.js';
import type { FaultCall, LabEngine } from './fault-lab.js';
import { until } from './lab.js';

/** A job under `at-most-once`, unless the call says otherwise. */
export function startJob(lab: LabEngine, call: FaultCall): Promise<ToolOperationHandle> {
  return lab.start({ tool: 'start_job', server: 'at-most-once', ...call });
}

/** An outcome, or `held: reason`. */
export async function endOf(handle: ToolOperationHandle): Promise<string> {
  try {
    return (await handle.result()).outcome;
  } catch (error) {
    if (!ToolOperationError.isInstance(error) || error.code !== 'OperationUnresolved') throw error;
    // A busy worker may not tell its reason at once.
    return `held: ${(await until(handle, ({ reason }) => reason !== null)).reason}`;
  }
}

export async function endOfJob(lab: LabEngine, call: FaultCall): Promise<string> {
  return endOf(await startJob(lab, call));
}
