// Owns the workflows of callers, as adopters write them. Runs in the workflow sandbox.

import {
  ApplicationFailure,
  condition,
  continueAsNew,
  defineSignal,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { callTool, type CallToolOptions, type ToolCallEnd } from 'durable-tool-calls/call-tool';

export type Ended = ToolCallEnd;

export const goOn = defineSignal('goOn');

export async function callOne(options: CallToolOptions): Promise<ToolCallEnd> {
  return callTool(options);
}

/** Begins the call, and gives up this run once the test says so; the next run calls again under the same name. */
export async function callAndContinueAsNew(options: CallToolOptions, isSecond = false): Promise<ToolCallEnd> {
  if (isSecond) return callTool(options);
  await beginAndWait(options);
  return continueAsNew<typeof callAndContinueAsNew>(options, true);
}

/** The first attempt fails after it began the call; the retried one calls again under the same name. */
export async function callAndFail(options: CallToolOptions): Promise<ToolCallEnd> {
  if (workflowInfo().attempt > 1) return callTool(options);
  await beginAndWait(options);
  throw ApplicationFailure.retryable('the first attempt fails');
}

async function beginAndWait(options: CallToolOptions): Promise<void> {
  let isTold = false;
  setHandler(goOn, () => {
    isTold = true;
  });
  callTool(options).catch(() => {});
  await condition(() => isTold);
}
