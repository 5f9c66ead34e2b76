// Owns the check on every supported Node: the packed tarball on each of them, and the unit and replay tests on each that is
// not the running one (whose tests are `npm test`). Needs a build in dist/.
// Usage: node scripts/node-versions.mjs [MAJOR …]   (default: all supported ones)
// Must never pass where a Node could not be had, or where no test ran on it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchNode } from './fetch-node.mjs';
import { installTarball, packTarball, smokeTarball } from './packed-smoke.mjs';
import { runTestsOnNode } from './tests-on-node.mjs';

const SUPPORTED = ['20', '22', '24'];

const MS_PER_SECOND = 1_000;
const majors = process.argv.length > 2 ? process.argv.slice(2) : SUPPORTED;
const work = mkdtempSync(join(tmpdir(), 'dtc-nodes-'));

/** Does one part of the check, tells its time; a failure is told and remembered, and the other Nodes go on. */
async function part(name, perform) {
  const began = Date.now();
  const told = (words) =>
    console.log(`${name}: ${words} (${Math.round((Date.now() - began) / MS_PER_SECOND)} s)`);
  try {
    const said = await perform();
    told(said.words);
    return said;
  } catch (error) {
    process.exitCode = 1;
    told(`FAILED: ${error.message}`);
    return undefined;
  }
}

function prepare(tarball, major) {
  return part(`Node ${major}`, async () => {
    const runtime = await fetchNode(major, join(work, `node-${major}`));
    const consumer = join(work, `consumer-${major}`);
    await installTarball(tarball, runtime, consumer);
    return { words: `${runtime.version}, packed tarball installed`, runtime, consumer };
  });
}

async function check({ runtime, consumer }) {
  const name = `Node ${runtime.version}`;
  await part(name, async () => {
    await smokeTarball(runtime, consumer);
    return { words: 'packed tarball: a real call completed' };
  });
  if (runtime.isRunning) return;
  await part(name, async () => {
    const checkout = join(work, `checkout-${runtime.version}`);
    const { isGood, counts, remarks, output } = await runTestsOnNode(
      runtime,
      checkout,
      join(consumer, 'node_modules'),
    );
    const words = `unit and replay tests: ${[counts, ...remarks].join('; ')}`;
    if (!isGood) throw new Error(`${words}\n${output}`);
    return { words };
  });
}

try {
  const tarball = await packTarball(work);
  // At once: each compiles better-sqlite3 for about 75 s on one core, whatever JOBS says (one C file, then one C++ file).
  const prepared = await Promise.all(majors.map((major) => prepare(tarball, major)));
  // Side by side too, with one worker each: a run's start, its end and its longest file leave the other core idle.
  await Promise.all(prepared.map((one) => one && check(one)));
} finally {
  rmSync(work, { recursive: true, force: true });
}
