// Owns what the step bodies do with a declared method: a repeat under another declaration, an end in the first reply that is
// somebody else's, an end that is too large. The store and the adapter are the real ones; the server's replies are scripted.

import { mkdtemp, rm } from 'node:fs/promises';
import type http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Attempt, type Ports, StepRetry } from '../../activities/ports.js';
import { observe } from '../../activities/steps/observe.js';
import { open } from '../../activities/steps/open.js';
import { submit } from '../../activities/steps/submit.js';
import type { StepFact } from '../../operation/facts.js';
import type { JsonObject } from '../../operation/json.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { serverDirectory } from '../../worker/server-directory.js';
import { parseToolServers } from '../../worker/tool-servers.js';
import { ScriptedServer } from '../protocols/scripted-server.js';

let dir: string;
let store: ReceiptStore;
let scripted: ScriptedServer;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-declared-'));
  store = await openSqliteStore(join(dir, 'operations.sqlite'));
  scripted = await ScriptedServer.start();
});
afterEach(async () => {
  await scripted.stop();
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

const METHOD = { path: '/reports', requestIdField: 'requestId' };

function portsOf(method: JsonObject = METHOD, nowMs = 1_000): Ports {
  const operationServers = { s: { url: scripted.url, durable: { tools: { t: method } } } };
  return {
    receipts: store,
    protocols: createProtocolRegistry(),
    servers: serverDirectory(parseToolServers({ operationServers }, {})),
    clock: { nowMs: () => nowMs },
    random: () => 0,
    newToken: () => crypto.randomUUID(),
    digests,
    checkSchema,
  };
}

function attempt(seam: Attempt['seam'] = async () => undefined): Attempt {
  return {
    signal: new AbortController().signal,
    attempt: 1,
    seam,
    show: () => undefined,
    lastShown: () => null,
  };
}

async function opened(callNodeId: string, ports: Ports): Promise<void> {
  const request = { requestDigest: 'r', server: 's', tool: 't', arguments: {}, waitBudgetMs: null };
  await open({ callNodeId, runId: 'run-1', ...request, mustExist: false }, ports);
}

async function submitted(callNodeId: string, ports: Ports, seam?: Attempt['seam']) {
  const input = { callNodeId, runId: 'run-1', executionEpoch: 1, deadlineAt: 9_999, notBeforeAt: null };
  return (await submit(input, ports, attempt(seam))) as Extract<StepFact, { kind: 'submitted' }>;
}

function answer(text: string): void {
  scripted.script = (_, response) => void response.writeHead(200).end(text);
}

it('a lost submission is repeated only as it was declared when it was sent', async () => {
  scripted.script = (_, response: http.ServerResponse) => void response.destroy();
  await opened('node', portsOf());
  expect(await submitted('node', portsOf())).toMatchObject({ row: { legs: [{ outcome: 'ambiguous' }] } });
  const otherwise = portsOf({ ...METHOD, path: '/reports?validate=true' });
  const refused = await submitted('node', otherwise).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(StepRetry);
  expect(String(refused)).toContain('declared otherwise than when it was sent');
  expect(scripted.seen).toHaveLength(1);
  answer('{"name":"operations/1"}');
  expect(await submitted('node', portsOf())).toMatchObject({
    row: { remoteReference: { remoteId: 'operations/1' } },
  });
  const [first, again] = scripted.seen.map(({ body }) => body);
  expect(again).toEqual(first);
});

it("an end in the first reply that belongs to another operation is not this one's end", async () => {
  answer('{"name":"operations/1","done":true,"response":{"of":"the first"}}');
  for (const callNodeId of ['first', 'second']) await opened(callNodeId, portsOf());
  expect((await submitted('first', portsOf())).row).toMatchObject({
    terminalObservation: { remoteStatus: 'completed', evidence: 'submit-reply' },
    remoteReference: { remoteId: 'operations/1' },
  });
  expect((await submitted('second', portsOf())).row).toMatchObject({
    terminalObservation: null,
    remoteReference: null,
    result: null,
    legs: [{ outcome: 'ambiguous' }],
  });
});

it('an end in a late first reply of other work than the operation has is evidence, and no end', async () => {
  answer('{"name":"operations/2","done":true,"response":{}}');
  await opened('node', portsOf());
  const { row } = await submitted('node', portsOf(), async (seam) => {
    const own = { remoteId: 'operations/1', locator: {} };
    if (seam === 'submit:after-reply') await store.recordReference('node', null, own, 2_000);
  });
  expect(row).toMatchObject({ remoteReference: { remoteId: 'operations/1' }, terminalObservation: null });
});

const SMALL = { ...METHOD, maxResultBytes: 1_024 };
const LARGE = `{"name":"operations/1","done":true,"response":"${'x'.repeat(2_000)}"}`;

function observed(nowMs = 9_000) {
  const cursor = { observationCount: 0, transientFaults: 0, lastIntervalMs: null, nextPollNotBeforeAt: null };
  return observe(
    {
      callNodeId: 'node',
      runId: 'run-1',
      executionEpoch: 1,
      openRoundIds: [],
      waitDeadlineAt: 100_000_000,
      inputDeadlineAt: null,
      notBeforeAt: null,
      freshSession: false,
      once: false,
      cursor,
      expiresAt: null,
    },
    portsOf(SMALL, nowMs),
    attempt(),
  );
}

it('a first reply whose result is too large keeps its name; the next look refuses the result by its size', async () => {
  answer(LARGE);
  await opened('node', portsOf(SMALL));
  const sent = await submitted('node', portsOf(SMALL));
  expect(sent).toMatchObject({
    row: { remoteReference: { remoteId: 'operations/1' }, terminalObservation: null },
  });
  expect(sent.tooLarge).toBeUndefined();
  const seen = await observed();
  expect(seen).toMatchObject({
    finding: 'terminal',
    row: { terminalObservation: { remoteStatus: 'completed' }, result: null },
  });
  expect('tooLarge' in seen && seen.tooLarge).toMatch(
    /^the result has 2002 bytes; the limit of this operation is 1024 bytes \(durable\.maxResultBytes\)/,
  );
});

it('a first reply without a name whose result is too large is ambiguous, and says why', async () => {
  answer(LARGE.replace('"name":"operations/1",', ''));
  await opened('node', portsOf(SMALL));
  const sent = await submitted('node', portsOf(SMALL));
  expect(sent).toMatchObject({ row: { legs: [{ outcome: 'ambiguous' }], terminalObservation: null } });
  expect(sent.tooLarge).toMatch(/^submit: the result has 2002 bytes; .*durable\.maxResultBytes/);
});

it("a look's reply over every limit breaks the contract, and names the limit", async () => {
  answer('{"name":"operations/1"}');
  await opened('node', portsOf(SMALL));
  await submitted('node', portsOf(SMALL));
  scripted.script = (_, response) =>
    void response.writeHead(200, { 'content-length': 100_000_000_000 }).write('{');
  const seen = await observed();
  expect(seen).toMatchObject({ finding: 'violation', row: { terminalObservation: null } });
  expect('evidence' in seen && seen.evidence).toMatch(
    /^get: the reply has 100000000000 bytes, more than \d+ bytes; .*durable\.maxResultBytes/,
  );
});
