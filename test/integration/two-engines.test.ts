// Two engines with a worker each on one store, and one call started on both: one execution, one receipt, and each caller
// has that receipt or a clear word that another run has taken over.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findTemporal, temporalCacheDir } from '../../cli/engine/temporal-binary.js';
import { startTemporalServer, type TemporalServer } from '../../cli/engine/temporal-server.js';
import { ToolOperationError, type ToolOperationHandle } from '../../client/index.js';
import { SEARCH_ATTRIBUTES } from '../../operation/names.js';
import type { Receipt } from '../../operation/receipt.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { type FaultCall, type FaultLab, type LabEngine, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

let dir = '';
let engine: TemporalServer;
let lab: FaultLab;
let other: LabEngine;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-two-engines-'));
  const found = await findTemporal({
    env: { ...process.env, TEMPORAL_ADDRESS: '', TEMPORAL_PROFILE: '', TEMPORAL_CONFIG_FILE: '' },
    cacheDir: temporalCacheDir(process.env),
    download: true,
    log: () => {},
  });
  if (found.kind !== 'binary') throw new Error('the test starts a Temporal server of its own');
  engine = await startTemporalServer({
    binary: found.path,
    dbFile: join(dir, 'temporal.db'),
    searchAttributes: Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, 'Keyword'])),
    dynamicConfig: { 'history.timerProcessorMaxTimeShift': '50ms' },
  });
  lab = await openFaultLab();
  other = await lab.joinEngine(engine.address);
  await Promise.all([lab.startWorker(), other.startWorker()]);
});
afterAll(async () => {
  await lab?.close();
  await engine?.stop();
  await rm(dir, { recursive: true, force: true });
});

/** How one caller fared; either is clear: the receipt, or that another run went on and how to come to the end. */
type End =
  | { readonly kind: 'receipt'; readonly receipt: Receipt }
  | { readonly kind: 'held' | 'closed'; readonly says: string };

async function endOf(handle: ToolOperationHandle): Promise<End> {
  try {
    return { kind: 'receipt', receipt: (await handle.result()).receipt };
  } catch (error) {
    if (!ToolOperationError.isInstance(error) || error.code !== 'OperationUnresolved') throw error;
    return { kind: error.message.includes('is held: ') ? 'held' : 'closed', says: error.message };
  }
}

async function storedReceipt(callNodeId: string): Promise<Receipt | null> {
  const reader = await openReceiptsReader(lab.storeFile);
  try {
    return await reader.readReceipt(callNodeId);
  } finally {
    await reader.close();
  }
}

/** Each caller gets the one receipt, at once or after doing what it was told. */
async function expectOneEnd(
  label: string,
  places: readonly [LabEngine, ToolOperationHandle][],
  call: FaultCall,
) {
  const ends = await Promise.all(places.map(([, handle]) => endOf(handle)));
  // The store's own word; a reader of the receipt that came first is not needed.
  await expect.poll(() => storedReceipt(label), { timeout: 20_000 }).not.toBeNull();
  const receipt = await storedReceipt(label);
  expect(receipt).toMatchObject({ outcome: 'completed' });
  for (const [index, [engine_, handle]] of places.entries()) {
    const end = ends[index];
    if (end?.kind === 'receipt') {
      expect(end.receipt).toEqual(receipt);
    } else if (end?.kind === 'held') {
      // Its own submission was in doubt to it. An operator's word gives way to the receipt.
      expect(end.says).toContain('ambiguous-submission');
      await handle.resolve({ kind: 'close' }, { evidence: 'a test', decidedBy: 'Ann' });
      expect((await handle.result()).receipt).toEqual(receipt);
    } else {
      expect(end?.says).toMatch(/run \S+ owns it at epoch \d+.*start the same call again to adopt/);
      expect((await (await engine_.start(call)).result()).receipt).toEqual(receipt);
    }
  }
  expect(lab.faults.executions(label)).toBe(1);
  const { legs, ...rows } = lab.rows(label);
  expect(rows).toEqual({ receipts: 1, ready: 1, advances: 1, reconciliations: 0 });
  const calls = lab.faults.entries('callReceived', label).length;
  // The same key again is how a run looks up what another has sent.
  if (call.server !== 'key-argument') expect([calls, legs]).toEqual([1, 1]);
}

const CALLS: readonly (Omit<FaultCall, 'label'> & { readonly name: string })[] = [
  { name: 'default', durationMs: 3_000 },
  { name: 'at most once', server: 'at-most-once', durationMs: 3_000 },
  { name: 'keyed', server: 'key-argument', durationMs: 3_000, plan: { deduplicate: true } },
  { name: 'slow to create', durationMs: 4_000, plan: { create: 'delay:1500' } },
];

test.each(CALLS)('started on both at once, $name: one call, one receipt', async ({ name, ...rest }) => {
  const call = { label: `both ${name}`, ...rest };
  const handles = await Promise.all([lab.start(call), other.start(call)]);
  await expectOneEnd(
    call.label,
    [
      [lab, handles[0]],
      [other, handles[1]],
    ],
    call,
  );
});

test('started on the second while the first works: adopted, one call, one receipt', async () => {
  const call = { label: 'adopted', durationMs: 5_000 };
  const first = await lab.start(call);
  await until(first, (view) => view.polls >= 1);
  const second = await other.start(call);
  await expectOneEnd(
    call.label,
    [
      [lab, first],
      [other, second],
    ],
    call,
  );
});

test('a question asked on the first is answered on the second: asked once, answered once, one receipt', async () => {
  const call = { label: 'asked on both', durationMs: 2_000, plan: { questions: 1 } };
  const first = await lab.start(call);
  await until(first, (view) => view.pendingInput.length > 0);
  const second = await other.start(call);
  await until(second, (view) => view.pendingInput.length > 0);
  expect(await second.answer({ content: { choice: 'left' } })).toEqual({ kind: 'applied' });
  await expectOneEnd(
    call.label,
    [
      [lab, first],
      [other, second],
    ],
    call,
  );
  expect(lab.faults.entries('questionHandedOut', call.label)).toHaveLength(1);
  expect(lab.faults.entries('answerReceived', call.label)).toHaveLength(1);
});

test('a cancel on the first is the end on both: nothing advances, and what may be left is owed once', async () => {
  const call = { label: 'cancelled on both', durationMs: 60_000 };
  const first = await lab.start(call);
  await until(first, (view) => view.polls >= 1);
  const second = await other.start(call);
  await until(second, (view) => view.polls >= 1);
  await first.cancel('no longer needed');
  const ends = await Promise.all([endOf(first), endOf(second)]);
  const receipt = await storedReceipt(call.label);
  expect(receipt).toMatchObject({ outcome: 'cancelled', cancelGeneration: 1 });
  for (const end of ends) if (end.kind === 'receipt') expect(end.receipt).toEqual(receipt);
  expect(ends.filter(({ kind }) => kind === 'receipt').length).toBeGreaterThan(0);
  expect(lab.rows(call.label)).toEqual({ receipts: 1, ready: 1, advances: 0, reconciliations: 1, legs: 1 });
});
