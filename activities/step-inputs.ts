// Owns what the workflow hands to each step and gets back. Types only: the workflow bundle sees nothing else of here.
// Must never hold arguments, replies' schemas or results beyond what a step needs: inputs are history.

import type { Course, OperatorWord, Presented } from '../operation/build-receipt.js';
import type { OperatorEnd, PollCursor, ReplyMail, StepFact } from '../operation/facts.js';
import type { JsonObject } from '../operation/json.js';
import type { SeenByRun, SeenEnd } from '../operation/row.js';

/**
 * As the workflow hands it over. The run is told by the engine, never by the input: an activity that is pending when its
 * workflow is reset keeps its input, but belongs to the new run.
 */
export type FromWorkflow<Input extends { readonly runId: string }> = Omit<Input, 'runId'>;

/** Which run asks, and the epoch it believes to hold. */
export interface StepInput {
  readonly callNodeId: string;
  readonly runId: string;
  readonly executionEpoch: number;
}

export interface OpenInput {
  readonly callNodeId: string;
  readonly runId: string;
  readonly requestDigest: string;
  readonly server: string;
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly waitBudgetMs: number | null;
  /** This run goes on from another, or has opened the row before: a missing row is then a lost one. */
  readonly mustExist: boolean;
  /** Of a run that has had its row: what the row must know. */
  readonly seen?: SeenByRun;
}

export interface SubmitInput extends StepInput {
  readonly deadlineAt: number;
  readonly notBeforeAt: number | null;
}

export interface LookUpInput extends StepInput {
  readonly notBeforeAt: number | null;
  readonly deadlineAt: number | null;
  /** The remote id an operator found, or null. */
  readonly given: string | null;
  /** Whose word that is, and on what evidence; absent where none was given. */
  readonly grounds?: string;
}

export interface ObserveInput extends StepInput {
  readonly openRoundIds: readonly string[];
  /** End of the step while none of its rounds is open. */
  readonly waitDeadlineAt: number | null;
  /** End of the step while one is. */
  readonly inputDeadlineAt: number | null;
  readonly notBeforeAt: number | null;
  readonly freshSession: boolean;
  readonly once: boolean;
  /** Where the poll stood when the step began; heartbeat details are newer. */
  readonly cursor: PollCursor;
  readonly expiresAt: number | null;
}

export interface AnswerInput extends StepInput {
  readonly reply: ReplyMail;
  /** The round's own deadline: past it the delivery is given up. */
  readonly deadlineAt: number;
}

export interface CancelInput extends StepInput {
  readonly reason: string;
  /** Which request this is; absent: the first. */
  readonly generation?: number;
}

export interface FetchInput extends StepInput {
  readonly notBeforeAt: number | null;
  readonly deadlineAt: number | null;
}

/** An operator's end; the only input that carries a result, because no server gives it. */
export interface EndInput extends StepInput, OperatorEnd {
  /** Who says so, and on what grounds. */
  readonly note: string;
  /** What the run knew when it took the word; anything else in the row overtakes it. */
  readonly seen: SeenEnd;
}

export interface AcceptInput extends StepInput {
  readonly presented: Presented;
  readonly course: Course;
  readonly operator: OperatorWord | null;
  /** How many the run has seen: a row with fewer was restored from a backup, and proves no end. */
  readonly submissionLegs?: number;
  /** When a cancel was asked for; null = never. For the receipt's reader and the metrics. */
  readonly cancelAskedAt: number | null;
}

/** `accept` also carries the result home, where it is small enough to ride in the run's result. */
export type AcceptOutcome = {
  readonly fact: StepFact;
  readonly inlineResult: string | null;
};

/** The activities as the workflow sees them; names are in operation/names.ts. */
export interface StepActivities {
  readonly open: (input: FromWorkflow<OpenInput>) => Promise<StepFact>;
  readonly submit: (input: FromWorkflow<SubmitInput>) => Promise<StepFact>;
  readonly lookUp: (input: FromWorkflow<LookUpInput>) => Promise<StepFact>;
  readonly observe: (input: FromWorkflow<ObserveInput>) => Promise<StepFact>;
  readonly deliverAnswer: (input: FromWorkflow<AnswerInput>) => Promise<StepFact>;
  readonly sendCancel: (input: FromWorkflow<CancelInput>) => Promise<StepFact>;
  readonly fetchResult: (input: FromWorkflow<FetchInput>) => Promise<StepFact>;
  readonly recordOperatorEnd: (input: FromWorkflow<EndInput>) => Promise<StepFact>;
  readonly acceptTerminal: (input: FromWorkflow<AcceptInput>) => Promise<AcceptOutcome>;
}
