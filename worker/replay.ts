// Owns the replay of recorded runs against the shipped workflow code, for people's own tests and for the command line.
// Must never need a server, a store or a tool server; nor throw for one history and hide the others.

import type { DataConverter } from '@temporalio/common';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import {
  bundleWorkflowCode,
  DefaultLogger,
  type ReplayResult,
  Worker,
  type WorkerInterceptors,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import { workflowBundle } from './bundle.js';
import { type ExportedHistory, idOf, nameOf, readHistory } from './read-history.js';
import { type HistoryEventName, ReplayError } from './replay-error.js';

export interface RecordedRun {
  /** Names it in the result; any text where the file does not say. */
  readonly workflowId: string;
  readonly history: ExportedHistory;
}

export type ReplayedRun =
  | { readonly kind: 'replayed'; readonly workflowId: string; readonly events: number }
  | { readonly kind: 'failed'; readonly workflowId: string; readonly error: ReplayError };

export interface ReplayOptions {
  /** Default: the bundle of `toolOperation` that this package ships. */
  readonly workflowBundle?: WorkflowBundleOption;
  /** Workflows of your own (that call `callTool`, for example), bundled once. */
  readonly workflowsPath?: string;
  /** As your workers have it. */
  readonly dataConverter?: DataConverter;
  /** As your workers have it; their workflow modules are bundled. */
  readonly interceptors?: WorkerInterceptors;
  /** Throws the error of the first history that does not replay. Default false. */
  readonly throwOnFailure?: boolean;
  /** ms for one history; default 60,000. A stuck replay cannot be ended, only left behind. */
  readonly limitMs?: number;
}

const LIMIT_MS = 60_000;

/**
 * Replays recorded runs, one after the other, against the workflow code that this package ships (or your own), and says
 * for each whether the code takes the course that was recorded. A deploy whose code fails here would wedge those runs.
 *
 * Histories come from `temporal workflow show --output json`, the download of the Temporal UI, or
 * `client.workflow.getHandle(id).fetchHistory()`.
 *
 * ```ts
 * const results = await replayHistories([{ workflowId: 'tool-operation/n1', history: readFileSync(file, 'utf8') }]);
 * expect(results.filter(({ kind }) => kind === 'failed')).toEqual([]);
 * ```
 *
 * @returns one result per history, in order
 * @throws ReplayError only with `throwOnFailure`; else what bundling `workflowsPath` throws
 */
export async function replayHistories(
  histories: Iterable<RecordedRun> | AsyncIterable<RecordedRun>,
  options: ReplayOptions = {},
): Promise<readonly ReplayedRun[]> {
  const results: ReplayedRun[] = [];
  const replay = await replayer(options);
  for await (const { workflowId, history } of histories) {
    const result = await replayed(workflowId, history, replay);
    if (result.kind === 'failed' && options.throwOnFailure) throw result.error;
    results.push(result);
  }
  return results;
}

/** Null where the history replays; else the engine's words. */
type Replay = (workflowId: string, history: History) => Promise<Misfit | null>;
interface Misfit {
  readonly kind: 'DifferentCourse' | 'WorkflowFailed' | 'NoEnd';
  readonly words: string;
  /** Where the engine numbered the event itself. */
  readonly eventId: number | null;
}

async function replayer(options: ReplayOptions): Promise<Replay> {
  const { dataConverter, interceptors, limitMs = LIMIT_MS } = options;
  const worker = {
    workflowBundle: await codeOf(options),
    ...(dataConverter ? { dataConverter } : {}),
    ...(interceptors ? { interceptors } : {}),
  };
  // One worker per history: a broken one takes its worker down, and must not take the next history along.
  return async (workflowId, history) => {
    const runs = Worker.runReplayHistories(worker, [{ workflowId, history }]);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), limitMs);
    });
    const first = runs.next();
    first.catch(() => {});
    const turn = await Promise.race([first, late]).finally(() => clearTimeout(timer));
    if (turn === 'late') return noEnd(`the replay did not end within ${limitMs} ms`);
    await runs.return?.(undefined);
    return turn.done ? noEnd('the replay gave no result') : misfitOf(turn.value);
  };
}

function noEnd(words: string): Misfit {
  return { kind: 'NoEnd', words, eventId: null };
}

