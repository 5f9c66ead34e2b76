/** Owns: the last line of a CI run, from the test runner's JSON report, and whether that run was good. */
import { existsSync, readFileSync } from 'node:fs';
import { readTestReport } from '../scripts/read-test-report.mjs';

const { isGood, counts, remarks } = readTestReport(process.argv[2]);
const unproved = await readUnproved(process.argv[2]);
for (const remark of [...remarks, ...unproved]) console.log(remark);
console.log(counts);
process.exit(isGood && unproved.length === 0 ? 0 : 1);

/** What docs/CASES.md and docs/PROTOCOLS.md call covered and this run did not prove. The build reads both (`dist`). */
async function readUnproved(file) {
  if (file === undefined || !existsSync(file)) return [];
  const built = new URL('../dist/test/package/named-tests.js', import.meta.url);
  if (!existsSync(built)) return ['nothing was built, so no named test could be looked for in the report'];
  const { clausesIn, namedInCases, unprovedIn } = await import(built.href);
  const read = (name) => readFileSync(new URL(`../docs/${name}`, import.meta.url), 'utf8');
  const clauses = clausesIn(read('PROTOCOLS.md')).flatMap(({ tests }) => tests);
  return unprovedIn(JSON.parse(readFileSync(file, 'utf8')), [...namedInCases(read('CASES.md')), ...clauses]);
}
