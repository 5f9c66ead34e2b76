// Owns the journal of the operation server: one JSON line per fact, and all that it remembers over a restart.
// Must never be rewritten; tests count by it.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { Plan } from './plan.js';

export interface Started {
  readonly kind: 'started';
  readonly label: string;
  readonly name: string;
  readonly resource: string | null;
  readonly requestId: string | null;
  readonly plan: Plan;
}

export type JournalFact =
  | { readonly kind: 'serverStarted' }
  | {
      readonly kind: 'submitReceived';
      readonly label: string;
      readonly requestId: string | null;
      readonly verb: string;
      readonly target: string;
      readonly apiKey: string | null;
      readonly body: string;
    }
  | Started
  | { readonly kind: 'deduplicated'; readonly label: string }
  | { readonly kind: 'refused'; readonly label: string }
  | { readonly kind: 'polled'; readonly label: string; readonly target: string }
  | { readonly kind: 'cancelReceived'; readonly label: string; readonly target: string }
  | { readonly kind: 'cancelled'; readonly label: string; readonly name: string }
  | { readonly kind: 'deleted'; readonly label: string; readonly name: string }
  | { readonly kind: 'listed'; readonly label: string }
  /** A redirect was followed: this must never be seen. */
  | { readonly kind: 'followed' };

export type JournalEntry = JournalFact & { readonly at: number };

export class Journal {
  readonly #file: string;
  readonly entries: JournalEntry[];

  constructor(file: string) {
    this.#file = file;
    this.entries = [...readJournal(file)];
  }

  write(fact: JournalFact): JournalEntry {
    const entry: JournalEntry = { ...fact, at: Date.now() };
    // Synchronous: what the journal does not hold has not happened, whenever this process is killed.
    appendFileSync(this.#file, `${JSON.stringify(entry)}\n`);
    this.entries.push(entry);
    return entry;
  }

  count(kind: JournalFact['kind'], label: string): number {
    return this.entries.filter((entry) => entry.kind === kind && 'label' in entry && entry.label === label)
      .length;
  }
}

export function readJournal(file: string): readonly JournalEntry[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line) as JournalEntry);
}
