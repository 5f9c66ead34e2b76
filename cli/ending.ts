// Owns the one place where a thrown error becomes a sentence and an exit code.
// Must never answer 1 (failed) for an error of this program: only a receipt knows that the tool failed.

import { CommanderError } from 'commander';
import { ToolOperationError } from '../client/index.js';
import { StoreError } from '../receipts/store.js';
import { ConfigurationError } from '../worker/configuration-error.js';
import { PreflightError } from '../worker/preflight.js';
import { EngineError } from './engine/engine-error.js';
import { CommandError, EXIT_CODES } from './exit-codes.js';

export interface Ending {
  readonly exitCode: number;
  /** Null where everything is said already. */
  readonly sentence: string | null;
}

/** What a thrown error comes to. */
export function endingOf(error: unknown): Ending {
  if (error instanceof CommanderError) {
    // Commander has printed it; its own code for a wrong flag is 1.
    const isAsked = error.code === 'commander.helpDisplayed' || error.code === 'commander.version';
    return { exitCode: isAsked ? 0 : EXIT_CODES.usage, sentence: null };
  }
  if (CommandError.isInstance(error)) return { exitCode: error.exitCode, sentence: error.message };
  if (ToolOperationError.isInstance(error)) {
    const isOpen = error.code === 'LocalTimeout' || error.code === 'OperationUnresolved';
    return { exitCode: isOpen ? EXIT_CODES.notEnded : EXIT_CODES.usage, sentence: error.message };
  }
  const isSentence = [ConfigurationError, PreflightError, EngineError, StoreError].some((kind) =>
    kind.isInstance(error),
  );
  const message = error instanceof Error ? error.message : String(error);
  if (isSentence) return { exitCode: EXIT_CODES.usage, sentence: message };
  return {
    exitCode: EXIT_CODES.notEnded,
    sentence: `unexpected error, which says nothing of any operation: ${message} (DTC_DEBUG=1 shows where)`,
  };
}
