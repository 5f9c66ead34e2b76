// AIP-151 on the real engine: every end, every loss, and how often the work was really started, by the server's journal.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import { workflowIdOf } from '../../operation/names.js';
import { endOf, until } from './lab.js';
import { type OperationCall, type OperationLab, openOperationLab, SECRET } from './operation-lab.js';

let lab: OperationLab;
const planned: OperationCall[] = [];
const started = new Map<string, ToolOperationHandle>();

/** Starts with all others, so that their waits run side by side. */
function plan(call: OperationCall): () => ToolOperationHandle {
  planned.push(call);
  return () => {
    const handle = started.get(call.label);
    if (!handle) throw new Error('it was not started');
    return handle;
  };
}

beforeAll(async () => {
  lab = await openOperationLab();
  await lab.startWorker();
  const handles = await Promise.all(planned.map((call) => lab.start(call)));
  for (const handle of handles) started.set(handle.callNodeId, handle);
});
afterAll(async () => {
  await lab?.close();
});

/** An outcome, or `held: reason`. */
/** Every text of a history, those inside payloads too. */
function textsOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (typeof value === 'string') return value;
  return typeof value === 'object' && value !== null ? Object.values(value).map(textsOf).join('\n') : '';
}

const submits = (label: string): number => lab.server.entries('submitReceived', label).length;

