// Owns the first step of every run: it creates the row or adopts it, and takes the epoch. Store-only.
// Must never reach a server. A crash before the commit leaves nothing, one after it finds the same row again.

import { jsonDigest, submissionKey } from '../../operation/digests.js';
import type { StepFact } from '../../operation/facts.js';
import type { Rejection } from '../../operation/row.js';
import { type Ports, StepStop } from '../ports.js';
import type { OpenInput } from '../step-inputs.js';

export async function open(input: OpenInput, ports: Ports): Promise<StepFact> {
  const opened = await ports.receipts.open({
    callNodeId: input.callNodeId,
    requestDigest: input.requestDigest,
    server: input.server,
    tool: input.tool,
    argumentsJson: JSON.stringify(input.arguments),
    argumentsDigest: jsonDigest(input.arguments, ports.digests),
    submissionKey: submissionKey(input.callNodeId, ports.digests),
    policy: ports.servers.policyOf(input.server, input.tool, { waitBudgetMs: input.waitBudgetMs }),
    rejection: rejectionOf(input, ports),
    runId: input.runId,
    mustExist: input.mustExist,
    seen: input.seen ?? null,
    at: ports.clock.nowMs(),
  });
  if (opened.kind === 'conflict') {
    throw new StepStop(
      'CallNodeConflict',
      `callNodeId "${input.callNodeId}" already names another call (other server, tool or arguments)`,
    );
  }
  return { kind: 'opened', at: ports.clock.nowMs(), row: opened.row };
}

function rejectionOf(input: OpenInput, ports: Ports): Rejection | null {
  const unavailable = ports.servers.unavailable(input.server);
  if (unavailable) return { code: 'unknown-server', message: unavailable };
  if (ports.servers.find(input.server)) return null;
  return { code: 'unknown-server', message: `tool server "${input.server}" is not configured on the worker` };
}
