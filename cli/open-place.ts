// Owns the one way in which a command gets at operations that exist: the store first, then the engine, and both are
// given back at the end. Must never make a state directory for a look at one that is not there.

import { existsSync } from 'node:fs';
import { ToolOperationError, type ToolOperationHandle, workflowIdOf } from '../client/index.js';
import { type OperationView, viewOfEnd } from '../client/view.js';
import { openReceiptsReader, openSqliteStore, type ReceiptsReader } from '../receipts/open-store.js';
import { StoreError } from '../receipts/store.js';
import { usesCluster, workingConfig } from './config-file.js';
import { CommandError, EXIT_CODES } from './exit-codes.js';
import { createProgress, type Progress } from './progress.js';
import { closeRuntime, wayBack } from './report.js';
import { openRuntime, type Runtime } from './runtime.js';
import { layoutOf, readLiveEngine } from './state-directory.js';

/** Where a command works, as its flags say. */
export interface Place {
  readonly stateDir: string;
  readonly config?: string;
}

/** Whether anything may be known there: a store, an engine's database, a running engine, or a cluster. */
export function hasTraces({ stateDir }: Place): boolean {
  const { storeFile, temporalDbFile, engineFile } = layoutOf(stateDir);
  return [storeFile, temporalDbFile, engineFile].some((file) => existsSync(file)) || usesCluster(process.env);
}

/** @throws CommandError */
export function unknownHere(callNodeId: string, place: Place): CommandError {
  return new CommandError(
    `no operation is named "${callNodeId}": ${layoutOf(place.stateDir).path} holds none; see --state-dir`,
  );
}

/** The reader is null where there is no store yet. */
export async function withReader<T>(
  place: Place,
  use: (reader: ReceiptsReader | null) => Promise<T>,
): Promise<T> {
  const { storeFile } = layoutOf(place.stateDir);
  const reader = existsSync(storeFile) ? await openReader(place, storeFile) : null;
  try {
    return await use(reader);
  } finally {
    await reader?.close();
  }
}

/** A store of an older release is brought up to date, unless an engine's workers live on it: they may be of that release. */
async function openReader(place: Place, storeFile: string): Promise<ReceiptsReader> {
  try {
    return await openReceiptsReader(storeFile);
  } catch (error) {
    const isOther = StoreError.isInstance(error) && error.code === 'StoreVersion';
    if (!isOther || (await readLiveEngine(layoutOf(place.stateDir)))) throw error;
    await (await openSqliteStore(storeFile)).close();
    return openReceiptsReader(storeFile);
  }
}

export interface EngineUse extends Place {
  /** Null: to look only; nothing is worked on. */
  readonly configFile: string | null;
  /** Told what is being started; a look leaves it out, for which that is no news. */
  readonly progress?: Progress;
}

/** The engine that runs on the state directory, or one for as long as `use` takes. */
export async function withRuntime<T>(options: EngineUse, use: (runtime: Runtime) => Promise<T>): Promise<T> {
  const { stateDir, configFile } = options;
  const log = options.progress?.note ?? (() => {});
  const progress = options.progress ?? createProgress(process.stderr);
  const runtime = await openRuntime({ stateDir, configFile, log });
  try {
    return await use(runtime);
  } finally {
    await closeRuntime(runtime, progress);
  }
}

/** The end as the store tells it, or null while there is none. The store outlives the engine's retention. */
export async function storedEnd(
  callNodeId: string,
  reader: ReceiptsReader | null,
): Promise<OperationView | null> {
  const row = await reader?.read(callNodeId);
  if (!reader || !row?.receipt) return null;
  const { result } = row.receipt;
  const bytes = result && (await reader.readResult(result.digest));
  const resultJson = bytes && bytes.byteLength > 0 ? Buffer.from(bytes).toString('utf8') : null;
  const run = { callNodeId, workflowId: workflowIdOf(callNodeId), runId: row.ownerRunId };
  return viewOfEnd(row.receipt, resultJson, run);
}

/** An operation that the store knows without an end and the engine not at all: a command that was killed, a lost engine. */
export async function explainMissingRun(
  error: unknown,
  callNodeId: string,
  reader: ReceiptsReader | null,
): Promise<unknown> {
  if (!ToolOperationError.isInstance(error) || error.code !== 'OperationNotFound') return error;
  if (!reader || (await reader.read(callNodeId)) === null) return error;
  return new CommandError(
    `the store knows "${callNodeId}" without an end, but the engine has no run of it: the same "dtc call" adopts it`,
    EXIT_CODES.notEnded,
    { cause: error },
  );
}

export interface Act {
  /** It has ended already, as the store says: no engine is needed. */
  readonly ended: (view: OperationView) => Promise<number>;
  readonly open: (handle: ToolOperationHandle, runtime: Runtime, progress: Progress) => Promise<number>;
}

/**
 * For a command that does something to one operation. Where its engine ends with it, the work pauses, and it says so.
 * @returns the exit code
 */
export async function actOn(callNodeId: string, place: Place, act: Act): Promise<number> {
  if (!hasTraces(place)) throw unknownHere(callNodeId, place);
  return withReader(place, async (reader) => {
    const end = await storedEnd(callNodeId, reader);
    if (end) return act.ended(end);
    const progress = createProgress(process.stderr);
    const live = await readLiveEngine(layoutOf(place.stateDir));
    const configFile = await workingConfig(place.config, live, progress.note);
    return withRuntime({ ...place, configFile, progress }, async (runtime) => {
      const handle = runtime.client.getHandle(callNodeId);
      try {
        const exitCode = await act.open(handle, runtime, progress);
        const view = runtime.isEmbedded ? await handle.status().catch(() => null) : null;
        if (view && view.outcome === null) progress.note(wayBack(callNodeId, true));
        return exitCode;
      } catch (error) {
        throw await explainMissingRun(error, callNodeId, reader);
      }
    });
  });
}
