// Owns the one Temporal server of a test run: vitest starts it before and stops it after all files.
// Must never serve two runs: its database is new each time.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { findTemporal, temporalCacheDir } from '../../cli/engine/temporal-binary.js';
import { startTemporalServer } from '../../cli/engine/temporal-server.js';
import { SEARCH_ATTRIBUTES } from '../../operation/names.js';

declare module 'vitest' {
  interface ProvidedContext {
    temporalAddress: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const found = await findTemporal({
    // The tests need a server of their own: cluster addresses of the person running them do not count.
    env: { ...process.env, TEMPORAL_ADDRESS: '', TEMPORAL_PROFILE: '', TEMPORAL_CONFIG_FILE: '' },
    cacheDir: temporalCacheDir(process.env),
    download: true,
    log: (line) => console.log(line),
  });
  if (found.kind !== 'binary') throw new Error('the tests run on a server of their own');
  const dir = await mkdtemp(join(tmpdir(), 'dtc-test-engine-'));
  const server = await startTemporalServer({
    binary: found.path,
    dbFile: join(dir, 'temporal.db'),
    searchAttributes: Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, 'Keyword'])),
    // Polls come no sooner than about 1 s otherwise: the floor is the engine's, not ours.
    dynamicConfig: { 'history.timerProcessorMaxTimeShift': '50ms' },
  });
  project.provide('temporalAddress', server.address);
  return async () => {
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  };
}