describe.concurrent('an operation', () => {
  const response = '{ "@type":"type.example/Report", "big":12345678901234567890 }';
  const long = plan({ label: 'aip completed', plan: { durationMs: 2_500, name: 'odd', response } });
  test.concurrent('that takes its time is completed, under its own name and with its own bytes', async () => {
    const { outcome, receipt, resultJson } = await long().result();
    expect([outcome, resultJson]).toEqual(['completed', response]);
    expect(receipt).toMatchObject({
      adapter: 'aip-151',
      submissionPolicy: 'at-most-once',
      remoteReference: { remoteId: lab.server.entries('started', 'aip completed')[0]?.name },
      result: { digest: createHash('sha256').update(response).digest('hex'), mediaType: 'application/json' },
    });
    expect(receipt.descriptorDigest).toMatch(/^[0-9a-f]{64}$/);
    expect(lab.server.executions('aip completed')).toBe(1);
    expect(lab.server.entries('polled', 'aip completed').length).toBeGreaterThanOrEqual(1);
    expect(lab.rows('aip completed')).toEqual({
      receipts: 1,
      ready: 1,
      advances: 1,
      reconciliations: 0,
      legs: 1,
    });
  });

  const failing = plan({ label: 'aip failed', plan: { durationMs: 1_200, end: 'error' } });
  test.concurrent('whose error has any other code is failed, its error kept', async () => {
    const { outcome, receipt, toolResult } = await failing().result();
    expect([outcome, receipt.failureKind]).toEqual(['failed', 'tool']);
    expect(toolResult).toEqual({ code: 9, message: 'the paper ran out' });
    expect(lab.rows('aip failed')).toMatchObject({ receipts: 1, advances: 0 });
  });

  const byServer = plan({ label: 'aip cancelled by server', plan: { durationMs: 1_200, end: 'cancelled' } });
  test.concurrent('whose error has code 1 is cancelled, though nobody here asked for it', async () => {
    const { outcome, receipt } = await byServer().result();
    expect([outcome, receipt.cancelGeneration, receipt.effects]).toEqual([
      'cancelled',
      0,
      'EFFECT_RECONCILIATION_REQUIRED',
    ]);
  });

  const stopped = plan({ label: 'aip cancelled', plan: { durationMs: 600_000 } });
  test.concurrent('that is cancelled ends by its own word, not by the acknowledgement', async () => {
    const handle = stopped();
    await until(handle, (view) => view.state === 'WORKING');
    await handle.cancel('no longer needed');
    const { outcome, receipt } = await handle.result();
    expect(outcome).toBe('cancelled');
    expect(receipt.decision).toMatchObject({ evidence: 'status', reason: 'no longer needed' });
    expect(lab.server.entries('cancelReceived', 'aip cancelled')).toHaveLength(1);
    expect(lab.rows('aip cancelled')).toMatchObject({ receipts: 1, reconciliations: 1 });
  });

  test.concurrent('whose server implements no cancel goes on to its true end', async () => {
    const plan = { durationMs: 8_000, cancel: '501 UNIMPLEMENTED' };
    const handle = await lab.start({ label: 'aip cancel unimplemented', plan });
    await until(handle, (view) => view.state === 'WORKING');
    await handle.cancel('changed my mind');
    expect((await handle.result()).outcome).toBe('completed');
    expect(lab.server.entries('cancelReceived', 'aip cancel unimplemented')).toHaveLength(1);
  });

  test.concurrent('whose server ignores the cancel that it took goes on to its true end', async () => {
    const plan = { durationMs: 8_000, cancel: 'ignored' };
    const handle = await lab.start({ label: 'aip cancel ignored', plan });
    await until(handle, (view) => view.state === 'WORKING');
    await handle.cancel('changed my mind');
    expect((await handle.result()).outcome).toBe('completed');
    expect(lab.server.entries('cancelReceived', 'aip cancel ignored')).toHaveLength(1);
  });

  const empty = plan({ label: 'aip nothing', plan: { durationMs: 1_200, end: 'nothing' } });
  test.concurrent('done with neither member is completed with an empty typed result', async () => {
    const { outcome, receipt, toolResult, resultJson } = await empty().result();
    expect([outcome, toolResult, resultJson]).toEqual(['completed', null, null]);
    expect(receipt.result).toMatchObject({
      sizeBytes: 0,
      mediaType: 'application/x-protobuf; messageType="google.protobuf.Empty"',
      digest: createHash('sha256').update('').digest('hex'),
    });
    expect(await empty().status()).toMatchObject({ outcome: 'completed' });
  });

  const broken = plan({ label: 'aip both', plan: { durationMs: 1_200, end: 'both' } });
  test.concurrent('that says two things at once is held, and neither is taken', async () => {
    expect(await endOf(broken())).toBe('held: protocol-violation');
    expect(lab.rows('aip both')).toMatchObject({ receipts: 0, ready: 0 });
  });

  const atOnce = plan({ label: 'aip at once', plan: { submit: ['done'], durationMs: 600_000 } });
  test.concurrent('that is over with the first reply is not asked again, and keeps its name', async () => {
    const { outcome, receipt } = await atOnce().result();
    expect(outcome).toBe('completed');
    expect(receipt).toMatchObject({
      decision: { evidence: 'submit-reply' },
      remoteReference: { remoteId: lab.server.entries('started', 'aip at once')[0]?.name },
    });
    expect(lab.server.entries('polled', 'aip at once')).toEqual([]);
  });

  const large = JSON.stringify({ pages: 'x'.repeat(5_000) });
  const refused = [
    { when: 'in time', plan: { durationMs: 1_200, response: large } },
    { when: 'with the first reply', plan: { submit: ['done'], response: large } },
  ].map(({ when, plan: own }) => {
    const label = `aip large ${when}`;
    return { when, label, handle: plan({ label, tool: 'small', plan: own }) };
  });
  test.concurrent.each(refused)(
    'whose result, $when, is over its limit is held with size and limit, and not deleted',
    async ({ label, handle }) => {
      expect(await endOf(handle())).toBe('held: result-too-large');
      const { evidence } = await handle().status();
      expect(evidence).toContain(`the result has ${large.length} bytes`);
      expect(evidence).toContain('1024 bytes (durable.maxResultBytes)');
      expect([submits(label), lab.server.executions(label)]).toEqual([1, 1]);
      expect(lab.rows(label)).toMatchObject({ receipts: 0, ready: 0 });
      expect(lab.server.entries('deleted', label)).toEqual([]);
    },
  );

  const megabytes = plan({
    label: 'aip 3 MB',
    plan: { durationMs: 1_200, response: '"x"', responseBytes: 3_000_000 },
  });
  test.concurrent('whose result has 3 MB is whole, by reference', async () => {
    const { outcome, receipt, resultJson } = await megabytes().result();
    expect([outcome, resultJson?.length]).toEqual(['completed', 3_000_000]);
    expect(receipt.result).toMatchObject({
      sizeBytes: 3_000_000,
      digest: createHash('sha256')
        .update(resultJson ?? '')
        .digest('hex'),
    });
  });

  const tidy = plan({ label: 'aip tidy', tool: 'tidy', plan: { durationMs: 1_200 } });
  test.concurrent('is deleted after its receipt where that is configured', async () => {
    expect((await tidy().result()).outcome).toBe('completed');
    expect(lab.server.entries('deleted', 'aip tidy')).toHaveLength(1);
    expect(lab.server.entries('deleted', 'aip completed')).toEqual([]);
  });
});

