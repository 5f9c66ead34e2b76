// Owns the proof that every end of a command has its one exit code and its sentence.
// Must never start a process: the table is pure.

import { CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
import { endingOf } from '../../cli/ending.js';
import { EngineError } from '../../cli/engine/engine-error.js';
import { CommandError, EXIT_CODES, exitCodeOf } from '../../cli/exit-codes.js';
import { ToolOperationError } from '../../client/index.js';
import { CALLER_ERRORS, type CallerErrorCode } from '../../operation/errors.js';
import { type Outcome, OUTCOMES } from '../../operation/names.js';
import { StoreError } from '../../receipts/store.js';
import { ConfigurationError } from '../../worker/configuration-error.js';
import { PreflightError } from '../../worker/preflight.js';

describe('outcomes', () => {
  const expected: Record<Outcome, number> = {
    completed: 0,
    failed: 1,
    cancelled: 3,
    rejected: 4,
    unresolved: 5,
  };

  test.each(OUTCOMES)('%s has the code that the help text names', (outcome) => {
    expect(exitCodeOf({ outcome })).toBe(expected[outcome]);
  });

  test('an operation without an outcome has not ended', () => {
    expect(exitCodeOf({ outcome: null })).toBe(5);
  });
});

describe('errors', () => {
  const expected: Record<CallerErrorCode, number> = {
    CallNodeConflict: 2,
    InvalidRequest: 2,
    OperationNotFound: 2,
    ResultElsewhere: 2,
    LocalTimeout: 5,
    OperationUnresolved: 5,
  };

  test.each(Object.keys(CALLER_ERRORS) as CallerErrorCode[])('%s of the client has its code', (code) => {
    const ending = endingOf(new ToolOperationError(code, 'said plainly'));
    expect(ending.exitCode).toBe(expected[code]);
    expect(ending.sentence).toContain('said plainly');
  });

  test('whatever a person can mend is a usage error with its own sentence', () => {
    const errors = [
      new ConfigurationError({ path: 'mcpServers.a.url', message: 'must be a string' }),
      new PreflightError('unknown-tool', 'a has no tool "b"'),
      new EngineError('TEMPORAL_NOT_FOUND', 'No Temporal server can be had here.'),
      new StoreError('StoreUnusable', 'The store cannot be opened.'),
    ];
    for (const error of errors) expect(endingOf(error)).toEqual({ exitCode: 2, sentence: error.message });
  });

  test('a command error brings its code along', () => {
    expect(endingOf(new CommandError('held', EXIT_CODES.notEnded))).toEqual({
      exitCode: 5,
      sentence: 'held',
    });
    expect(endingOf(new CommandError('wrong'))).toEqual({ exitCode: 2, sentence: 'wrong' });
  });

  test('help is no error, a wrong flag is one', () => {
    expect(endingOf(new CommanderError(0, 'commander.helpDisplayed', '')).exitCode).toBe(0);
    expect(endingOf(new CommanderError(1, 'commander.unknownOption', '')).exitCode).toBe(2);
  });

  test('an unexpected error never claims that the tool failed', () => {
    const ending = endingOf(new TypeError('x is not a function'));
    expect(ending.exitCode).toBe(5);
    expect(ending.sentence).toContain('x is not a function');
    expect(ending.sentence).not.toContain('\n');
  });
});
