// Owns the life of FastMCP 4 (MCP 2026-07-28 with the tasks extension) as a child process: a server nobody here wrote, with
// small tools on top. Must never count by our own side: executions come from its ledger.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../protocols/everything-server.js';
import { killChild, untilSaid } from './child-server.js';
import { pythonWith } from './python-venv.js';

const HERE = fileURLToPath(new URL('./fastmcp4/', import.meta.url));

export interface FastMcp {
  readonly url: string;
  /** One line per side effect of a body: what it did and for which key. */
  ledger(): readonly string[];
  /** SIGKILL. */
  kill(): Promise<void>;
  /** On the same port and ledger. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface FastMcpOptions {
  /** `redis://…`: tasks survive a SIGKILL there; default: in the server's memory. */
  readonly docketUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export async function startFastMcp(options: FastMcpOptions = {}): Promise<FastMcp> {
  const python = await pythonWith('fastmcp4', join(HERE, 'requirements.txt'));
  const dir = await mkdtemp(join(tmpdir(), 'dtc-fastmcp-'));
  const ledgerFile = join(dir, 'ledger.txt');
  const port = await freePort();
  const env = {
    ...process.env,
    PORT: String(port),
    LEDGER: ledgerFile,
    ...(options.docketUrl === undefined ? {} : { FASTMCP_DOCKET_URL: options.docketUrl }),
    ...options.env,
  };
  let child: ChildProcess | null = null;
  const kill = async (): Promise<void> => {
    if (child) await killChild(child);
  };
  const start = async (): Promise<void> => {
    child = spawn(python, [join(HERE, 'server.py')], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    await untilSaid(child.stderr, 'Uvicorn running on', 'FastMCP');
  };
  await start();
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    ledger: () => (existsSync(ledgerFile) ? readFileSync(ledgerFile, 'utf8').trim().split('\n') : []),
    kill,
    start,
    async stop() {
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