describe.concurrent('a create reply', () => {
  const words = ['lose', 'cut', 'empty', 'page', 'object', '503 UNAVAILABLE', '504 DEADLINE_EXCEEDED', '307'];
  const keyed = words.map((word) => {
    const label = `aip keyed ${word}`;
    return {
      word,
      label,
      handle: plan({ label, tool: 'keyed', plan: { submit: [word], durationMs: 1_500 } }),
    };
  });
  test.concurrent.each(keyed)(
    '$word is sent again under its request id: one execution',
    async ({ label, handle }) => {
      const { outcome, receipt } = await handle().result();
      expect([outcome, receipt.submissionPolicy]).toEqual(['completed', 'request-id']);
      expect(lab.server.executions(label)).toBe(1);
      expect(submits(label)).toBe(2);
      const ids = lab.server.entries('submitReceived', label).map(({ requestId }) => requestId);
      expect(new Set(ids).size).toBe(1);
      expect(receipt.submissionLegs.map(({ outcome: end }) => end)).toContain('ambiguous');
      expect(lab.server.entries('followed')).toEqual([]);
    },
  );

  const unsent = plan({
    label: 'aip keyed reset',
    tool: 'keyed',
    plan: { submit: ['reset'], durationMs: 300 },
  });
  test.concurrent('reset before anything began is begun by the repeat', async () => {
    expect((await unsent().result()).outcome).toBe('completed');
    expect(lab.server.executions('aip keyed reset')).toBe(1);
  });

  const resets = Array.from({ length: 40 }, () => 'reset');
  const brief = plan({ label: 'aip keyed late', tool: 'keyed-briefly', plan: { submit: resets } });
  test.concurrent('is not repeated once the request id may be forgotten: it is held', async () => {
    const handle = brief();
    expect(await endOf(handle)).toBe('held: ambiguous-submission');
    expect((await handle.status()).evidence).toContain('may have forgotten the request id');
    const [first, ...later] = lab.server.entries('submitReceived', 'aip keyed late').map(({ at }) => at);
    // 10 s, of which the last tenth is left alone; counted from the claim, a moment before.
    expect(later.length).toBeGreaterThanOrEqual(1);
    for (const at of later) expect(at - (first ?? 0)).toBeLessThan(9_500);
  });

  const listed = plan({
    label: 'aip listed',
    tool: 'listed',
    reportId: 'r-listed',
    plan: { submit: ['lose'], list: 'lagging', durationMs: 4_000 },
  });
  test.concurrent('is found in the list of its resource, and never sent again', async () => {
    const { outcome, receipt } = await listed().result();
    expect([outcome, receipt.submissionPolicy]).toEqual(['completed', 'operation-list']);
    expect([submits('aip listed'), lab.server.executions('aip listed')]).toEqual([1, 1]);
    expect(lab.server.entries('listed', 'aip listed').length).toBeGreaterThanOrEqual(3);
  });

  const mute = plan({ label: 'aip lost', plan: { submit: ['lose'] } });
  test.concurrent('that nothing can find is held', async () => {
    expect(await endOf(mute())).toBe('held: ambiguous-submission');
    expect([submits('aip lost'), lab.server.executions('aip lost')]).toEqual([1, 1]);
    expect(lab.rows('aip lost')).toMatchObject({ receipts: 0, ready: 0 });
  });
});

