/**
 * Owns: a machine made of temporary folders and fake programs, on which the search for an engine binary can be
 * tested. Must never reach the network, nor the real cache.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { EngineError, type EngineErrorCode } from '../../cli/engine/engine-error.js';
import type { FindTemporalOptions } from '../../cli/engine/temporal-binary.js';
import { TEMPORAL_VERSION } from '../../cli/engine/temporal-wheel.js';

export const CACHED_NAME = `temporal-${TEMPORAL_VERSION}-${process.platform}-${process.arch}`;

export interface FakeMachine {
  readonly root: string;
  readonly cacheDir: string;
  /** The only folder on PATH that has programs, unless a test says otherwise. */
  readonly binDir: string;
  /** What was logged. */
  readonly lines: string[];
  readonly options: (env: NodeJS.ProcessEnv, more?: Partial<FindTemporalOptions>) => FindTemporalOptions;
}

/** Call once per test file; the object is made anew before each test. */
export function useFakeMachine(): FakeMachine {
  const machine = { root: '', cacheDir: '', binDir: '', lines: [] as string[], options };
  /** The official download answers 503, so the wheel is next. */
  let closedHost: Server;

  beforeAll(async () => {
    closedHost = await listen((_request, response) => response.writeHead(503).end());
  });
  afterAll(() => closedHost.close());
  beforeEach(() => {
    machine.root = mkdtempSync(join(tmpdir(), 'dtc-binary-'));
    machine.cacheDir = join(machine.root, 'cache');
    machine.binDir = join(machine.root, 'bin');
    machine.lines = [];
    mkdirSync(machine.binDir);
    return () => rmSync(machine.root, { recursive: true, force: true });
  });

  function options(env: NodeJS.ProcessEnv, more: Partial<FindTemporalOptions> = {}): FindTemporalOptions {
    return {
      env: { PATH: `${machine.binDir}:/nonexistent`, HOME: machine.root, ...env },
      cacheDir: machine.cacheDir,
      download: true,
      log: (line) => machine.lines.push(line),
      officialUrl: urlOf(closedHost),
      ...more,
    };
  }
  return machine;
}

export async function listen(handler: RequestListener): Promise<Server> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

export function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function script(path: string, body: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

export function fakeTemporal(path: string, version = TEMPORAL_VERSION): string {
  return script(path, `echo "temporal version ${version} (Server 1.32.0, UI 2.54.1)"`);
}

export async function refusal(
  promise: Promise<unknown>,
): Promise<{ code: EngineErrorCode; message: string }> {
  const error = await promise.then(
    () => expect.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  if (!EngineError.isInstance(error)) throw error;
  return { code: error.code, message: error.message };
}
