// AIP-151 on the real engine when somebody dies: the server in mid-operation, the worker at its seams; and java-lro,
// whose operations nobody here wrote, when it loses its answers.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WorkerChild } from '../../cli/worker-child.js';
import { MESSAGES, type SeamName } from '../../operation/names.js';
import type { ToolOperation } from '../../operation/record.js';
import { BACKUP, type JavaLro, PARENT, startJavaLro } from '../servers/start-java-lro.js';
import { until } from './lab.js';
import { type OperationLab, openOperationLab } from './operation-lab.js';

let lab: OperationLab;
let javaLro: JavaLro;
let strangersAt = 0;
beforeAll(async () => {
  javaLro = await startJavaLro(6_000);
  await fetch(`${javaLro.url}/${PARENT}/backups?backupId=java-5`, {
    method: 'POST',
    body: JSON.stringify(BACKUP),
  });
  strangersAt = Date.now();
  lab = await openOperationLab(javaLro.url);
}, 300_000);
afterAll(async () => {
  await lab?.close();
  await javaLro?.stop();
});

/** Operations that the server itself lists for a backup. */
async function madeFor(backupId: string): Promise<number> {
  return (await javaLro.backupOperations()).filter(({ name }) => name.includes(`/backups/${backupId}/`))
    .length;
}

function backup(callNodeId: string, backupId?: string) {
  const tool = backupId === undefined ? 'create-own-backup' : 'create-backup';
  const id = backupId === undefined ? {} : { backupId };
  return lab.client.start({
    callNodeId,
    server: 'spanner',
    tool,
    arguments: { parent: PARENT, backup: BACKUP, ...id },
  });
}

test.each<SeamName>(['submit:after-send', 'submit:after-reply'])(
  'a worker killed at %s is followed by one that repeats the request id: one execution, one receipt',
  async (seam) => {
    const label = `aip killed ${seam}`;
    const first = await lab.startWorker({ killAt: seam });
    const handle = await lab.start({ label, tool: 'keyed', plan: { durationMs: 1_500 } });
    expect(await first.ended).toBe('SIGKILL');
    expect(lab.wasKilledAt(seam)).toBe(true);
    const second = await lab.startWorker();
    const { outcome, receipt } = await handle.result();
    expect(outcome).toBe('completed');
    expect(lab.server.executions(label)).toBe(1);
    expect(receipt.submissionLegs).toHaveLength(2);
    expect(lab.rows(label)).toMatchObject({ receipts: 1, ready: 1, advances: 1 });
    await second.stop();
  },
);

test('a server killed in mid-operation is found again with its work, however long it was away', async () => {
  const worker = await lab.startWorker();
  const label = 'aip restart';
  const handle = await lab.start({ label, plan: { durationMs: 12_000, name: 'odd' } });
  await until(handle, (view) => view.state === 'WORKING');
  await lab.server.kill();
  await until(handle, (view) => view.lastFault !== null);
  await lab.server.restart();
  const { outcome, receipt } = await handle.result();
  expect(outcome).toBe('completed');
  expect(lab.server.executions(label)).toBe(1);
  expect(receipt.transport.transientFaults).toBeGreaterThanOrEqual(1);
  await worker.stop();
});

