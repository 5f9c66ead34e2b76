// Owns installing a Python program's pinned packages once per content of its pin file.
// Must never leave a half-made environment where another process would find it.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The Python of an environment that holds exactly the pinned packages. */
export async function pythonWith(name: string, requirements: string): Promise<string> {
  const cache = process.env['DTC_TEST_SERVERS'] ?? join(homedir(), '.cache', 'durable-tool-calls', 'servers');
  const stamp = createHash('sha256')
    .update(await readFile(requirements))
    .digest('hex')
    .slice(0, 16);
  const place = join(cache, `${name}-${stamp}`);
  const python = join(place, 'bin', 'python');
  if (existsSync(python)) return python;
  await mkdir(cache, { recursive: true });
  const half = await mkdtemp(join(cache, `${name}-half-`));
  await run('python3', ['-m', 'venv', half]);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements];
  await run(join(half, 'bin', 'python'), pip, { maxBuffer: 16 * 1024 * 1024 });
  // Only `bin/python` is used, which finds its packages beside itself: the folder may be moved.
  await rename(half, place).catch(async (error: unknown) => {
    await rm(half, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(python)) throw error;
  });
  return python;
}
