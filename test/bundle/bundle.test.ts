// What the workflow bundle may hold: nothing that reads a clock, a file, a schema library or the wire.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { BUNDLE } from '../replay/replay.js';

const code = readFileSync(BUNDLE, 'utf8');
const modules = [...code.matchAll(/^\s*!\*\*\* (\.\/\S+) \*\*\*!$/gm)].map((match) => match[1] ?? '');

test('the bundle names the modules it is made of', () => {
  console.log(`workflow bundle: ${Math.round(code.length / 1024)} kB, ${modules.length} modules`);
  expect(modules).toContain('./dist/workflows/tool-operation.js');
  expect(modules).toContain('./dist/operation/apply.js');
});

test('nothing of ours but workflows and operation is inside', () => {
  const ours = modules.filter((module) => module.startsWith('./dist/'));
  const strangers = ours.filter((module) => !/^\.\/dist\/(workflows|operation)\//.test(module));
  expect(strangers).toEqual([]);
});

test('no schema library, wire code, validator or native module is inside', () => {
  const packages = new Set(
    modules.flatMap((module) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module)?.[1] ?? []),
  );
  const allowed = ['@temporalio/common', '@temporalio/workflow', 'long', 'ms', 'nexus-rpc'];
  expect([...packages].filter((name) => !allowed.includes(name))).toEqual([]);
  expect(code).not.toMatch(/require\("node:/);
});
