// Owns the run of the unit and replay tests under another Node, in a copy of this checkout.
// Must never load this checkout's better-sqlite3: it is compiled for the Node that installed it.

import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readTestReport } from './read-test-report.mjs';
import { tryProgram } from './run-program.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What is not the checkout's own text or its build. */
const NOT_COPIED = ['node_modules', '.git', 'coverage', 'reports', '.stryker-tmp', '.durable-tool-calls'];

/** The only module here that is compiled for one Node; all others with native code use Node-API. */
const COMPILED = 'better-sqlite3';

/** Left out: whole operations on an engine, in minutes. On other Nodes the packed tarball makes such a call instead. */
const NOT_UNIT = [
  'test/integration/**',
  'test/examples/**',
  'test/cli/{bad-input,call,demo,effects,metrics,operations,replay,restored,two-calls}.test.ts',
  // Thousands of simulated schedules over a virtual engine: they show the same on every Node. Its fixed seeds do run.
  'test/simulator/{explorer,broken-twins}.test.ts',
];

/** Beside the fixed seeds a few others; of the core's courses a fifth of what the running Node's own tests take. */
const FEWER = { SIMULATOR_COURSES: '25', OPERATION_FIXED_COURSES: '4000', OPERATION_COURSES: '400' };

/** Two Nodes are tested at once: together as many workers as one run has (vitest.config.ts). */
const WORKERS = '--maxWorkers=1';

/** @param compiledIn a node_modules with better-sqlite3 as compiled for that Node */
export async function runTestsOnNode({ node, env }, checkout, compiledIn) {
  copyCheckout(checkout, compiledIn);
  const reportFile = join(checkout, 'report.json');
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...NOT_UNIT.flatMap((glob) => ['--exclude', glob])];
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${reportFile}`];
  const options = { cwd: checkout, env: { ...env, ...FEWER } };
  const { code, stdout, stderr } = await tryProgram(node, [...args, WORKERS, ...reporters], options);
  const report = readTestReport(reportFile);
  const isGood = code === 0 && report.isGood;
  return { ...report, isGood, output: isGood ? '' : `${stdout}${stderr}` };
}

function copyCheckout(checkout, compiledIn) {
  cpSync(root, checkout, { recursive: true, filter: (from) => !NOT_COPIED.includes(basename(from)) });
  const modules = join(checkout, 'node_modules');
  mkdirSync(modules);
  for (const name of readdirSync(join(root, 'node_modules'))) {
    const from = name === COMPILED ? compiledIn : join(root, 'node_modules');
    symlinkSync(join(from, name), join(modules, name));
  }
}
