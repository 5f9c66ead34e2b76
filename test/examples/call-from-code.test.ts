// The program that the README shows, run as it stands.

import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { startEverythingServer } from '../../cli/demo/everything-server.js';

test('the example calls a tool and prints its receipt; a second run finds the same receipt', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'dtc-example-'));
  const everything = await startEverythingServer();
  const run = (): string =>
    execFileSync(process.execPath, ['dist/examples/call-from-code.js', 'example/report'], {
      encoding: 'utf8',
      env: {
        ...process.env,
        TEMPORAL_ADDRESS: inject('temporalAddress'),
        MCP_URL: everything.url,
        STORE_FILE: join(dir, 'operations.sqlite'),
      },
    });
  const first = run();
  expect(first).toMatch(/^WORKING/m);
  const receipt = /^completed, receipt of example\/report: result [0-9a-f]{64}$/m;
  expect(first).toMatch(receipt);
  expect(receipt.exec(run())?.[0]).toBe(receipt.exec(first)?.[0]);
  await everything.stop();
  await rm(dir, { recursive: true, force: true });
});
