// Owns compiling a Java program against its pinned packages once per content of its files.
// Must never leave a half-made folder where another process would find it, nor share a folder that is being filled.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Pinned like the packages: whoever resolves them is part of what is run. */
const COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies';
/** Of each program (ms). Measured cold: 20 s to 80 s, nearly all of it Maven's downloads (48 MB). */
const COLD_START_MS = 240_000;

/** The class path of a program with one source file. */
export async function classPathOf(name: string, pom: string, source: string): Promise<string> {
  const cache = process.env['DTC_TEST_SERVERS'] ?? join(homedir(), '.cache', 'durable-tool-calls', 'servers');
  const stamp = createHash('sha256')
    .update(COPY)
    .update(await readFile(pom))
    .update(await readFile(source))
    .digest('hex')
    .slice(0, 16);
  const place = join(cache, `${name}-${stamp}`);
  if (!existsSync(place)) await compile(place, cache, { name, pom, source });
  return `${join(place, 'classes')}:${join(place, 'packages', '*')}`;
}

async function compile(
  place: string,
  cache: string,
  { name, pom, source }: { name: string; pom: string; source: string },
): Promise<void> {
  await mkdir(cache, { recursive: true });
  const half = await mkdtemp(join(cache, `${name}-half-`));
  const [packages, repository] = [join(half, 'packages'), join(half, 'repository')];
  const options = { maxBuffer: 16 * 1024 * 1024, timeout: COLD_START_MS };
  try {
    // A repository of its own: two processes that fill Maven's common one at once may break it for each other.
    const places = [`-DoutputDirectory=${packages}`, `-Dmaven.repo.local=${repository}`];
    await runProgram('mvn', ['--batch-mode', '--quiet', '--file', pom, COPY, ...places], options);
    const classPath = join(packages, '*');
    await runProgram('javac', ['-nowarn', '-cp', classPath, '-d', join(half, 'classes'), source], options);
    await rm(repository, { recursive: true, force: true });
    await rename(half, place);
  } catch (error) {
    await rm(half, { recursive: true, force: true });
    // Another process may have been faster.
    if (!existsSync(place)) throw error;
  }
}

async function runProgram(program: string, args: readonly string[], options: object): Promise<void> {
  try {
    await run(program, args, options);
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (isMissing) throw new Error(`the tests of AIP-151 need a JDK 17 and Maven: no "${program}"`);
    throw error;
  }
}
