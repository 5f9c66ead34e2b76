// Owns the check of what people install: the packed tarball, in an empty folder, under a given Node.
// Usage: node scripts/packed-smoke.mjs [NODE-MAJOR …]   (default: the running Node; others come from the npm registry)
// Must never use the project's own node_modules for the package under test.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const work = mkdtempSync(join(tmpdir(), 'dtc-packed-'));
const majors = process.argv.slice(2);

function run(file, args, options = {}) {
  return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...options });
}

/** The npm packages `node-<platform>-<arch>` hold the official binary and its headers. */
export function nodeOf(major, folder) {
  if (major === undefined) return { node: process.execPath, nodeDir: dirname(dirname(process.execPath)) };
  const name = `node-${process.platform}-${process.arch}`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${major}`], { cwd: folder });
  const nodeDir = join(folder, 'node_modules', name);
  return { node: join(nodeDir, 'bin', 'node'), nodeDir };
}

function install(tarball, { node, nodeDir }, consumer) {
  mkdirSync(consumer);
  writeFileSync(
    join(consumer, 'package.json'),
    JSON.stringify({
      private: true,
      type: 'module',
      allowScripts: { 'better-sqlite3': true, '@swc/core': true, protobufjs: true },
    }),
  );
  const env = { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` };
  // The compiler of native modules needs headers; these lie beside the binary.
  if (existsSync(join(nodeDir, 'include/node/node.h'))) env.npm_config_nodedir = nodeDir;
  run('npm', ['install', '--no-audit', '--no-fund', tarball], { cwd: consumer, env });
  return env;
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
console.log('entries: ok');
`;

async function smoke(tarball, major) {
  const label = major ?? process.versions.node;
  const runtime = nodeOf(major, join(work, `node-${label}`));
  const consumer = join(work, `consumer-${label}`);
  const env = install(tarball, runtime, consumer);
  writeFileSync(join(consumer, 'entries.mjs'), PROGRAM);
  run(runtime.node, ['entries.mjs'], { cwd: consumer, env });
  const { startEverythingServer } = await import(
    pathToFileURL(join(root, 'dist/cli/demo/everything-server.js')).href
  );
  const everything = await startEverythingServer();
  try {
    writeFileSync(
      join(consumer, 'tool-servers.json'),
      JSON.stringify({ mcpServers: { everything: { url: everything.url } } }),
    );
    const dtc = join(consumer, 'node_modules/durable-tool-calls/dist/cli/main.js');
    const args = ['call', 'everything', 'simulate-research-query', '--args', '{"topic":"tides"}', '--json'];
    const said = await runAsync(runtime.node, [dtc, ...args], { cwd: consumer, env });
    const view = JSON.parse(said);
    if (view.outcome !== 'completed' || !view.receipt) throw new Error(`the call ended as ${view.outcome}`);
  } finally {
    await everything.stop();
  }
  console.log(`packed tarball on Node ${run(runtime.node, ['--version']).trim()}: a real call completed`);
}

/** Not the synchronous way: this process serves the tool server's lifetime. */
async function runAsync(file, args, options) {
  const { execFile } = await import('node:child_process');
  return new Promise((resolve, reject) => {
    const child = execFile(file, args, { encoding: 'utf8', ...options }, (error, stdout, stderr) =>
      error ? reject(new Error(`${error.message}\n${stderr}`)) : resolve(stdout),
    );
    child.stdin?.end();
  });
}

try {
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', work], { cwd: root });
  const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const tarball = join(work, `${name}-${version}.tgz`);
  for (const major of majors.length === 0 ? [undefined] : majors) await smoke(tarball, major);
} finally {
  rmSync(work, { recursive: true, force: true });
}
