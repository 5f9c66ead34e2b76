// MCP 2026-07-28 on the real engine and FastMCP 4 with its tasks in Redis: that server killed and started again, and its
// Redis gone for a while, in the middle of a task. A server that runs a task again does so on its own account: what is
// counted is what we sent, by the legs of the receipt.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isPresent } from '../servers/present.js';
import { type FastMcp, startFastMcp } from '../servers/start-fastmcp.js';
import { type Redis, startRedis } from '../servers/start-redis.js';
import { until } from './lab.js';
import { openServerLab, type ServerLab } from './server-lab.js';

const ONE_LEG = { submissionLegs: [{ outcome: 'referenced' }], outcome: 'completed' };

interface Stand {
  readonly redis: Redis;
  readonly fastMcp: FastMcp;
  readonly lab: ServerLab;
  readonly told: (word: string) => number;
  readonly close: () => Promise<void>;
}

/** One for each test: what is killed is killed for everybody on it. */
async function openStand(): Promise<Stand> {
  const redis = await startRedis();
  const env = { FASTMCP_DOCKET_REDELIVERY_TIMEOUT: 'PT5S' };
  const fastMcp = await startFastMcp({ docketUrl: redis.url, env });
  const fast = { url: fastMcp.url, durable: { maxPollsPerSecond: 50 } };
  const lab = await openServerLab({ mcpServers: { fast } });
  return {
    redis,
    fastMcp,
    lab,
    told: (word) => fastMcp.ledger().filter((line) => line.endsWith(` ${word}`)).length,
    async close() {
      await lab.close();
      await fastMcp.stop();
      await redis.stop();
    },
  };
}

const HAS_BOTH = isPresent('redis-server', 'redis-server') && isPresent('python3', 'python3-venv');

describe.skipIf(!HAS_BOTH)('with tasks in Redis', () => {
  const stands: Stand[] = [];
  const onStand = async (): Promise<Stand> => {
    const stand = await openStand();
    stands.push(stand);
    return stand;
  };
  beforeAll(async () => {
    // Once, before several are started side by side.
    await (await startFastMcp()).stop();
  }, 240_000);
  afterAll(async () => {
    for (const stand of stands) await stand.close();
  });

  test.concurrent('a server killed in mid-task and started again: the same task is waited for, nothing is sent again', async () => {
    const { lab, fastMcp, told } = await onStand();
    await lab.startWorker();
    const args = { key: 'k1', seconds: 3 };
    const handle = await lab.client.start({
      callNodeId: 'redis k1',
      server: 'fast',
      tool: 'side_effect',
      arguments: args,
    });
    await until(handle, () => told('side_effect:begin:k1') === 1);
    await until(handle, (view) => view.remoteStatus === 'working');
    await fastMcp.kill();
    await until(handle, (view) => view.lastFault !== null);
    await fastMcp.start();
    const { receipt, resultJson } = await handle.result();
    expect(resultJson).toContain('done:k1');
    expect(receipt).toMatchObject(ONE_LEG);
    expect(receipt.transport.transientFaults).toBeGreaterThan(0);
    // The server itself ran it again.
    expect([told('side_effect:begin:k1'), told('side_effect:end:k1')]).toEqual([2, 1]);
  });

  test.concurrent('a Redis that is away in mid-task is waited for, and a cancel in between arrives', async () => {
    const { lab, redis, told } = await onStand();
    await lab.startWorker();
    const [finishes, stops] = await Promise.all(
      [
        { key: 'finishes', seconds: 6 },
        { key: 'stops', seconds: 40 },
      ].map((args) =>
        lab.client.start({
          callNodeId: `redis ${args.key}`,
          server: 'fast',
          tool: 'side_effect',
          arguments: args,
        }),
      ),
    );
    if (!finishes || !stops) throw new Error('nothing was started');
    for (const handle of [finishes, stops]) await until(handle, (view) => view.remoteStatus === 'working');
    await redis.kill();
    await until(finishes, (view) => view.lastFault !== null);
    expect(await stops.cancel('no longer wanted')).toEqual({ kind: 'requested' });
    await redis.start();
    const [done, cancelled] = await Promise.all([finishes.result(), stops.result()]);
    expect(done.receipt).toMatchObject(ONE_LEG);
    expect(cancelled.receipt).toMatchObject({ outcome: 'cancelled', submissionLegs: [{ leg: 1 }] });
    expect(told('side_effect:end:stops')).toBe(0);
  });

  test.concurrent('a question that waits, and a result that waits, outlive the server that holds them', async () => {
    const { lab, fastMcp } = await onStand();
    const worker = await lab.startWorker();
    const asking = await lab.client.start({
      callNodeId: 'redis asks',
      server: 'fast',
      tool: 'needs_input',
      arguments: { subject: 'redis' },
    });
    const { pendingInput } = await until(asking, (view) => view.pendingInput.length === 1);
    const ending = await lab.client.start({
      callNodeId: 'redis ends',
      server: 'fast',
      tool: 'side_effect',
      arguments: { key: 'r', seconds: 1 },
    });
    await until(ending, (view) => view.remoteStatus === 'working');
    await worker.stop();
    await expect
      .poll(() => fastMcp.ledger().some((line) => line.endsWith(' side_effect:end:r')), { timeout: 30_000 })
      .toBe(true);
    await fastMcp.kill();
    await fastMcp.start();
    await lab.startWorker();
    expect((await ending.result()).receipt).toMatchObject(ONE_LEG);
    const roundId = pendingInput[0]?.roundId ?? '';
    expect(await asking.answer({ roundId, content: { name: 'Ann' } })).toEqual({ kind: 'applied' });
    const { receipt, resultJson } = await asking.result();
    expect(resultJson).toContain('needs_input:accept:Ann');
    expect(receipt).toMatchObject(ONE_LEG);
  });
});
