/** Owns which tests a mutant meets: those of the pure core. Never those that start a server. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/operation/**/*.test.ts'],
    testTimeout: 20_000,
    retry: 0,
  },
});
