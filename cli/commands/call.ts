// Owns `call`: submit or come back to one tool call, and wait for its receipt.
// Must never submit under a second name what was submitted under the first, nor cancel by ending.

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { ToolOperationError, type ToolOperationHandle } from '../../client/index.js';
import type { OperationView } from '../../client/view.js';
import type { JsonObject } from '../../operation/json.js';
import { openReceiptsReader } from '../../receipts/open-store.js';
import { preflight, PreflightError } from '../../worker/preflight.js';
import { loadToolServers } from '../../worker/tool-servers.js';
import { type PreparedReply, readAnswer, readArguments, readDurationMs } from '../call-request.js';
import { CommandError, EXIT_CODES, exitCodeOf } from '../exit-codes.js';
import { followOperation, type Followed } from '../follow-operation.js';
import { type Interrupts, watchInterrupts } from '../interrupts.js';
import { createProgress, type Progress } from '../progress.js';
import { closeRuntime, reportEnd, reportOpen } from '../report.js';
import { openRuntime, type Runtime } from '../runtime.js';
import { type EngineNote, layoutOf, readLiveEngine, type StateDirectory } from '../state-directory.js';

export const DEFAULT_CONFIG_FILE = 'tool-servers.json';

export interface CallOptions {
  readonly args: string;
  readonly callNode?: string;
  readonly waitBudget?: string;
  readonly timeout?: string;
  readonly answer: readonly string[];
  readonly config?: string;
  readonly stateDir: string;
  readonly json: boolean;
}

interface Call {
  readonly server: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly callNodeId: string;
  readonly isNamed: boolean;
  readonly waitBudgetMs: number | null;
  readonly stopWaitingAt: number | null;
  readonly prepared: PreparedReply[];
  readonly configFile: string;
  readonly stateDir: string;
  readonly isJson: boolean;
}

/** @returns the exit code. @throws CommandError and the typed errors that main turns into sentences */
export async function runCall(server: string, tool: string, options: CallOptions): Promise<number> {
  const live = await readLiveEngine(layoutOf(options.stateDir));
  const call = await readCall(server, tool, options, live);
  const progress = createProgress(process.stderr);
  const doubt = await preflightDoubt(call, live);
  const interrupts = watchInterrupts();
  try {
    if (!call.isNamed) progress.note(`call node: ${call.callNodeId}`);
    for (;;) {
      const exitCode = await callOnce(call, doubt, progress, interrupts);
      if (exitCode !== null) return exitCode;
      progress.note('the command whose engine this one used has ended; going on with an engine of its own');
    }
  } finally {
    interrupts.release();
  }
}

async function readCall(
  server: string,
  tool: string,
  options: CallOptions,
  live: EngineNote | null,
): Promise<Call> {
  const timeoutMs = options.timeout === undefined ? null : readDurationMs('--timeout', options.timeout);
  const { waitBudget } = options;
  return {
    server,
    tool,
    waitBudgetMs: waitBudget === undefined ? null : readDurationMs('--wait-budget', waitBudget),
    prepared: options.answer.map(readAnswer),
    configFile: configFileOf(options.config, live),
    args: await readArguments(options.args),
    callNodeId: options.callNode ?? `cli-${randomUUID()}`,
    isNamed: options.callNode !== undefined,
    stopWaitingAt: timeoutMs === null ? null : Date.now() + timeoutMs,
    stateDir: options.stateDir,
    isJson: options.json,
  };
}

/** The worker that will do the call counts, so its configuration is the one to check against. */
function configFileOf(given: string | undefined, live: EngineNote | null): string {
  if (!live || live.configFile === null) return resolve(given ?? DEFAULT_CONFIG_FILE);
  if (given !== undefined && resolve(given) !== live.configFile) {
    throw new CommandError(
      `the engine of this state directory (process ${live.pid}) works with ${live.configFile}, not with ` +
        `${resolve(given)}: leave out --config, or use another --state-dir`,
    );
  }
  return live.configFile;
}

/**
 * Refuses what cannot be called before anything is written. Null where nothing speaks against the call; an error that
 * counts only if this call node turns out to be new, where the engine must be asked for that.
 */
