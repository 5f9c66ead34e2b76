/**
 * Owns: the last line of a CI run, from the test runner's JSON report. Must never call a run good that has no report,
 * no test, a skipped test, or a file that could not be loaded.
 */
import { existsSync, readFileSync } from 'node:fs';

const [reportFile] = process.argv.slice(2);
if (reportFile === undefined || !existsSync(reportFile)) {
  console.log('the tests gave no report; the run itself counts as the one failure');
  console.log('0 passed, 1 failed');
  process.exit(1);
}

const report = JSON.parse(readFileSync(reportFile, 'utf8'));
// A file that cannot be loaded has no test to count, yet its tests did not pass.
const unloaded = report.testResults.filter(
  (file) => file.status === 'failed' && !file.assertionResults.some((result) => result.status === 'failed'),
);
for (const file of unloaded) console.log(`failed as a whole: ${file.name}`);
const passed = report.numPassedTests;
const failed = report.numFailedTests + unloaded.length;
const skipped = report.numPendingTests + report.numTodoTests;
if (skipped > 0) console.log('a skipped test is a failure in CI');
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exit(failed === 0 && skipped === 0 && passed > 0 && report.success === true ? 0 : 1);
