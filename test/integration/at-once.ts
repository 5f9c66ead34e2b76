// Owns the running of a file's scenarios side by side: all begin together, each is its own test.
// Must never hide a failure: a scenario that throws fails its test, and one that never ends runs into the test's timeout.

import { test } from 'vitest';

export interface AtOnce {
  readonly scenario: (name: string, run: () => Promise<void>) => void;
  /** Call it when everything that scenarios need is there. */
  readonly begin: () => void;
}

/** Waits of many seconds cost their longest, not their sum (vitest itself runs five concurrent tests at a time). */
export function atOnce(): AtOnce {
  const beginnings: (() => void)[] = [];
  return {
    scenario(name, run) {
      const ended = new Promise<void>((resolve, reject) => {
        beginnings.push(() => void run().then(resolve, reject));
      });
      // It may fail before its test awaits it.
      ended.catch(() => undefined);
      test.concurrent(name, () => ended);
    },
    begin() {
      for (const begin of beginnings) begin();
    },
  };
}
