// Owns what counts as a good test run, from vitest's JSON report.
// Must never call a run good that has no report, no test, a skipped test, or a file that could not be loaded.

import { existsSync, readFileSync } from 'node:fs';

/** @returns counts as one sentence, whether the run was good, and what a reader of the counts must also know */
export function readTestReport(file) {
  if (file === undefined || !existsSync(file)) {
    const remark = 'the tests gave no report; the run itself counts as the one failure';
    return { isGood: false, counts: '0 passed, 1 failed', remarks: [remark] };
  }
  const report = JSON.parse(readFileSync(file, 'utf8'));
  // A file that cannot be loaded has no test to count, yet its tests did not pass.
  const unloaded = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((result) => result.status === 'failed'),
  );
  const remarks = unloaded.map(({ name }) => `failed as a whole: ${name}`);
  const passed = report.numPassedTests;
  const failed = report.numFailedTests + unloaded.length;
  const skipped = report.numPendingTests + report.numTodoTests;
  if (passed === 0 && failed === 0) remarks.push('no test ran');
  if (skipped > 0) remarks.push('a skipped test is a failure in CI');
  return {
    isGood: failed === 0 && skipped === 0 && passed > 0 && report.success === true,
    counts: `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
    remarks,
  };
}
