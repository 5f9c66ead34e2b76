// A reply that the server refuses for good, or before which its work is not found: it is taken back, the round stays open, and another reply is delivered.
// The store is the real one; the adapter is a script.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import { deliverAnswer } from '../../activities/steps/answer.js';
import type { AnswerInput } from '../../activities/step-inputs.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import { WireFault, type AnswerHooks, type ToolAdapter } from '../../protocols/adapter.js';
import { openReceiptsReader, openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { serverDirectory } from '../../worker/server-directory.js';
import { parseToolServers } from '../../worker/tool-servers.js';
import { CALL, fence, newRound, working } from '../receipts/suite-fixtures.js';

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

const ATTEMPT: Attempt = {
  signal: new AbortController().signal,
  attempt: 1,
  seam: async () => undefined,
  show: () => undefined,
  lastShown: () => null,
};

function portsOver(adapter: ToolAdapter): Ports {
  return {
    receipts: store,
    protocols: { adapter: () => adapter, negotiate: async () => Promise.reject(new Error('not asked')) },
    servers: serverDirectory(
      parseToolServers({ mcpServers: { reports: { url: 'http://127.0.0.1:1/mcp' } } }, {}),
    ),
    clock: { nowMs: () => 1_000 },
    random: () => 0,
    newToken: () => 'token',
    digests,
    checkSchema,
  } as unknown as Ports;
}

const input = (action: string): AnswerInput =>
  ({
    ...fence(),
    reply: { roundId: 'round-1', action, content: null, replyToken: `token-${action}` },
    deadlineAt: 60_000,
  }) as unknown as AnswerInput;

test('a reply that the server refuses for good is taken back, and another one is delivered', async () => {
  const posted: unknown[] = [];
  const adapter = {
    name: 'mcp/2025-11-25',
    answer: async (
      _server: unknown,
      _reference: unknown,
      _wire: unknown,
      reply: { action: string },
      hooks: AnswerHooks,
    ) => {
      await hooks.beforeSend();
      posted.push(reply.action);
      if (reply.action === 'decline') throw new WireFault('RefusedByServer', 'answer: HTTP 422');
      return 'delivered';
    },
  } as unknown as ToolAdapter;
  const ports = portsOver(adapter);
  await working(store);
  await store.recordRound(CALL, newRound('round-1'));
  const refused = await deliverAnswer(input('decline'), ports, ATTEMPT);
  expect(refused).toMatchObject({
    kind: 'answered',
    verdict: { kind: 'refused', reason: 'answer: HTTP 422' },
  });
  expect(refused).toMatchObject({ row: { rounds: [{ reply: null, closedAt: null }] } });
  const reader = await openReceiptsReader(join(dir, 'operations.sqlite'));
  expect(await reader.readEvidence(CALL)).toMatchObject([
    { kind: 'reply-refused' },
    { kind: 'reply-taken-back' },
  ]);
  await reader.close();

  const applied = await deliverAnswer(input('cancel'), ports, ATTEMPT);
  expect(applied).toMatchObject({ verdict: { kind: 'applied' } });
  expect(posted).toEqual(['decline', 'cancel']);
});

test('work that is not found before the reply is sent: tried again, and at the third time the round is over', async () => {
  const missing = {
    name: 'mcp/2026-07-28',
    answer: async () => Promise.reject(new WireFault('NotFound', 'tasks/get: JSON-RPC -32602')),
  } as unknown as ToolAdapter;
  await working(store);
  await store.recordRound(CALL, newRound('round-1'));
  for (const attempt of [1, 2]) {
    const step = deliverAnswer(input('decline'), portsOver(missing), { ...ATTEMPT, attempt });
    await expect(step).rejects.toMatchObject({ name: 'StepRetry' });
    expect((await store.read(CALL))?.rounds).toMatchObject([{ closedAt: null }]);
  }
  const over = await deliverAnswer(input('decline'), portsOver(missing), { ...ATTEMPT, attempt: 3 });
  expect(over).toMatchObject({ verdict: { kind: 'roundClosed' }, row: { rounds: [{ closedAt: 1_000 }] } });
});
