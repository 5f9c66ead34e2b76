// MCP 2026-07-28 on the real engine and FastMCP 4, a server nobody here wrote: tasks, their questions, and calls that are
// asked before there is any work. Side effects are counted in the server's own ledger.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import type { SeamName } from '../../operation/names.js';
import { isPresent } from '../servers/present.js';
import { type FastMcp, startFastMcp } from '../servers/start-fastmcp.js';
import { until } from './lab.js';
import { openServerLab, type ServerLab } from './server-lab.js';

const ANN = { content: { name: 'Ann' } };

const HAS_PYTHON = isPresent('python3', 'python3-venv');

let fastMcp: FastMcp;
let config: JsonObject;
let lab: ServerLab;
beforeAll(async () => {
  if (!HAS_PYTHON) return;
  fastMcp = await startFastMcp();
  const entry = (durable: JsonObject): JsonObject => ({
    url: fastMcp.url,
    durable: { maxPollsPerSecond: 50, ...durable },
  });
  const repeatable = { submission: { policy: 'repeatable' }, sideEffects: 'none' };
  config = { mcpServers: { fast: entry({}), again: entry({ tools: { approve_first: repeatable } }) } };
  lab = await openServerLab(config);
  await lab.startWorker();
}, 240_000);
afterAll(async () => {
  await lab?.close();
  await fastMcp?.stop();
});

interface Call {
  readonly label: string;
  readonly tool: string;
  readonly arguments?: JsonObject;
  readonly server?: string;
}

function start(where: ServerLab, { label, tool, server = 'fast', arguments: args = {} }: Call) {
  return where.client.start({ callNodeId: label, server, tool, arguments: args });
}

const told = (word: string): number => fastMcp.ledger().filter((line) => line.endsWith(` ${word}`)).length;
const asks = (handle: ToolOperationHandle, count: number) =>
  until(handle, (view) => view.state === 'INPUT_REQUIRED' && view.pendingInput.length === count);

const ONCE = { receipts: 1, ready: 1 };

/** A worker of its own that is killed at the seam, then another one. */
async function killedAt(
  seam: SeamName,
  call: Call,
  meanwhile: (handle: ToolOperationHandle) => Promise<unknown> = async () => {},
): Promise<{ handle: ToolOperationHandle; own: ServerLab }> {
  const own = await openServerLab(config);
  const first = await own.startWorker({ killAt: seam });
  const handle = await start(own, call);
  const doing = meanwhile(handle);
  expect(await first.ended).toBe('SIGKILL');
  expect(own.wasKilledAt(seam)).toBe(true);
  await own.startWorker();
  await doing;
  return { handle, own };
}

