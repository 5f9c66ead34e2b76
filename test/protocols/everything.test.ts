// Owns the adapters against the reference TypeScript server: every method once on the real wire.
// Must never share objects between "processes": a second registry gets only what JSON would carry.

import { once } from 'node:events';
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import type {
  Negotiated,
  Observation,
  ToolAdapter,
  ToolServer,
  WireQuestion,
} from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { type EverythingServer, startEverythingServer } from './everything-server.js';
import { NO_HOOKS, toolCall, toolServer } from './scripted-server.js';

const RESEARCH = 'simulate-research-query';

let everything: EverythingServer;
let server: ToolServer;

beforeAll(async () => {
  everything = await startEverythingServer();
  server = toolServer(everything.url);
});
afterAll(() => everything.stop());

/** What another process would have: nothing but the JSON. */
function persisted<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

function adapterOf(name: 'mcp/2025-11-25' | 'synchronous' = 'mcp/2025-11-25'): ToolAdapter {
  return createProtocolRegistry().adapter(name);
}

async function negotiated(tool: string, more: Partial<ToolServer> = {}): Promise<Negotiated> {
  const negotiation = await createProtocolRegistry().negotiate({ ...server, ...more }, tool);
  if (negotiation.kind !== 'negotiated') throw new Error(negotiation.message);
  return negotiation.negotiated;
}

async function startResearch(
  ambiguous: boolean,
): Promise<{ session: JsonObject; reference: RemoteReference }> {
  const { session } = await negotiated(RESEARCH);
  const call = toolCall(server, { tool: RESEARCH, arguments: { topic: 'python', ambiguous } });
  const submission = await adapterOf().submit(call, session, NO_HOOKS);
  if (submission.kind !== 'referenced') throw new Error('answered at once');
  return { session, reference: persisted(submission.reference) };
}

