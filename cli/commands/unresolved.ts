// Owns `unresolved`: what is held, on which evidence, and what a person can do about it.
// Must never decide anything: `resolve` does, with a name.

import type { ToolOperationHandle } from '../../client/index.js';
import type { OperationView } from '../../client/view.js';
import type { RowSnapshot } from '../../operation/row.js';
import { workingConfig } from '../config-file.js';
import { EXIT_CODES } from '../exit-codes.js';
import { endingSteps, resolveCommand, RESTORE } from '../next-steps.js';
import { hasTraces, type Place, withReader, withRuntime } from '../open-place.js';
import { oneLine } from '../printable.js';
import { time } from '../render-view.js';
import { writeJson, writeLines } from '../report.js';
import { createProgress } from '../progress.js';
import { layoutOf, readLiveEngine } from '../state-directory.js';
import { readList } from './list.js';

export interface UnresolvedOptions extends Place {
  readonly json: boolean;
}

interface HeldOperation {
  readonly callNodeId: string;
  readonly server: string | null;
  readonly tool: string | null;
  readonly reason: string | null;
  readonly evidence: string | null;
  readonly heldSince: number | null;
  readonly decidedByOperator: boolean;
  readonly remoteId: string | null;
  readonly submissionKey: string | null;
  readonly next: readonly string[];
}

/** @returns 0 where nothing is held, 5 where something is */
export async function runUnresolved(options: UnresolvedOptions): Promise<number> {
  const held = await readHeld(options);
  if (options.json) writeJson({ schema: 'heldOperations.v1', operations: held });
  else if (held.length === 0) process.stderr.write('nothing is held\n');
  else writeLines(held.flatMap((operation) => linesOf(operation)));
  return held.length === 0 ? EXIT_CODES.completed : EXIT_CODES.notEnded;
}

async function readHeld(options: UnresolvedOptions): Promise<readonly HeldOperation[]> {
  if (!hasTraces(options)) return [];
  const names = (await readList(options, false))
    // A ledger that is behind shows as SUBMISSION_UNKNOWN, which most often is only a look-up under way.
    .filter(({ state }) => state === 'UNRESOLVED' || state === 'SUBMISSION_UNKNOWN')
    .map(({ callNodeId }) => callNodeId);
  if (names.length === 0) return [];
  // Reason and evidence are told by the run itself, which needs a worker; held ones have nothing in flight to disturb.
  const { note } = createProgress(process.stderr);
  const live = await readLiveEngine(layoutOf(options.stateDir));
  const configFile = await workingConfig(options.config, live, note).catch(() => null);
  return withReader(options, (reader) =>
    withRuntime({ ...options, configFile }, async ({ client }) => {
      const held: HeldOperation[] = [];
      for (const callNodeId of names) {
        const view = await toldByRun(client.getHandle(callNodeId));
        if (view.state === 'UNRESOLVED' || view.heldSince !== null)
          held.push(heldOf(view, (await reader?.read(callNodeId)) ?? null));
      }
      return held;
    }),
  );
}

/** A worker that has just started needs a moment for its first answer. */
async function toldByRun(handle: ToolOperationHandle): Promise<OperationView> {
  let view = await handle.status();
  for (let look = 1; look < 3 && view.state === 'UNRESOLVED' && view.evidence === null; look += 1) {
    view = await handle.status();
  }
  return view;
}

function heldOf(view: OperationView, row: RowSnapshot | null): HeldOperation {
  const { callNodeId, server, tool, reason, evidence, heldSince, decidedByOperator } = view;
  const remoteId = row?.remoteReference?.remoteId ?? null;
  const submissionKey = row?.submissionKey ?? null;
  const told = { callNodeId, server, tool, reason, evidence, heldSince, decidedByOperator };
  if (view.state !== 'UNRESOLVED')
    return { ...told, remoteId, submissionKey, next: [RESTORE, ...endingSteps(callNodeId)] };
  const mayName = remoteId === null && view.adapter !== 'synchronous';
  return { ...told, remoteId, submissionKey, next: nextSteps(callNodeId, remoteId, mayName) };
}

function nextSteps(callNodeId: string, remoteId: string | null, mayName: boolean): readonly string[] {
  const resolve = (word: string): string => resolveCommand(callNodeId, word);
  return [
    ...(mayName ? [`its work was found on the server: ${resolve('--found REMOTE_ID')}`] : []),
    ...(remoteId === null ? [`the server never created it: ${resolve('--never-created')}`] : []),
    ...endingSteps(callNodeId),
  ];
}

function linesOf(held: HeldOperation): readonly string[] {
  const lines = [`${held.callNodeId}  ${held.server ?? '?'}/${held.tool ?? '?'}`];
  const add = (name: string, value: string | null): void => {
    if (value !== null) lines.push(`  ${name.padEnd(9)} ${oneLine(value)}`);
  };
  add('reason', held.reason ?? 'not told: no worker answers');
  add('evidence', held.evidence);
  add('since', held.heldSince === null ? null : time(held.heldSince));
  add('remote id', held.remoteId);
  add('key', held.submissionKey);
  if (held.decidedByOperator) add('decided', 'an operator has spoken; the end is being written');
  for (const step of held.next) add('next', step);
  return lines;
}
