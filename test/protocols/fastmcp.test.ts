// The MCP 2026-07-28 adapter against FastMCP 4, a server nobody here wrote: every method on the real wire.
// Nothing is shared between steps but what JSON carries.

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import type { Observation, Submission, ToolServer } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { isPresent } from '../servers/present.js';
import { type FastMcp, startFastMcp } from '../servers/start-fastmcp.js';
import { NO_HOOKS, toolCall, toolServer } from './scripted-server.js';

const HAS_PYTHON = isPresent('python3', 'python3-venv');

let fastMcp: FastMcp;
let server: ToolServer;
beforeAll(async () => {
  if (!HAS_PYTHON) return;
  fastMcp = await startFastMcp();
  server = toolServer(fastMcp.url);
}, 240_000);
afterAll(() => fastMcp?.stop());

const adapterOf = () => createProtocolRegistry().adapter('mcp/2026-07-28');

function submit(tool: string, args: JsonObject = {}): Promise<Submission> {
  return adapterOf().submit(toolCall(server, { tool, arguments: args }), {}, NO_HOOKS);
}

async function startTask(tool: string, args: JsonObject = {}): Promise<RemoteReference> {
  const submission = await submit(tool, args);
  if (submission.kind !== 'referenced') throw new Error(`no task: ${submission.kind}`);
  return JSON.parse(JSON.stringify(submission.reference)) as RemoteReference;
}

