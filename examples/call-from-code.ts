// A worker and a caller in one program: in production they are two, and only the worker needs store and servers.
// Run: TEMPORAL_ADDRESS=… MCP_URL=… node dist/examples/call-from-code.js CALL-NODE-ID

import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { ToolOperationClient } from 'durable-tool-calls/client';
import { openSqliteStore } from 'durable-tool-calls/receipts';
import { createToolOperationWorker, parseToolServers } from 'durable-tool-calls/worker';

const address = process.env['TEMPORAL_ADDRESS'] ?? '127.0.0.1:7233';
const servers = parseToolServers(
  { mcpServers: { everything: { url: '${MCP_URL}', durable: { maxPollsPerSecond: 5 } } } },
  process.env,
);

const nativeConnection = await NativeConnection.connect({ address });
const store = await openSqliteStore(process.env['STORE_FILE'] ?? 'operations.sqlite');
const worker = await createToolOperationWorker({ connection: nativeConnection, servers, store });
const running = worker.run();

const connection = await Connection.connect({ address });
const operations = new ToolOperationClient({ client: new Client({ connection }) });
const handle = await operations.start({
  callNodeId: process.argv[2] ?? 'quarterly-report/2026-q3',
  server: 'everything',
  tool: 'simulate-research-query',
  arguments: { topic: 'tides' },
});
for await (const view of handle.watch()) console.log(view.state, view.statusMessage ?? '');

const { outcome, receipt } = await handle.result();
console.log(`${outcome}, receipt of ${receipt.callNodeId}: result ${receipt.result?.digest}`);

worker.shutdown();
await running;
await store.close();
await connection.close();
await nativeConnection.close();
