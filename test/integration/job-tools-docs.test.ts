// The declarations of docs/JOB-TOOLS.md, as they stand there, on the real engine and FastMCP 4, a server nobody here wrote, with
// plain start and status tools on top. Side effects are counted in the server's own ledger.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import { isPresent } from '../servers/present.js';
import { type FastMcp, startFastMcp } from '../servers/start-fastmcp.js';
import { endOf, until } from './lab.js';
import { openServerLab, type ServerLab } from './server-lab.js';

const PAGE = readFileSync(new URL('../../docs/JOB-TOOLS.md', import.meta.url), 'utf8');

/** A JSON block of the page, by its name. */
function declared(name: string): JsonObject {
  const block = new RegExp(`\`\`\`json job-tools:${name}\n([^]*?)\n\`\`\``).exec(PAGE)?.[1];
  if (block === undefined) throw new Error(`docs/JOB-TOOLS.md has no block "${name}"`);
  return JSON.parse(block) as JsonObject;
}

const HAS_PYTHON = isPresent('python3', 'python3-venv');

let fastMcp: FastMcp;
let config: JsonObject;
let lab: ServerLab;
beforeAll(async () => {
  if (!HAS_PYTHON) return;
  fastMcp = await startFastMcp();
  const tools = { ...declared('least'), ...declared('all') };
  const entry = (protocol: string): JsonObject => ({
    url: fastMcp.url,
    durable: { protocol, maxPollsPerSecond: 50, tools },
  });
  config = { mcpServers: { auto: entry('auto'), session: entry('mcp/2025-11-25') } };
  lab = await openServerLab(config);
  await lab.startWorker();
}, 240_000);
afterAll(async () => {
  await lab?.close();
  await fastMcp?.stop();
});

function start(label: string, tool: string, args: JsonObject, server = 'auto', where = lab) {
  return where.client.start({ callNodeId: label, server, tool, arguments: args });
}

const exported = (table: string, more: JsonObject = {}, server = 'auto'): Promise<ToolOperationHandle> =>
  start(table, 'start_export', { table, ...more }, server);

const told = (word: string): number => fastMcp.ledger().filter((line) => line.endsWith(` ${word}`)).length;
const isRunning = ({ remoteStatus }: { remoteStatus: string | null }): boolean => remoteStatus === 'running';

describe.skipIf(!HAS_PYTHON)('the declarations of the page', () => {
  test.each([
    ['auto', true],
    ['session', false],
  ])('the least declaration runs a job to its end; "protocol" %s', async (server, isSessionless) => {
    const scene = `scene-${server}`;
    const handle = await start(scene, 'start_render', { scene, seconds: 1 }, server);
    const { outcome, receipt, toolResult } = await handle.result();
    expect(outcome).toBe('completed');
    expect(receipt.remoteReference?.remoteId).toMatch(/^\d+$/);
    expect(receipt.remoteReference?.locator).toMatchObject({ isSessionless });
    const { content } = toolResult as { content: { text: string }[] };
    expect(JSON.parse(content[0]?.text ?? '')).toEqual({ status: 'finished', image: `${scene}.png` });
    expect([told(`render:begin:${scene}`), lab.rows(scene).advances]).toEqual([1, 1]);
  });

  test.each(['auto', 'session'])(
    'the whole declaration: progress, a question, the result; "protocol" %s',
    async (server) => {
      const table = `orders-${server}`;
      const handle = await exported(table, { seconds: 4, asks: true }, server);
      const running = await until(handle, isRunning);
      expect(running.statusMessage).toBe(`${table} is running`);
      const asked = await until(handle, (view) => view.pendingInput.length === 1);
      const [round] = asked.pendingInput;
      expect(round?.question).toMatchObject({
        message: `Which format for ${table}?`,
        schema: { properties: { format: { enum: ['csv', 'json'] } }, required: ['format'] },
      });
      const reply = { roundId: round?.roundId ?? '', content: { format: 'json' } };
      expect(await handle.answer(reply)).toEqual({ kind: 'applied' });
      const { receipt, toolResult } = await handle.result();
      expect(toolResult).toMatchObject({ structuredContent: { table, format: 'json', rows: 3 } });
      expect(receipt).toMatchObject({ adapter: 'mcp/job-tools', outcome: 'completed' });
      expect([told(`export:begin:${table}`), told(`export:answer:${table}:json`)]).toEqual([1, 1]);
    },
  );

  test('a failed job keeps what its result tool says', async () => {
    const handle = await exported('locked', { fails: true });
    const { outcome, receipt, resultJson } = await handle.result();
    expect([outcome, receipt.failureKind]).toEqual(['failed', 'tool']);
    expect(resultJson).toContain('the table locked is locked');
  });

  test('a cancel that the server takes is over when its status says so', async () => {
    const handle = await exported('cancelled', { seconds: 600 });
    await until(handle, isRunning);
    expect(await handle.cancel('no longer wanted')).toEqual({ kind: 'requested' });
    const { outcome, receipt } = await handle.result();
    expect([outcome, receipt.decision.evidence]).toEqual(['cancelled', 'status']);
  });

  test('arguments that the start tool does not take are refused before anything is sent', async () => {
    const handle = await exported('bad', { seconds: 'long' });
    expect((await handle.result()).outcome).toBe('rejected');
    expect(told('export:begin:bad')).toBe(0);
  });

  test('the worker killed with the start call under way: the job is found by its key, and ran once', async () => {
    const own = await openServerLab(config);
    const first = await own.startWorker({ killAt: 'submit:after-send' });
    const table = 'worker-killed';
    const handle = await start(table, 'start_export', { table }, 'auto', own);
    expect(await first.ended).toBe('SIGKILL');
    await own.startWorker();
    const { outcome, receipt } = await handle.result();
    expect([outcome, told(`export:begin:${table}`)]).toEqual(['completed', 1]);
    expect(receipt.submissionLegs).toHaveLength(1);
    await own.close();
  });

  // Last: they take the server away from all others.
  test('the server killed and restarted while the job runs: its state is read on', async () => {
    const table = 'server-killed';
    const handle = await exported(table, { seconds: 8 });
    await until(handle, isRunning);
    await fastMcp.kill();
    await fastMcp.start();
    expect(await endOf(handle)).toBe('completed');
    expect([told(`export:begin:${table}`), lab.rows(table).legs]).toEqual([1, 1]);
  });

  test('the server killed with its start answer unsent: the job is found by its key, and ran once', async () => {
    const table = 'drop-my-reply';
    const handle = await exported(table);
    await until(handle, ({ state }) => state === 'SUBMISSION_UNKNOWN');
    await fastMcp.start();
    expect(await endOf(handle)).toBe('completed');
    expect([told(`export:begin:${table}`), lab.rows(table).legs]).toEqual([1, 1]);
  });
});
