// Owns the check of what people install: the packed tarball, in an empty folder, under a given Node.
// Must never use the project's own node_modules for the package under test.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runProgram } from './run-program.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Packs what was built: `prepack` would build again, under whatever else reads `dist/` just now. */
export async function packTarball(folder) {
  await runProgram('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: root });
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return join(folder, `${name}-${version}.tgz`);
}

/** Installs the tarball as people do, native modules and all, with npm itself under that Node. */
export async function installTarball(tarball, { env, isRunning }, consumer) {
  mkdirSync(consumer);
  const allowScripts = { 'better-sqlite3': true, '@swc/core': true, protobufjs: true };
  writeFileSync(
    join(consumer, 'package.json'),
    JSON.stringify({ private: true, type: 'module', allowScripts }),
  );
  const prebuilt = isRunning
    ? { npm_config_better_sqlite3_local_prebuilds: await prebuiltHere(consumer) }
    : {};
  const options = { cwd: consumer, env: { ...env, ...prebuilt } };
  await runProgram('npm', ['install', '--no-audit', '--no-fund', tarball], options);
}

/**
 * What this checkout's own install compiled, in a folder and under the name where the installer of better-sqlite3 looks for
 * a prebuilt file (of this very version, platform and module version): saves compiling the same a second time, 75 s.
 */
async function prebuiltHere(consumer) {
  const folder = join(consumer, 'prebuilds');
  mkdirSync(folder);
  const from = join(root, 'node_modules/better-sqlite3');
  const { version } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
  const target = `node-v${process.versions.modules}-${process.platform}-${process.arch}`;
  const file = join(folder, `better-sqlite3-v${version}-${target}.tar.gz`);
  await runProgram('tar', ['-czf', file, '-C', from, 'build/Release/better_sqlite3.node']);
  return folder;
}

const PROGRAM = `
import { ToolOperationClient, ToolOperationError } from 'durable-tool-calls/client';
import { createToolOperationWorker, parseToolServers, PREBUILT_BUNDLE } from 'durable-tool-calls/worker';
import { openSqliteStore } from 'durable-tool-calls/receipts';
import { createWorkerMetrics } from 'durable-tool-calls/metrics';
import { existsSync } from 'node:fs';
const store = await openSqliteStore('operations.sqlite');
if (await store.readReceipt('nobody')) throw new Error('a receipt out of nothing');
await store.close();
if (!existsSync(PREBUILT_BUNDLE)) throw new Error('the workflow bundle is not in the package');
if (!(await createWorkerMetrics().registry.metrics()).includes('dtc_polls_total')) throw new Error('no metrics');
parseToolServers({ mcpServers: { a: { url: 'http://127.0.0.1:1/mcp' } } }, {});
if (![ToolOperationClient, ToolOperationError, createToolOperationWorker].every((value) => typeof value === 'function')) {
  throw new Error('an entry is missing');
}
`;

/** Loads every entry and makes one real call, to a server that this process runs. */
export async function smokeTarball({ node, env }, consumer) {
  writeFileSync(join(consumer, 'entries.mjs'), PROGRAM);
  await runProgram(node, ['entries.mjs'], { cwd: consumer, env });
  const { startEverythingServer } = await import(
    pathToFileURL(join(root, 'dist/cli/demo/everything-server.js')).href
  );
  const everything = await startEverythingServer();
  try {
    const servers = { mcpServers: { everything: { url: everything.url } } };
    writeFileSync(join(consumer, 'tool-servers.json'), JSON.stringify(servers));
    const dtc = join(consumer, 'node_modules/durable-tool-calls/dist/cli/main.js');
    const args = ['call', 'everything', 'simulate-research-query', '--args', '{"topic":"tides"}', '--json'];
    const view = JSON.parse(await runProgram(node, [dtc, ...args], { cwd: consumer, env }));
    if (view.outcome !== 'completed' || !view.receipt) throw new Error(`the call ended as ${view.outcome}`);
  } finally {
    await everything.stop();
  }
}
