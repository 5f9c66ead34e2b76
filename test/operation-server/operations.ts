// Owns the operations of the server, read off the journal each time: a restart forgets nothing.
// Must never start the same request id twice within its window.

import { randomUUID } from 'node:crypto';
import type { Journal, JournalEntry, Started } from './journal.js';
import { type Plan, responseOf } from './plan.js';

export type Held = Started & { readonly at: number };

/** Base64 as some servers make it, a colon, percent signs, a space, and letters of no alphabet in particular. */
const ODD = '/a+b=c==/x:y%2Fz é~%';

export class Operations {
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  all(): readonly Held[] {
    const gone = new Set(
      this.#journal.entries.flatMap((entry) => (entry.kind === 'deleted' ? [entry.name] : [])),
    );
    return this.#journal.entries.filter(
      (entry: JournalEntry): entry is Held => entry.kind === 'started' && !gone.has(entry.name),
    );
  }

  byName(name: string): Held | undefined {
    return this.all().find((held) => held.name === name);
  }

  remembered(requestId: string | null): Held | undefined {
    if (requestId === null) return undefined;
    return this.all().find(
      (held) => held.requestId === requestId && Date.now() < held.at + held.plan.requestIdWindowMs,
    );
  }

  ofResource(resource: string): readonly Held[] {
    return this.all().filter((held) => held.resource === resource);
  }

  start(of: Pick<Started, 'label' | 'resource' | 'requestId'>, plan: Plan): Held {
    const tail = plan.name === 'odd' ? `${randomUUID()}${ODD}` : randomUUID();
    const name = `projects/p/operations/${tail}`;
    return this.#journal.write({ kind: 'started', name, plan, ...of }) as Held;
  }

  /** The operation as JSON text, so that the bytes of its result are those of the plan. */
  textOf(held: Held, name = held.name): string {
    const { plan, at } = held;
    const head = `{ "name": ${JSON.stringify(name)}, "metadata": ${this.#metadataOf(held)}`;
    const isCancelled = this.#journal.count('cancelled', held.label) > 0;
    const isDone = isCancelled || Date.now() >= at + plan.durationMs;
    if (!isDone) return `${head}, "response": ${responseOf(plan)} }`;
    return `${head}, "done": true${isCancelled ? error(1, 'cancelled by the caller') : endOf(plan)} }`;
  }

  #metadataOf({ at, label }: Held): string {
    return JSON.stringify({
      '@type': 'type.example/ReportMetadata',
      label,
      startTime: new Date(at).toISOString(),
    });
  }
}

function error(code: number, message: string): string {
  return `, "error": {"code":${code},  "message":${JSON.stringify(message)}}`;
}

function endOf(plan: Plan): string {
  const response = responseOf(plan);
  switch (plan.end) {
    case 'response':
      return `, "response": ${response}`;
    case 'error':
      return error(9, 'the paper ran out');
    case 'cancelled':
      return error(1, 'cancelled by its server');
    case 'nothing':
      return '';
    case 'both':
      return `, "response": ${response}${error(9, 'and yet')}`;
    case 'codeless':
      return ', "error": {"message":"no code"}';
  }
}
