// What the submit and answer steps do with a call that is asked before there is any work, and no server can be made to show:
// endless asking, oversized questions, a reply after the work turned up. The store is the real one; the wire is a script.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import type { AnswerInput } from '../../activities/step-inputs.js';
import { deliverAnswer } from '../../activities/steps/answer.js';
import { open } from '../../activities/steps/open.js';
import { submit } from '../../activities/steps/submit.js';
import type { ReplyMail, StepFact } from '../../operation/facts.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import type { Negotiated, Submission, ToolAdapter, ToolCall, WireQuestion } from '../../protocols/adapter.js';
import { openSqliteStore } from '../../receipts/open-store.js';
import type { ReceiptStore } from '../../receipts/store.js';
import { serverDirectory } from '../../worker/server-directory.js';
import { parseToolServers } from '../../worker/tool-servers.js';

const RUN = { callNodeId: 'node', runId: 'run-1', executionEpoch: 1 };
const ATTEMPT: Attempt = {
  signal: new AbortController().signal,
  attempt: 1,
  seam: async () => undefined,
  show: () => undefined,
  lastShown: () => null,
};

let dir: string;
let store: ReceiptStore;
let nowMs = 1_000;
let sent: ToolCall[] = [];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dtc-steps-'));
  store = await openSqliteStore(join(dir, 'operations.sqlite'));
  [nowMs, sent] = [1_000, []];
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

const question = (wireKey: string, message = 'Sure?'): WireQuestion => ({
  wireKey,
  wire: { key: wireKey },
  question: { mode: 'form', message, schema: { type: 'object' }, url: null },
});
const asks = (requestState: string | null, ...questions: readonly WireQuestion[]): Submission => ({
  kind: 'inputBeforeTask',
  requestState,
  questions,
});

function portsOn(replies: (leg: number) => Submission): Ports {
  const adapter = {
    name: 'mcp/2026-07-28',
    submit: async (call: ToolCall) => {
      sent.push(call);
      return replies(sent.length);
    },
  } as unknown as ToolAdapter;
  const negotiated: Negotiated = {
    adapter: 'mcp/2026-07-28',
    session: {},
    toolVersion: null,
    descriptorDigest: 'd',
    inputSchema: {},
    outputSchema: null,
    hasTasks: true,
    canList: false,
    canCancel: true,
    annotations: { readOnly: false, idempotent: false, destructive: false },
  };
  return {
    receipts: store,
    protocols: {
      adapter: () => adapter,
      negotiate: async () => ({ kind: 'negotiated', negotiated }),
    },
    servers: serverDirectory(parseToolServers({ mcpServers: { s: { url: 'http://127.0.0.1:1/mcp' } } }, {})),
    clock: { nowMs: () => nowMs },
    random: () => 0,
    newToken: () => crypto.randomUUID(),
    digests,
    checkSchema,
  };
}

async function opened(replies: (leg: number) => Submission): Promise<Ports> {
  const ports = portsOn(replies);
  const request = { requestDigest: 'r', server: 's', tool: 't', arguments: {}, waitBudgetMs: null };
  await open({ callNodeId: RUN.callNodeId, runId: RUN.runId, ...request, mustExist: false }, ports);
  return ports;
}

const submitOn = (ports: Ports): Promise<StepFact> =>
  submit({ ...RUN, deadlineAt: 1_000_000, notBeforeAt: null }, ports, ATTEMPT);

function answerOn(ports: Ports, roundId: string, more: Partial<ReplyMail> = {}): Promise<StepFact> {
  const reply = { roundId, action: 'accept', content: {}, replyToken: 'token', ...more };
  return deliverAnswer({ ...RUN, deadlineAt: 9_999, reply } as unknown as AnswerInput, ports, ATTEMPT);
}

it('to be called again comes with the pace of a try that was not sent, and a limit that is named', async () => {
  const ports = await opened((leg) => asks(`state ${leg}`));
  const gaps: unknown[] = [];
  for (let leg = 1; leg <= 16; leg += 1) {
    await submitOn(ports).catch((error: { retryAfterMs?: number; delayMs?: number }) => {
      gaps.push(error.delayMs ?? error.retryAfterMs);
    });
  }
  expect(gaps.slice(0, 6)).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
  expect(gaps).toHaveLength(16);
  expect(await submitOn(ports)).toMatchObject({
    kind: 'submitted',
    violation: 'asked 17 times before there was any work (limit 16)',
  });
  expect(sent.map(({ continuation }) => continuation?.requestState)).toEqual([
    undefined,
    ...Array.from({ length: 16 }, (_, at) => `state ${at + 1}`),
  ]);
});

