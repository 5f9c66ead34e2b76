// Owns reading a workflow history that somebody exported, and finding out what of it cannot be one.
// Must never hand a broken one on: the engine's replayer panics or waits for ever on missing events.

import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import type { History } from '@temporalio/common/lib/proto-utils.js';
import { type HistoryEventName, ReplayError } from './replay-error.js';

type Event = NonNullable<History['events']>[number];

/**
 * A history as the server or its tools hand it out: the proto message, its JSON (parsed or as text) from
 * `temporal workflow show --output json`, from the download of the Temporal UI, or from `historyToJSON`.
 */
export type ExportedHistory = string | object;

/** @throws ReplayError `NotAHistory` or `IncompleteHistory` */
export function readHistory(workflowId: string, exported: ExportedHistory): History {
  const history = decode(workflowId, exported);
  refuseBroken(workflowId, history.events ?? []);
  return history;
}

function decode(workflowId: string, exported: ExportedHistory): History {
  const none = (why: string, cause?: unknown): ReplayError =>
    new ReplayError('NotAHistory', workflowId, why, null, cause === undefined ? undefined : { cause });
  const value = typeof exported === 'string' ? parse(exported, none) : exported;
  const events: unknown = Array.isArray(value) ? value : (value as { events?: unknown } | null)?.events;
  if (!Array.isArray(events)) throw none('it has no list "events"');
  if (events.length === 0) throw none('its list "events" is empty');
  if (!events.every(isNamed)) throw none('an entry of "events" has no "eventId" and "eventType"');
  // The proto message counts its kinds, every JSON names them.
  if (events.every(({ eventType }) => typeof eventType === 'number')) return { events } as History;
  try {
    return historyFromJSON({ events });
  } catch (error) {
    throw none('its events do not have the shape of history events', error);
  }
}

function parse(text: string, none: (why: string, cause?: unknown) => ReplayError): unknown {
  if (text.trim() === '') throw none('it is empty');
  try {
    return JSON.parse(text);
  } catch (error) {
    // The engine's own message quotes the text; only its position is safe.
    const at =
      /at position \d+/.exec(error instanceof Error ? error.message : '')?.[0] ?? 'it ends too early';
    throw none(`it is not valid JSON (${at})`, error);
  }
}

function isNamed(entry: unknown): entry is { eventId: unknown; eventType: unknown } {
  return typeof entry === 'object' && entry !== null && 'eventId' in entry && 'eventType' in entry;
}

/** Numbers without a gap, a start, and every workflow task that began has an end unless it is the last event. */
function refuseBroken(workflowId: string, events: readonly Event[]): void {
  const refuse = (why: string, event: Event): ReplayError =>
    new ReplayError('IncompleteHistory', workflowId, why, nameOf(event));
  for (const [index, event] of events.entries()) {
    const expected = index + 1;
    if (idOf(event) !== expected) throw refuse(`event ${expected} is missing before it`, event);
    if (index === 0 && !event.workflowExecutionStartedEventAttributes?.originalExecutionRunId) {
      throw refuse('a history begins with WorkflowExecutionStarted and its run id', event);
    }
    const hasBegun = Boolean(events[index - 1]?.workflowTaskStartedEventAttributes);
    if (hasBegun && !endsTask(event)) throw refuse('a workflow task began before it and has no end', event);
    if (!hasBegun && event.workflowTaskCompletedEventAttributes) {
      throw refuse('a workflow task ended that never began', event);
    }
  }
}

function endsTask(event: Event): boolean {
  return Boolean(
    event.workflowTaskCompletedEventAttributes ??
    event.workflowTaskFailedEventAttributes ??
    event.workflowTaskTimedOutEventAttributes ??
    event.workflowExecutionTerminatedEventAttributes ??
    event.workflowExecutionTimedOutEventAttributes,
  );
}

export function idOf(event: Event): number {
  return Number(event.eventId);
}

export function nameOf(event: Event): HistoryEventName {
  const attributes = Object.entries(event).find(
    ([key, value]) => key.endsWith('EventAttributes') && value !== null && value !== undefined,
  );
  const word = attributes?.[0].slice(0, -'EventAttributes'.length) ?? 'unknown';
  return { eventId: idOf(event), eventType: `${word.slice(0, 1).toUpperCase()}${word.slice(1)}` };
}