async function observeUntil(
  reference: RemoteReference,
  fits: (seen: Observation) => boolean,
): Promise<Observation> {
  for (;;) {
    const seen = await adapterOf().observe(server, reference);
    if (fits(seen)) return seen;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
const isOver = ({ meaning }: Observation): boolean => ['completed', 'failed', 'cancelled'].includes(meaning);

function textOf(seen: Observation): string {
  if (seen.inline?.kind !== 'result') throw new Error('no inline result');
  return Buffer.from(seen.inline.result.bytes).toString('utf8');
}

describe.skipIf(!HAS_PYTHON)('negotiation', () => {
  it.each(['auto', 'mcp/2026-07-28'] as const)('%s finds the extension', async (protocol) => {
    const found = await createProtocolRegistry().negotiate({ ...server, protocol }, 'report');
    expect(found).toMatchObject({
      kind: 'negotiated',
      negotiated: {
        adapter: 'mcp/2026-07-28',
        session: {},
        hasTasks: true,
        canList: false,
        toolVersion: '4.1.4',
      },
    });
  });

  it('knows no tool that is not published, and names the nearest', async () => {
    const found = await createProtocolRegistry().negotiate(server, 'reports');
    expect(found).toMatchObject({
      kind: 'unknownTool',
      message: expect.stringContaining('report') as string,
    });
  });

  it('a server pinned to the other generation is told what to set', async () => {
    const pinned = { ...server, protocol: 'mcp/2025-11-25' } as const;
    const found = await createProtocolRegistry().negotiate(pinned, 'report');
    expect(found).toMatchObject({ kind: 'unsupported' });
  });
});

describe.skipIf(!HAS_PYTHON)('a call', () => {
  it('may be answered at once, with the bytes as received', async () => {
    const submission = await submit('quick', { text: 'hi' });
    if (submission.kind !== 'answered') throw new Error(submission.kind);
    const text = Buffer.from(submission.result.bytes).toString('utf8');
    expect(JSON.parse(text)).toMatchObject({ content: [{ text: 'quick:hi' }], resultType: 'complete' });
    expect(submission.result).toMatchObject({ isToolError: false, isProtocolError: false });
  });

  it('may become a task, whose end carries the result', async () => {
    const submission = await submit('report', { seconds: 0.5, label: 'A' });
    expect(submission).toMatchObject({
      kind: 'referenced',
      reference: { locator: {} },
      observation: { meaning: 'working', intervalMs: 1_000, expiresAt: expect.any(Number) as number },
    });
    if (submission.kind !== 'referenced') throw new Error(submission.kind);
    const seen = await observeUntil(submission.reference, isOver);
    expect([seen.meaning, JSON.parse(textOf(seen))]).toMatchObject([
      'completed',
      { content: [{ text: 'report:A' }] },
    ]);
    const again = await adapterOf().fetchResult(server, submission.reference);
    const digest = (text: string) => createHash('sha256').update(text).digest('hex');
    if (again.kind !== 'result') throw new Error(again.kind);
    expect(digest(Buffer.from(again.result.bytes).toString('utf8'))).toBe(digest(textOf(seen)));
  });

  it('whose tool fails is completed with isError, its content kept', async () => {
    const seen = await observeUntil(await startTask('failing'), isOver);
    expect(seen).toMatchObject({ meaning: 'completed', inline: { result: { isToolError: true } } });
    expect(textOf(seen)).toContain('deliberate tool failure');
  });

  it('that ends in a protocol error keeps that error', async () => {
    const seen = await observeUntil(await startTask('protocol_error'), isOver);
    expect(seen).toMatchObject({ meaning: 'failed', inline: { result: { isProtocolError: true } } });
    expect(JSON.parse(textOf(seen))).toMatchObject({ code: -32050 });
  });
});

describe.skipIf(!HAS_PYTHON)('questions', () => {
  it('ride in the status, are answered by key, and an answer to a key that is over goes nowhere', async () => {
    const reference = await startTask('needs_input', { subject: 'S1' });
    const asking = await observeUntil(reference, ({ meaning }) => meaning === 'inputRequired');
    const [question] = asking.questions ?? [];
    if (!question) throw new Error('nothing was asked');
    expect(question.question).toMatchObject({ mode: 'form', message: 'Approve S1?' });
    const reply = { action: 'accept', content: { name: 'Ann' } } as const;
    const wire = JSON.parse(JSON.stringify(question.wire)) as JsonObject;
    const hooks = { beforeSend: async () => {}, afterSend: async () => {} };
    expect(await adapterOf().answer(server, reference, { key: 'nokey' }, reply, hooks)).toBe('roundClosed');
    expect(await adapterOf().answer(server, reference, wire, reply, hooks)).toBe('delivered');
    const seen = await observeUntil(reference, isOver);
    expect(textOf(seen)).toContain('needs_input:accept:Ann');
    expect(
      await adapterOf().answer(server, reference, wire, { action: 'decline', content: null }, hooks),
    ).toBe('roundClosed');
  });

  it('several at once may be answered one after the other', async () => {
    const reference = await startTask('multi_input');
    const hooks = { beforeSend: async () => {}, afterSend: async () => {} };
    const reply = { action: 'accept', content: { name: 'x' } } as const;
    const first = await observeUntil(reference, ({ questions }) => (questions?.length ?? 0) === 2);
    for (const { wire } of first.questions ?? []) {
      expect(await adapterOf().answer(server, reference, wire, reply, hooks)).toBe('delivered');
    }
    expect((await observeUntil(reference, isOver)).meaning).toBe('completed');
  });
});

describe.skipIf(!HAS_PYTHON)('a cancel', () => {
  it('is only acknowledged; the state decides', async () => {
    const reference = await startTask('side_effect', { key: 'c1', seconds: 20 });
    expect(await adapterOf().cancel(server, reference, async () => {})).toBe('acknowledged');
    const seen = await observeUntil(reference, isOver);
    expect(seen.meaning).toBe('cancelled');
    expect(fastMcp.ledger().some((line) => line.includes('end:c1'))).toBe(false);
    // Of what is over: acknowledged just the same.
    expect(await adapterOf().cancel(server, reference, async () => {})).toBe('acknowledged');
  });

  it('of an unknown task is refused, and its status not found', async () => {
    const stranger: RemoteReference = { remoteId: 'nope', locator: {} };
    expect(await adapterOf().cancel(server, stranger, async () => {})).toBe('refused');
    await expect(adapterOf().observe(server, stranger)).rejects.toMatchObject({
      kind: 'NotFound',
      wireCode: -32602,
    });
    expect(await adapterOf().fetchResult(server, stranger)).toMatchObject({ kind: 'lost' });
  });
});
