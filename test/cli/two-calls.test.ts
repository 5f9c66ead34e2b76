// Owns the proof that two commands on one state directory do not hurt each other, whichever of them is killed first.
// The other orders are in call.test.ts: the first one ends while the second goes on, and kill -9 of a lone command.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EverythingServer, startEverythingServer } from '../../cli/demo/everything-server.js';
import { type PassThrough, startPassThrough } from '../../cli/demo/pass-through.js';
import { type Started, startCommand } from './command-line.js';

let root: string;
let server: EverythingServer;
let wire: PassThrough;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'dtc-two-'));
  server = await startEverythingServer();
  wire = await startPassThrough({ targetUrl: server.url });
  writeFileSync(
    join(root, 'tool-servers.json'),
    JSON.stringify({ mcpServers: { everything: { url: wire.url } } }),
  );
});
afterAll(async () => {
  await wire.stop();
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

function call(callNodeId: string, stateDir: string): Started {
  const args = ['simulate-research-query', '--args', JSON.stringify({ topic: callNodeId })];
  const place = ['--call-node', callNodeId, '--state-dir', stateDir];
  return startCommand({ cwd: root }, 'call', 'everything', ...args, ...place);
}

function receiptsOf(stateDir: string): unknown {
  const database = new Database(join(root, stateDir, 'operations.sqlite'), { readonly: true });
  try {
    return database
      .prepare(
        `select o.call_node_id as node, (select count(*) from receipt r where r.call_node_id = o.call_node_id) as receipts,
         (select count(*) from ready_outbox x where x.call_node_id = o.call_node_id and x.advances = 1) as ready,
         (select count(*) from submission_leg l where l.call_node_id = o.call_node_id) as legs
         from operation o order by node`,
      )
      .all();
  } finally {
    database.close();
  }
}

test.each([
  ['the owner of the engine', 'owner-dies', 0],
  ['the one that joined it', 'joiner-dies', 1],
])('%s is killed first: both calls complete, sent once, one receipt each', async (_who, stateDir, dies) => {
  const before = wire.counts().toolsCall;
  const [first, second] = [`${stateDir}/first`, `${stateDir}/second`];
  const owner = call(first, stateDir);
  await owner.said('WORKING');
  const joiner = call(second, stateDir);
  await joiner.said('WORKING');
  const [dying, living, deadNode] = dies === 0 ? [owner, joiner, first] : [joiner, owner, second];
  dying.kill('SIGKILL');
  await dying.ended;
  const survivor = await living.ended;
  expect(survivor.exitCode, survivor.stderr).toBe(0);
  if (dies === 0) expect(survivor.stderr).toContain('going on with an engine of its own');

  const again = await call(deadNode, stateDir).ended;
  expect(again.exitCode, again.stderr).toBe(0);
  expect(receiptsOf(stateDir)).toEqual([
    { node: first, receipts: 1, ready: 1, legs: 1 },
    { node: second, receipts: 1, ready: 1, legs: 1 },
  ]);
  expect(wire.counts().toolsCall - before).toBe(2);
});
