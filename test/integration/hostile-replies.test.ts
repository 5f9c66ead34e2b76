// Hostile replies on the real engine, met in the create, the polls and the result: the class decides, nothing is made up,
// nothing is sent twice, and nobody follows a redirect. What they cost: test/protocols/hostile-replies.test.ts.

import { afterAll, beforeAll, expect } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import { atOnce } from './at-once.js';
import { type FaultLab, openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

let lab: FaultLab;
const { scenario, begin } = atOnce();
beforeAll(async () => {
  lab = await openFaultLab();
  await lab.startWorker();
  begin();
});
afterAll(async () => {
  await lab?.close();
});

/** An outcome, or why it is held; the reason is told by the run, which may take a moment. */
async function endOf(handle: ToolOperationHandle): Promise<string> {
  const view = await until(
    handle,
    (seen) => seen.receipt !== null || (seen.state === 'UNRESOLVED' && seen.evidence !== null),
  );
  return view.receipt?.outcome ?? `held: ${view.reason}: ${view.evidence}`;
}

const WORDS = ['html', 'redirect', 'bomb', 'deep-json', 'wrong-json', 'wrong-types', 'drip'] as const;
/** Without measure: the sizes are those of each kind of reply. */
const LARGE = ['endless', 'flood'] as const;

for (const word of [...WORDS, ...LARGE]) {
  scenario(`a create reply that is ${word}: ambiguous, found in its session, never sent again`, async () => {
    const label = `hostile create ${word}`;
    expect(await endOf(await lab.start({ label, plan: { create: word } }))).toBe('completed');
    expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
    expect(lab.faults.executions(label)).toBe(1);
  });

  scenario(`polls that are ${word}: they cost time, nothing else`, async () => {
    const label = `hostile poll ${word}`;
    const plan = { polls: ['ok', word, word] };
    expect(await endOf(await lab.start({ label, durationMs: 3_000, plan }))).toBe('completed');
    expect(lab.faults.executions(label)).toBe(1);
  });
}

for (const word of ['redirect', 'bomb', 'endless']) {
  scenario(`a create reply that is ${word}, where nothing can be looked up: held`, async () => {
    const label = `hostile create ${word}, at most once`;
    const handle = await lab.start({ label, server: 'at-most-once', plan: { create: word } });
    expect(await endOf(handle)).toContain('held: ambiguous-submission: tools/call: ');
    expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
  });
}

for (const word of WORDS) {
  scenario(`a result that is ${word} once comes whole in the end`, async () => {
    const label = `hostile result ${word}`;
    expect(await endOf(await lab.start({ label, plan: { result: [word, 'ok'] } }))).toBe('completed');
  });
}

// A flood may run into the request's timeout before it is too large: test/protocols/hostile-replies.test.ts.
for (const word of ['endless', 'huge:70']) {
  scenario(`a result that is ${word} is refused for its size, once`, async () => {
    const label = `hostile result ${word}`;
    const handle = await lab.start({ label, plan: { result: [word, 'ok'] } });
    const end = await endOf(handle);
    expect(end).toContain('held: result-too-large: ');
    expect(end).toContain('more than 68157440 bytes');
    expect(lab.faults.entries('faultPlayed', label)).toHaveLength(1);
  });
}

scenario('three polls in a row that break the contract are held, with what was seen', async () => {
  const label = 'hostile polls for good';
  const plan = { polls: ['ok', 'endless', 'wrong-types', 'wrong-types'] };
  const handle = await lab.start({ label, durationMs: 600_000, plan });
  expect(await endOf(handle)).toBe('held: protocol-violation: tasks/get: the reply is not a task');
});

scenario('nobody follows a redirect', async () => {
  const calls = [{ create: 'redirect' }, { polls: 'redirect' }, { result: ['redirect', 'ok'] }];
  const labels = calls.map((plan, n) => ({ label: `hostile redirect ${n}`, plan }));
  for (const call of labels) expect(await endOf(await lab.start(call))).toBe('completed');
  expect(lab.faults.journal().filter(({ kind }) => kind === 'redirectFollowed')).toEqual([]);
});
