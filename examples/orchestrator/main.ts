// Runs the orchestrator against real servers, all started here: `npm run example`.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { openSqliteStore } from 'durable-tool-calls/receipts';
import { createToolOperationWorker, parseToolServers } from 'durable-tool-calls/worker';
import { startEverythingServer } from '../../cli/demo/everything-server.js';
import { findTemporal, temporalCacheDir } from '../../cli/engine/temporal-binary.js';
import { startTemporalServer } from '../../cli/engine/temporal-server.js';
import type { writeReports } from './workflow.js';

const silence = (): void => {};
Runtime.install({
  logger: {
    log: silence,
    trace: silence,
    debug: silence,
    info: silence,
    warn: console.warn,
    error: console.error,
  },
});
const dir = await mkdtemp(join(tmpdir(), 'dtc-orchestrator-'));
const found = await findTemporal({
  env: { ...process.env, TEMPORAL_ADDRESS: '', TEMPORAL_PROFILE: '', TEMPORAL_CONFIG_FILE: '' },
  cacheDir: temporalCacheDir(process.env),
  download: true,
  log: console.log,
});
if (found.kind !== 'binary') throw new Error('the example starts a Temporal server of its own');
const engine = await startTemporalServer({
  binary: found.path,
  dbFile: join(dir, 'temporal.db'),
  searchAttributes: {},
});
const everything = await startEverythingServer();
const address = engine.address;

// The tool operation worker: the only one that needs store and servers.
const servers = parseToolServers(
  { mcpServers: { everything: { url: everything.url, durable: { maxPollsPerSecond: 10 } } } },
  process.env,
);
const store = await openSqliteStore(join(dir, 'operations.sqlite'));
const connection = await NativeConnection.connect({ address });
const operations = await createToolOperationWorker({ connection, servers, store });

// The orchestrator's own worker, on its own queue, with nothing of ours but workflow code.
const orchestrator = await Worker.create({
  connection: await NativeConnection.connect({ address }),
  taskQueue: 'orchestrator',
  workflowsPath: fileURLToPath(new URL('./workflow.js', import.meta.url)),
});
const running = Promise.all([operations.run(), orchestrator.run()]);

const client = new Client({ connection: await Connection.connect({ address }) });
const runName = `reports-${Date.now()}`;
const ends = await client.workflow.execute<typeof writeReports>('writeReports', {
  workflowId: runName,
  taskQueue: 'orchestrator',
  args: [runName, 'everything'],
});
for (const { topic, outcome, resultDigest } of ends)
  console.log(`${topic}: ${outcome} ${resultDigest ?? ''}`);

operations.shutdown();
orchestrator.shutdown();
await running;
await store.close();
await client.connection.close();
await everything.stop();
await engine.stop();
await rm(dir, { recursive: true, force: true });
process.exit(0);