describe.concurrent('a refusal by', () => {
  const cases = [
    '409 ABORTED',
    '429 RESOURCE_EXHAUSTED retry-info 1s',
    '403 PERMISSION_DENIED echo',
    '404',
    '401',
  ].map((word) => {
    const label = `aip refused ${word}`;
    return { word, label, handle: plan({ label, tool: 'keyed', plan: { submit: [`refuse ${word}`] } }) };
  });
  test.concurrent.each(cases)('$word is a rejection: nothing was started', async ({ label, handle }) => {
    const { outcome, receipt } = await handle().result();
    expect([outcome, receipt.decision.evidence]).toEqual(['rejected', 'refused-by-server']);
    expect([submits(label), lab.server.executions(label)]).toEqual([1, 0]);
  });

  test.concurrent('of arguments that no path can hold comes before anything is sent', async () => {
    const label = 'aip bad path';
    const { outcome, receipt } = await lab.client.execute({
      callNodeId: label,
      server: 'reports',
      tool: 'report',
      arguments: { parent: 'folders/p', label },
    });
    expect([outcome, receipt.decision.evidence]).toEqual(['rejected', 'bad-arguments']);
    expect([submits(label), lab.rows(label).legs]).toEqual([0, 0]);
  });
});

describe.concurrent('looks', () => {
  const bad = [
    '503 UNAVAILABLE retry-after 3',
    '429 RESOURCE_EXHAUSTED retry-info 2.5s',
    '500 INTERNAL echo',
    'cut',
    '401',
    'page',
  ];
  const label = 'aip looks';
  const faulty = plan({ label, plan: { get: ['ok', ...bad], durationMs: 15_000 } });
  test.concurrent('that fail in every way cost time and nothing else, and Retry-After is kept', async () => {
    const { outcome } = await faulty().result();
    expect(outcome).toBe('completed');
    expect(lab.server.executions(label)).toBe(1);
    const at = lab.server.entries('polled', label).map((entry) => entry.at);
    const gapsMs = at.slice(1).map((time, n) => time - (at[n] ?? 0));
    for (const gapMs of gapsMs) expect(gapMs).toBeGreaterThanOrEqual(985);
    expect(gapsMs[1]).toBeGreaterThanOrEqual(2_985);
    expect(gapsMs[2]).toBeGreaterThanOrEqual(2_485);
  });

  for (const word of ['404 NOT_FOUND', '403 PERMISSION_DENIED', '501 UNIMPLEMENTED']) {
    const gone = plan({
      label: `aip gone ${word}`,
      plan: { get: Array.from({ length: 40 }, () => word), durationMs: 1_000 },
    });
    test.concurrent(`that answer ${word} again and again hold the operation: it is never failed`, async () => {
      const reason = word.startsWith('501') ? 'protocol-violation' : 'handle-lost';
      expect(await endOf(gone())).toBe(`held: ${reason}`);
      expect(lab.rows(`aip gone ${word}`)).toMatchObject({ receipts: 0, ready: 0 });
    });
  }
});

test('a planted credential is in no history and in no file of the store', async () => {
  await Promise.all([...started.values()].map((handle) => endOf(handle).catch(() => 'ended')));
  expect(lab.server.entries('submitReceived')[0]?.apiKey).toBe(SECRET);
  for (const file of [lab.storeFile, `${lab.storeFile}-wal`].filter((name) => existsSync(name))) {
    expect(readFileSync(file).includes(SECRET)).toBe(false);
  }
  for (const label of [
    'aip completed',
    'aip looks',
    'aip keyed lose',
    'aip refused 403 PERMISSION_DENIED echo',
  ]) {
    const history = await lab.temporal.workflow.getHandle(workflowIdOf(label)).fetchHistory();
    const told = textsOf(history);
    // That a text would be seen at all.
    expect(told).toContain('projects/p');
    expect(told).not.toContain(SECRET);
  }
  const { receipt } = await lab.client.getHandle('aip refused 403 PERMISSION_DENIED echo').result();
  expect(receipt.decision.reason).toContain('the key [redacted] is wrong');
});
