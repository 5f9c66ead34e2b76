// What comes after an end, on the real engine: a lost attempt's look, or its reply, brings news of work that ended although
// the operation was cancelled or closed. No receipt changes; it is kept as evidence and owed until a person settles it.

import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import type { ObserveInput } from '../../activities/step-inputs.js';
import { observe } from '../../activities/steps/observe.js';
import { submit } from '../../activities/steps/submit.js';
import type { SeamName } from '../../operation/names.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import type { ToolAdapter } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import type { EvidenceKind, ReceiptStore } from '../../receipts/store.js';
import { openReceiptsReader, openSqliteStore } from '../../receipts/open-store.js';
import { serverDirectory } from '../../worker/server-directory.js';
import { loadToolServers } from '../../worker/tool-servers.js';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

let lab: FaultLab;
beforeEach(async () => {
  lab = await openFaultLab();
});
afterEach(async () => {
  await lab?.close();
});

/** Everything about one operation that the store holds for people and programs. */
async function stored(callNodeId: string) {
  const reader = await openReceiptsReader(lab.storeFile);
  try {
    return {
      receipt: await reader.readReceipt(callNodeId),
      ready: await reader.readReady(callNodeId),
      evidence: await reader.readEvidence(callNodeId),
      owed: await reader.readReconciliation(callNodeId),
    };
  } finally {
    await reader.close();
  }
}

interface Gate {
  readonly reached: Promise<void>;
  open(): void;
  pass(): Promise<void>;
}

function gate(): Gate {
  let arrive = (): void => {};
  let open = (): void => {};
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { reached, open: () => open(), pass: () => (arrive(), opened) };
}

/** A lost attempt of a shipped body, on the real store and wire: the engine has forgotten it, it goes on all the same. */
interface LostAttempt {
  readonly ports: Ports;
  readonly attempt: Attempt;
  /** Before its look leaves, and at the seam: it stands there until the gate is opened. */
  readonly beforeLook: Gate;
  readonly atSeam: Gate;
}

async function lostAttempt(store: ReceiptStore, seam: SeamName): Promise<LostAttempt> {
  const beforeLook = gate();
  const atSeam = gate();
  const registry = createProtocolRegistry();
  const held = (adapter: ToolAdapter): ToolAdapter =>
    new Proxy(adapter, {
      get: (target, name, receiver) =>
        name === 'observe'
          ? async (...args: Parameters<ToolAdapter['observe']>) => {
              await beforeLook.pass();
              return target.observe(...args);
            }
          : (Reflect.get(target, name, receiver) as unknown),
    });
  const ports: Ports = {
    receipts: store,
    protocols: { ...registry, adapter: (name) => held(registry.adapter(name)) },
    servers: serverDirectory(await loadToolServers(lab.configFile, {})),
    clock: { nowMs: () => Date.now() },
    random: () => 0,
    newToken: () => crypto.randomUUID(),
    digests,
    checkSchema,
  };
  const attempt: Attempt = {
    signal: new AbortController().signal,
    attempt: 1,
    seam: async (name) => {
      if (name === seam) await atSeam.pass();
    },
    show: () => {},
    lastShown: () => null,
  };
  return { ports, attempt, beforeLook, atSeam };
}

function firstLook(run: { readonly callNodeId: string; readonly runId: string }): ObserveInput {
  const deadlines = { waitDeadlineAt: null, inputDeadlineAt: null, notBeforeAt: null, expiresAt: null };
  const cursor = { observationCount: 0, transientFaults: 0, lastIntervalMs: null, nextPollNotBeforeAt: null };
  const how = { openRoundIds: [], freshSession: false, once: false, cursor };
  return { ...run, executionEpoch: 1, ...deadlines, ...how };
}

