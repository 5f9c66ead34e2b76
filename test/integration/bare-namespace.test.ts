// A cluster without our search attributes: the exact command is told, and everything runs on without them.

import { Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { ToolOperationError } from '../../client/index.js';
import { type Lab, openLab, RESEARCH, until } from './lab.js';

const NAMESPACE = `bare-${process.pid}`;
let lab: Lab;
beforeAll(async () => {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  await connection.workflowService.registerNamespace({
    namespace: NAMESPACE,
    workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
  });
  for (;;) {
    const isThere = await connection.workflowService.describeNamespace({ namespace: NAMESPACE }).then(
      () => true,
      () => false,
    );
    if (isThere) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await connection.close();
  lab = await openLab({}, NAMESPACE);
  await lab.startWorker();
});
afterAll(async () => {
  await lab?.close();
});

test('without search attributes a question, an answer and a result come through, and the command is told once', async () => {
  const handle = await lab.client.start({
    callNodeId: 'bare',
    ...RESEARCH,
    arguments: { topic: 'python', ambiguous: true },
  });
  const asked = await until(handle, (view) => view.pendingInput.length > 0);
  expect(asked.state).toBe('INPUT_REQUIRED');
  expect(await handle.answer({ content: { interpretation: 'snake' } })).toEqual({ kind: 'applied' });
  expect((await handle.result()).outcome).toBe('completed');
  expect(lab.advice).toHaveLength(1);
  expect(lab.advice[0]).toContain(
    `temporal operator search-attribute create --namespace ${NAMESPACE} --name ToolServer --type Keyword`,
  );
  expect((await lab.history('bare')).filter((name) => name.startsWith('upsert'))).toEqual([]);
});

test('without search attributes a held operation is still seen as held', async () => {
  const dropped = lab.wire.faults.dropReply('tools/call');
  const handle = await lab.client.start({
    callNodeId: 'bare-held',
    server: 'everything',
    tool: 'echo',
    arguments: { message: 'once' },
  });
  await dropped.played;
  const error = await handle.result().catch((thrown: unknown) => thrown);
  expect(ToolOperationError.isInstance(error) && error.code).toBe('OperationUnresolved');
});
