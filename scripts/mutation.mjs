// Owns the mutation score of the pure core: runs Stryker on operation/ and fails under the threshold of its config.
// Must never count a course drawn at random: a score that changes by itself measures nothing.

import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const stryker = join(
  dirname(createRequire(import.meta.url).resolve('@stryker-mutator/core/package.json')),
  'bin/stryker.js',
);

// Few fixed courses per mutant: the tables and unit tests kill most, the courses what is left.
const env = { ...process.env, OPERATION_FIXED_COURSES: '250', OPERATION_COURSES: '0' };
const run = spawnSync(process.execPath, [stryker, 'run', ...process.argv.slice(2)], {
  cwd: root,
  env,
  stdio: 'inherit',
});

// Stryker itself exits with 1 where the score is under `thresholds.break`.
process.exit(run.status ?? 1);
