// Owns the one list of operations: what the store holds, brought up to date by the engine.
// Must never lose one that only one of both knows.

import type { OperationSummary } from '../client/index.js';
import type { OperationState, Outcome } from '../operation/names.js';
import type { ReceiptsReader } from '../receipts/open-store.js';
import type { StoredOperation } from '../receipts/store-reads.js';
import type { Runtime } from './runtime.js';

export interface ListedOperation {
  readonly callNodeId: string;
  readonly server: string | null;
  readonly tool: string | null;
  /** Null for an open operation without a run: the same call adopts it. */
  readonly state: OperationState | null;
  readonly outcome: Outcome | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
}

/** The newest first. `runtime` null: the store alone, where nothing can be open. */
export async function listedOperations(
  reader: ReceiptsReader | null,
  runtime: Runtime | null,
  includeEnded: boolean,
): Promise<readonly ListedOperation[]> {
  const found = new Map<string, ListedOperation>();
  // All of the store: a receipt counts more than a run that has not closed yet.
  for (const stored of (await reader?.list({ includeEnded: true })) ?? []) {
    found.set(stored.callNodeId, fromStore(stored));
  }
  if (runtime) {
    for await (const summary of runtime.client.list({ includeEnded })) {
      const known = found.get(summary.callNodeId);
      if (known && known.outcome !== null) continue;
      found.set(summary.callNodeId, await fromRun(summary, known, runtime));
    }
  }
  return [...found.values()]
    .filter((operation) => includeEnded || operation.outcome === null)
    .sort((a, b) => b.startedAt - a.startedAt);
}

function fromStore(stored: StoredOperation): ListedOperation {
  const { callNodeId, server, tool, createdAt, outcome, endedAt } = stored;
  const state = outcome === null ? null : endStateOf(outcome);
  return { callNodeId, server, tool, state, outcome, startedAt: createdAt, endedAt };
}

function endStateOf(outcome: Outcome): OperationState {
  if (outcome === 'cancelled') return 'CANCELLED_ACCEPTED';
  return outcome === 'rejected' ? 'REJECTED' : 'ACCEPTED';
}

async function fromRun(
  summary: OperationSummary,
  known: ListedOperation | undefined,
  { client }: Runtime,
): Promise<ListedOperation> {
  const { callNodeId, server, tool, isRunning, outcome } = summary;
  const startedAt = known?.startedAt ?? summary.startedAt;
  // A run that closed without an outcome has left its operation open, with nobody at work on it.
  const isOver = !isRunning && outcome !== null;
  const common = { callNodeId, server, tool, startedAt, outcome: isOver ? outcome : null };
  if (!isRunning)
    return { ...common, state: isOver ? summary.state : null, endedAt: isOver ? summary.endedAt : null };
  // Without search attributes only the run's pending work tells.
  const state = summary.state ?? (await client.getHandle(callNodeId).status()).state;
  return { ...common, state, endedAt: null };
}
