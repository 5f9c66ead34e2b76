// Owns the one table from what happened to the exit code, and the error that carries a sentence and such a code.
// Must never say 1 (failed) for an error of this program: only a receipt knows that the tool failed.

import type { Outcome } from '../operation/names.js';
import type { OperationView } from '../client/view.js';

export const EXIT_CODES = {
  completed: 0,
  failed: 1,
  /** Of `answer` and `cancel`: too late, something else came first. Of `replay` and `doctor`: something is wrong. */
  overtaken: 1,
  wrong: 1,
  /** Usage or configuration; nothing was started. */
  usage: 2,
  cancelled: 3,
  rejected: 4,
  /** Not ended, held, or closed by an operator without a result. */
  notEnded: 5,
  interrupted: 130,
} as const;

const OF_OUTCOME: Readonly<Record<Outcome, number>> = {
  completed: EXIT_CODES.completed,
  failed: EXIT_CODES.failed,
  cancelled: EXIT_CODES.cancelled,
  rejected: EXIT_CODES.rejected,
  unresolved: EXIT_CODES.notEnded,
};

export function exitCodeOf(view: Pick<OperationView, 'outcome'>): number {
  return view.outcome === null ? EXIT_CODES.notEnded : OF_OUTCOME[view.outcome];
}

/** Ends the command with one sentence on standard error. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT_CODES.usage, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }

  static isInstance(value: unknown): value is CommandError {
    return value instanceof Error && value.name === 'CommandError' && 'exitCode' in value;
  }
}
