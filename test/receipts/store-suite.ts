// Owns the one suite that every store must pass, whatever database is under it.
// Must never know SQLite: what is particular to a database is tested beside it.

import { afterEach, beforeEach, describe } from 'vitest';

import { acceptanceSuite, terminalSuite } from './suite-acceptance.js';
import { effectsSuite } from './suite-effects.js';
import type { MakeStore, StoreHarness } from './suite-fixtures.js';
import { ownershipSuite } from './suite-ownership.js';
import { referencesSuite } from './suite-references.js';
import { openRowsSuite, operatorEndSuite, restoredSuite } from './suite-restored.js';
import { roundsSuite } from './suite-rounds.js';
import { submissionSuite } from './suite-submission.js';

export type { MakeStore, StoreHarness } from './suite-fixtures.js';

export function storeSuite(name: string, makeStore: MakeStore): void {
  describe(`store on ${name}`, () => {
    const harness = useStore(makeStore);
    ownershipSuite(harness);
    submissionSuite(harness);
    referencesSuite(harness);
    roundsSuite(harness);
    terminalSuite(harness);
    acceptanceSuite(harness);
    effectsSuite(harness);
    operatorEndSuite(harness);
    restoredSuite(harness);
    openRowsSuite(harness);
  });
}

/** A new store for each test. */
function useStore(makeStore: MakeStore): () => StoreHarness {
  let harness: StoreHarness | null = null;
  beforeEach(async () => {
    harness = await makeStore();
  });
  afterEach(async () => {
    await harness?.close();
    harness = null;
  });
  return () => {
    if (!harness) throw new Error('no store outside a test');
    return harness;
  };
}
