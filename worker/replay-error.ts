// Owns the one error of a replay: which workflow, which event, and the first difference, in one sentence.
// Must never carry a payload of the history: those hold arguments and results.

/** Where a replay went wrong; the order is that of a history's way in. */
export type ReplayErrorCode =
  /** Empty, no JSON, or JSON of something else: nothing was replayed. */
  | 'NotAHistory'
  /** Events are missing or out of order: it cannot be what the server recorded. */
  | 'IncompleteHistory'
  /** The code takes another course than the history. */
  | 'DifferentCourse'
  /** The code cannot run it: an unknown workflow type, or a throw of its own. */
  | 'WorkflowFailed'
  /** The replay did not end in time. */
  | 'NoEnd';

/** An event of the history, by its number and the server's name of its kind. */
export interface HistoryEventName {
  readonly eventId: number;
  /** E.g. `ActivityTaskScheduled`. */
  readonly eventType: string;
}

const brand: unique symbol = Symbol.for('durable-tool-calls/ReplayError');

/** Why a history does not replay; `message` is one sentence for people, `code` narrows in a `switch`. */
export class ReplayError extends Error {
  override readonly name = 'ReplayError';
  readonly code: ReplayErrorCode;
  readonly workflowId: string;
  /** The first event that differs, where it is known. */
  readonly event: HistoryEventName | null;
  readonly [brand] = true;

  constructor(
    code: ReplayErrorCode,
    workflowId: string,
    difference: string,
    event: HistoryEventName | null = null,
    options?: ErrorOptions,
  ) {
    const where = event === null ? '' : ` at event ${event.eventId} (${event.eventType})`;
    const verb = code === 'NotAHistory' ? 'is no workflow history' : `does not replay${where}`;
    super(`${workflowId} ${verb}: ${difference}`, options);
    this.code = code;
    this.workflowId = workflowId;
    this.event = event;
  }

  /** Works over two copies of this package in one process, where `instanceof` does not. */
  static isInstance(value: unknown): value is ReplayError {
    return typeof value === 'object' && value !== null && brand in value;
  }
}
