// Owns the systematic walk: one script, a blow at every point of it in turn, in every manner, and pairs of them.
// Must never skip a point silently; what it walked is counted and returned.

import { play } from './judge.js';
import type { MemoryStore } from './memory-store.js';
import type { Passage } from './points.js';
import type { Blow, Script } from './script.js';
import { type Tamper, World } from './world.js';

export const MANNERS: Readonly<Record<string, Blow>> = {
  killed: { kind: 'kill' },
  'late, after the next attempt': { kind: 'zombie', thaw: { kind: 'nextEnd' } },
  'late, after the receipt': { kind: 'zombie', thaw: { kind: 'receipt' } },
};

export interface Walk {
  /** A rule broken on purpose. */
  readonly tamper: Tamper | undefined;
  schedules: number;
  /** By manner: the points where a blow of that kind struck. */
  readonly struck: Map<string, Set<string>>;
  readonly outcomes: Set<string>;
  /** How the first schedule ended, the one without a blow. */
  undisturbed: string | null;
  readonly wrong: string[];
}

export function newWalk(tamper?: Tamper): Walk {
  return { tamper, schedules: 0, struck: new Map(), outcomes: new Set(), undisturbed: null, wrong: [] };
}

let worlds = 0;

/** Lives through one schedule; the points where a blow would make a difference. */
async function live(script: Script, memory: MemoryStore, walk: Walk): Promise<readonly number[]> {
  worlds += 1;
  const world = new World(script, `explored-${worlds}`, memory.store, walk.tamper);
  const wrong = await play(world, memory);
  walk.schedules += 1;
  for (const { blow, name } of world.blows.struck) {
    const manner = Object.keys(MANNERS).find((key) => JSON.stringify(MANNERS[key]) === JSON.stringify(blow));
    if (manner) walk.struck.set(manner, (walk.struck.get(manner) ?? new Set()).add(name));
  }
  for (const text of world.story.receiptTexts) {
    const { outcome } = JSON.parse(text) as { outcome: string };
    walk.undisturbed ??= outcome;
    walk.outcomes.add(outcome);
  }
  if (wrong.length > 0) {
    const blows = world.blows.struck.map(({ blow, name }) => `${JSON.stringify(blow)} at ${name}`).join(', ');
    walk.wrong.push([`${script.name}: ${blows}`, ...wrong, ...world.story.lines].join('\n'));
  }
  return distinct(world.story.passages);
}

/**
 * From the end of an exchange or commit to the beginning of the next nothing changes, so being stopped after the one or
 * before the other is the same. The last of an attempt has no other beside it.
 */
function distinct(passages: readonly Passage[]): readonly number[] {
  const isLast = ({ index, attempt }: Passage): boolean =>
    passages.findLast((other) => other.attempt === attempt)?.index === index;
  return passages
    .filter((passage) => !passage.name.startsWith('after ') || isLast(passage))
    .map(({ index }) => index);
}

function struckAt(script: Script, point: number, blow: Blow): Script {
  return { ...script, blows: [...script.blows, { when: { point }, blow }] };
}

/** A blow at every point, in every manner. */
export async function walkSingles(
  script: Script,
  memory: MemoryStore,
  walk: Walk,
  blows: readonly Blow[] = Object.values(MANNERS),
): Promise<void> {
  const points = await live(script, memory, walk);
  for (const blow of blows) {
    for (const point of points) await live(struckAt(script, point, blow), memory, walk);
  }
}

/** Two blows, the second at every later point of the world that the first one made. */
export async function walkPairs(
  script: Script,
  memory: MemoryStore,
  walk: Walk,
  blows: readonly Blow[],
): Promise<void> {
  const points = await live(script, memory, walk);
  for (const first of blows) {
    for (const point of points) {
      const once = struckAt(script, point, first);
      const after = (await live(once, memory, walk)).filter((later) => later > point);
      for (const second of blows) {
        for (const later of after) await live(struckAt(once, later, second), memory, walk);
      }
    }
  }
}
