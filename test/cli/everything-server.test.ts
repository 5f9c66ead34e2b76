/** Owns: the demo's server as a child process: where it listens, what it sees, when it ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EverythingServer, startEverythingServer } from '../../cli/demo/everything-server.js';
import { isListening } from '../../cli/engine/free-port.js';

let everything: EverythingServer;

beforeAll(async () => {
  everything = await startEverythingServer();
});
afterAll(async () => {
  await everything.stop();
});

/** Starts the server in a program of its own (compiled: run the build first), and watches it over a connection. */
async function startInAnotherProcess(afterwards: string) {
  const module = new URL('../../dist/cli/demo/everything-server.js', import.meta.url).href;
  // It goes on only when its standard input ends: the watching connection has to stand before.
  const source = `
    import { text } from 'node:stream/consumers';
    const { startEverythingServer } = await import(${JSON.stringify(module)});
    console.log((await startEverythingServer()).url);
    await text(process.stdin);
    ${afterwards}`;
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(parent, 'exit');
  const [url] = await once(parent.stdout, 'data');
  const watch = connect({ host: '127.0.0.1', port: Number(new URL(String(url)).port) });
  await once(watch, 'connect');
  const serverGone = once(watch, 'close');
  watch.on('error', () => {});
  watch.resume();
  parent.stdin.end();
  return { parent, ended, serverGone };
}

describe('the server of the demo', () => {
  it('takes another port where the wanted one is in use', async () => {
    const port = Number(new URL(everything.url).port);
    const second = await startEverythingServer({ port });
    try {
      expect(new URL(second.url).port).not.toBe(`${port}`);
    } finally {
      await second.stop();
    }
  });

  it('is gone when stop resolves', async () => {
    const second = await startEverythingServer();
    const port = Number(new URL(second.url).port);
    await second.stop();
    expect(await isListening(port)).toBe(false);
    expect(() => process.kill(second.pid, 0)).toThrow(/ESRCH/);
  });

  it('listens on 127.0.0.1 only', async () => {
    const { port } = new URL(everything.url);
    // The whole of 127.0.0.0/8 is this machine: a server on every interface would answer here too.
    await expect(fetch(`http://127.0.0.2:${port}/mcp`)).rejects.toThrow('fetch failed');
  });

  it('lets a program that forgets it end, and ends with it', async () => {
    const { ended, serverGone } = await startInAnotherProcess('');
    expect(await ended).toEqual([0, null]);
    await serverGone;
  });

  it('ends when the program that started it is killed', async () => {
    const { parent, ended, serverGone } = await startInAnotherProcess('setInterval(() => {}, 1_000);');
    parent.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
    await serverGone;
  });

  it('shows nothing of our environment to its callers', async () => {
    process.env['EVERYTHING_TEST_SECRET'] = 'do not show';
    const second = await startEverythingServer();
    const client = new Client({ name: 'everything-server test', version: '0' });
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(second.url)) as Transport);
      const shown = JSON.stringify(await client.callTool({ name: 'get-env', arguments: {} }));
      expect(shown).toContain('PORT');
      expect(shown).not.toContain('do not show');
    } finally {
      delete process.env['EVERYTHING_TEST_SECRET'];
      await client.close();
      await second.stop();
    }
  });
});
