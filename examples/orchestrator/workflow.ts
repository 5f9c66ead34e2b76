// An orchestrator as adopters write one: three long calls side by side, one of them no longer wanted after a while.
// Nothing but `callTool` and the Temporal SDK is needed here.

import { CancellationScope, sleep } from '@temporalio/workflow';
import { callTool } from 'durable-tool-calls/call-tool';

export interface ReportEnd {
  readonly topic: string;
  readonly outcome: string;
  readonly resultDigest: string | null;
}

export async function writeReports(runName: string, server: string): Promise<ReportEnd[]> {
  // The name is the call's node in this graph: explicit, and the same after a retry or a reset.
  const report = async (topic: string): Promise<ReportEnd> => {
    const { outcome, receipt } = await callTool({
      callNodeId: `${runName}/report/${topic}`,
      server,
      tool: 'simulate-research-query',
      arguments: { topic },
    });
    // Only `completed` may start a next step; every other outcome is an answer too, not an exception.
    return { topic, outcome, resultDigest: receipt.result?.digest ?? null };
  };
  const unwanted = new CancellationScope();
  const calls = [report('tides'), report('glaciers'), unwanted.run(() => report('volcanoes'))];
  await sleep('1.5s');
  unwanted.cancel();
  return Promise.all(calls);
}
