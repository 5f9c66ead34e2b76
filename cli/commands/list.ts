// Owns `list`: the open operations, and with --all the ended ones. Must never work on any of them.

import { existsSync } from 'node:fs';
import { EXIT_CODES } from '../exit-codes.js';
import { listedOperations, type ListedOperation } from '../listed-operations.js';
import { hasTraces, type Place, withReader, withRuntime } from '../open-place.js';
import { columns, oneLine } from '../printable.js';
import { writeJson, writeLines } from '../report.js';
import { layoutOf, readLiveEngine } from '../state-directory.js';
import { usesCluster } from '../config-file.js';

export interface ListOptions extends Place {
  readonly all: boolean;
  readonly json: boolean;
}

/** @returns 0, also where there are none */
export async function runList(options: ListOptions): Promise<number> {
  const operations = await readList(options, options.all);
  const now = Date.now();
  if (options.json) {
    writeJson({ schema: 'operationList.v1', operations });
  } else if (operations.length === 0) {
    process.stderr.write(
      options.all ? 'no operations\n' : 'no open operations; --all lists ended ones too\n',
    );
  } else {
    const rows = operations.map((operation) => rowOf(operation, now));
    writeLines(columns([['CALL NODE', 'TOOL', 'STATE', 'OUTCOME', 'AGE'], ...rows]));
  }
  return EXIT_CODES.completed;
}

/** The engine is asked where one was ever used; its runs are what an operation's state is known by. */
export async function readList(place: Place, includeEnded: boolean): Promise<readonly ListedOperation[]> {
  if (!hasTraces(place)) return [];
  return withReader(place, async (reader) => {
    const layout = layoutOf(place.stateDir);
    const hasEngine =
      existsSync(layout.temporalDbFile) ||
      usesCluster(process.env) ||
      (await readLiveEngine(layout)) !== null;
    if (!hasEngine) return listedOperations(reader, null, includeEnded);
    return withRuntime({ ...place, configFile: null }, (runtime) =>
      listedOperations(reader, runtime, includeEnded),
    );
  });
}

function rowOf(operation: ListedOperation, now: number): readonly string[] {
  const { callNodeId, server, tool, state, outcome, startedAt } = operation;
  return [
    oneLine(callNodeId),
    oneLine(`${server ?? '?'}/${tool ?? '?'}`),
    state ?? 'no run: call it again',
    outcome ?? '-',
    ageOf(now - startedAt),
  ];
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
] as const;

function ageOf(ageMs: number): string {
  for (const [unit, sizeMs] of UNITS) if (ageMs >= sizeMs) return `${Math.floor(ageMs / sizeMs)}${unit}`;
  return `${Math.max(0, Math.floor(ageMs / 1_000))}s`;
}
