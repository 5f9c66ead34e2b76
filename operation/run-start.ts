// Owns what every starter of a run gives the engine besides the input: its id, its memo, its first search attributes.
// Must never hold arguments: a memo is shown in lists.

import { LIMITS } from './limits.js';
import { type SearchAttributeName, workflowIdOf } from './names.js';
import { clip } from './policy.js';

export interface RunStart {
  readonly workflowId: string;
  readonly memo: { readonly requestDigest: string; readonly server: string; readonly tool: string };
  readonly staticSummary: string;
  readonly attributes: readonly (readonly [SearchAttributeName, string])[];
}

/** The same for callers, calling workflows and the sweeper: whoever starts it, it is the same operation. */
export function runStartOf(call: {
  readonly callNodeId: string;
  readonly requestDigest: string;
  readonly server: string;
  readonly tool: string;
}): RunStart {
  const { callNodeId, requestDigest, server, tool } = call;
  return {
    workflowId: workflowIdOf(callNodeId),
    memo: { requestDigest, server, tool },
    staticSummary: clip(`${server}/${tool}`, LIMITS.uiSummaryChars),
    attributes: [
      ['ToolServer', server],
      ['ToolName', tool],
      ['OperationState', 'SUBMITTING'],
    ],
  };
}
