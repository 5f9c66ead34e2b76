// Owns the pins of the metrics: their names are in docs/WATCHING.md, and a gauge that cannot be read is not shown.
// Must never count by a real engine: test/integration/watching.test.ts and test/cli/metrics.test.ts do.

import { readFileSync } from 'node:fs';
import type { Client } from '@temporalio/client';
import { expect, test } from 'vitest';
import { addOperationGauges, createWorkerMetrics, type OperationSources } from '../../worker/metrics.js';

const WATCHING = readFileSync(new URL('../../docs/WATCHING.md', import.meta.url), 'utf8');

interface Run {
  readonly workflowId: string;
  readonly state: string;
}

/** As much of the engine's visibility as the gauges ask. */
function engineWith(runs: readonly Run[]): Client {
  const found = (query = ''): readonly Run[] => {
    const state = /OperationState = '(\w+)'/.exec(query)?.[1];
    return runs.filter((run) => state === undefined || run.state === state);
  };
  const workflow = {
    count: async (query?: string) => ({ count: found(query).length }),
    async *list({ query }: { query: string }) {
      for (const run of found(query))
        yield { workflowId: run.workflowId, startTime: new Date(Date.now() - 1_000) };
    },
  };
  return clientWith(workflow);
}

function clientWith(workflow: object): Client {
  const withDeadline = (_deadline: number, look: () => Promise<unknown>): Promise<unknown> => look();
  return { workflow, withDeadline } as unknown as Client;
}

const storeWith = (createdAt: Readonly<Record<string, number>>) => ({
  list: async () =>
    Object.entries(createdAt).map(([callNodeId, at]) => ({
      callNodeId,
      server: 's',
      tool: 't',
      createdAt: at,
      outcome: null,
      endedAt: null,
    })),
});

async function shown(sources: OperationSources): Promise<readonly string[]> {
  const { registry } = createWorkerMetrics();
  addOperationGauges(registry, sources);
  const lines = (await registry.metrics()).split('\n');
  return lines.filter((line) => /^dtc_(operations|oldest)/.test(line) && !line.endsWith('"} 0'));
}

test('the table of docs/WATCHING.md names every metric and no other', async () => {
  const { registry } = createWorkerMetrics();
  addOperationGauges(registry, { client: engineWith([]), store: storeWith({}) });
  const names = (await registry.getMetricsAsJSON()).map(({ name }) => name);
  const inTable = [...WATCHING.matchAll(/^\| `(dtc_\w+)` /gm)].map(([, name]) => name ?? '');
  expect([...inTable].sort()).toEqual([...names].sort());
  const mentioned = [...WATCHING.matchAll(/dtc_[a-z_]+/g)].map(([name]) =>
    name.replace(/_(bucket|count)$/, ''),
  );
  expect(names).toEqual(expect.arrayContaining([...new Set(mentioned)]));
});

test('age counts from the creation in the store, not from a run that adopted the operation', async () => {
  const now = Date.now();
  const runs = [
    { workflowId: 'tool-operation/old', state: 'UNRESOLVED' },
    { workflowId: 'tool-operation/young', state: 'UNRESOLVED' },
  ];
  const store = storeWith({ old: now - 3_600_000, young: now - 60_000 });
  const lines = await shown({ client: engineWith(runs), store });
  expect(lines).toContain('dtc_operations{state="UNRESOLVED"} 2');
  const age = lines.find((line) => line.startsWith('dtc_oldest_unresolved_seconds'));
  expect(Number(age?.split(' ')[1])).toBeGreaterThanOrEqual(3_600);
  expect(lines).toContain('dtc_operations_without_run 0');
});

test('an open operation without a run is counted, also where a stranger runs beside it', async () => {
  const runs = [
    { workflowId: 'tool-operation/mine', state: 'WORKING' },
    { workflowId: 'tool-operation/of another store', state: 'WORKING' },
    { workflowId: 'tool-operation/of a third', state: 'WORKING' },
  ];
  const store = storeWith({ mine: 1, left: 1 });
  const lines = await shown({ client: engineWith(runs), store });
  expect(lines).toContain('dtc_operations_without_run 1');
});

test('where engine or store cannot be read the gauges are absent, and the counters are there', async () => {
  const broken = (): Promise<never> => Promise.reject(new Error('gone'));
  const noEngine = clientWith({ count: broken });
  for (const sources of [
    { client: noEngine, store: { list: async () => [] } },
    { client: engineWith([]), store: { list: broken } },
  ]) {
    expect(await shown(sources)).toEqual(['dtc_operations_readable 0']);
  }
});