async function codeOf(options: ReplayOptions): Promise<WorkflowBundleOption> {
  if (options.workflowBundle) return options.workflowBundle;
  const { payloadConverterPath, failureConverterPath } = options.dataConverter ?? {};
  const workflowInterceptorModules = options.interceptors?.workflowModules;
  const extras = {
    ...(payloadConverterPath === undefined ? {} : { payloadConverterPath }),
    ...(failureConverterPath === undefined ? {} : { failureConverterPath }),
    ...(workflowInterceptorModules === undefined ? {} : { workflowInterceptorModules }),
  };
  const { workflowsPath } = options;
  return workflowsPath === undefined
    ? workflowBundle(extras)
    : bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('WARN'), ...extras });
}

async function replayed(workflowId: string, exported: ExportedHistory, replay: Replay): Promise<ReplayedRun> {
  let history: History;
  try {
    history = readHistory(workflowId, exported);
  } catch (error) {
    if (!ReplayError.isInstance(error)) throw error;
    return { kind: 'failed', workflowId, error };
  }
  const events = history.events ?? [];
  const misfit = await attempt(replay, workflowId, history);
  if (!misfit) return { kind: 'replayed', workflowId, events: events.length };
  const event =
    misfit.kind === 'DifferentCourse' ? await firstMisfit(workflowId, history, misfit, replay) : null;
  return { kind: 'failed', workflowId, error: new ReplayError(misfit.kind, workflowId, misfit.words, event) };
}

async function attempt(replay: Replay, workflowId: string, history: History): Promise<Misfit | null> {
  try {
    return await replay(workflowId, history);
  } catch (error) {
    const words = error instanceof Error ? error.message : 'unknown reason';
    return { kind: 'WorkflowFailed', words, eventId: null };
  }
}

function misfitOf({ error }: ReplayResult): Misfit | null {
  if (!error) return null;
  // The engine wraps its one sentence in a dump of its structures, stack trace and all.
  const [, quoted] = /Failure \{ message: "((?:[^"\\]|\\.)*)"/.exec(error.message) ?? [];
  const words = (quoted ?? error.message).replaceAll('\\"', '"').replaceAll('\\n', ' ');
  const [, numbered] = /HistoryEvent(?:\(id: | \{ event_id: )(\d+)/.exec(words) ?? [];
  const isCourse = error.name === 'DeterminismViolationError' || words.includes('Nondeterminism');
  return {
    kind: isCourse ? 'DifferentCourse' : 'WorkflowFailed',
    words: plain(words),
    eventId: numbered === undefined ? null : Number(numbered),
  };
}

/** An event dumped into the sentence would show its payloads. */
function plain(words: string): string {
  return words
    .replace(/^\[\w+\] /, '')
    .replace(/^Nondeterminism error: /, '')
    .replace(/:? *HistoryEvent \{.*$/s, '')
    .slice(0, 400);
}

/**
 * The engine's sentence does not always number the event. The shortest beginning that fails already does: it ends with
 * the workflow task whose commands differ, and the event is among those that this task made.
 */
async function firstMisfit(
  workflowId: string,
  history: History,
  misfit: Misfit,
  replay: Replay,
): Promise<HistoryEventName | null> {
  const events = history.events ?? [];
  const known = misfit.eventId === null ? undefined : events[misfit.eventId - 1];
  if (known) return nameOf(known);
  const starts = events.flatMap((event, index) => (event.workflowTaskStartedEventAttributes ? [index] : []));
  let [fits, fails] = [0, starts.length];
  while (fails - fits > 1) {
    const middle = Math.floor((fits + fails) / 2);
    const beginning = { events: events.slice(0, (starts[middle] ?? 0) + 1) };
    if ((await attempt(replay, workflowId, beginning)) === null) fits = middle;
    else fails = middle;
  }
  const made = events
    .slice((starts[fits] ?? 0) + 2, starts[fails] ?? events.length)
    .filter((event) => taskOf(event) === (starts[fits] ?? 0) + 2);
  const [, named] = /scheduled event '([^']*)'/.exec(misfit.words) ?? [];
  const event = made.find((candidate) => activityNameOf(candidate) === named) ?? made[0];
  return event ? nameOf(event) : null;
}

type Event = NonNullable<History['events']>[number];

function activityNameOf(event: Event): string | null | undefined {
  return event.activityTaskScheduledEventAttributes?.activityType?.name;
}

/** The number of the workflow task's end that made this event. */
function taskOf(event: Event): number {
  const attributes = Object.values(event).find(
    (value: unknown): value is { workflowTaskCompletedEventId: unknown } =>
      typeof value === 'object' && value !== null && 'workflowTaskCompletedEventId' in value,
  );
  return attributes ? Number(attributes.workflowTaskCompletedEventId) : idOf(event);
}
