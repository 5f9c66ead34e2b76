// Owns what the engine of the fault server (calls, tasks, executions) has to be told of a wire contract.
// Must never hold a fault: what goes wrong is the plan's, and the same on every contract.

import type { JsonObject } from './json.js';
import type { Plan } from './plan.js';
import type { RpcAnswer } from './replies.js';
import type { TaskSupport } from './tools.js';
import type { WorkOrder } from './executions.js';
import type { Arrival, Journal } from './journal.js';

export const REVISIONS = ['2025-11-25', '2026-07-28'] as const;

/** What one reply says of a task, in no contract's words. */
export interface Told {
  readonly remoteTaskId: string;
  readonly status: string;
  readonly statusMessage: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly ttlMs: number | null;
  /** null: no hint is given. */
  readonly pollIntervalMs: number | null;
}

export interface Wire {
  readonly revision: (typeof REVISIONS)[number];
  /** Tasks are found by their id alone. */
  readonly isSessionless: boolean;
  /** Who calls would take a task. */
  offersTask(params: JsonObject): boolean;
  /** The call is to become a task. */
  becomesTask(params: JsonObject, support: TaskSupport): boolean;
  /** The refusal of a call that had to become a task and cannot. */
  readonly taskRequired: { readonly code: number; readonly data?: JsonObject };
  /** The lifetime of a task whose plan says none. */
  lifetimeOf(params: JsonObject): number | null;
  /** What of a written plan this contract has no place for; null: nothing. */
  objectionTo(plan: Plan): string | null;
  /** The answer that asks before there is any work, or what people have said before it. @throws CallRefused */
  askFirst(
    order: WorkOrder,
    params: JsonObject,
    journal: Journal,
    arrival: Arrival,
  ): { readonly ask: RpcAnswer } | { readonly heard: WorkOrder['heard'] };
  task(told: Told): JsonObject;
  /** The result of the call that made a task. */
  created(task: JsonObject): JsonObject;
  /** What every answer of this contract says beside what it is about. */
  sealed(answer: RpcAnswer): RpcAnswer;
  httpStatusOf(errorCode: number): number;
}

/** A call that is refused before anything runs. */
export class CallRefused extends Error {
  readonly code: number;
  readonly data: JsonObject | undefined;
  constructor(code: number, message: string, data?: JsonObject) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export const ELICITATION = 'elicitation/create';

/** The form of a question, as both contracts ask it. */
export function elicitationOf(label: string, question: number): JsonObject {
  return {
    mode: 'form',
    message: `Question ${question} of ${label}`,
    requestedSchema: {
      type: 'object',
      properties: { choice: { type: 'string', enum: ['left', 'right'] } },
      required: ['choice'],
    },
  };
}
