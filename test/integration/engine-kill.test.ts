// The engine itself is killed and started again on its database, in the middle of calls: nothing is sent twice.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findTemporal, temporalCacheDir } from '../../cli/engine/temporal-binary.js';
import { startTemporalServer } from '../../cli/engine/temporal-server.js';
import { SEARCH_ATTRIBUTES } from '../../operation/names.js';
import { openFaultLab } from './fault-lab.js';
import { until } from './lab.js';

test('an engine killed with SIGKILL and started again: running calls and a waiting question end once each', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'dtc-engine-kill-'));
  const found = await findTemporal({
    env: { ...process.env, TEMPORAL_ADDRESS: '', TEMPORAL_PROFILE: '', TEMPORAL_CONFIG_FILE: '' },
    cacheDir: temporalCacheDir(process.env),
    download: true,
    log: () => {},
  });
  if (found.kind !== 'binary') throw new Error('the test starts a Temporal server of its own');
  const start = (port?: number) =>
    startTemporalServer({
      binary: found.path,
      dbFile: join(dir, 'temporal.db'),
      searchAttributes: Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, 'Keyword'])),
      ...(port === undefined ? {} : { port }),
    });
  const first = await start();
  const lab = await openFaultLab({}, first.address);
  await lab.startWorker();
  const calls = ['engine a', 'engine b', 'engine c'];
  const handles = await Promise.all(calls.map((label) => lab.start({ label, durationMs: 4_000 })));
  const asked = await lab.start({ label: 'engine asked', plan: { questions: 1 } });
  for (const handle of handles) await until(handle, (view) => view.polls >= 1);
  await until(asked, (view) => view.pendingInput.length > 0);

  process.kill(first.pid, 'SIGKILL');
  await first.stop();
  const second = await start(Number(first.address.split(':').at(-1)));
  expect(second.address).toBe(first.address);

  const verdict = await asked.answer({ content: { choice: 'left' } });
  expect(['applied', 'duplicate']).toContain(verdict.kind);
  for (const handle of [...handles, asked]) expect((await handle.result()).outcome).toBe('completed');
  for (const label of [...calls, 'engine asked']) {
    expect(lab.faults.executions(label)).toBe(1);
    expect(lab.faults.entries('callReceived', label)).toHaveLength(1);
    expect(lab.rows(label)).toMatchObject({ receipts: 1, ready: 1 });
  }
  await lab.close();
  await second.stop();
  await rm(dir, { recursive: true, force: true });
}, 120_000);
