// Every terminal path on the real engine and the real server: what went over the wire, what was accepted, what it cost.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { MESSAGES, workflowIdOf } from '../../operation/names.js';
import { ToolOperationError } from '../../client/index.js';
import { pinEvents } from './pinned-events.js';
import { type Lab, openLab, RESEARCH, until, wireDelta } from './lab.js';

let lab: Lab;
beforeAll(async () => {
  lab = await openLab({ tools: { 'trigger-long-running-operation': { synchronousBound: '10s' } } });
  await lab.startWorker();
});
afterAll(async () => {
  await lab?.close();
});

test('a task that completes ends as one receipt with its result', async () => {
  const sent = wireDelta(lab);
  const result = await lab.client.execute({ callNodeId: 'completed', ...RESEARCH });
  expect(result.outcome).toBe('completed');
  expect(JSON.stringify(result.toolResult)).toContain('tides');
  expect(result.receipt).toMatchObject({
    state: 'ACCEPTED',
    adapter: 'mcp/2025-11-25',
    effects: 'none-owed',
  });
  expect(sent()).toMatchObject({ 'tools/call': 1, DELETE: 1 });
  expect(lab.rows('completed')).toEqual({ receipts: 1, ready: 1, advances: 1, reconciliations: 0, legs: 1 });
  await pinEvents(lab, 'completed');
});

test('I1: a question costs a second observation, an update and a step', async () => {
  const sent = wireDelta(lab);
  const handle = await lab.client.start({
    callNodeId: 'input',
    ...RESEARCH,
    arguments: { topic: 'python', ambiguous: true },
  });
  await until(handle, (view) => view.pendingInput.length > 0);
  const wrong = await handle.answer({ content: { interpretation: 'a bird' } });
  expect(wrong.kind).toBe('refused');
  expect(await handle.answer({ content: { interpretation: 'comedy' } })).toEqual({ kind: 'applied' });
  expect((await handle.result()).resultJson).toContain('comedy');
  expect(sent()).toMatchObject({ 'tools/call': 1, answer: 1 });
  await pinEvents(lab, 'input');
});

test('R2, E4: a failing task keeps the content of its result', async () => {
  const sent = wireDelta(lab);
  const failed = lab.wire.faults.failNextTask({
    kind: 'toolError',
    statusMessage: 'disk full',
    result: { content: [{ type: 'text', text: 'the disk was full at page 9' }] },
  });
  const result = await lab.client.execute({ callNodeId: 'failed', ...RESEARCH });
  await failed;
  expect(result).toMatchObject({ outcome: 'failed', receipt: { failureKind: 'tool' } });
  expect(JSON.stringify(result.toolResult)).toContain('the disk was full at page 9');
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  expect(lab.rows('failed')).toEqual({ receipts: 1, ready: 1, advances: 0, reconciliations: 0, legs: 1 });
  await pinEvents(lab, 'failed');
});

test('a task that failed with a protocol error keeps that error', async () => {
  void lab.wire.faults.failNextTask({ kind: 'protocolError', code: -32050, message: 'quota of the backend' });
  const result = await lab.client.execute({ callNodeId: 'failed-protocol', ...RESEARCH });
  expect(result).toMatchObject({ outcome: 'failed', receipt: { failureKind: 'protocol' } });
  expect(result.toolResult).toMatchObject({ code: -32050, message: 'quota of the backend' });
});

test('a tool without tasks is called once, synchronously', async () => {
  const sent = wireDelta(lab);
  const result = await lab.client.execute({
    callNodeId: 'synchronous',
    server: 'everything',
    tool: 'trigger-long-running-operation',
    arguments: { duration: 1, steps: 2 },
  });
  expect(result).toMatchObject({ outcome: 'completed', receipt: { adapter: 'synchronous' } });
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  expect(lab.rows('synchronous').receipts).toBe(1);
  await pinEvents(lab, 'synchronous');
});

test('an explicit wait budget over the bound of a tool without tasks is rejected, nothing is sent', async () => {
  const sent = wireDelta(lab);
  const result = await lab.client.execute({
    callNodeId: 'too-long',
    server: 'everything',
    tool: 'trigger-long-running-operation',
    arguments: { duration: 1, steps: 2 },
    waitBudgetMs: 60_000,
  });
  expect(result.outcome).toBe('rejected');
  expect(result.receipt.decision).toMatchObject({ evidence: 'LongTaskUnsupported' });
  expect(sent()['tools/call'] ?? 0).toBe(0);
  await pinEvents(lab, 'rejected', 'too-long');
});

