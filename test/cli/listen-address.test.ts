// Owns the proof of which addresses `--metrics` takes. Must never listen anywhere.

import { describe, expect, test } from 'vitest';
import { CommandError } from '../../cli/exit-codes.js';
import { readListenAddress } from '../../cli/metrics-endpoint.js';

describe('--metrics', () => {
  test.each([
    ['9464', '127.0.0.1', 9464],
    ['0', '127.0.0.1', 0],
    ['127.0.0.1:9464', '127.0.0.1', 9464],
    ['0.0.0.0:65535', '0.0.0.0', 65_535],
    ['localhost:1', 'localhost', 1],
    ['[::1]:9464', '::1', 9464],
  ])('%s is an address', (given, host, port) => {
    expect(readListenAddress('--metrics', given)).toEqual({ host, port });
  });

  test.each([
    '',
    ' ',
    'localhost',
    '127.0.0.1:',
    // Elsewhere this means every address of the machine: here that has to be said.
    ':9464',
    '65536',
    '-1',
    '9464.5',
    '0x10',
    '9464 ',
    '::1:9464',
    'http://127.0.0.1:9464',
    '127.0.0.1:9464/metrics',
    'a b:1',
    'host:1\nhost:2',
  ])('%j is none, in one sentence with exit code 2', (given) => {
    let thrown: unknown;
    try {
      readListenAddress('--metrics', given);
    } catch (error) {
      thrown = error;
    }
    expect(CommandError.isInstance(thrown) && thrown.exitCode).toBe(2);
    expect((thrown as Error).message).toContain(
      `--metrics ${JSON.stringify(given)} is no address: give a port`,
    );
    expect((thrown as Error).message).not.toContain('\n');
  });
});
