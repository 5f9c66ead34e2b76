// The client's entry loads no store, no native module and no worker: an orchestrator must not pay for them.

import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const CLIENT = new URL('../../dist/client/index.js', import.meta.url).href;
const WORKER = new URL('../../dist/worker/index.js', import.meta.url).href;

/** Prints every URL that the import resolves, and refuses native modules. */
function importsOf(entry: string): { loaded: string[]; natives: string[] } {
  const program = `
    import { register } from 'node:module';
    import Module from 'node:module';
    const natives = [];
    const dlopen = process.dlopen;
    process.dlopen = (module, file, ...rest) => { natives.push(file); return dlopen(module, file, ...rest); };
    const loaded = [];
    const load = Module._load;
    Module._load = function (request, ...rest) { loaded.push(request); return load.call(this, request, ...rest); };
    const { port1, port2 } = new MessageChannel();
    port1.on('message', (url) => loaded.push(url));
    port1.unref();
    const hook = 'export let port; export function initialize(data) { port = data.port; }' +
      'export async function resolve(s, c, n) { const r = await n(s, c); port.postMessage(r.url); return r; }';
    register('data:text/javascript,' + encodeURIComponent(hook), { data: { port: port2 }, transferList: [port2] });
    await import(${JSON.stringify(entry)});
    await new Promise((resolve) => setImmediate(resolve));
    console.log(JSON.stringify({ loaded, natives }));
    process.exit(0);`;
  const args = ['--input-type=module', '--no-warnings', '-e', program];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as ReturnType<
    typeof importsOf
  >;
}

test('importing the client loads no native module and nothing of store, wire or worker', () => {
  const { loaded, natives } = importsOf(CLIENT);
  expect(loaded.length).toBeGreaterThan(10);
  expect(natives).toEqual([]);
  const heavy = loaded.filter((url) =>
    /better-sqlite3|kysely|@temporalio\/(worker|core-bridge)|dist\/(receipts|worker|activities|protocols|cli)\//.test(
      url,
    ),
  );
  expect(heavy).toEqual([]);
});

test('the check sees what it is meant to see: the worker loads native modules', () => {
  const { loaded, natives } = importsOf(WORKER);
  expect(natives.length).toBeGreaterThan(0);
  expect(loaded.some((url) => url.includes('core-bridge'))).toBe(true);
});
