// Owns the proof that the simulator bites: the product with one rule taken out, and a judge that must say so.
// Must never pass for another reason than the rule that is missing: each twin says what the judge must notice.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { newWalk, walkSingles } from './explore.js';
import { judge, play } from './judge.js';
import { type MemoryStore, openMemoryStore } from './memory-store.js';
import { TWINS, script, type Twin } from './twins.js';
import { TWINS_OF_THE_END } from './twins-of-the-end.js';
import { TWINS_OF_THE_SERVER } from './twins-of-the-server.js';
import { type Tamper, World } from './world.js';

vi.mock('@temporalio/workflow', () => import('./fake-workflow.js'));
vi.mock('@temporalio/activity', () => import('./fake-activity.js'));

let memory: MemoryStore;
beforeAll(async () => {
  memory = await openMemoryStore(() => Date.now());
});
afterAll(() => memory.close());

function tampering(breaks: Twin['breaks']): Tamper {
  return (store, world) => {
    const broken = breaks(store, world, memory);
    return new Proxy(store, {
      get: (target, name: keyof typeof store) => broken[name] ?? target[name].bind(target),
    });
  };
}

describe('a product without the rule that', () => {
  it.each([...TWINS, ...TWINS_OF_THE_END, ...TWINS_OF_THE_SERVER])(
    '$rule: the judge notices',
    { timeout: 120_000 },
    async ({ script: course, blows = [], breaks, noticed }) => {
      const walk = newWalk(tampering(breaks));
      await walkSingles(course, memory, walk, blows);
      expect(walk.wrong.join('\n')).toMatch(noticed);
    },
  );
});

describe('a course that went well, told otherwise', () => {
  it('is wrong where the receipt is another one than was written', async () => {
    const world = new World(script('plain'), 'changed-receipt', memory.store);
    expect(await play(world, memory)).toEqual([]);
    world.story.receiptTexts[0] = '{}';
    expect(await judge(world, memory)).toEqual(['the receipt was changed']);
  });

  it('is wrong where a reply has no verdict', async () => {
    const world = new World(script('a question'), 'untold-verdict', memory.store);
    expect(await play(world, memory)).toEqual([]);
    for (const { runs } of world.engines) for (const { sandbox } of runs) sandbox.updates.clear();
    expect(await judge(world, memory)).toEqual(['engine-1-run-1 left a reply without a verdict']);
  });
});
