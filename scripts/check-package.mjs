// Owns the check of the packed tarball's metadata: publint, and whether its types are what its code is.
// Must never look at the folder instead of the tarball: what is not packed is not there for those who install it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packTarball } from './packed-smoke.mjs';
import { tryProgram } from './run-program.mjs';

const binaries = join(dirname(dirname(fileURLToPath(import.meta.url))), 'node_modules/.bin');
const work = mkdtempSync(join(tmpdir(), 'dtc-package-'));
try {
  const tarball = await packTarball(work);
  // ESM only: the two resolutions of CommonJS are not ours to serve.
  const checks = [
    ['publint', 'run', tarball, '--strict'],
    ['attw', tarball, '--profile', 'esm-only', '--no-definitely-typed'],
  ];
  for (const [name, ...args] of checks) {
    const { code } = await tryProgram(join(binaries, name), args, {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    if (code === 0) continue;
    console.log(`${name} ended with ${code}`);
    process.exitCode = 1;
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
