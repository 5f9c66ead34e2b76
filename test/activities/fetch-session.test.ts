// A result whose session is lost before it was fetched. The store is the real one; the adapter is a script.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import type { FetchInput } from '../../activities/step-inputs.js';
import { fetchResult } from '../../activities/steps/fetch-result.js';
import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import { type FetchedResult, type ToolAdapter, WireFault } from '../../protocols/adapter.js';
import { openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { serverDirectory } from '../../worker/server-directory.js';
import { parseToolServers } from '../../worker/tool-servers.js';
import { CALL, ended, fence, working } from '../receipts/suite-fixtures.js';

let dir: string;
let store: ReceiptStore;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-steps-'));
  store = await openSqliteStore(join(dir, 'operations.sqlite'));
  await working(store);
  await store.recordTerminal(CALL, ended('completed'), null);
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

const ATTEMPT: Attempt = {
  signal: new AbortController().signal,
  attempt: 1,
  seam: async () => undefined,
  show: () => undefined,
  lastShown: () => null,
};
const INPUT = { ...fence(), notBeforeAt: null, deadlineAt: 9_999_999 } as FetchInput;

function portsOver(inFreshSession: FetchedResult): { ports: Ports; released: JsonObject[] } {
  const released: JsonObject[] = [];
  const adapter = {
    name: 'mcp/2025-11-25',
    fetchResult: async (_server: unknown, { locator }: RemoteReference): Promise<FetchedResult> => {
      if (locator['sessionId'] !== 'fresh') throw new WireFault('SessionLost', 'HTTP 404');
      return inFreshSession;
    },
    renewSession: async (_server: unknown, { remoteId }: RemoteReference) => ({
      remoteId,
      locator: { sessionId: 'fresh' },
    }),
    release: async (_server: unknown, session: JsonObject) => {
      released.push(session);
    },
  } as unknown as ToolAdapter;
  const servers = parseToolServers({ mcpServers: { reports: { url: 'http://127.0.0.1:1/mcp' } } }, {});
  const ports = {
    receipts: store,
    protocols: { adapter: () => adapter },
    servers: serverDirectory(servers),
    clock: { nowMs: () => 1_000 },
    checkSchema: () => null,
  } as unknown as Ports;
  return { ports, released };
}

test('a result is fetched through a fresh session where its own is lost, and the session is kept', async () => {
  const result = {
    bytes: new TextEncoder().encode('{"content":[]}'),
    mediaType: 'application/json',
    isProtocolError: false,
    isToolError: false,
    structuredContent: {},
  };
  const { ports, released } = portsOver({ kind: 'result', result });
  expect(await fetchResult(INPUT, ports, ATTEMPT)).toMatchObject({ finding: 'stored' });
  expect(await store.read(CALL)).toMatchObject({ remoteReference: { locator: { sessionId: 'fresh' } } });
  expect(released).toEqual([]);
});

test('a result that a fresh session does not know is not lost yet: the old one may come back', async () => {
  const { ports, released } = portsOver({ kind: 'lost', evidence: 'task unknown' });
  await expect(fetchResult(INPUT, ports, ATTEMPT)).rejects.toMatchObject({ code: 'NotReady' });
  expect(await store.read(CALL)).toMatchObject({ remoteReference: { locator: { sessionId: 'session-1' } } });
  expect(released).toEqual([{ sessionId: 'fresh' }]);
});
