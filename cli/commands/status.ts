// Owns `status`: how one operation stands. Must never work on it: a look must not send anything.

import type { OperationView } from '../../client/view.js';
import type { ReceiptsReader } from '../../receipts/open-store.js';
import { configFileIfAny } from '../config-file.js';
import { exitCodeOf } from '../exit-codes.js';
import {
  explainMissingRun,
  hasTraces,
  type Place,
  storedEnd,
  unknownHere,
  withReader,
  withRuntime,
} from '../open-place.js';
import { createProgress } from '../progress.js';
import { reportEnd, wayBack, writeView } from '../report.js';

export interface StatusOptions extends Place {
  readonly json: boolean;
}

/** @returns the exit code, by the same table as `call` */
export async function runStatus(callNodeId: string, options: StatusOptions): Promise<number> {
  if (!hasTraces(options)) throw unknownHere(callNodeId, options);
  return withReader(options, async (reader) => {
    // The receipt is the end whatever the engine remembers: after its retention only the store knows.
    const end = await storedEnd(callNodeId, reader);
    if (!end) return showRun(callNodeId, reader, options);
    await reportEnd(end, end.result?.value ?? null, { isJson: options.json, reader });
    return exitCodeOf(end);
  });
}

async function showRun(
  callNodeId: string,
  reader: ReceiptsReader | null,
  options: StatusOptions,
): Promise<number> {
  const look = await lookAtRun(callNodeId, reader, options, null);
  // What a hold is about is told only by the run itself, which needs a worker. Nothing is in flight there to disturb.
  const needsWorker = look.view.state === 'UNRESOLVED' && look.view.evidence === null;
  const { note } = createProgress(process.stderr);
  const configFile = needsWorker ? await configFileIfAny(options.config, note) : null;
  const { view } = configFile === null ? look : await lookAtRun(callNodeId, reader, options, configFile);
  writeView(view, options.json);
  if (look.isEmbedded && view.outcome === null) process.stderr.write(`${wayBack(callNodeId, true)}\n`);
  return exitCodeOf(view);
}

interface Look {
  readonly view: OperationView;
  readonly isEmbedded: boolean;
}

function lookAtRun(
  callNodeId: string,
  reader: ReceiptsReader | null,
  options: StatusOptions,
  configFile: string | null,
): Promise<Look> {
  return withRuntime({ ...options, configFile }, async ({ client, isEmbedded }) => {
    try {
      const view = await client.getHandle(callNodeId).status();
      // It is this command that has no worker; the missing one is no fault to report.
      return { view: isEmbedded ? { ...view, waitingForWorkerSince: null } : view, isEmbedded };
    } catch (error) {
      throw await explainMissingRun(error, callNodeId, reader);
    }
  });
}
