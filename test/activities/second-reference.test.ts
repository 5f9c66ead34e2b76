// A zombie attempt whose reply comes late, with other remote work than the operation's own: it is stopped and kept as
// evidence. The store is the real one; the adapter is a script, because no server can be made to reply in this order.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import { open } from '../../activities/steps/open.js';
import { submit } from '../../activities/steps/submit.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import type { Submission, ToolAdapter } from '../../protocols/adapter.js';
import { openReceiptsReader, openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { parseToolServers } from '../../worker/tool-servers.js';
import { serverDirectory } from '../../worker/server-directory.js';

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

const RUN = { callNodeId: 'twice', runId: 'run-1', executionEpoch: 1 };
const CONFIG = parseToolServers(
  {
    mcpServers: {
      s: {
        url: 'http://127.0.0.1:1/mcp',
        durable: { tools: { t: { submission: { policy: 'key-argument', argument: 'key' } } } },
      },
    },
  },
  {},
);

function submissionOf(remoteId: string): Submission {
  return {
    kind: 'referenced',
    reference: { remoteId, locator: {} },
    observation: {
      remoteStatus: 'working',
      meaning: 'working',
      statusMessage: null,
      intervalMs: 1,
      expiresAt: null,
    },
  };
}

/** Gives each send its reply when the test says so, and notes what it is asked to cancel. */
function scriptedAdapter(): {
  adapter: ToolAdapter;
  sends: ((reply: Submission) => void)[];
  cancelled: string[];
} {
  const sends: ((reply: Submission) => void)[] = [];
  const cancelled: string[] = [];
  const adapter = {
    name: 'mcp/2025-11-25',
    submit: () => new Promise<Submission>((resolve) => sends.push(resolve)),
    cancel: async (_server: unknown, reference: { remoteId: string }) => {
      cancelled.push(reference.remoteId);
      return 'confirmed';
    },
  } as unknown as ToolAdapter;
  return { adapter, sends, cancelled };
}

test('the late reply of a lost attempt names a second task: it is cancelled, the first one stays', async () => {
  const { adapter, sends, cancelled } = scriptedAdapter();
  const ports: Ports = {
    receipts: store,
    protocols: {
      adapter: () => adapter,
      negotiate: async () => ({
        kind: 'negotiated',
        negotiated: {
          adapter: 'mcp/2025-11-25',
          session: {},
          toolVersion: null,
          descriptorDigest: 'd',
          inputSchema: {},
          outputSchema: null,
          canList: false,
          hasTasks: true,
          canCancel: true,
          annotations: { readOnly: false, idempotent: false, destructive: false },
        },
      }),
    },
    servers: serverDirectory(CONFIG),
    clock: { nowMs: () => 1_000 },
    random: () => 0,
    newToken: () => crypto.randomUUID(),
    digests,
    checkSchema,
  };
  const attempt = (): Attempt => ({
    signal: new AbortController().signal,
    attempt: 1,
    seam: async () => undefined,
    show: () => {},
    lastShown: () => null,
  });
  const input = { ...RUN, deadlineAt: 9_999, notBeforeAt: null };
  const request = {
    callNodeId: 'twice',
    requestDigest: 'r',
    server: 's',
    tool: 't',
    arguments: {},
    waitBudgetMs: null,
    mustExist: false,
  };
  await open({ ...request, runId: 'run-1' }, ports);

  const zombie = submit(input, ports, attempt());
  // Its bytes have left: a claim that is given up earlier is not sent at all.
  await expect.poll(() => sends.length).toBe(1);
  const second = await submit(input, ports, attempt());
  expect(second).toMatchObject({ row: { legs: [{ outcome: 'ambiguous' }], remoteReference: null } });
  const third = submit(input, ports, attempt());
  await expect.poll(() => sends.length).toBe(2);
  sends[1]?.(submissionOf('own'));
  expect(await third).toMatchObject({ row: { remoteReference: { remoteId: 'own' } } });
  expect(cancelled).toEqual([]);

  sends[0]?.(submissionOf('other'));
  expect(await zombie).toMatchObject({ row: { remoteReference: { remoteId: 'own' } } });
  expect(cancelled).toEqual(['other']);
  const reader = await openReceiptsReader(join(dir, 'operations.sqlite'));
  expect(await reader.readEvidence('twice')).toMatchObject([{ kind: 'second-reference' }]);
  expect(await reader.readReconciliation('twice')).not.toBeNull();
  await reader.close();
});
