// Owns the points where a step may be stopped: the named seams, and before and after each commit and each exchange.
// Must never change what a port does; it only holds an attempt where it stands.

import type { ReceiptStore } from '../../receipts/store.js';
import type { Attempt } from './activity-task.js';
import { attempts } from './fake-activity.js';

const READS: readonly string[] = ['read', 'wireState', 'readReceipt', 'readResult', 'close'];

export interface Passage {
  /** From 0, in the order in which the world passes them. */
  readonly index: number;
  readonly name: string;
  readonly attempt: Attempt;
}

export class Points {
  passed = 0;
  /** Called before anything can be stopped there; it may freeze the attempt. */
  readonly #onPassage: (passage: Passage) => void;

  constructor(onPassage: (passage: Passage) => void) {
    this.#onPassage = onPassage;
  }

  async pass(name: string): Promise<void> {
    const attempt = attempts.getStore() as Attempt | undefined;
    if (!attempt) return;
    if (!attempt.isFrozen) this.#onPassage({ index: this.passed++, name, attempt });
    await attempt.passPoint();
  }

  /** Every call but the reads may be a commit; `begin` is one where it takes the row over. */
  around(store: ReceiptStore): ReceiptStore {
    return new Proxy(store, {
      get: (target, name: string) => {
        const method = target[name as keyof ReceiptStore] as (...args: unknown[]) => Promise<unknown>;
        if (READS.includes(name)) return method.bind(target);
        return async (...args: unknown[]) => {
          await this.pass(`before ${name}`);
          const said = await method.apply(target, args);
          await this.pass(`after ${name}`);
          return said;
        };
      },
    });
  }
}
