// A submit step that was given up before its claim and goes on after another attempt negotiated. The store is the real one.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import { open } from '../../activities/steps/open.js';
import { submit } from '../../activities/steps/submit.js';
import type { JsonObject } from '../../operation/json.js';
import type { SeamName } from '../../operation/names.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import { type ToolAdapter, WireFault } from '../../protocols/adapter.js';
import { openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { serverDirectory } from '../../worker/server-directory.js';
import { parseToolServers } from '../../worker/tool-servers.js';

let dir: string;
let store: ReceiptStore;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-steps-'));
  store = await openSqliteStore(join(dir, 'operations.sqlite'));
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

/** Each negotiation opens the next session; the first send fails before a byte left, the second one is ambiguous. */
function portsWith(sentIn: JsonObject[]): Ports {
  let sessions = 0;
  const adapter = {
    name: 'mcp/2025-11-25',
    submit: async (_call: unknown, session: JsonObject) => {
      sentIn.push(session);
      throw new WireFault(sentIn.length === 1 ? 'NotSent' : 'Ambiguous', 'no reply');
    },
  } as unknown as ToolAdapter;
  const negotiate = async () => ({
    kind: 'negotiated',
    negotiated: {
      adapter: 'mcp/2025-11-25',
      session: { sessionId: `session-${(sessions += 1)}` },
      toolVersion: null,
      descriptorDigest: 'd',
      inputSchema: {},
      outputSchema: null,
      canList: true,
      canCancel: true,
      annotations: { readOnly: false, idempotent: false, destructive: false },
    },
  });
  const servers = parseToolServers({ mcpServers: { s: { url: 'http://127.0.0.1:1/mcp' } } }, {});
  let tokens = 0;
  return {
    receipts: store,
    protocols: { adapter: () => adapter, negotiate },
    servers: serverDirectory(servers),
    clock: { nowMs: () => 1_000 },
    random: () => 0,
    newToken: () => `token-${(tokens += 1)}`,
    digests,
    checkSchema,
  } as unknown as Ports;
}

function attempt(seam: (name: SeamName) => Promise<void> = async () => undefined): Attempt {
  const { signal } = new AbortController();
  return { signal, attempt: 1, seam, show: () => undefined, lastShown: () => null };
}

test('a late attempt sends in the session that the row holds, where a look-up will search', async () => {
  const sentIn: JsonObject[] = [];
  const ports = portsWith(sentIn);
  const request = { callNodeId: 'late', requestDigest: 'r', server: 's', tool: 't', arguments: {} };
  await open({ ...request, runId: 'run-1', waitBudgetMs: null, mustExist: false }, ports);
  const run = { callNodeId: 'late', runId: 'run-1', executionEpoch: 1 };
  const input = { ...run, deadlineAt: 9_999, notBeforeAt: null };
  let goOn = (): void => {};
  const stopped = new Promise<void>((resolve) => (goOn = resolve));
  let isThere = (): void => {};
  const reached = new Promise<void>((resolve) => (isThere = resolve));

  const late = submit(
    input,
    ports,
    attempt(async (name) => {
      if (name !== 'submit:before-claim') return;
      isThere();
      await stopped;
    }),
  );
  await reached;
  await expect(submit(input, ports, attempt())).rejects.toMatchObject({ code: 'NotSent' });
  goOn();
  expect(await late).toMatchObject({ row: { legs: [{ outcome: 'notSent' }, { outcome: 'ambiguous' }] } });
  expect(sentIn).toEqual([{ sessionId: 'session-2' }, { sessionId: 'session-2' }]);
  expect((await store.wireState('late')).session).toEqual({ sessionId: 'session-2' });
});