async function preflightDoubt(call: Call, live: EngineNote | null): Promise<PreflightError | null> {
  const config = await loadToolServers(call.configFile, process.env);
  const directory = layoutOf(call.stateDir);
  if (call.isNamed && (await hasRow(directory, call.callNodeId))) return null;
  try {
    await preflight(config, call.server, call.tool, call.args);
    return null;
  } catch (error) {
    if (!PreflightError.isInstance(error)) throw error;
    const mayRun = call.isNamed && (live !== null || existsSync(directory.temporalDbFile));
    if (!mayRun) throw error;
    return error;
  }
}

async function hasRow(directory: StateDirectory, callNodeId: string): Promise<boolean> {
  if (!existsSync(directory.storeFile)) return false;
  const reader = await openReceiptsReader(directory.storeFile);
  try {
    return (await reader.read(callNodeId)) !== null;
  } finally {
    await reader.close();
  }
}

/** Null where the engine went away with another command: call again. */
async function callOnce(
  call: Call,
  doubt: PreflightError | null,
  progress: Progress,
  interrupts: Interrupts,
): Promise<number | null> {
  const { stateDir, configFile } = call;
  const runtime = await openRuntime({ stateDir, configFile, log: progress.note });
  let isOpen = false;
  try {
    if (doubt && !(await isKnown(runtime, call.callNodeId))) throw doubt;
    if (interrupts.signal.aborted) {
      throw new CommandError('interrupted; this command has started nothing', EXIT_CODES.interrupted);
    }
    const handle = await startCall(call, runtime);
    isOpen = true;
    const { prepared, stopWaitingAt } = call;
    const followed = await followOperation({
      handle,
      runtime,
      progress,
      prepared,
      interrupts,
      stopWaitingAt,
    });
    isOpen = followed.kind !== 'ended';
    return await report(followed, handle, call, runtime);
  } catch (error) {
    // Once started, an error of ours says nothing of the operation's end.
    if (!isOpen || ToolOperationError.isInstance(error)) throw error;
    const why = error instanceof Error ? error.message : 'unknown reason';
    throw new CommandError(`lost sight of "${call.callNodeId}" (${why}); it goes on`, EXIT_CODES.notEnded, {
      cause: error,
    });
  } finally {
    await closeRuntime(runtime, progress);
  }
}

async function isKnown(runtime: Runtime, callNodeId: string): Promise<boolean> {
  try {
    await runtime.client.getHandle(callNodeId).status();
    return true;
  } catch (error) {
    if (ToolOperationError.isInstance(error) && error.code === 'OperationNotFound') return false;
    throw error;
  }
}

function startCall(call: Call, runtime: Runtime): Promise<ToolOperationHandle> {
  const { callNodeId, server, tool, args, waitBudgetMs } = call;
  return runtime.client.start({
    callNodeId,
    server,
    tool,
    arguments: args,
    ...(waitBudgetMs === null ? {} : { waitBudgetMs }),
  });
}

async function report(
  followed: Followed,
  handle: ToolOperationHandle,
  call: Call,
  runtime: Runtime,
): Promise<number | null> {
  switch (followed.kind) {
    case 'engineGone':
      return null;
    case 'ended': {
      const view = await handle.status();
      await reportEnd(view, followed.result.toolResult, { isJson: call.isJson, reader: runtime.reader });
      if (call.prepared.length > 0)
        process.stderr.write(`${call.prepared.length} --answer not used: no question was open\n`);
      return exitCodeOf(view);
    }
    case 'held':
      reportOpen(followed.view ?? (await lookOnce(handle)), followed.sentence, call, runtime);
      return EXIT_CODES.notEnded;
    case 'timedOut':
      reportOpen(
        await lookOnce(handle),
        `stopped waiting for "${call.callNodeId}" after --timeout`,
        call,
        runtime,
      );
      return EXIT_CODES.notEnded;
    case 'interrupted':
      reportOpen(await lookOnce(handle), `interrupted; nothing was cancelled`, call, runtime);
      return EXIT_CODES.interrupted;
  }
}

/** The operation as it stands, or null where even that cannot be had now. */
async function lookOnce(handle: ToolOperationHandle): Promise<OperationView | null> {
  return handle.status().catch(() => null);
}
