// Owns the body of the tool: the real work, its begin and end in the journal.
// Must never run but for an accepted call, nor know how its caller is answered.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionEnd, Journal } from './journal.js';
import type { JsonObject, JsonValue } from './json.js';
import type { Plan } from './plan.js';

export interface WorkOrder {
  readonly label: string;
  readonly durationMs: number;
  /** Pads the result's text to about this size. */
  readonly resultBytes: number;
  readonly plan: Plan;
  readonly key: string | null;
  readonly asTask: boolean;
  /** Answers to what was asked before there was any work. */
  readonly heard: readonly JsonValue[];
}

/** What the work came to: the `result` or the `error` member of a JSON-RPC reply. */
export type WorkResult =
  | { readonly kind: 'completed' | 'isError'; readonly result: JsonObject }
  | { readonly kind: 'protocolError'; readonly error: JsonObject }
  | { readonly kind: 'aborted' };

export class Execution {
  readonly done: Promise<WorkResult>;
  private readonly aborting = new AbortController();
  private readonly hurrying = new AbortController();

  constructor(
    order: WorkOrder,
    journal: Journal,
    ask: (question: number, signal: AbortSignal) => Promise<JsonValue>,
  ) {
    this.done = this.run(order, journal, ask);
  }

  /** Stops the work where it is. */
  abort(): void {
    this.aborting.abort();
  }

  /** Ends the work now, completed, whatever was left of it. */
  hurry(): void {
    this.hurrying.abort();
  }

  private async run(
    order: WorkOrder,
    journal: Journal,
    ask: (question: number, signal: AbortSignal) => Promise<JsonValue>,
  ): Promise<WorkResult> {
    const { label, plan, key } = order;
    const execution = journal.nextExecution(label);
    journal.write({ kind: 'executionBegan', label, execution, key });
    const answers: JsonValue[] = [...order.heard];
    await this.work(order.durationMs / 2);
    for (let question = 1; question <= plan.questions && !this.isOver; question += 1) {
      const answer = await ask(question, AbortSignal.any([this.aborting.signal, this.hurrying.signal]));
      answers.push(answer);
    }
    await this.work(order.durationMs / 2);
    const how: ExecutionEnd = this.aborting.signal.aborted ? 'aborted' : plan.outcome;
    journal.write({ kind: 'executionEnded', label, execution, how });
    return resultOf(order, execution, how, answers);
  }

  private get isOver(): boolean {
    return this.aborting.signal.aborted || this.hurrying.signal.aborted;
  }

  private async work(ms: number): Promise<void> {
    const signal = AbortSignal.any([this.aborting.signal, this.hurrying.signal]);
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  }
}

function resultOf(
  order: WorkOrder,
  execution: number,
  how: ExecutionEnd,
  answers: readonly JsonValue[],
): WorkResult {
  if (how === 'aborted') return { kind: 'aborted' };
  if (how === 'protocolError') {
    const data = { label: order.label, execution };
    return { kind: how, error: { code: -32050, message: 'the backend refused the work', data } };
  }
  const said = `execution ${execution} of ${order.label} ${how === 'isError' ? 'failed' : 'is done'}`;
  const heard = answers.length === 0 ? '' : `; answers ${JSON.stringify(answers)}`;
  const text = `${said}${heard}`.padEnd(order.resultBytes, '.');
  const content = [{ type: 'text', text }];
  return { kind: how, result: { content, ...(how === 'isError' ? { isError: true } : {}) } };
}