describe('java-lro', () => {
  let worker: WorkerChild;
  beforeAll(async () => {
    worker = await lab.startWorker();
  });
  afterAll(() => worker?.stop());

  test.concurrent('completed, with the exact bytes of the response', async () => {
    const handle = await backup('java completed', 'java-1');
    const { outcome, receipt, toolResult } = await handle.result();
    expect(outcome).toBe('completed');
    expect(toolResult).toMatchObject({ name: `${PARENT}/backups/java-1`, state: 'READY' });
    expect(receipt).toMatchObject({ submissionPolicy: 'operation-list', adapter: 'aip-151' });
    expect(await madeFor('java-1')).toBe(1);
  });

  test.concurrent('a cancel ends with error code 1, and effects are to be reconciled', async () => {
    const handle = await backup('java cancelled', 'java-2');
    await until(handle, (view) => view.state === 'WORKING');
    await handle.cancel('enough');
    const { outcome, receipt } = await handle.result();
    expect(outcome).toBe('cancelled');
    expect(receipt.effects).toBe('EFFECT_RECONCILIATION_REQUIRED');
  });

  test.concurrent('a backup that somebody else made before is not taken for ours', async () => {
    // The server tells times in whole seconds, and two of them are allowed for: only an older one is known to be older.
    await expect.poll(() => Date.now() - strangersAt, { timeout: 10_000 }).toBeGreaterThan(4_000);
    const handle = await backup('java foreign', 'java-5');
    const run = lab.temporal.workflow.getHandle(handle.workflowId);
    const lookUps = async () => (await run.query<ToolOperation>(MESSAGES.operationQuery)).lookUps;
    await expect.poll(lookUps, { timeout: 30_000 }).toBeGreaterThanOrEqual(2);
    expect((await handle.status()).state).toBe('SUBMISSION_UNKNOWN');
    expect(await madeFor('java-5')).toBe(1);
  });

  test('a lost answer is found in the operations of the backup, and never sent again', async () => {
    await javaLro.loseResponse('UNAVAILABLE');
    const handle = await backup('java lost', 'java-3');
    const { outcome, receipt } = await handle.result();
    await javaLro.loseResponse(null);
    expect(outcome).toBe('completed');
    expect(receipt.submissionLegs).toHaveLength(1);
    expect(receipt.remoteReference?.remoteId).toContain('/backups/java-3/operations/');
    expect(await madeFor('java-3')).toBe(1);
  });

  test('an id made of the call’s own key is sent again, answered ALREADY_EXISTS, and reconciled', async () => {
    await javaLro.loseResponse('INTERNAL');
    const handle = await backup('java own id');
    const { outcome, receipt } = await handle.result();
    await javaLro.loseResponse(null);
    expect(outcome).toBe('completed');
    expect(receipt.submissionPolicy).toBe('key-argument');
    expect(receipt.submissionLegs.map(({ outcome: end }) => end)).toEqual(['ambiguous', 'referenced']);
    const [, id = ''] = /backups\/([^/]+)\//.exec(receipt.remoteReference?.remoteId ?? '') ?? [];
    expect(id).toMatch(/^dtc-[0-9a-f]{40}$/);
    expect(await madeFor(id)).toBe(1);
  });
});

test('java-lro: a worker killed once its submission has left is followed by one that finds it, and sends nothing', async () => {
  const first = await lab.startWorker({ killAt: 'submit:after-send' });
  const handle = await backup('java killed', 'java-6');
  expect(await first.ended).toBe('SIGKILL');
  const second = await lab.startWorker();
  const { outcome, receipt } = await handle.result();
  expect(outcome).toBe('completed');
  expect(receipt.submissionLegs).toHaveLength(1);
  expect(receipt.remoteReference?.remoteId).toContain('/backups/java-6/operations/');
  expect(await madeFor('java-6')).toBe(1);
  expect(lab.rows('java killed')).toMatchObject({ receipts: 1, ready: 1, advances: 1 });
  await second.stop();
});

test('java-lro: a restart that forgets everything leaves the operation held: not failed, and not sent again', async () => {
  const worker = await lab.startWorker();
  const handle = await backup('java forgotten', 'java-7');
  await until(handle, (view) => view.state === 'WORKING');
  await javaLro.restart();
  const view = await until(handle, (seen) => seen.state === 'UNRESOLVED');
  expect(view.reason).toBe('handle-lost');
  expect(view.evidence).toContain('HTTP 404');
  expect(lab.rows('java forgotten')).toMatchObject({ receipts: 0, ready: 0, legs: 1 });
  expect(await madeFor('java-7')).toBe(0);
  await worker.stop();
  // What is not found right after its creation may only lag: half a minute passes before it counts.
}, 120_000);
