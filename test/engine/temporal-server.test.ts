/**
 * Owns: the proof that a real Temporal server can be got, started, stopped and started again on its file. Must never
 * wait by sleeping: every wait is for an answer of the server or an end of its process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { probeServer } from '../../cli/engine/server-health.js';
import { runProgram } from '../../cli/engine/run-program.js';
import { findTemporal, temporalCacheDir } from '../../cli/engine/temporal-binary.js';
import { startTemporalServer, type TemporalServer } from '../../cli/engine/temporal-server.js';

const searchAttributes = { ToolServer: 'Keyword', OperationState: 'Keyword' } as const;
let root: string;
let binary: string;
const started: TemporalServer[] = [];

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'dtc-server-'));
  // These tests are about a server of our own, so an address in the environment does not count here.
  const { TEMPORAL_ADDRESS: _a, TEMPORAL_PROFILE: _p, TEMPORAL_CONFIG_FILE: _c, ...env } = process.env;
  const found = await findTemporal({
    env,
    cacheDir: temporalCacheDir(env),
    download: true,
    log: console.log,
  });
  if (found.kind !== 'binary') throw new Error('expected a binary');
  binary = found.path;
}, 300_000);

afterAll(async () => {
  await Promise.all(started.map((server) => server.stop()));
  rmSync(root, { recursive: true, force: true });
});

async function start(more: Partial<Parameters<typeof startTemporalServer>[0]>): Promise<TemporalServer> {
  const dbFile = join(root, `${started.length}.db`);
  const server = await startTemporalServer({ binary, dbFile, searchAttributes, ...more });
  started.push(server);
  return server;
}

async function withClient<T>(server: TemporalServer, use: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address: server.address });
  try {
    return await use(new Client({ connection, namespace: server.namespace }));
  } finally {
    await connection.close();
  }
}

/** Signal 0 asks the kernel whether the process exists, without touching it. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function listenSomewhere(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

describe('a real Temporal server', () => {
  test('state survives a stop and a second start on the same file, and stop leaves no process', async () => {
    const dbFile = join(root, 'kept.db');
    const first = await start({ dbFile });
    await withClient(first, (client) =>
      client.workflow.start('nobodyRunsThis', {
        taskQueue: 'none',
        workflowId: 'kept',
        memo: { note: 'before' },
      }),
    );
    expect(isAlive(first.pid)).toBe(true);
    const stopAtMs = Date.now();
    await first.stop();
    expect(isAlive(first.pid)).toBe(false);
    // A polite end takes about 1.5 s; at 10 s patience is over and SIGKILL comes.
    expect(Date.now() - stopAtMs).toBeLessThan(9_000);
    await first.stop(); // A second stop is no error.

    const second = await start({ dbFile });
    expect(second.pid).not.toBe(first.pid);
    const description = await withClient(second, (client) => client.workflow.getHandle('kept').describe());
    expect(description.status.name).toBe('RUNNING');
    expect(description.memo).toEqual({ note: 'before' });
    await second.stop();
    expect(isAlive(second.pid)).toBe(false);
  });

  test('is handed out only with its namespace, its search attributes and its settings', async () => {
    // Notes its arguments, then becomes the real binary in the same process.
    const noting = join(root, 'noting-temporal');
    const argsFile = join(root, 'server-args');
    writeFileSync(noting, `#!/bin/sh\nprintf '%s\\n' "$@" > ${argsFile}\nexec ${binary} "$@"\n`, {
      mode: 0o755,
    });
    const dynamicConfig = { 'history.timerProcessorMaxTimeShift': '50ms' };
    const server = await start({ binary: noting, namespace: 'tools', dynamicConfig });
    expect(server.namespace).toBe('tools');
    await withClient(server, async (client) => {
      const typedSearchAttributes = { ToolServer: ['everything'] };
      await client.workflow.start('nobodyRunsThis', {
        taskQueue: 'none',
        workflowId: 'attributed',
        searchAttributes: typedSearchAttributes,
      });
      const description = await client.workflow.getHandle('attributed').describe();
      expect(description.searchAttributes).toMatchObject(typedSearchAttributes);
    });
    const port = Number(server.address.split(':')[1]);
    expect(await probeServer({ port, namespace: 'tools', searchAttributes: ['ToolServer'] })).toBeUndefined();
    expect(await probeServer({ port, namespace: 'tools', searchAttributes: ['Absent'] })).toContain('Absent');
    expect(await probeServer({ port, namespace: 'absent', searchAttributes: [] })).toMatch(
      /absent.*not found/i,
    );
    expect((await fetch(server.uiUrl)).status).toBe(200);
    const args = readFileSync(argsFile, 'utf8').split('\n');
    for (const flag of [
      'journal_mode=WAL',
      'synchronous=NORMAL',
      'matching.numTaskqueueReadPartitions=1',
      'matching.numTaskqueueWritePartitions=1',
      'history.timerProcessorMaxTimeShift="50ms"',
    ]) {
      expect(args).toContain(flag);
    }
  });

  test('taken ports are fine: another one is chosen, and the stranger keeps his', async () => {
    const [grpc, ui] = await Promise.all([listenSomewhere(), listenSomewhere()]);
    try {
      const server = await start({ port: grpc.port, uiPort: ui.port });
      expect(server.address).not.toBe(`127.0.0.1:${grpc.port}`);
      expect(server.uiUrl).not.toContain(`:${ui.port}`);
      await withClient(server, (client) => client.workflowService.getSystemInfo({}));
    } finally {
      grpc.server.close();
      ui.server.close();
    }
  });

  test('a wanted port that is free is the one that is used', async () => {
    const { server: placeholder, port } = await listenSomewhere();
    await new Promise((resolve) => placeholder.close(resolve));
    const server = await start({ port });
    expect(server.address).toBe(`127.0.0.1:${port}`);
  });

  test('a server that dies at start is one sentence with its last words', async () => {
    const dbFile = join(root, 'no-such-folder', 'x.db');
    const logFile = join(root, 'dies.log');
    await expect(start({ dbFile, logFile })).rejects.toMatchObject({
      code: 'TEMPORAL_START_FAILED',
      message: expect.stringMatching(
        /^The Temporal server ended with exit code 1; its last words: .*no-such-folder/,
      ),
    });
    expect(readFileSync(logFile, 'utf8')).not.toBe('');
  });

  test('a port lost between choice and use is no failure: another pair is tried', async () => {
    const unlucky = join(root, 'unlucky-temporal');
    const marker = join(root, 'unlucky-once');
    const lose = `if [ ! -e ${marker} ]; then : > ${marker}; echo "bind: address already in use" >&2; exit 1; fi`;
    writeFileSync(unlucky, `#!/bin/sh\n${lose}\nexec ${binary} "$@"\n`, { mode: 0o755 });
    const server = await start({ binary: unlucky });
    expect(existsSync(marker)).toBe(true);
    await withClient(server, (client) => client.workflowService.getSystemInfo({}));
  });

  test('a binary that cannot be run is the same typed error', async () => {
    await expect(start({ binary: join(root, 'missing') })).rejects.toMatchObject({
      code: 'TEMPORAL_START_FAILED',
      message: expect.stringContaining('could not be started'),
    });
  });
});

describe('a parent that does not call stop', () => {
  const built = new URL('../../dist/cli/engine/temporal-server.js', import.meta.url).href;
  const program = `
    const { startTemporalServer } = await import(process.argv[1]);
    const [binary, dbFile, then] = process.argv.slice(2);
    const server = await startTemporalServer({ binary, dbFile, searchAttributes: {} });
    console.log('pid ' + server.pid);
    if (then === 'stay') setInterval(() => {}, 1000);`;
  const args = (dbFile: string, then: string): string[] => {
    return ['--input-type=module', '-e', program, built, binary, join(root, dbFile), then];
  };

  // SIGKILL is sent before the parent's end; the kernel may need a moment to reap the server.
  const serverEnds = (pid: number): Promise<void> =>
    expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);

  test('ends by itself and takes the server with it', async () => {
    const parent = await runProgram(process.execPath, args('forgotten.db', 'end'), {
      env: process.env,
      timeoutMs: 50_000,
    });
    expect(parent).toMatchObject({ ok: true });
    await serverEnds(serverPid(parent.output));
  });

  test('dies of SIGTERM as ever and takes the server with it', async () => {
    const parent = spawn(process.execPath, args('told-to-end.db', 'stay'), {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [chunk] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = serverPid(chunk.toString());
    expect(isAlive(pid)).toBe(true);
    parent.kill('SIGTERM');
    expect(await once(parent, 'exit')).toEqual([null, 'SIGTERM']);
    await serverEnds(pid);
  });

  function serverPid(output: string): number {
    const pid = Number(/^pid (\d+)$/m.exec(output)?.[1]);
    expect(pid, output).toBeGreaterThan(0);
    return pid;
  }
});