describe.skipIf(!HAS_PYTHON)('a task', () => {
  test.concurrent('is worked off once, with one receipt that names its contract', async () => {
    const handle = await start(lab, {
      label: 'whole',
      tool: 'side_effect',
      arguments: { key: 'w', seconds: 2 },
    });
    const { receipt, resultJson } = await handle.result();
    expect(resultJson).toContain('done:w');
    expect(receipt).toMatchObject({
      adapter: 'mcp/2026-07-28',
      outcome: 'completed',
      submissionLegs: [{ outcome: 'referenced' }],
    });
    expect([told('side_effect:begin:w'), told('side_effect:end:w')]).toEqual([1, 1]);
    expect(lab.rows('whole')).toMatchObject({ ...ONCE, advances: 1 });
  });

  test.concurrent('whose tool fails, or that ends in a protocol error, has failed, with what was said', async () => {
    const [tool, protocol] = await Promise.all(
      ['failing', 'protocol_error'].map(async (name) => {
        const handle = await start(lab, { label: `ends ${name}`, tool: name });
        return handle.result();
      }),
    );
    expect(tool).toMatchObject({ outcome: 'failed', receipt: { failureKind: 'tool' } });
    expect(tool?.resultJson).toContain('deliberate tool failure');
    expect(protocol).toMatchObject({ outcome: 'failed', receipt: { failureKind: 'protocol' } });
    expect(protocol?.resultJson).toContain('-32050');
  });

  test.concurrent('is cancelled where it runs, and never reaches its end', async () => {
    const call = { label: 'stopped', tool: 'side_effect', arguments: { key: 'stopped', seconds: 30 } };
    const handle = await start(lab, call);
    await until(handle, (view) => view.remoteStatus === 'working');
    expect(await handle.cancel('no longer wanted')).toEqual({ kind: 'requested' });
    await expect(handle.result()).resolves.toMatchObject({ outcome: 'cancelled' });
    expect([told('side_effect:begin:stopped'), told('side_effect:end:stopped')]).toEqual([1, 0]);
  });

  test.concurrent('may ask several things at once, which are answered one by one', async () => {
    const handle = await start(lab, { label: 'two keys', tool: 'multi_input' });
    const view = await asks(handle, 2);
    const [first, second] = view.pendingInput;
    expect(await handle.answer({ roundId: first?.roundId ?? '', ...ANN })).toEqual({ kind: 'applied' });
    expect(await handle.answer({ roundId: second?.roundId ?? '', action: 'decline' })).toEqual({
      kind: 'applied',
    });
    expect((await handle.result()).resultJson).toContain('both answered');
  });

  test.concurrent.each<SeamName>(['submit:after-commit', 'observe:after-reply', 'accept:before-commit'])(
    'with the worker killed at %s is worked off once, with one receipt',
    async (seam) => {
      const key = seam.replace(':', '-');
      const call = { label: seam, tool: 'side_effect', arguments: { key, seconds: 1 } };
      const { handle, own } = await killedAt(seam, call);
      expect((await handle.result()).resultJson).toContain(`done:${key}`);
      expect([told(`side_effect:begin:${key}`), told(`side_effect:end:${key}`)]).toEqual([1, 1]);
      expect(own.rows(seam)).toMatchObject(ONCE);
      await own.close();
    },
  );

  test.concurrent('with the worker killed after the send is held, and never sent on a guess', async () => {
    const call = { label: 'sent', tool: 'side_effect', arguments: { key: 'sent', seconds: 1 } };
    const { handle, own } = await killedAt('submit:after-send', call);
    await expect(handle.result()).rejects.toMatchObject({ code: 'OperationUnresolved' });
    expect(told('side_effect:begin:sent')).toBeLessThanOrEqual(1);
    expect(own.rows('sent')).toMatchObject({ receipts: 0, legs: 1 });
    await own.close();
  });

  test.concurrent.each<SeamName>(['observe:question-stored', 'answer:after-send'])(
    'that asks, with the worker killed at %s, is answered once',
    async (seam) => {
      const subject = seam.replace(':', '-');
      const call = { label: `asked ${seam}`, tool: 'needs_input', arguments: { subject } };
      const { handle, own } = await killedAt(seam, call, async (asking) => {
        await asks(asking, 1);
        expect(await asking.answer(ANN)).toEqual({ kind: 'applied' });
      });
      expect((await handle.result()).resultJson).toContain('needs_input:accept:Ann');
      // One leg that asks, one that goes on: FastMCP runs the body once for each.
      expect(told(`needs_input:leg:${subject}`)).toBe(2);
      await own.close();
    },
  );
});

