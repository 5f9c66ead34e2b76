// Owns the structured log: one JSON object per line, of the worker's events, of the SDK and of what a command says.
// Must never hold more than those tell: no arguments, replies, results or credentials come this way.

import { appendFileSync, renameSync, statSync } from 'node:fs';
import type { LogEntry } from '@temporalio/worker';
import type { OperationEvent } from '../activities/events.js';
import { callNodeIdOf } from '../client/index.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** One line, with its end. */
export type LogSink = (line: string) => void;

export function eventLine(event: OperationEvent): string {
  return lineOf(Date.now(), levelOf(event), event.kind, event);
}

/** Something that is said to people. */
export function noteLine(message: string, level: LogLevel = 'info'): string {
  return lineOf(Date.now(), level, 'note', { message });
}

/** What the SDK logs about a workflow or an activity names them its own way. */
export function sdkLine({ level, message, timestampNanos, meta }: LogEntry): string {
  const { taskToken: _, error, ...told } = (meta ?? {}) as Readonly<Record<string, unknown>>;
  const { workflowId } = told;
  const callNodeId = typeof workflowId === 'string' ? callNodeIdOf(workflowId) : null;
  return lineOf(Number(timestampNanos / 1_000_000n), LEVELS[level], 'sdk', {
    message,
    ...(callNodeId === null ? {} : { callNodeId }),
    ...told,
    ...(error instanceof Error ? { error: error.message } : {}),
  });
}

const LEVELS = { TRACE: 'debug', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;

/** Ordinary polls are most of a log: they can be left out by level. */
function levelOf(event: OperationEvent): LogLevel {
  switch (event.kind) {
    case 'stepFault':
    case 'refused':
    case 'remarked':
      return 'warn';
    case 'stepRetried':
      return event.code === 'NotReady' ? 'debug' : 'info';
    case 'wireCall':
      return event.result === 'ok' ? 'debug' : 'info';
    default:
      return 'info';
  }
}

/** Our own words are far shorter; the SDK's may quote whole replies of the engine. */
const FIELD_CHARS = 1_000;

function lineOf(atMs: number, level: LogLevel, kind: string, told: object): string {
  const fields = { at: new Date(atMs).toISOString(), level, kind, ...told };
  const json = JSON.stringify(fields, (_key, value: unknown) => {
    if (typeof value === 'string') return value.slice(0, FIELD_CHARS);
    return typeof value === 'bigint' ? String(value) : value;
  });
  return `${json.replace(STEERING, escaped)}\n`;
}

/** What JSON leaves as it is and a terminal may obey. */
const STEERING = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Two files of this size are kept, the older one with the suffix `.1`. */
const FILE_BYTES = 16 * 1024 * 1024;

/** Appends to a file of bounded size. A full disk must not take the worker down. */
export function logFileSink(file: string, fileBytes: number = FILE_BYTES): LogSink {
  let sizeBytes: number | null = null;
  return (line) => {
    try {
      sizeBytes ??= statSync(file, { throwIfNoEntry: false })?.size ?? 0;
      if (sizeBytes >= fileBytes) {
        renameSync(file, `${file}.1`);
        sizeBytes = 0;
      }
      appendFileSync(file, line, { mode: 0o600 });
      sizeBytes += Buffer.byteLength(line);
    } catch {
      // Nowhere left to say so.
    }
  };
}
