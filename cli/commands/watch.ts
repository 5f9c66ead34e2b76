// Owns `watch`: follow one operation until it ends or is held. Must never answer its questions, nor cancel it.

import type { ToolOperationHandle } from '../../client/index.js';
import type { OperationView } from '../../client/view.js';
import { workingConfig } from '../config-file.js';
import { exitCodeOf } from '../exit-codes.js';
import { followCommand } from '../follow-command.js';
import { watchInterrupts } from '../interrupts.js';
import {
  explainMissingRun,
  hasTraces,
  type Place,
  storedEnd,
  unknownHere,
  withReader,
} from '../open-place.js';
import { createProgress, type Progress } from '../progress.js';
import { type JsonForm, reportEnd, writeJson } from '../report.js';
import type { Runtime } from '../runtime.js';
import { layoutOf, readLiveEngine } from '../state-directory.js';
import { readDurationMs } from '../call-request.js';

export interface WatchOptions extends Place {
  readonly timeout?: string;
  readonly json: boolean;
}

/** @returns the exit code, by the same table as `call` */
export async function runWatch(callNodeId: string, options: WatchOptions): Promise<number> {
  if (!hasTraces(options)) throw unknownHere(callNodeId, options);
  const isJson: JsonForm = options.json ? 'line' : false;
  const timeoutMs = options.timeout === undefined ? null : readDurationMs('--timeout', options.timeout);
  const stored = await withReader(options, async (reader) => {
    const end = await storedEnd(callNodeId, reader);
    if (!end) return null;
    await reportEnd(end, end.result?.value ?? null, { isJson, reader });
    return exitCodeOf(end);
  });
  if (stored !== null) return stored;
  const progress = options.json ? jsonProgress() : createProgress(process.stderr);
  const live = await readLiveEngine(layoutOf(options.stateDir));
  const configFile = await workingConfig(options.config, live, progress.note);
  const interrupts = watchInterrupts();
  try {
    return await followCommand(
      {
        callNodeId,
        stateDir: options.stateDir,
        configFile,
        prepared: [],
        asks: false,
        isJson,
        stopWaitingAt: timeoutMs === null ? null : Date.now() + timeoutMs,
        begin: (runtime) => findRun(callNodeId, options, runtime),
      },
      progress,
      interrupts,
    );
  } finally {
    interrupts.release();
  }
}

async function findRun(callNodeId: string, place: Place, runtime: Runtime): Promise<ToolOperationHandle> {
  const handle = runtime.client.getHandle(callNodeId);
  try {
    await handle.status();
    return handle;
  } catch (error) {
    throw await withReader(place, (reader) => explainMissingRun(error, callNodeId, reader));
  }
}

/** One line of JSON per change on standard output, until the end, which the report writes; notes as ever. */
function jsonProgress(): Progress {
  const plain = createProgress(process.stderr);
  return {
    ...plain,
    show: (view: OperationView) => {
      if (view.receipt === null) writeJson(view, 'line');
    },
  };
}
