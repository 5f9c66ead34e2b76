// An operator's word about a held operation: it counts with evidence and a name, and only while it is held.

import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Lab, openLab, RESEARCH, until } from './lab.js';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab({ tools: { [RESEARCH.tool]: { submission: { policy: 'at-most-once' } } } });
  await lab.startWorker();
});
afterAll(async () => {
  await lab?.close();
});

const GROUNDS = { evidence: 'the list of the server', decidedBy: 'Ann' };

async function holdOne(callNodeId: string, call: object = {}) {
  const lost = lab.wire.faults.dropReply('tools/call');
  const handle = await lab.client.start({ callNodeId, ...RESEARCH, ...call });
  await lost.played;
  await expect(handle.result()).rejects.toMatchObject({ code: 'OperationUnresolved' });
  return handle;
}

test('work that an operator found is led to its end', async () => {
  const handle = await holdOne('op-found');
  const remoteId = await taskOf('op-found');
  await handle.resolve({ kind: 'found', remoteId }, GROUNDS);
  const result = await handle.result();
  expect(result).toMatchObject({ outcome: 'completed', receipt: { remoteReference: { remoteId } } });
  expect(lab.rows('op-found')).toEqual({ receipts: 1, ready: 1, advances: 1, reconciliations: 0, legs: 1 });
});

test('work that is not there after all is held again, as a lost handle', async () => {
  const handle = await holdOne('op-wrong');
  await handle.resolve({ kind: 'found', remoteId: 'no-such-task' }, GROUNDS);
  const view = await until(handle, (seen) => seen.reason === 'handle-lost');
  expect(view.state).toBe('UNRESOLVED');
  await handle.resolve({ kind: 'close' }, GROUNDS);
  expect((await handle.result()).outcome).toBe('unresolved');
});

test('what was never created ends as rejected, with the name and the evidence', async () => {
  const handle = await holdOne('op-never', { tool: 'echo', arguments: { message: 'once' } });
  await expect(
    handle.resolve({ kind: 'neverCreated' }, { evidence: ' ', decidedBy: 'Ann' }),
  ).rejects.toMatchObject({
    code: 'InvalidRequest',
  });
  await handle.resolve({ kind: 'neverCreated' }, GROUNDS);
  const result = await handle.result();
  expect(result.outcome).toBe('rejected');
  expect(result.receipt.decision.evidence).toBe('operator Ann: the list of the server');
  expect(lab.rows('op-never')).toMatchObject({ receipts: 1, advances: 0 });
  await expect(handle.resolve({ kind: 'close' }, GROUNDS)).rejects.toMatchObject({ code: 'InvalidRequest' });
});

/** Asks the server for the tasks of the operation's own session, as an operator would. */
async function taskOf(callNodeId: string): Promise<string> {
  const database = new Database(lab.storeFile, { readonly: true });
  const row = database.prepare('select session_json from operation where call_node_id = ?').get(callNodeId);
  database.close();
  const session = JSON.parse((row as { session_json: string }).session_json) as {
    sessionId: string;
    protocolVersion: string;
  };
  const response = await fetch(lab.wire.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': session.sessionId,
      'mcp-protocol-version': session.protocolVersion,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: crypto.randomUUID(), method: 'tasks/list', params: {} }),
  });
  const found = /"taskId":"([^"]+)"/.exec(await response.text());
  if (!found?.[1]) throw new Error('the server lists no task');
  return found[1];
}
