// The example orchestrator, run by its one command.

import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

test('three long calls, one cancelled: two completed, one cancelled', () => {
  const said = execFileSync(process.execPath, ['dist/examples/orchestrator/main.js'], { encoding: 'utf8' });
  expect(said).toMatch(/^tides: completed [0-9a-f]{64}$/m);
  expect(said).toMatch(/^glaciers: completed [0-9a-f]{64}$/m);
  expect(said).toMatch(/^volcanoes: cancelled\s*$/m);
});
