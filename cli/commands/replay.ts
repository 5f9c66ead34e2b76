// Owns `replay`: recorded runs against the workflow code of this release. Must never change or continue a run.

import { readFile } from 'node:fs/promises';
import { workflowIdOf } from '../../client/index.js';
import type { RecordedRun, ReplayedRun } from '../../worker/replay.js';
import { CommandError, EXIT_CODES } from '../exit-codes.js';
import { hasTraces, type Place, withRuntime } from '../open-place.js';
import { oneLine, printable } from '../printable.js';
import { writeJson } from '../report.js';
import type { Runtime } from '../runtime.js';
import { layoutOf } from '../state-directory.js';

export interface ReplayOptions extends Place {
  readonly workflow?: string;
  readonly callNode?: string;
  readonly run?: string;
  readonly json: boolean;
}

/** @returns 0 all replay, 1 one does not, 2 one is no history */
export async function runReplay(files: readonly string[], options: ReplayOptions): Promise<number> {
  const { workflow, callNode } = options;
  const given = [files.length > 0, workflow !== undefined, callNode !== undefined].filter(Boolean);
  if (given.length !== 1) throw new CommandError('give history files, or --workflow ID, or --call-node ID');
  if (options.run !== undefined && files.length > 0) throw new CommandError('--run is for --workflow');
  const workflowId = workflow ?? workflowIdOf(callNode ?? '');
  const runs =
    files.length > 0 ? await Promise.all(files.map(fromFile)) : [await fromEngine(workflowId, options)];
  const results = await replayQuietly(runs);
  if (options.json) writeJson({ schema: 'replayResults.v1', results: results.map(documentOf) });
  else for (const result of results) tell(result);
  const failed = results.flatMap((result) => (result.kind === 'failed' ? [result.error.code] : []));
  if (failed.length === 0) return EXIT_CODES.completed;
  return failed.every((code) => code === 'NotAHistory') ? EXIT_CODES.usage : EXIT_CODES.wrong;
}

async function fromFile(file: string): Promise<RecordedRun> {
  try {
    return { workflowId: file, history: await readFile(file, 'utf8') };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
    throw new CommandError(`${file}: cannot be read (${code})`, undefined, { cause: error });
  }
}

async function fromEngine(workflowId: string, options: ReplayOptions): Promise<RecordedRun> {
  if (!hasTraces(options)) {
    throw new CommandError(
      `no run of "${workflowId}" is known on ${layoutOf(options.stateDir).path}; see --state-dir`,
    );
  }
  const history = await withRuntime({ ...options, configFile: null }, ({ temporal }) =>
    fetchHistory(temporal, workflowId, options.run),
  );
  return { workflowId, history };
}

async function fetchHistory(
  temporal: Runtime['temporal'],
  workflowId: string,
  runId: string | undefined,
): Promise<object> {
  try {
    return await temporal.workflow.getHandle(workflowId, runId).fetchHistory();
  } catch (error) {
    // gRPC NOT_FOUND (5), or INVALID_ARGUMENT (3) for a run id that is none.
    const { code } = error as { readonly code?: unknown };
    const isAbsent = code === 5 || code === 3 || (error as Error).name === 'WorkflowNotFoundError';
    if (!isAbsent) throw error;
    const run = runId === undefined ? '' : ` with run "${runId}"`;
    throw new CommandError(`the engine knows no run of "${workflowId}"${run}`, undefined, { cause: error });
  }
}

/** The engine's own words about a misfit are a dump: the result says it in one sentence. */
async function replayQuietly(runs: readonly RecordedRun[]): Promise<readonly ReplayedRun[]> {
  const { replayHistories } = await import('../../worker/replay.js');
  const { silenceWorkerRuntime } = await import('../silent-runtime.js');
  silenceWorkerRuntime();
  return replayHistories(runs);
}

function tell(result: ReplayedRun): void {
  if (result.kind === 'replayed')
    process.stdout.write(`${printable(result.workflowId)} replays (${result.events} events)\n`);
  else process.stderr.write(`${oneLine(result.error.message)}\n`);
}

function documentOf(result: ReplayedRun): object {
  if (result.kind === 'replayed') return result;
  const { code, message, event } = result.error;
  return { kind: result.kind, workflowId: result.workflowId, code, message, event };
}
