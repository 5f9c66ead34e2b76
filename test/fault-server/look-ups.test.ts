// `find_work` on a bare socket: work is found by its key alone, and a look-up goes wrong as the plan of that key says.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonObject } from './json.js';
import { RawSession } from './raw-client.js';
import { type FaultServer, startFaultServer } from './start-fault-server.js';
import { KEY_ARGUMENT, KEY_META } from './tools.js';

let server: FaultServer;
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(async () => {
  await server?.stop();
});

async function look(clientRef: string): Promise<JsonObject> {
  const session = await RawSession.open(server.url);
  return (await session.ask('tools/call', { name: 'find_work', arguments: { clientRef } })) as JsonObject;
}

const saying = (jobId: string | null): object => ({
  structuredContent: { jobId },
  content: [{ type: 'text', text: JSON.stringify({ jobId }) }],
});

test('finds work by the key of its argument or of its _meta, from any session, and nothing under another key', async () => {
  const session = await RawSession.open(server.url);
  const taskId = await session.createTask({ label: 'by argument', [KEY_ARGUMENT]: 'key-1' });
  await session.raw('tools/call', {
    name: 'work-plain',
    arguments: { label: 'by meta' },
    _meta: { [KEY_META]: 'key-2' },
  });
  expect(await look('key-1')).toEqual(saying(taskId));
  expect(await look('key-2')).toEqual(saying('plain run of by meta'));
  expect(await look('key-3')).toEqual(saying(null));
  const looked = server.journal().filter((entry) => entry.kind === 'workLookedUp');
  expect(looked.map((entry) => entry.kind === 'workLookedUp' && [entry.label, entry.isFound])).toEqual([
    ['by argument', true],
    ['by meta', true],
    [null, false],
  ]);
});

test('is late, or says isError, as often as the plan of that key says; a call that was not handled left nothing', async () => {
  const session = await RawSession.open(server.url);
  const plan = { lateLookUps: 2, failedLookUps: 1 };
  const taskId = await session.createTask({ label: 'late', [KEY_ARGUMENT]: 'key-late', plan });
  expect(await look('key-late')).toMatchObject({ isError: true, structuredContent: { jobId: null } });
  expect(await look('key-late')).toEqual(saying(null));
  expect(await look('key-late')).toEqual(saying(taskId));
  await session.call({ label: 'reset', [KEY_ARGUMENT]: 'key-reset', plan: { create: 'reset' } });
  expect(await look('key-reset')).toEqual(saying(null));
  expect(server.executions('reset')).toBe(0);
});

test('does not run as a task, and its look-ups are no calls of the work', async () => {
  const session = await RawSession.open(server.url);
  const params = { name: 'find_work', arguments: { clientRef: 'k' }, task: {} };
  expect((await session.raw('tools/call', params)).text).toContain('-32601');
  const calls = server.journal().filter((entry) => entry.kind === 'callReceived');
  expect(calls.some((entry) => entry.kind === 'callReceived' && entry.tool === 'find_work')).toBe(false);
});