test.each<[SeamName, readonly EvidenceKind[]]>([
  ['observe:after-reply', ['terminal-contradiction']],
  ['observe:result-fetched', ['terminal-contradiction', 'result-contradiction']],
])(
  'a confirmed cancel that turns into a completion, told by an attempt lost at %s: evidence, and no receipt changes',
  async (seam, kinds) => {
    const callNodeId = `flipped at ${seam}`;
    const first = await lab.startWorker({ killAt: 'cancel:after-commit' });
    const handle = await lab.start({ label: callNodeId, durationMs: 600_000, plan: { cancel: 'flip:300' } });
    const { runId } = await until(handle, (view) => view.polls >= 1);
    const store = await openSqliteStore(lab.storeFile);
    const lost = await lostAttempt(store, seam);
    const looking = observe(firstLook({ callNodeId, runId: runId ?? '' }), lost.ports, lost.attempt);
    await lost.beforeLook.reached;

    await handle.cancel('no longer needed');
    expect(await first.ended).toBe('SIGKILL');
    await lab.faults.until((entry) => entry.kind === 'executionEnded' && entry.label === callNodeId);
    lost.beforeLook.open();
    await lost.atSeam.reached;
    await lab.startWorker();
    const { outcome, receipt } = await handle.result();
    expect(outcome).toBe('cancelled');
    const before = await stored(callNodeId);
    lost.atSeam.open();
    expect(await looking).toMatchObject({ kind: 'observed', finding: 'terminal' });

    const after = await stored(callNodeId);
    expect([after.receipt, after.ready]).toEqual([before.receipt, before.ready]);
    expect((await handle.result()).receipt).toEqual(receipt);
    expect(after.ready).toMatchObject({ outcome: 'cancelled', advances: false });
    expect(after.evidence.map(({ kind }) => kind)).toEqual(kinds);
    expect(after.owed?.entries.map(({ note }) => note)).toEqual(
      expect.arrayContaining(['late completed', 'cancelled: cancel-reply']),
    );
    expect(lab.faults.executions(callNodeId)).toBe(1);
    expect(lab.rows(callNodeId)).toMatchObject({ receipts: 1, ready: 1, advances: 0, reconciliations: 1 });
    await settleAndReopen(callNodeId, store);
    await store.close();
  },
);

/** A person settles it; the same news again leaves it settled, other news opens it. */
async function settleAndReopen(callNodeId: string, store: ReceiptStore): Promise<void> {
  const word = { note: 'the report was taken down', settledBy: 'Ann' };
  expect(await store.settleReconciliation(callNodeId, word, Date.now())).toMatchObject({ kind: 'settled' });
  const late = {
    failureKind: null,
    statusMessage: null,
    observedAt: Date.now(),
    evidence: 'status',
  } as const;
  await store.recordTerminal(callNodeId, { ...late, remoteStatus: 'completed' }, null);
  expect((await stored(callNodeId)).owed?.status).toBe('settled');
  await store.recordTerminal(callNodeId, { ...late, remoteStatus: 'failed' }, null);
  expect((await stored(callNodeId)).owed?.status).toBe('open');
}

test('a reply that a lost attempt reads after an operator closed the operation: its result is evidence, the end stays', async () => {
  const callNodeId = 'closed too soon';
  const first = await lab.startWorker({ killAt: 'submit:before-claim' });
  const call = { label: callNodeId, server: 'at-most-once', tool: 'work-plain' } as const;
  const handle = await lab.start(call);
  expect(await first.ended).toBe('SIGKILL');
  const { runId } = await handle.status();
  const store = await openSqliteStore(lab.storeFile);
  const lost = await lostAttempt(store, 'submit:after-reply');
  const run = { callNodeId, runId: runId ?? '', executionEpoch: 1 };
  const sending = submit(
    { ...run, deadlineAt: Date.now() + 60_000, notBeforeAt: null },
    lost.ports,
    lost.attempt,
  );
  await lost.atSeam.reached;
  await lab.startWorker();
  await until(handle, (view) => view.state === 'UNRESOLVED');
  await handle.resolve({ kind: 'close' }, { evidence: 'nobody can know', decidedBy: 'Ann' });
  const { outcome, receipt } = await handle.result();
  expect(outcome).toBe('unresolved');
  const before = await stored(callNodeId);
  expect(before.owed?.entries).toHaveLength(1);

  lost.atSeam.open();
  expect(await sending).toMatchObject({ kind: 'submitted', row: { legs: [{ outcome: 'answered' }] } });
  const after = await stored(callNodeId);
  expect([after.receipt, after.ready]).toEqual([before.receipt, before.ready]);
  expect(after.receipt).toEqual(receipt);
  expect(after.evidence.map(({ kind }) => kind)).toEqual(['terminal-contradiction']);
  expect(after.evidence[0]?.detail).toMatch(
    /^completed \(submit-reply\) with result [0-9a-f]{64}; the row holds the receipt of an operation that ended unresolved$/,
  );
  expect(after.owed?.entries.map(({ note }) => note)).toEqual([
    expect.stringContaining('unresolved: operator Ann'),
    expect.stringMatching(/^late completed with result [0-9a-f]{64}$/),
  ]);
  expect(lab.faults.executions(callNodeId)).toBe(1);
  expect(lab.rows(callNodeId)).toMatchObject({ receipts: 1, ready: 1, advances: 0, reconciliations: 1 });
  await store.close();
});