describe.skipIf(!HAS_PYTHON)('a call that is asked before there is any work', () => {
  const first = (subject: string, more: Partial<Call> = {}): Call => ({
    label: `first ${subject}`,
    tool: 'approve_first',
    arguments: { subject },
    ...more,
  });

  test.concurrent('goes on with all replies and the state of the server, as another leg', async () => {
    const handle = await start(lab, first('both'));
    const { pendingInput } = await asks(handle, 2);
    const [approve, owner] = ['Approve both?', 'Who owns it?'].map((message) =>
      pendingInput.find(({ question }) => question.message === message),
    );
    expect(await handle.answer({ roundId: approve?.roundId ?? '', ...ANN })).toEqual({ kind: 'applied' });
    expect(told('approve_first:leg:both')).toBe(1);
    await asks(handle, 1);
    expect(await handle.answer({ roundId: owner?.roundId ?? '', action: 'decline' })).toEqual({
      kind: 'applied',
    });
    const { receipt, resultJson } = await handle.result();
    expect(resultJson).toContain('approve_first:approve=accept:Ann,owner=decline:None');
    expect(receipt.submissionLegs.map(({ outcome }) => outcome)).toEqual(['asked', 'answered']);
    expect([told('approve_first:leg:both'), told('approve_first:done:both')]).toEqual([2, 1]);
    expect(lab.rows('first both')).toMatchObject({ ...ONCE, advances: 1, legs: 2 });
  });

  test.concurrent('and then only wants to be called again, is called again', async () => {
    const call = { label: 'again', tool: 'call_again', arguments: { times: 2, key: 'again' } };
    const { receipt, resultJson } = await (await start(lab, call)).result();
    expect(resultJson).toContain('call_again:2');
    expect(receipt.submissionLegs.map(({ outcome }) => outcome)).toEqual(['asked', 'asked', 'answered']);
  });

  test.concurrent('is over once it is cancelled: nothing goes on', async () => {
    const handle = await start(lab, first('dropped'));
    await asks(handle, 2);
    expect(await handle.cancel('not this one')).toEqual({ kind: 'requested' });
    const { receipt, outcome } = await handle.result();
    expect([outcome, receipt.decision.evidence]).toEqual([
      'cancelled',
      'ended with a question, before there was any work',
    ]);
    expect([told('approve_first:leg:dropped'), told('approve_first:done:dropped')]).toEqual([1, 0]);
  });

  test.concurrent.each<SeamName>(['submit:after-commit', 'answer:after-record'])(
    'with the worker killed at %s is asked once and goes on once',
    async (seam) => {
      const subject = seam.replace(':', '-');
      const { handle, own } = await killedAt(seam, first(subject), async (asking) => {
        const { pendingInput } = await asks(asking, 2);
        for (const { roundId } of pendingInput)
          expect(await asking.answer({ roundId, ...ANN })).toEqual({ kind: 'applied' });
      });
      expect((await handle.result()).resultJson).toContain('approve=accept:Ann,owner=accept:Ann');
      expect([told(`approve_first:leg:${subject}`), told(`approve_first:done:${subject}`)]).toEqual([2, 1]);
      expect(own.rows(`first ${subject}`)).toMatchObject({ ...ONCE, legs: 2 });
      await own.close();
    },
  );

  test.concurrent('with its question lost on the way is asked again where a repeat does no harm, else held', async () => {
    const { handle, own } = await killedAt('submit:after-reply', first('lost', { server: 'again' }));
    for (const { roundId } of (await asks(handle, 2)).pendingInput)
      expect(await handle.answer({ roundId, ...ANN })).toEqual({ kind: 'applied' });
    const { receipt } = await handle.result();
    expect(receipt.submissionLegs.map(({ outcome }) => outcome)).toEqual(['ambiguous', 'asked', 'answered']);
    const held = await killedAt('submit:after-reply', first('held'));
    await expect(held.handle.result()).rejects.toMatchObject({ code: 'OperationUnresolved' });
    expect(told('approve_first:leg:held')).toBe(1);
    await Promise.all([own.close(), held.own.close()]);
  });

  test.concurrent('that nobody answers in time is cancelled for that reason', async () => {
    const own = await openServerLab(config);
    await own.startWorker({ budgets: { inputBudgetMs: 2_000 } });
    const handle = await start(own, first('late'));
    const { outcome, receipt } = await handle.result();
    expect([outcome, receipt.decision.reason]).toEqual(['cancelled', 'input-deadline']);
    expect(told('approve_first:done:late')).toBe(0);
    await own.close();
  });
});
