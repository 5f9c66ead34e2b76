// Owns the one error class that callers get.
// Must never carry arguments, replies or credentials.

import { CALLER_ERRORS, type CallerErrorCode } from '../operation/errors.js';
import type { OperationView } from './view.js';

const BRAND = Symbol.for('durable-tool-calls.ToolOperationError');

/** What went wrong for the caller; `code` narrows in a `switch`, the table in operation/errors.ts says who acts. */
export class ToolOperationError extends Error {
  override readonly name = 'ToolOperationError';
  readonly code: CallerErrorCode;
  /** The operation as last seen, where it is known: for `OperationUnresolved`, the evidence. */
  readonly view: OperationView | null;
  readonly [BRAND] = true;

  constructor(
    code: CallerErrorCode,
    message: string,
    view: OperationView | null = null,
    options?: ErrorOptions,
  ) {
    super(`${message} (${CALLER_ERRORS[code].nextStep})`, options);
    this.code = code;
    this.view = view;
  }

  /** True for errors of any copy of this package. */
  static isInstance(value: unknown): value is ToolOperationError {
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}
