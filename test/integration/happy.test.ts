import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Lab, openLab, until } from './lab.js';

let lab: Lab;
beforeEach(async () => {
  lab = await openLab();
});
afterEach(async () => {
  await lab.close();
});

test('a long tool call ends as one receipt and was called once', async () => {
  await lab.startWorker();
  const result = await lab.client.execute({
    callNodeId: 'happy',
    server: 'everything',
    tool: 'simulate-research-query',
    arguments: { topic: 'tides', ambiguous: false },
  });
  expect(result.outcome).toBe('completed');
  expect(JSON.stringify(result.toolResult)).toContain('tides');
  expect(lab.wire.counts().toolsCall).toBe(1);
  expect(lab.count('receipt')).toBe(1);
  console.log(await lab.history('happy'));
});

test('a question is stored, the worker is killed, another process delivers the answer in the old session', async () => {
  const first = await lab.startWorker();
  const handle = await lab.client.start({
    callNodeId: 'asked',
    server: 'everything',
    tool: 'simulate-research-query',
    arguments: { topic: 'python', ambiguous: true },
  });
  const asked = await until(handle, (view) => view.pendingInput.length > 0);
  console.log(JSON.stringify(asked.pendingInput));
  await first.kill();
  await lab.startWorker();
  const schema = asked.pendingInput[0]?.question.schema as { properties: { interpretation: { oneOf?: { const: string }[]; enum?: string[] } } };
  const choice = schema.properties.interpretation.enum?.[0] ?? schema.properties.interpretation.oneOf?.[0]?.const ?? '';
  const verdict = await handle.answer({ content: { interpretation: choice } });
  expect(verdict).toEqual({ kind: 'applied' });
  const result = await handle.result();
  expect(result.outcome).toBe('completed');
  expect(result.resultJson).toContain(choice);
  expect(lab.wire.counts().toolsCall).toBe(1);
  expect(lab.count('receipt')).toBe(1);
  console.log(await lab.history('asked'));
});
