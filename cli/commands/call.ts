// Owns `call`: submit or come back to one tool call, and wait for its receipt (or not, with --detach).
// Must never submit under a second name what was submitted under the first, nor cancel by ending.

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { ToolOperationError, type ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import { preflight, PreflightError } from '../../worker/preflight.js';
import { type PreparedReply, readAnswer, readArguments, readDurationMs } from '../call-request.js';
import { configFileOf, readConfig } from '../config-file.js';
import { followCommand } from '../follow-command.js';
import { watchInterrupts } from '../interrupts.js';
import { type Place, withReader } from '../open-place.js';
import { createProgress, type Progress } from '../progress.js';
import type { Runtime } from '../runtime.js';
import { type EngineNote, layoutOf, readLiveEngine } from '../state-directory.js';
import { detachCall, refuseUndetachable } from './detach.js';

export interface CallOptions extends Place {
  readonly args: string;
  readonly callNode?: string;
  readonly waitBudget?: string;
  readonly timeout?: string;
  readonly detach: boolean;
  readonly answer: readonly string[];
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
  if (options.detach) refuseUndetachable(options, live);
  const progress = createProgress(process.stderr);
  const doubt = await preflightDoubt(call, live, progress);
  const begin = async (runtime: Runtime): Promise<ToolOperationHandle> => {
    if (doubt && !(await isKnown(runtime, call.callNodeId))) throw doubt;
    // Just before the first write, so that no killed command leaves a call whose name nobody knows.
    if (!call.isNamed && !options.detach) progress.note(`call node: ${call.callNodeId}`);
    return startCall(call, runtime);
  };
  if (options.detach) return detachCall({ ...call, begin });
  const interrupts = watchInterrupts();
  try {
    return await followCommand({ ...call, asks: true, begin }, progress, interrupts);
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
    prepared: options.answer.map((given) => readAnswer(given)),
    configFile: configFileOf(options.config, live),
    args: await readArguments(options.args),
    callNodeId: options.callNode ?? `cli-${randomUUID()}`,
    isNamed: options.callNode !== undefined,
    stopWaitingAt: timeoutMs === null ? null : Date.now() + timeoutMs,
    stateDir: options.stateDir,
    isJson: options.json,
  };
}

/**
 * Refuses what cannot be called before anything is written. Null where nothing speaks against the call; an error that
 * counts only if this call node turns out to be new, where the engine must be asked for that.
 */
async function preflightDoubt(
  call: Call,
  live: EngineNote | null,
  progress: Progress,
): Promise<PreflightError | null> {
  const config = await readConfig(call.configFile, progress.note);
  if (call.isNamed && (await hasRow(call))) return null;
  try {
    await preflight(config, call.server, call.tool, call.args);
    return null;
  } catch (error) {
    if (!PreflightError.isInstance(error)) throw error;
    const mayRun = call.isNamed && (live !== null || existsSync(layoutOf(call.stateDir).temporalDbFile));
    if (!mayRun) throw error;
    return error;
  }
}

function hasRow(call: Call): Promise<boolean> {
  return withReader({ stateDir: call.stateDir }, async (reader) => {
    return reader !== null && (await reader.read(call.callNodeId)) !== null;
  });
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
