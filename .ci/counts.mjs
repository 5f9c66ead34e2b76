/** Owns: the last line of a CI run, from the test runner's JSON report, and whether that run was good. */
import { readTestReport } from '../scripts/read-test-report.mjs';

const { isGood, counts, remarks } = readTestReport(process.argv[2]);
for (const remark of remarks) console.log(remark);
console.log(counts);
process.exit(isGood ? 0 : 1);
