// Two attempts that fetch one result at the same time and hear different bytes: the first that is stored is the result,
// the other one is evidence. The store is the real one.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import { fetchResult } from '../../activities/steps/fetch-result.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import { openReceiptsReader, openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { serverDirectory } from '../../worker/server-directory.js';
import { parseToolServers } from '../../worker/tool-servers.js';
import { ScriptedServer, sendResult } from '../protocols/scripted-server.js';
import { CALL, ended, fence, working } from '../receipts/suite-fixtures.js';

let dir: string;
let store: ReceiptStore;
let scripted: ScriptedServer;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-second-fetch-'));
  store = await openSqliteStore(join(dir, 'operations.sqlite'));
  scripted = await ScriptedServer.start();
});
afterEach(async () => {
  await store.close();
  await scripted.stop();
  await rm(dir, { recursive: true, force: true });
});

test('R4: different bytes on the second fetch: the first stored wins, both attempts are told so, the other is evidence', async () => {
  let fetches = 0;
  scripted.script = (seen, response) => {
    fetches += 1;
    sendResult(response, seen, { content: [{ type: 'text', text: `fetch ${fetches}` }] });
  };
  const servers = parseToolServers({ mcpServers: { reports: { url: scripted.url } } }, {});
  const ports: Ports = {
    receipts: store,
    protocols: createProtocolRegistry(),
    servers: serverDirectory(servers),
    clock: { nowMs: () => 1_000 },
    random: () => 0,
    newToken: () => 'token',
    digests,
    checkSchema,
  };
  await working(store);
  await store.recordTerminal(CALL, ended('completed'), null);
  const input = { ...fence(), notBeforeAt: null, deadlineAt: null };
  let stored: Promise<unknown> = Promise.resolve();
  const attempt = (seam: Attempt['seam']): Attempt => ({
    signal: new AbortController().signal,
    attempt: 1,
    seam,
    show: () => undefined,
    lastShown: () => null,
  });
  // The first attempt holds its bytes until the second one has stored others.
  const slow = await fetchResult(
    input,
    ports,
    attempt(async (name) => {
      if (name !== 'fetchResult:after-reply') return;
      stored = fetchResult(
        input,
        ports,
        attempt(async () => undefined),
      );
      await stored;
    }),
  );
  expect(fetches).toBe(2);
  const fast = await stored;
  const row = await store.read(CALL);
  expect(fast).toMatchObject({ finding: 'stored', row: { result: row?.result } });
  expect(slow).toMatchObject({ finding: 'stored', row: { result: row?.result } });
  const bytes = await store.readResult(row?.result?.digest ?? '');
  expect(Buffer.from(bytes ?? []).toString()).toContain('fetch 2');
  const reader = await openReceiptsReader(join(dir, 'operations.sqlite'));
  expect(await reader.readEvidence(CALL)).toMatchObject([{ kind: 'result-contradiction' }]);
  await reader.close();
});
