// Owns what the step bodies do around a submission that no server can be made to show: configuration mistakes found before
// the first leg, a claim that was outlived, a look-up that comes home late. The store is the real one; the wire is a script.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Attempt, Ports } from '../../activities/ports.js';
import { lookUp } from '../../activities/steps/look-up.js';
import { open } from '../../activities/steps/open.js';
import { submit } from '../../activities/steps/submit.js';
import type { StepFact } from '../../operation/facts.js';
import type { JsonObject } from '../../operation/json.js';
import type { SeamName } from '../../operation/names.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import {
  type LookUp,
  type Negotiated,
  type PublishedTool,
  type Submission,
  type ToolAdapter,
  WireFault,
} from '../../protocols/adapter.js';
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

const RUN = { callNodeId: 'node', runId: 'run-1', executionEpoch: 1 };
const SUBMIT = { ...RUN, deadlineAt: 1_000_000, notBeforeAt: null };
const LOOK = { ...RUN, notBeforeAt: null, deadlineAt: null, given: null };
const FIND: PublishedTool = {
  requiresTasks: false,
  inputSchema: { type: 'object', additionalProperties: false, properties: { ref: { type: 'string' } } },
  outputSchema: { type: 'object', properties: { job: { type: 'object', properties: { id: {} } } } },
};

/** One operation under `lookup-tool`, its clock, and a wire that answers as the test says. */
class Bench {
  nowMs = 1_000;
  negotiated: Partial<Negotiated> = {};
  pinned: string | null = null;
  reply: () => Promise<Submission> = async () => {
    throw new WireFault('Ambiguous', 'no reply');
  };
  look: () => Promise<LookUp> = async () => ({ kind: 'provedAbsent', evidence: 'no such key' });
  readonly sent: JsonObject[] = [];
  readonly looked: JsonObject[] = [];
  atSeam: (name: SeamName) => Promise<void> = async () => undefined;
  #sessions = 0;

  get ports(): Ports {
    const adapter = {
      name: 'mcp/2025-11-25',
      submit: (_call: unknown, session: JsonObject) => {
        this.sent.push(session);
        return this.reply();
      },
      findBySubmission: (_call: unknown, session: JsonObject) => {
        this.looked.push(session);
        return this.look();
      },
      cancel: async () => 'confirmed',
    } as unknown as ToolAdapter;
    const lookUpSettings = { tool: 'find', argument: 'ref', id: '/structuredContent/job/id' };
    const submission = {
      policy: 'lookup-tool',
      argument: 'key',
      lookUp: { ...lookUpSettings, provesAbsence: true, settleAfter: '30s' },
    };
    const descriptor = this.pinned === null ? {} : { descriptor: this.pinned };
    const durable = { tools: { t: { submission, ...descriptor } } };
    const config = { mcpServers: { s: { url: 'http://127.0.0.1:1/mcp', durable } } };
    return {
      receipts: store,
      protocols: {
        adapter: () => adapter,
        negotiate: async (_server, _tool, lookUpTool) => {
          expect(lookUpTool).toBe('find');
          this.#sessions += 1;
          const negotiated: Negotiated = {
            adapter: 'mcp/2025-11-25',
            session: { sessionId: `session-${this.#sessions}` },
            toolVersion: null,
            descriptorDigest: 'd',
            inputSchema: {},
            outputSchema: null,
            hasTasks: true,
            canList: true,
            canCancel: true,
            annotations: { readOnly: false, idempotent: false, destructive: false },
            lookUpTool: FIND,
            ...this.negotiated,
          };
          return { kind: 'negotiated', negotiated };
        },
      },
      servers: serverDirectory(parseToolServers(config, {})),
      clock: { nowMs: () => this.nowMs },
      random: () => 0,
      newToken: () => crypto.randomUUID(),
      digests,
      checkSchema,
    };
  }

  async open(): Promise<void> {
    const { callNodeId, runId } = RUN;
    const request = { requestDigest: 'r', server: 's', tool: 't', arguments: {}, waitBudgetMs: null };
    await open({ callNodeId, runId, ...request, mustExist: false }, this.ports);
  }

