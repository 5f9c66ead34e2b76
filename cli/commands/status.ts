// Owns `status`: how one operation stands. Must never work on it: a look must not send anything.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ToolOperationError, workflowIdOf } from '../../client/index.js';
import { type OperationView, viewOfEnd } from '../../client/view.js';
import { openReceiptsReader, type ReceiptsReader } from '../../receipts/open-store.js';
import { loadToolServers } from '../../worker/tool-servers.js';
import { CommandError, exitCodeOf, EXIT_CODES } from '../exit-codes.js';
import { createProgress } from '../progress.js';
import { closeRuntime, reportEnd, wayBack, writeView } from '../report.js';
import { openRuntime } from '../runtime.js';
import { layoutOf } from '../state-directory.js';
import { DEFAULT_CONFIG_FILE } from './call.js';

export interface StatusOptions {
  readonly config?: string;
  readonly stateDir: string;
  readonly json: boolean;
}

/** @returns the exit code, by the same table as `call` */
export async function runStatus(callNodeId: string, options: StatusOptions): Promise<number> {
  const directory = layoutOf(options.stateDir);
  const hasStore = existsSync(directory.storeFile);
  const isEmpty = !hasStore && !existsSync(directory.temporalDbFile) && !existsSync(directory.engineFile);
  if (isEmpty && !usesCluster(process.env)) {
    throw new CommandError(
      `no operation is named "${callNodeId}": ${directory.path} holds none; see --state-dir`,
    );
  }
  const reader = hasStore ? await openReceiptsReader(directory.storeFile) : null;
  try {
    // The receipt is the end whatever the engine remembers: after its retention only the store knows.
    return (
      (reader && (await showReceipt(callNodeId, reader, options))) ??
      (await showRun(callNodeId, reader, options))
    );
  } finally {
    await reader?.close();
  }
}

/** Then the runs are there, whatever this directory holds. */
function usesCluster(env: NodeJS.ProcessEnv): boolean {
  return ['TEMPORAL_ADDRESS', 'TEMPORAL_PROFILE', 'TEMPORAL_CONFIG_FILE'].some((name) => Boolean(env[name]));
}

async function showReceipt(
  callNodeId: string,
  reader: ReceiptsReader,
  options: StatusOptions,
): Promise<number | null> {
  const row = await reader.read(callNodeId);
  if (!row?.receipt) return null;
  const { result } = row.receipt;
  const bytes = result && (await reader.readResult(result.digest));
  const resultJson = bytes ? Buffer.from(bytes).toString('utf8') : null;
  const run = { callNodeId, workflowId: workflowIdOf(callNodeId), runId: row.ownerRunId };
  const view = viewOfEnd(row.receipt, resultJson, run);
  await reportEnd(view, view.result?.value ?? null, { isJson: options.json, reader });
  return exitCodeOf(view);
}

async function showRun(
  callNodeId: string,
  reader: ReceiptsReader | null,
  options: StatusOptions,
): Promise<number> {
  const look = await lookAtRun(callNodeId, reader, options, null);
  // What a hold is about is told only by the run itself, which needs a worker. Nothing is in flight there to disturb.
  const needsWorker = look.view.state === 'UNRESOLVED' && look.view.evidence === null;
  const configFile = needsWorker ? await usableConfig(options) : null;
  const { view } = configFile === null ? look : await lookAtRun(callNodeId, reader, options, configFile);
  writeView(view, options.json);
  if (look.isEmbedded && view.outcome === null) process.stderr.write(`${wayBack(callNodeId, true)}\n`);
  return exitCodeOf(view);
}

interface Look {
  readonly view: OperationView;
  readonly isEmbedded: boolean;
}

async function lookAtRun(
  callNodeId: string,
  reader: ReceiptsReader | null,
  options: StatusOptions,
  configFile: string | null,
): Promise<Look> {
  const progress = createProgress(process.stderr);
  // Which engine was started is no news for a look.
  const runtime = await openRuntime({ stateDir: options.stateDir, configFile, log: () => {} });
  try {
    const view = await runtime.client.getHandle(callNodeId).status();
    const { isEmbedded } = runtime;
    // It is this command that has no worker; the missing one is no fault to report.
    return { view: isEmbedded ? { ...view, waitingForWorkerSince: null } : view, isEmbedded };
  } catch (error) {
    if (!ToolOperationError.isInstance(error) || error.code !== 'OperationNotFound') throw error;
    if (!reader || (await reader.read(callNodeId)) === null) throw error;
    throw new CommandError(
      `the store knows "${callNodeId}" without an end, but the engine has no run of it: the same "dtc call" adopts it`,
      EXIT_CODES.notEnded,
      { cause: error },
    );
  } finally {
    await closeRuntime(runtime, progress);
  }
}

/** A look needs no configuration; one that was named must be right. */
async function usableConfig(options: StatusOptions): Promise<string | null> {
  const file = resolve(options.config ?? DEFAULT_CONFIG_FILE);
  if (options.config === undefined && !existsSync(file)) return null;
  await loadToolServers(file, process.env);
  return file;
}
