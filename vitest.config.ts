/** Owns: how tests are run. Never retries: a test that passes on the second try has failed. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Threads crash with the native bridge of @temporalio/worker; each file gets its own process.
    pool: 'forks',
    globalSetup: ['test/integration/temporal-for-tests.ts'],
    // Every integration file starts a Temporal server and a worker of its own; more than two of them at once
    // starve each other on a small machine and time out for no reason of ours.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    retry: 0,
    passWithNoTests: false,
  },
});