async function observeUntil(
  reference: RemoteReference,
  meaning: Observation['meaning'],
): Promise<Observation> {
  for (;;) {
    const seen = await adapterOf().observe(server, reference);
    if (seen.meaning === meaning) return seen;
    if (seen.meaning === 'failed' || seen.meaning === 'cancelled')
      throw new Error(`ended ${seen.remoteStatus}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

describe('negotiation with server-everything', () => {
  it('takes the task contract for a tool that requires tasks', async () => {
    const found = await negotiated(RESEARCH);
    expect(found).toMatchObject({
      adapter: 'mcp/2025-11-25',
      canList: true,
      session: {
        protocolVersion: '2025-11-25',
        canList: true,
        canCancel: true,
        canReplay: true,
        listWasEmpty: true,
      },
      annotations: { readOnly: false, idempotent: false, destructive: false },
      inputSchema: { type: 'object', required: ['topic'] },
    });
    expect(found.descriptorDigest).toMatch(/^[0-9a-f]{64}$/);
    expect((await negotiated(RESEARCH)).descriptorDigest).toBe(found.descriptorDigest);
    expect((await negotiated('echo')).descriptorDigest).not.toBe(found.descriptorDigest);
  });

  it('takes the plain contract for a tool that forbids tasks, and gives the output schema', async () => {
    const found = await negotiated('get-structured-content');
    expect(found).toMatchObject({ adapter: 'synchronous', canList: false, session: { listWasEmpty: null } });
    expect(found.outputSchema).toMatchObject({ type: 'object' });
  });

  it('says which pin to change when it cannot be had', async () => {
    const plain = await createProtocolRegistry().negotiate({ ...server, protocol: 'mcp/2025-11-25' }, 'echo');
    expect(plain).toMatchObject({
      kind: 'unsupported',
      message: expect.stringMatching(/Set "protocol" to "auto"/),
    });
    const task = await createProtocolRegistry().negotiate({ ...server, protocol: 'synchronous' }, RESEARCH);
    expect(task).toMatchObject({ kind: 'unsupported', message: expect.stringMatching(/requires tasks/) });
  });

  it('lists near names for an unknown tool', async () => {
    const negotiation = await createProtocolRegistry().negotiate(server, 'simulate-research');
    expect(negotiation).toMatchObject({
      kind: 'unknownTool',
      message: expect.stringContaining(`near: ${RESEARCH}`),
    });
  });
});

describe('a plain call of server-everything', () => {
  it('answers with the content, and says progress forward only', async () => {
    const tool = 'trigger-long-running-operation';
    const { session } = await negotiated(tool);
    const said: string[] = [];
    let sentBeforeProgress = false;
    const submission = await adapterOf('synchronous').submit(
      toolCall(server, { tool, arguments: { duration: 0.2, steps: 2 } }),
      session,
      {
        ...NO_HOOKS,
        afterSend: async () => {
          sentBeforeProgress = said.length === 0;
        },
        onProgress: (message) => said.push(message),
      },
    );
    expect(submission).toMatchObject({
      kind: 'answered',
      result: { isToolError: false, isProtocolError: false },
    });
    expect(said).toEqual(['1/2', '2/2']);
    expect(sentBeforeProgress).toBe(true);
  });

  it('answers with isError content where the tool says so', async () => {
    const { session } = await negotiated('echo');
    const call = toolCall(server, { tool: 'echo', arguments: { message: 7 } });
    const submission = await adapterOf('synchronous').submit(call, session, NO_HOOKS);
    expect(submission).toMatchObject({
      kind: 'answered',
      result: { isToolError: true, isProtocolError: false },
    });
  });

  it('refuses a question inside the call instead of leaving the server waiting', async () => {
    const tool = 'trigger-elicitation-request';
    const { session } = await negotiated(tool);
    const submission = await adapterOf('synchronous').submit(
      toolCall(server, { tool, arguments: {} }),
      session,
      NO_HOOKS,
    );
    expect(submission).toMatchObject({ kind: 'answered', result: { isToolError: true } });
  });
});

describe('a task of server-everything', () => {
  it('is submitted, observed to its end and fetched twice with the same bytes', async () => {
    const { session, reference } = await startResearch(false);
    const first = await adapterOf().observe(server, reference);
    expect(first).toMatchObject({ remoteStatus: 'working', meaning: 'working', intervalMs: 1_000 });
    expect(first.expiresAt).toBeGreaterThan(Date.now() + 200_000);
    await observeUntil(reference, 'completed');
    const fetched = await adapterOf().fetchResult(server, reference);
    if (fetched.kind !== 'result') throw new Error(fetched.kind);
    const text = new TextDecoder().decode(fetched.result.bytes);
    expect(text).toMatch(/^\{"content":\[\{"type":"text","text":"# Research Report: python/);
    expect(text).toContain(`"taskId":"${reference.remoteId}"`);
    expect(await adapterOf().fetchResult(server, reference)).toEqual(fetched);

    expect(await adapterOf().cancel(server, reference, NO_HOOKS.afterSend)).toBe('refused');
    await adapterOf().release(server, session);
    await expect(adapterOf().observe(server, reference)).rejects.toMatchObject({
      kind: 'SessionLost',
      wireCode: -32000,
    });
  });

  it('asks through an anchor that another process replays, and takes the answer from a third', async () => {
    const { reference } = await startResearch(true);
    const anchor = persisted(await adapterOf().anchor(server, reference));
    expect(anchor).toMatchObject({ eventId: expect.any(String) });
    await observeUntil(reference, 'inputRequired');

    const pickUp = async (wireKeys: string[]): Promise<WireQuestion[]> => {
      const picked: WireQuestion[] = [];
      await adapterOf().pickUpQuestions(server, reference, { anchor, wireKeys }, async (question) => {
        picked.push(persisted(question));
      });
      return picked;
    };
    const [question, ...more] = await pickUp([]);
    expect(more).toEqual([]);
    if (!question) throw new Error('no question');
    expect(question.question).toMatchObject({ mode: 'form', message: expect.stringContaining('python') });
    expect(question.wire).toMatchObject({ jsonRpcId: 0, eventId: expect.any(String) });
    // A process that died after reading it reads the very same question again.
    expect(await pickUp([])).toEqual([question]);

    const calls: string[] = [];
    const answered = await adapterOf().answer(
      server,
      reference,
      question.wire,
      { action: 'accept', content: { interpretation: 'snake' } },
      { beforeSend: async () => void calls.push('before'), afterSend: async () => void calls.push('after') },
    );
    expect(answered).toBe('delivered');
    expect(calls).toEqual(['before', 'after']);
    await observeUntil(reference, 'completed');
    const fetched = await adapterOf().fetchResult(server, reference);
    expect(fetched.kind === 'result' && new TextDecoder().decode(fetched.result.bytes)).toContain(
      'python (snake)',
    );
  });

  it('says roundClosed, and sends nothing, when the server no longer waits', async () => {
    const { reference } = await startResearch(false);
    const sent: string[] = [];
    const hooks = {
      beforeSend: async () => void sent.push('before'),
      afterSend: async () => void sent.push('after'),
    };
    const wire = { jsonRpcId: 0, sessionId: reference.locator['sessionId'] ?? null };
    const verdict = await adapterOf().answer(
      server,
      reference,
      wire,
      { action: 'decline', content: null },
      hooks,
    );
    expect(verdict).toBe('roundClosed');
    expect(sent).toEqual([]);
  });

  it('is cancelled with the reply as its evidence, and then has no result', async () => {
    const { reference } = await startResearch(false);
    expect(await adapterOf().cancel(server, reference, NO_HOOKS.afterSend)).toBe('confirmed');
    expect(await adapterOf().observe(server, reference)).toMatchObject({ meaning: 'cancelled' });
    expect(await adapterOf().cancel(server, reference, NO_HOOKS.afterSend)).toBe('refused');
    // server-everything answers -32603 here: it holds no result, which a storage outage would look like too.
    await expect(adapterOf().fetchResult(server, reference)).rejects.toMatchObject({
      kind: 'Transient',
      wireCode: -32603,
    });
  });

  it('is found again by the list of its session after a lost reply', async () => {
    const claimedAt = Date.now();
    const { session, reference } = await startResearch(false);
    const call = toolCall(server, { tool: RESEARCH });
    const found = await adapterOf().findBySubmission(call, persisted(session), claimedAt);
    expect(found).toEqual({ kind: 'found', reference });

    const late = await adapterOf().findBySubmission(call, session, claimedAt + 3_600_000);
    expect(late).toMatchObject({ kind: 'cannotTell', evidence: expect.stringContaining('older') });
    const { session: unused } = await negotiated(RESEARCH);
    expect(await adapterOf().findBySubmission(call, unused, claimedAt)).toMatchObject({ kind: 'cannotTell' });
    const second = await adapterOf().submit(toolCall(server, { tool: RESEARCH }), session, NO_HOOKS);
    expect(second.kind).toBe('referenced');
    const two = await adapterOf().findBySubmission(call, session, claimedAt);
    expect(two).toMatchObject({ kind: 'cannotTell', evidence: expect.stringContaining('2 tasks') });
  });

  it('is referenced although its create reply was cut: the reply is replayed, the call is not repeated', async () => {
    const { session } = await negotiated(RESEARCH);
    const proxy = await proxyCuttingReplies(everything.url, '"method":"tools/call"', 'data: \n\n');
    const call = toolCall(toolServer(proxy.url), { tool: RESEARCH, arguments: { topic: 'cut' } });
    const submission = await adapterOf().submit(call, session, NO_HOOKS);
    expect(proxy.cuts()).toBe(1);
    expect(submission.kind).toBe('referenced');
    const found = await adapterOf().findBySubmission(toolCall(server), session, Date.now() - 60_000);
    expect(found).toMatchObject({
      kind: 'found',
      reference: (submission as { reference: RemoteReference }).reference,
    });
    proxy.stop();
  });

  it('is not known to another session: NotFound, also through a renewed one', async () => {
    const { reference } = await startResearch(false);
    const renewed = await adapterOf().renewSession(server, reference);
    expect(renewed.remoteId).toBe(reference.remoteId);
    expect(renewed.locator['sessionId']).not.toBe(reference.locator['sessionId']);
    await expect(adapterOf().observe(server, renewed)).rejects.toMatchObject({
      kind: 'NotFound',
      wireCode: -32602,
    });
    const lost = { ...reference, locator: { ...reference.locator, sessionId: 'gone' } };
    await expect(adapterOf().observe(server, lost)).rejects.toMatchObject({ kind: 'SessionLost' });
  });
});

/** Cuts each connection whose request contains `marker`, right behind the first `upTo` in the reply. */
async function proxyCuttingReplies(
  targetUrl: string,
  marker: string,
  upTo: string,
): Promise<{ url: string; cuts: () => number; stop: () => void }> {
  const target = Number(new URL(targetUrl).port);
  let cuts = 0;
  const proxy = net.createServer((near) => {
    const far = net.connect(target, '127.0.0.1');
    let asked = '';
    let replied = '';
    for (const socket of [near, far])
      socket.on('error', () => undefined).on('close', () => [near, far].map((end) => end.destroy()));
    near.on('data', (data: Buffer) => {
      asked += data.toString();
      far.write(data);
    });
    far.on('data', (data: Buffer) => {
      if (!asked.includes(marker)) return void near.write(data);
      replied += data.toString();
      if (!replied.includes(upTo)) return;
      cuts += 1;
      near.end(replied.slice(0, replied.indexOf(upTo) + upTo.length), () => near.destroy());
      far.destroy();
    });
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const url = `http://127.0.0.1:${(proxy.address() as net.AddressInfo).port}/mcp`;
  return { url, cuts: () => cuts, stop: () => void proxy.close() };
}
