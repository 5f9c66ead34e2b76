// Owns the gauges of open operations: which they are and since when the store says, how each stands its run does.
// Must never show a number that was not read for this scrape: what cannot be read is absent, and said to be.

import type { Client } from '@temporalio/client';
import { Gauge, type Registry } from 'prom-client';
import { callNodeIdOf, OPERATION_STATES, TERMINAL_STATES } from '../operation/names.js';
import type { ReceiptsReader } from '../receipts/open-store.js';

export interface OperationSources {
  readonly client: Client;
  /** Without it an operation is as old as its newest run, and one without a run is not seen. */
  readonly store?: Pick<ReceiptsReader, 'list'>;
}

interface Look {
  readonly byState: ReadonlyMap<string, number>;
  readonly oldestHeldAt: number | null;
  /** Null without a store. */
  readonly withoutRun: number | null;
}

/** The gauges share one look; a scraper in a hurry costs no more than this. */
const LOOK_LASTS_MS = 1_000;

/** An engine that does not answer must not cost a scrape its other metrics: scrapers give up after 10 s. */
const LOOK_LIMIT_MS = 3_000;

const MS_PER_SECOND = 1_000;

/** Of the whole namespace and store, not of this worker: any one worker's scrape tells it. */
export function addOperationGauges(registry: Registry, sources: OperationSources): void {
  const look = sharedLook(sources);
  const registers = [registry];
  new Gauge({
    name: 'dtc_operations_readable',
    help: '1 where engine and store told of the open operations in this scrape; else 0, and their gauges are absent',
    registers,
    async collect() {
      this.set((await look()) === null ? 0 : 1);
    },
  });
  new Gauge({
    name: 'dtc_operations',
    help: 'Open operations by state',
    labelNames: ['state'],
    registers,
    async collect() {
      const seen = await look();
      this.reset();
      for (const [state, count] of seen?.byState ?? []) this.set({ state }, count);
    },
  });
  new Gauge({
    name: 'dtc_oldest_unresolved_seconds',
    help: 'Age of the oldest operation that is held, since its creation; 0 where none is',
    registers,
    async collect() {
      const seen = await look();
      if (seen === null) return this.remove();
      this.set(seen.oldestHeldAt === null ? 0 : (Date.now() - seen.oldestHeldAt) / MS_PER_SECOND);
    },
  });
  if (!sources.store) return;
  new Gauge({
    name: 'dtc_operations_without_run',
    help: 'Operations without a receipt and without a run: nobody works on them until the same call is made again',
    registers,
    async collect() {
      const seen = await look();
      if (seen === null || seen.withoutRun === null) return this.remove();
      this.set(seen.withoutRun);
    },
  });
}

/** Null where engine or store could not be read: that must cost no other metric. */
function sharedLook(sources: OperationSources): () => Promise<Look | null> {
  let last: { readonly at: number; readonly look: Promise<Look | null> } | null = null;
  return () => {
    const now = performance.now();
    if (last === null || now - last.at >= LOOK_LASTS_MS) {
      const look = sources.client.withDeadline(Date.now() + LOOK_LIMIT_MS, () => lookAtOperations(sources));
      last = { at: now, look: look.catch(() => null) };
    }
    return last.look;
  };
}

async function lookAtOperations({ client, store }: OperationSources): Promise<Look> {
  const createdAt = await openOperations(store);
  const isOpen = OPERATION_STATES.filter((state) => !(TERMINAL_STATES as readonly string[]).includes(state));
  // GROUP BY is refused for custom attributes: one count per state.
  const byState = new Map<string, number>();
  for (const state of isOpen) byState.set(state, (await client.workflow.count(runningIn(state))).count);

  let oldestHeldAt: number | null = null;
  for await (const run of client.workflow.list({ query: runningIn('UNRESOLVED') })) {
    // A run that adopted its operation is younger than it.
    const since = createdAt.get(callNodeIdOf(run.workflowId) ?? '') ?? run.startTime.getTime();
    oldestHeldAt = Math.min(oldestHeldAt ?? since, since);
  }
  const withoutRun = store ? await countWithoutRun(client, store, createdAt) : null;
  return { byState, oldestHeldAt, withoutRun };
}

/** When each was created (epoch ms), by its name. */
async function openOperations(store: OperationSources['store']): Promise<ReadonlyMap<string, number>> {
  const open = (await store?.list()) ?? [];
  return new Map(open.map(({ callNodeId, createdAt }) => [callNodeId, createdAt]));
}

async function countWithoutRun(
  client: Client,
  store: NonNullable<OperationSources['store']>,
  open: ReadonlyMap<string, number>,
): Promise<number> {
  if (open.size === 0) return 0;
  // Thousands of runs are not listed at each scrape only to find that each operation has its own.
  if ((await client.workflow.count(RUNNING)).count === open.size) return 0;
  const left = new Set(open.keys());
  for await (const run of client.workflow.list({ query: RUNNING })) {
    left.delete(callNodeIdOf(run.workflowId) ?? '');
  }
  // Those that ended while their runs were being listed have none because they need none.
  const stillOpen = await openOperations(store);
  return [...left].filter((callNodeId) => stillOpen.has(callNodeId)).length;
}

const RUNNING = `WorkflowType = 'toolOperation' AND ExecutionStatus = 'Running'`;

function runningIn(state: string): string {
  return `${RUNNING} AND OperationState = '${state}'`;
}