it('a question too large to be taken ends it by name, and nobody is asked', async () => {
  const ports = await opened(() => asks('s', question('small'), question('large', 'x'.repeat(40_000))));
  const fact = (await submitOn(ports)) as Extract<StepFact, { kind: 'submitted' }>;
  expect(fact.violation).toMatch(/^a question of \d+ bytes was not taken \(limit 32768\)$/);
  expect(fact.row).toMatchObject({ legs: [{ outcome: 'asked' }], rounds: [] });
});

it('the same key in another leg is another question', async () => {
  const ports = await opened((leg) => asks(`state ${leg}`, question('ok', `Sure ${leg}?`)));
  for (let leg = 1; leg <= 2; leg += 1) {
    const { row } = (await submitOn(ports)) as Extract<StepFact, { kind: 'submitted' }>;
    const open = row.rounds.at(-1);
    expect(open).toMatchObject({ leg, question: { message: `Sure ${leg}?` } });
    expect(await answerOn(ports, open?.roundId ?? '')).toMatchObject({ verdict: { kind: 'applied' } });
  }
  await submitOn(ports);
  expect(sent.map(({ continuation }) => continuation)).toEqual([
    undefined,
    { requestState: 'state 1', replies: { ok: { action: 'accept', content: {} } } },
    { requestState: 'state 2', replies: { ok: { action: 'accept', content: {} } } },
  ]);
});

it('a reply after the work turned up all the same goes nowhere, and says so', async () => {
  const ports = await opened(() => asks('s', question('ok')));
  const { row } = (await submitOn(ports)) as Extract<StepFact, { kind: 'submitted' }>;
  await store.recordReference(RUN.callNodeId, null, { remoteId: 'task-1', locator: {} }, 2_000);
  expect(await answerOn(ports, row.rounds[0]?.roundId ?? '')).toMatchObject({
    verdict: { kind: 'roundClosed' },
    row: { rounds: [{ closedAt: 1_000, reply: null }] },
  });
});

it('an attempt that finds the questions stored leaves them to people, and sends nothing', async () => {
  const ports = await opened(() => asks('s', question('ok')));
  await submitOn(ports);
  expect(await submitOn(ports)).toMatchObject({ row: { legs: [{ outcome: 'asked' }] } });
  expect(sent).toHaveLength(1);
});

const link: WireQuestion = {
  wireKey: 'link 1',
  wire: {},
  question: { mode: 'url', message: 'Sign in', schema: null, url: 'https://example.com/consent' },
};
const demands: Submission = { ...asks(null, link), needsConsent: true } as Submission;

it('a link that the server demands first is opened by a person, and then the call comes again', async () => {
  const ports = await opened(() => demands);
  for (let leg = 1; leg <= 2; leg += 1) {
    const { row } = (await submitOn(ports)) as Extract<StepFact, { kind: 'submitted' }>;
    expect(row.rounds.at(-1)).toMatchObject({ leg, question: link.question });
    const roundId = row.rounds.at(-1)?.roundId ?? '';
    expect(await answerOn(ports, roundId, { content: null })).toMatchObject({ verdict: { kind: 'applied' } });
  }
  expect(sent).toHaveLength(2);
});

it.each(['decline', 'cancel'] as const)(
  'a link that the server demands first and a person answers with %s ends it: nothing is sent again',
  async (action) => {
    const ports = await opened(() => demands);
    const { row } = (await submitOn(ports)) as Extract<StepFact, { kind: 'submitted' }>;
    const roundId = row.rounds[0]?.roundId ?? '';
    expect(await answerOn(ports, roundId, { action, content: null })).toMatchObject({
      verdict: { kind: 'applied' },
    });
    expect(await submitOn(ports)).toMatchObject({ row: { rejection: { code: 'declined' } } });
    expect(sent).toHaveLength(1);
  },
);
