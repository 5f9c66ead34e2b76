// Owns `cancel`: ask for the cancellation of one operation, and say what came of it so far.
// Must never call it cancelled: only the receipt does.

import { setTimeout as sleep } from 'node:timers/promises';
import type { CancelResult, ToolOperationHandle } from '../../client/index.js';
import type { OperationView } from '../../client/view.js';
import { EXIT_CODES } from '../exit-codes.js';
import { actOn, type Place } from '../open-place.js';
import { writeJson, writeView } from '../report.js';

export interface CancelOptions extends Place {
  readonly reason: string;
  readonly json: boolean;
}

/** @returns 0 requested, now or before, 1 too late (the end is shown). @throws the client's errors */
export function runCancel(callNodeId: string, options: CancelOptions): Promise<number> {
  return actOn(callNodeId, options, {
    ended: (view) => Promise.resolve(tell({ kind: 'tooLate', outcome: view.outcome }, view, options)),
    open: async (handle, runtime) => {
      // Looked at first: only a run that is there can be asked, and its end may not be in this store.
      const before = await handle.status();
      const result: CancelResult =
        before.outcome === null
          ? await handle.cancel(options.reason, 'command line')
          : { kind: 'tooLate', outcome: before.outcome };
      if (result.kind === 'tooLate') return tell(result, await handle.status(), options);
      // This command's own worker has to carry it to the server before it ends with the command.
      const view = runtime.isEmbedded ? await untilSettled(handle) : await handle.status();
      return tell(result, view, options);
    },
  });
}

const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 250;

async function untilSettled(handle: ToolOperationHandle): Promise<OperationView> {
  const untilAt = Date.now() + PATIENCE_MS;
  for (;;) {
    const view = await handle.status();
    if (view.receipt || view.state === 'UNRESOLVED' || Date.now() > untilAt) return view;
    await sleep(LOOK_AGAIN_MS);
  }
}

function tell(result: CancelResult, view: OperationView, options: CancelOptions): number {
  if (options.json) {
    const { callNodeId, state, outcome } = view;
    writeJson({ schema: 'cancelVerdict.v1', callNodeId, verdict: result.kind, state, outcome });
  } else {
    process.stdout.write(`${sentenceOf(result)}\n`);
    writeView(view, false);
  }
  return result.kind === 'tooLate' ? EXIT_CODES.overtaken : EXIT_CODES.completed;
}

function sentenceOf(result: CancelResult): string {
  switch (result.kind) {
    case 'requested':
      return 'cancellation requested';
    case 'alreadyRequested':
      return 'cancellation was requested before, and is under way: nothing more is sent';
    case 'tooLate':
      return `too late to cancel: its end ${result.outcome === null ? 'is on its way' : `is ${result.outcome}`}`;
  }
}
