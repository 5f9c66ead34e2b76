// Owns `find_work`: the tool that looks work up by its key, for requesters that do not send the same key twice.
// Must never run the body of a tool, nor find work under any key but its own.

import type { WorkOrder } from './executions.js';
import { isObject, type JsonObject, type JsonValue } from './json.js';
import type { Arrival, Journal } from './journal.js';
import type { Plan } from './plan.js';
import type { RpcAnswer } from './replies.js';

export const LOOK_UP_TOOL = 'find_work';
export const LOOK_UP_ARGUMENT = 'clientRef';

export const LOOK_UP_DESCRIPTOR: JsonObject = {
  name: LOOK_UP_TOOL,
  description: 'Finds the work that was started under a key; jobId is null where there is none.',
  inputSchema: {
    type: 'object',
    additionalProperties: false,
    required: [LOOK_UP_ARGUMENT],
    properties: { [LOOK_UP_ARGUMENT]: { type: 'string', minLength: 1 } },
  },
  outputSchema: {
    type: 'object',
    required: ['jobId'],
    properties: { jobId: { type: ['string', 'null'] } },
  },
};

export class LookUps {
  private readonly journal: Journal;
  /** Of every key that was received, whether or not anything was started under it. */
  private readonly plans = new Map<string, { readonly label: string; readonly plan: Plan }>();
  private readonly works = new Map<string, string>();
  private readonly looks = new Map<string, number>();

  constructor(journal: Journal) {
    this.journal = journal;
  }

  heard({ key, label, plan }: WorkOrder): void {
    if (key !== null) this.plans.set(key, { label, plan });
  }

  started({ key }: WorkOrder, jobId: string): void {
    if (key !== null && !this.works.has(key)) this.works.set(key, jobId);
  }

  answer(params: JsonObject, arrival: Arrival): RpcAnswer {
    const args = isObject(params['arguments']) ? params['arguments'] : {};
    const key = args[LOOK_UP_ARGUMENT];
    // As a server does that knows no tasks for this tool: the specification's refusal.
    if (params['task'] !== undefined)
      return { error: { code: -32601, message: 'the tool does not run as a task' } };
    if (typeof key !== 'string') return { error: { code: -32602, message: 'the arguments have no key' } };
    const heard = this.plans.get(key);
    const nth = this.looks.get(key) ?? 0;
    this.looks.set(key, nth + 1);
    const fails = nth < (heard?.plan.failedLookUps ?? 0);
    const isLate = nth < (heard?.plan.lateLookUps ?? 0);
    const jobId = fails || isLate ? null : (this.works.get(key) ?? null);
    const label = heard?.label ?? null;
    this.journal.write({ kind: 'workLookedUp', label, key, isFound: jobId !== null }, arrival);
    if (!fails) return found(jobId);
    // Without `isError` this answer would read as "absent".
    return { result: { ...found(null).result, isError: true } };
  }
}

function found(jobId: string | null): { readonly result: JsonObject } {
  const said: Readonly<Record<string, JsonValue>> = { jobId };
  return { result: { structuredContent: said, content: [{ type: 'text', text: JSON.stringify(said) }] } };
}
