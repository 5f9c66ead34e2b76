/**
 * Owns: the one error of getting and running a Temporal server. Its message is one sentence that says what to do;
 * it must never carry a key, a token or the content of a configuration file.
 */

/** What went wrong, for a `switch`; the message is for people. */
export type EngineErrorCode =
  /** `TEMPORAL_CLI_PATH` names something that does not run. */
  | 'TEMPORAL_CLI_PATH_UNUSABLE'
  /** A profile or configuration file was asked for and cannot give an address. */
  | 'TEMPORAL_PROFILE_UNUSABLE'
  /** No source could give a binary. */
  | 'TEMPORAL_NOT_FOUND'
  /** What was downloaded is not what is pinned in this repository; nothing of it was run. */
  | 'TEMPORAL_WHEEL_REFUSED'
  /** A download source could not be used (no network, no python3, no such platform). */
  | 'TEMPORAL_DOWNLOAD_FAILED'
  /** The server process died, or never answered. */
  | 'TEMPORAL_START_FAILED';

const brand: unique symbol = Symbol.for('durable-tool-calls/EngineError');

/** Thrown by everything in `cli/engine/`. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly code: EngineErrorCode;
  readonly [brand] = true;

  constructor(code: EngineErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Works over two copies of this package in one process, where `instanceof` does not. */
  static isInstance(value: unknown): value is EngineError {
    return typeof value === 'object' && value !== null && brand in value;
  }
}

/** The last words of a failed program, for the end of a sentence. */
export function lastLines(text: string, lineCount: number): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(-lineCount)
    .join(' | ');
}