  submit(): Promise<StepFact> {
    return submit(SUBMIT, this.ports, this.#attempt());
  }

  lookUp(): Promise<StepFact> {
    return lookUp(LOOK, this.ports, this.#attempt());
  }

  #attempt(): Attempt {
    return {
      signal: new AbortController().signal,
      attempt: 1,
      seam: (name) => this.atSeam(name),
      show: () => undefined,
      lastShown: () => null,
    };
  }
}

describe('a look-up tool that can never answer', () => {
  it.each<[string, PublishedTool | null, string]>([
    ['is not published', null, 'the server has no tool "find" to look submissions up with'],
    ['runs as a task only', { ...FIND, requiresTasks: true }, 'tool "find" runs as a task only'],
    [
      'takes another argument',
      { ...FIND, inputSchema: { type: 'object', required: ['id'] } },
      'tool "find" does not take { "ref": key }',
    ],
    [
      'publishes no such member',
      { ...FIND, outputSchema: { properties: { job: { properties: { key: {} } } } } },
      'tool "find" publishes no /structuredContent/job/id in its output',
    ],
  ])('because it %s is told before the first leg', async (_, lookUpTool, message) => {
    const bench = new Bench();
    bench.negotiated = { lookUpTool };
    await bench.open();
    const { row } = (await bench.submit()) as Extract<StepFact, { kind: 'submitted' }>;
    expect(row).toMatchObject({ legs: [], rejection: { code: 'bad-arguments' } });
    expect(row.rejection?.message).toContain(message);
    expect(row.rejection?.message).toContain('mend submission.lookUp');
    expect(bench.sent).toEqual([]);
  });

  it.each<[string, PublishedTool]>([
    ['nothing about its output', { ...FIND, outputSchema: null }],
    ['nothing about what is inside', { ...FIND, outputSchema: { properties: { job: {} } } }],
  ])('is not one that publishes %s', async (_, lookUpTool) => {
    const bench = new Bench();
    bench.negotiated = { lookUpTool };
    await bench.open();
    expect(await bench.submit()).toMatchObject({
      row: { rejection: null, legs: [{ outcome: 'ambiguous' }] },
    });
  });

  it('like a tool that has no argument for the key of the submission, is a mistake', async () => {
    const bench = new Bench();
    bench.negotiated = { inputSchema: { type: 'object', properties: { other: {} } } };
    await bench.open();
    const fact = await bench.submit();
    expect(fact).toMatchObject({ row: { legs: [], rejection: { code: 'bad-arguments' } } });
  });
});

describe('what is odd about a tool', () => {
  it('is told with its first submission: no way to stop it, and a descriptor that has changed', async () => {
    const bench = new Bench();
    bench.negotiated = { canCancel: false, descriptorDigest: 'd2' };
    await earlierOperation(bench, 'd1');
    await bench.open();
    expect(await bench.submit()).toMatchObject({
      remarks: [
        {
          what: 'descriptor-changed',
          detail: 'what the server publishes about "t" has changed: d1 is now d2',
        },
        { what: 'no-cancel', detail: '"t" is long, and the server cannot be asked to stop it' },
      ],
    });
  });

  it.each<[string, Partial<Negotiated>]>([
    ['is as it was and can be stopped', {}],
    ['is short and harmless', { canCancel: false, hasTasks: false }],
  ])('is not told where it %s', async (_, negotiated) => {
    const bench = new Bench();
    bench.negotiated = negotiated;
    await earlierOperation(bench, 'd');
    await bench.open();
    expect(await bench.submit()).not.toHaveProperty('remarks');
  });

  it('refuses it where another descriptor is pinned, before anything is sent', async () => {
    const bench = new Bench();
    bench.pinned = 'a'.repeat(64);
    bench.negotiated = { descriptorDigest: 'b'.repeat(64) };
    await bench.open();
    const { row } = (await bench.submit()) as Extract<StepFact, { kind: 'submitted' }>;
    expect(row).toMatchObject({ legs: [], rejection: { code: 'descriptor-changed' } });
    expect(row.rejection?.message).toMatch(/b{64}, and "descriptor" of this tool pins a{64}: look at what/);
    expect(bench.sent).toEqual([]);
  });
});

async function earlierOperation(bench: Bench, descriptorDigest: string): Promise<void> {
  const policy = bench.ports.servers.policyOf('s', 't', { waitBudgetMs: null });
  await store.open({
    callNodeId: 'earlier',
    requestDigest: 'r',
    server: 's',
    tool: 't',
    argumentsJson: '{}',
    argumentsDigest: 'a',
    submissionKey: 'k',
    policy,
    rejection: null,
    runId: 'run-7',
    mustExist: false,
    at: 1,
  });
  await store.recordNegotiation(
    { callNodeId: 'earlier', runId: 'run-7', executionEpoch: 1 },
    {
      adapter: 'mcp/2025-11-25',
      submissionPolicy: 'at-most-once',
      toolVersion: null,
      descriptorDigest,
      outputSchema: null,
      session: {},
    },
  );
}

describe('a claim that was outlived', () => {
  it('by the time it could send is closed as not sent, and nothing leaves', async () => {
    const bench = new Bench();
    await bench.open();
    bench.atSeam = async (name) => {
      // The process stood still here, and another attempt has given the claim up.
      if (name === 'submit:after-claim') await store.abandonOpenLegs(RUN, 'lost', 2_000);
    };
    expect(await bench.submit()).toMatchObject({
      row: { legs: [{ outcome: 'notSent', detail: 'given up before it was sent' }] },
    });
    expect(bench.sent).toEqual([]);
  });
});

describe('absence', () => {
  it('counts only for a look that was sent after the last leg had settled', async () => {
    const bench = new Bench();
    await bench.open();
    await bench.submit();
    bench.nowMs = 30_999;
    expect(await bench.lookUp()).toMatchObject({
      finding: 'cannotTell',
      evidence: 'no such key; too early for that to count',
    });
    // Sent too early, home in time.
    bench.look = async () => {
      bench.nowMs = 31_500;
      return { kind: 'provedAbsent', evidence: 'no such key' };
    };
    expect(await bench.lookUp()).toMatchObject({ finding: 'cannotTell', row: { provedAbsentAtLeg: null } });
    expect(await bench.lookUp()).toMatchObject({ finding: 'provedAbsent', row: { provedAbsentAtLeg: 1 } });
  });

  it('proved gives the next leg a session of its own, in which it is looked up', async () => {
    const bench = new Bench();
    await bench.open();
    await bench.submit();
    bench.nowMs = 40_000;
    await bench.lookUp();
    await bench.submit();
    expect(bench.sent).toEqual([{ sessionId: 'session-1' }, { sessionId: 'session-2' }]);
    await bench.lookUp();
    expect(bench.looked).toEqual(bench.sent);
  });

  it('that a late look-up brings home says nothing about a leg that was sent meanwhile', async () => {
    const bench = new Bench();
    await bench.open();
    await bench.submit();
    bench.nowMs = 40_000;
    let answer: (said: LookUp) => void = () => undefined;
    bench.look = () => new Promise<LookUp>((resolve) => (answer = resolve));
    const zombie = bench.lookUp();
    await expect.poll(() => bench.looked.length).toBe(1);
    bench.look = async () => ({ kind: 'provedAbsent', evidence: 'no such key' });
    await bench.lookUp();
    await bench.submit();
    bench.nowMs = 90_000;
    answer({ kind: 'provedAbsent', evidence: 'no such key' });
    expect(await zombie).toMatchObject({ finding: 'cannotTell', row: { provedAbsentAtLeg: 1 } });
    expect(bench.sent).toHaveLength(2);
  });

  it('closes the leg that a lost run left open, and begins to count from then on', async () => {
    const bench = new Bench();
    await bench.open();
    await store.recordNegotiation(RUN, {
      adapter: 'mcp/2025-11-25',
      submissionPolicy: 'lookup-tool',
      toolVersion: null,
      descriptorDigest: 'd',
      outputSchema: null,
      session: {},
    });
    await store.claimLeg(RUN, 'claim of a lost run', 1_000);
    bench.nowMs = 50_000;
    expect(await bench.lookUp()).toMatchObject({
      finding: 'cannotTell',
      row: { legs: [{ outcome: 'ambiguous', closedAt: 50_000 }] },
    });
    bench.nowMs = 80_000;
    expect(await bench.lookUp()).toMatchObject({ finding: 'provedAbsent' });
  });
});

it('a reply with the work of another operation is neither adopted nor cancelled', async () => {
  const bench = new Bench();
  const reference = { remoteId: 'task-1', locator: {} };
  await store.open({
    callNodeId: 'owner',
    requestDigest: 'r',
    server: 's',
    tool: 't',
    argumentsJson: '{}',
    argumentsDigest: 'a',
    submissionKey: 'k',
    policy: bench.ports.servers.policyOf('s', 't', { waitBudgetMs: null }),
    rejection: null,
    runId: 'run-7',
    mustExist: false,
    at: 1,
  });
  await store.recordReference('owner', null, reference, 1);
  await bench.open();
  const observation = {
    remoteStatus: 'working',
    meaning: 'working',
    statusMessage: null,
    intervalMs: 1,
    expiresAt: null,
  } as const;
  bench.reply = async () => ({ kind: 'referenced', reference, observation });
  const fact = await bench.submit();
  expect(fact).toMatchObject({ row: { remoteReference: null, legs: [{ outcome: 'ambiguous' }] } });
  expect('seen' in fact).toBe(false);
});
