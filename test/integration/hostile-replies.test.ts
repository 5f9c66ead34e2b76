// Hostile replies on the real engine and on every contract, met in the create, the polls and the result: the class decides, nothing is made up,
// nothing is sent twice, and nobody follows a redirect. What they cost: test/protocols/hostile-replies.test.ts.

import { afterAll, beforeAll, expect } from 'vitest';
import type { ToolOperationHandle } from '../../client/index.js';
import { atOnce } from './at-once.js';
import { CONTRACTS, type FaultLab, openFaultLab } from './fault-lab.js';
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

/** How bytes are read is one code for both contracts: on the second one there is one word of each kind. */
const WORDS_ON = { '2025-11-25': WORDS, '2026-07-28': ['redirect', 'wrong-types', 'drip'] } as const;
const LARGE_ON = { '2025-11-25': LARGE, '2026-07-28': [] } as const;

for (const contract of CONTRACTS) {
  // By the list of the session, or where there is none by a tool.
  const server = contract === '2025-11-25' ? ('session-list' as const) : ('lookup-tool' as const);
  for (const word of [...WORDS_ON[contract], ...LARGE_ON[contract]]) {
    scenario(
      `on ${contract} a create reply that is ${word}: ambiguous, found by a look-up, never sent again`,
      async () => {
        const label = `hostile create ${word} ${contract}`;
        expect(await endOf(await lab.start({ label, contract, server, plan: { create: word } }))).toBe(
          'completed',
        );
        expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
        expect(lab.faults.executions(label)).toBe(1);
      },
    );

    scenario(`on ${contract} polls that are ${word}: they cost time, nothing else`, async () => {
      const label = `hostile poll ${word} ${contract}`;
      const plan = { polls: ['ok', word, word] };
      expect(await endOf(await lab.start({ label, contract, durationMs: 3_000, plan }))).toBe('completed');
      expect(lab.faults.executions(label)).toBe(1);
    });
  }

  // What is too large may have been the result of a plain answer, wherever that may come.
  const endless = contract === '2025-11-25' ? 'ambiguous-submission' : 'result-too-large';
  const unfound = { redirect: 'ambiguous-submission', bomb: 'ambiguous-submission', endless };
  for (const [word, reason] of Object.entries(unfound)) {
    scenario(
      `on ${contract} a create reply that is ${word}, where nothing can be looked up: held`,
      async () => {
        const label = `hostile create ${word}, at most once, ${contract}`;
        const handle = await lab.start({ label, contract, server: 'at-most-once', plan: { create: word } });
        expect(await endOf(handle)).toContain(`held: ${reason}: tools/call: `);
        expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
      },
    );
  }

  for (const word of WORDS_ON[contract]) {
    scenario(`on ${contract} a result that is ${word} once comes whole in the end`, async () => {
      const label = `hostile result ${word} ${contract}`;
      expect(await endOf(await lab.start({ label, contract, plan: { result: [word, 'ok'] } }))).toBe(
        'completed',
      );
    });
  }

  // A flood may run into the request's timeout before it is too large: test/protocols/hostile-replies.test.ts.
  for (const word of contract === '2025-11-25' ? ['endless', 'huge:70'] : ['huge:70']) {
    // Where the result rides in the status, nobody can tell that this was an end: it is looked at thrice.
    const times = contract === '2025-11-25' ? 1 : 3;
    scenario(
      `on ${contract} a result that is ${word} is refused for its size, at look ${times}`,
      async () => {
        const label = `hostile result ${word} ${contract}`;
        const result = [...Array.from({ length: times }, () => word), 'ok'];
        const handle = await lab.start({ label, contract, plan: { result } });
        const end = await endOf(handle);
        expect(end).toContain('held: result-too-large: ');
        expect(end).toContain('more than 68157440 bytes');
        expect(lab.faults.entries('faultPlayed', label)).toHaveLength(times);
      },
    );
  }

  scenario(
    `on ${contract} three polls in a row that break the contract are held, with what was seen`,
    async () => {
      const label = `hostile polls for good ${contract}`;
      const plan = { polls: ['ok', 'endless', 'wrong-types', 'wrong-types'] };
      const handle = await lab.start({ label, contract, durationMs: 600_000, plan });
      expect(await endOf(handle)).toBe('held: protocol-violation: tasks/get: the reply is not a task');
    },
  );

  scenario(`on ${contract} nobody follows a redirect`, async () => {
    const calls = [{ create: 'redirect' }, { polls: 'redirect' }, { result: ['redirect', 'ok'] }];
    const labels = calls.map((plan, n) => ({
      label: `hostile redirect ${n} ${contract}`,
      contract,
      server,
      plan,
    }));
    for (const call of labels) expect(await endOf(await lab.start(call))).toBe('completed');
    expect(lab.faults.journal().filter(({ kind }) => kind === 'redirectFollowed')).toEqual([]);
  });
}
