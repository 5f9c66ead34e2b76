// Owns starting the reference TypeScript server as a child on a free loopback port, and ending it.
// Must never leave the child behind, nor let it listen on other interfaces than loopback.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import net from 'node:net';
import { createInterface } from 'node:readline';

// The program binds every interface by itself; this runs before it and narrows that to loopback.
const LOOPBACK_ONLY = `
import net from 'node:net';
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, Number(port), '127.0.0.1', ...rest);
};`;

export interface EverythingServer {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startEverythingServer(): Promise<EverythingServer> {
  const port = await freePort();
  const program = createRequire(import.meta.url).resolve(
    '@modelcontextprotocol/server-everything/dist/index.js',
  );
  const preload = `data:text/javascript,${encodeURIComponent(LOOPBACK_ONLY)}`;
  const child = spawn(process.execPath, ['--import', preload, program, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await untilListening(child);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function untilListening(child: ChildProcess): Promise<void> {
  if (!child.stderr) throw new Error('the child has no stderr');
  for await (const line of createInterface({ input: child.stderr })) {
    if (line.includes('listening on port')) {
      child.stderr.resume();
      return;
    }
  }
  throw new Error('server-everything ended before it listened');
}

export async function freePort(): Promise<number> {
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as net.AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
