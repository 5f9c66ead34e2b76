// An answer step that was given up and goes on late, beside the next attempt of the same step. The store is the real one.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import type { AnswerInput } from '../../activities/step-inputs.js';
import { deliverAnswer } from '../../activities/steps/answer.js';
import type { SeamName } from '../../operation/names.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import { type AnswerHooks, type ToolAdapter, WireFault } from '../../protocols/adapter.js';
import { openSqliteStore } from '../../receipts/open-store.js';
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

/** Takes the first answer and loses its acknowledgement; from then on nothing waits any more. */
function takingOnce(): { adapter: ToolAdapter; taken: () => number } {
  let taken = 0;
  const answer = async (_s: unknown, _r: unknown, _w: unknown, _reply: unknown, hooks: AnswerHooks) => {
    if (taken > 0) return 'roundClosed';
    await hooks.beforeSend();
    taken += 1;
    throw new WireFault('Transient', 'the socket closed');
  };
  return { adapter: { name: 'mcp/2025-11-25', answer } as unknown as ToolAdapter, taken: () => taken };
}

function attempt(seam: (name: SeamName) => Promise<void> = async () => undefined): Attempt {
  const { signal } = new AbortController();
  return { signal, attempt: 1, seam, show: () => undefined, lastShown: () => null };
}

/** One operation with one open question, over the adapter. */
async function prepared(adapter: ToolAdapter): Promise<{
  ports: Ports;
  input: (action: string, replyToken: string) => AnswerInput;
}> {
  const servers = parseToolServers({ mcpServers: { reports: { url: 'http://127.0.0.1:1/mcp' } } }, {});
  const ports = {
    receipts: store,
    protocols: { adapter: () => adapter },
    servers: serverDirectory(servers),
    clock: { nowMs: () => 1_000 },
    random: () => 0,
    newToken: () => 'token',
    digests,
    checkSchema,
  } as unknown as Ports;
  await working(store);
  await store.recordRound(CALL, newRound('round-1'));
  const input = (action: string, replyToken: string): AnswerInput =>
    ({
      ...fence(),
      deadlineAt: 9_999_999,
      reply: { roundId: 'round-1', action, content: null, replyToken },
    }) as unknown as AnswerInput;
  return { ports, input };
}

test('a late attempt does not close the round over a reply that another attempt has sent meanwhile', async () => {
  const { adapter, taken } = takingOnce();
  const { ports, input } = await prepared(adapter);
  const reply = input('decline', 'token-1');
  let goOn = (): void => {};
  const stopped = new Promise<void>((resolve) => (goOn = resolve));
  let isThere = (): void => {};
  const reached = new Promise<void>((resolve) => (isThere = resolve));

  const late = deliverAnswer(
    reply,
    ports,
    attempt(async (name) => {
      if (name !== 'answer:after-record') return;
      isThere();
      await stopped;
    }),
  );
  await reached;
  await expect(deliverAnswer(reply, ports, attempt())).rejects.toMatchObject({ code: 'NotReady' });
  goOn();
  expect(await late).toMatchObject({ verdict: { kind: 'applied' } });
  expect(taken()).toBe(1);
  expect(await store.read(CALL)).toMatchObject({
    rounds: [{ closedAt: null, reply: { deliveredAt: 1_000 } }],
  });
});

test('a refusal of bytes that were sent before reopens nothing: the first ones may have been taken', async () => {
  let posted = 0;
  const answer = async (_s: unknown, _r: unknown, _w: unknown, _reply: unknown, hooks: AnswerHooks) => {
    await hooks.beforeSend();
    posted += 1;
    throw posted === 1
      ? new WireFault('Transient', 'the socket closed')
      : new WireFault('RefusedByServer', 'HTTP 422');
  };
  const { ports, input } = await prepared({ name: 'mcp/2025-11-25', answer } as unknown as ToolAdapter);
  await expect(deliverAnswer(input('decline', 'token-1'), ports, attempt())).rejects.toMatchObject({
    code: 'NotReady',
  });
  expect(await deliverAnswer(input('decline', 'token-1'), ports, attempt())).toMatchObject({
    verdict: { kind: 'applied' },
  });
  const other = await deliverAnswer(input('cancel', 'token-2'), ports, attempt());
  expect(other).toMatchObject({ verdict: { kind: 'alreadyAnswered' } });
  expect(posted).toBe(2);
});

test('a late refusal that takes the reply back while it is on its way again does not reopen the round', async () => {
  let goOn = (): void => {};
  const stopped = new Promise<void>((resolve) => (goOn = resolve));
  let isThere = (): void => {};
  const reached = new Promise<void>((resolve) => (isThere = resolve));
  let posted = 0;
  const answer = async (_s: unknown, _r: unknown, _w: unknown, _reply: unknown, hooks: AnswerHooks) => {
    await hooks.beforeSend();
    posted += 1;
    if (posted === 1) {
      isThere();
      await stopped;
      throw new WireFault('RefusedByServer', 'HTTP 422');
    }
    goOn();
    // Until the refused one has taken the reply back.
    await expect.poll(async () => (await store.read(CALL))?.rounds[0]?.reply).toBeNull();
    return 'delivered';
  };
  const { ports, input } = await prepared({ name: 'mcp/2025-11-25', answer } as unknown as ToolAdapter);
  const late = deliverAnswer(input('decline', 'token-1'), ports, attempt());
  await reached;
  const next = await deliverAnswer(input('decline', 'token-1'), ports, attempt());
  expect(await late).toMatchObject({ verdict: { kind: 'refused' } });
  expect(next).toMatchObject({
    verdict: { kind: 'applied' },
    row: { rounds: [{ reply: { deliveredAt: 1_000 } }] },
  });
  const other = await deliverAnswer(input('cancel', 'token-2'), ports, attempt());
  expect(other).toMatchObject({ verdict: { kind: 'alreadyAnswered' } });
});