test.each([
  ['unknown-tool', { server: 'everything', tool: 'no-such-tool', arguments: {} }],
  ['bad-arguments', { server: 'everything', tool: 'simulate-research-query', arguments: { topic: 7 } }],
  ['unknown-server', { server: 'nowhere', tool: 'echo', arguments: {} }],
])('%s is rejected before anything is sent', async (evidence, call) => {
  const sent = wireDelta(lab);
  const result = await lab.client.execute({ callNodeId: evidence, ...call });
  expect(result).toMatchObject({ outcome: 'rejected', receipt: { decision: { evidence } } });
  expect(sent()['tools/call'] ?? 0).toBe(0);
  expect(lab.rows(evidence)).toMatchObject({ receipts: 1, ready: 1, advances: 0, reconciliations: 0 });
});

test('a lost create reply is found again in its own session, and never sent again', async () => {
  const sent = wireDelta(lab);
  const dropped = lab.wire.faults.dropReply('tools/call');
  const result = await lab.client.execute({ callNodeId: 'lost-reply', ...RESEARCH });
  await dropped.played;
  expect(result.outcome).toBe('completed');
  expect(result.receipt.submissionLegs).toMatchObject([{ leg: 1, outcome: 'referenced' }]);
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  expect(lab.rows('lost-reply')).toMatchObject({ receipts: 1, legs: 1 });
  await pinEvents(lab, 'looked-up', 'lost-reply');
});

test('a lost reply of a tool that cannot be looked up is held with its evidence until an operator closes it', async () => {
  const sent = wireDelta(lab);
  const dropped = lab.wire.faults.dropReply('tools/call');
  const handle = await lab.client.start({
    callNodeId: 'held',
    server: 'everything',
    tool: 'echo',
    arguments: { message: 'once' },
  });
  await dropped.played;
  const error = await handle.result().catch((thrown: unknown) => thrown);
  expect(ToolOperationError.isInstance(error) && error.code).toBe('OperationUnresolved');
  expect(error).toMatchObject({
    view: { state: 'UNRESOLVED', reason: 'ambiguous-submission', receipt: null },
  });
  expect(lab.rows('held').receipts).toBe(0);
  await lab.temporal.workflow.getHandle(workflowIdOf('held')).signal(MESSAGES.operatorSignal, {
    decision: 'close',
    evidence: 'the log of the server shows nothing',
    decidedBy: 'Ann',
  });
  const result = await handle.result();
  expect(result).toMatchObject({ outcome: 'unresolved', toolResult: null });
  expect(result.receipt.decision.evidence).toContain('Ann');
  expect(sent()).toMatchObject({ 'tools/call': 1 });
  expect(lab.rows('held')).toEqual({ receipts: 1, ready: 1, advances: 0, reconciliations: 1, legs: 1 });
  await pinEvents(lab, 'unresolved', 'held');
});

test('P1: polls that fail for a while never fail the operation', async () => {
  const unavailable = lab.wire.faults.answerNext('tasks/get', {
    httpStatus: 503,
    headers: { 'retry-after': '1' },
    body: { error: 'try later' },
    times: 2,
  });
  const result = await lab.client.execute({ callNodeId: 'faulty-polls', ...RESEARCH });
  await unavailable.played;
  expect(result.outcome).toBe('completed');
  expect(result.receipt.transport.transientFaults).toBe(2);
});

test('R4: a result cut in its middle is fetched again, whole', async () => {
  const handle = await lab.client.start({ callNodeId: 'cut-result', ...RESEARCH });
  await until(handle, (view) => view.polls >= 2);
  const cut = lab.wire.faults.cutReply('tasks/result');
  const result = await handle.result();
  await cut.played;
  expect(result.outcome).toBe('completed');
  expect(JSON.stringify(result.toolResult)).toContain('tides');
});

test('a result that is not handed out at once is fetched by its own step', async () => {
  const handle = await lab.client.start({ callNodeId: 'late-result', ...RESEARCH });
  await until(handle, (view) => view.polls >= 2);
  const refused = lab.wire.faults.answerNext('tasks/result', {
    httpStatus: 503,
    body: { error: 'try later' },
  });
  const result = await handle.result();
  await refused.played;
  expect(result.outcome).toBe('completed');
  await pinEvents(lab, 'fetched-again', 'late-result');
});
