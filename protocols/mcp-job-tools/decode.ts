// Owns what the answers of a job's tools mean, by the declaration and nothing else. Pure.
// Must never take a word for the end that is not declared as one, nor read a sentence of a server to decide.

import { jsonDigest } from '../../operation/digests.js';
import type { JobInputTool, JobSettings, JobStatusTool } from '../../operation/job-settings.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import { digests } from '../../primitives/node-primitives.js';
import type { Observation, ReceivedResult, WireQuestion } from '../adapter.js';
import { firstTextOf, idAt, memberAt, type Said, textAt } from '../mcp/answer-members.js';
import { isObject, memberOf, parseJson } from '../json-members.js';
import { isDigestible } from '../mcp/json-rpc.js';
import { readQuestion } from '../mcp/question.js';
import { toolResultOf } from '../mcp/tool-call.js';
import type { Redact } from '../redact.js';
import type { JobSession } from './job-session.js';

/** A whole answer of a plain call; null where the bytes are none, or where MCP 2026-07-28 says that it is no result. */
export function plainResultOf(bytes: Uint8Array): ReceivedResult | null {
  const resultType = memberOf(bytes, 'resultType');
  return resultType === undefined || resultType === 'complete' ? toolResultOf(bytes) : null;
}

export type Start =
  | {
      readonly kind: 'started';
      readonly remoteId: string;
      readonly isNumber: boolean;
      readonly observation: Observation;
    }
  /** The tool says that it failed: proof that nothing was started only where that is declared. */
  | { readonly kind: 'error'; readonly said: string }
  | { readonly kind: 'unreadable'; readonly why: string };

/** The first word about the work, where the start tool says none itself. */
const STARTED: Observation = {
  remoteStatus: 'started',
  meaning: 'working',
  statusMessage: null,
  intervalMs: null,
  expiresAt: null,
};

export function startOf(bytes: Uint8Array, job: JobSettings, redact: Redact): Start {
  const answer = readAnswer(bytes);
  if (!answer) return { kind: 'unreadable', why: 'the reply is not a tool result' };
  const { value, result } = answer;
  // An id in an answer that failed may be that of other work ("already running").
  if (result.isToolError) return { kind: 'error', said: errorTextOf(value, redact) };
  const said = idAt(value, job.idPointer);
  if (said.kind !== 'named') return { kind: 'unreadable', why: whyNot(said, job.idPointer) };
  const { remoteId, isNumber = false } = said;
  const word = wordAt(value, job.status.pointer);
  const { intervalMs, statusMessage } = hintsOf(value, job.status, redact);
  const remoteStatus = word === null ? STARTED.remoteStatus : shownWord(word, redact);
  return {
    kind: 'started',
    remoteId,
    isNumber,
    observation: { ...STARTED, remoteStatus, statusMessage, intervalMs },
  };
}

function whyNot(said: Exclude<Said, { kind: 'named' }>, pointer: string): string {
  return said.kind === 'absent' ? `no id stands at ${pointer}` : said.why;
}

export type Status =
  | { readonly kind: 'seen'; readonly observation: Observation }
  | { readonly kind: 'notFound'; readonly said: string }
  /** The tool says that it failed, which says nothing of the job. */
  | { readonly kind: 'error'; readonly said: string }
  | { readonly kind: 'unreadable'; readonly why: string };

export function statusOf(bytes: Uint8Array, remoteId: string, session: JobSession, redact: Redact): Status {
  const { status } = session.job;
  const answer = readAnswer(bytes);
  if (!answer) return { kind: 'unreadable', why: 'the reply is not a tool result' };
  const { value, result } = answer;
  const word = wordAt(value, status.pointer);
  if (result.isToolError) return errorStatusOf(value, word, status, redact);
  if (word === null) return { kind: 'unreadable', why: `no status word stands at ${status.pointer}` };
  const meaning = meaningOf(word, status) ?? 'other';
  if (meaning === 'notFound') return { kind: 'notFound', said: shownWord(word, redact) };
  const stranger = status.idPointer === null ? null : strangerAt(value, status.idPointer, remoteId);
  if (stranger !== null) return { kind: 'unreadable', why: stranger };
  const observation: Observation = {
    remoteStatus: shownWord(word, redact),
    meaning,
    ...hintsOf(value, status, redact),
    expiresAt: null,
    ...(meaning === 'inputRequired' ? { questions: questionsOf(value, session, redact) } : {}),
    ...(session.job.result === null && (meaning === 'completed' || meaning === 'failed')
      ? { inline: { kind: 'result', result } }
      : {}),
  };
  return { kind: 'seen', observation };
}

/** Of an answer that failed only `notFound` counts: the word in its place, or the first text as a whole. */
function errorStatusOf(
  value: JsonObject,
  word: string | null,
  status: JobStatusTool,
  redact: Redact,
): Status {
  const words = [word, firstTextOf(value)].filter((each) => each !== null);
  const isNotFound = words.some((each) => meaningOf(each, status) === 'notFound');
  return { kind: isNotFound ? 'notFound' : 'error', said: errorTextOf(value, redact) };
}

function meaningOf(word: string, { words }: JobStatusTool) {
  return Object.hasOwn(words, word) ? words[word] : undefined;
}

/** Words are texts, but some servers say true or 3. */
function wordAt(value: JsonObject, pointer: string): string | null {
  const member = memberAt(value, pointer);
  if (member.kind !== 'value') return null;
  const word = member.value;
  if (typeof word === 'string') return word;
  const isWord = typeof word === 'boolean' || (typeof word === 'number' && Number.isSafeInteger(word));
  return isWord ? String(word) : null;
}

function shownWord(word: string, redact: Redact): string {
  return clip(redact(word), 80);
}

function strangerAt(value: JsonObject, pointer: string, remoteId: string): string | null {
  const said = idAt(value, pointer);
  if (said.kind !== 'named') return whyNot(said, pointer);
  return said.remoteId === remoteId ? null : 'the reply is about another job';
}

function hintsOf(
  value: JsonObject,
  { messagePointer, interval }: JobStatusTool,
  redact: Redact,
): Pick<Observation, 'statusMessage' | 'intervalMs'> {
  const message = messagePointer === null ? null : textAt(value, messagePointer);
  return {
    statusMessage: message === null ? null : clip(redact(message), LIMITS.statusMessageChars),
    intervalMs: intervalOf(value, interval),
  };
}

function intervalOf(value: JsonObject, interval: JobStatusTool['interval']): number | null {
  if (interval === null) return null;
  if (interval.kind === 'fixed') return interval.intervalMs;
  const told = memberAt(value, interval.pointer);
  const hintMs =
    told.kind === 'value' && typeof told.value === 'number' ? told.value * interval.unitMs : null;
  // 1e999 is read as Infinity, which no JSON of ours could carry on.
  return Number.isFinite(hintMs) ? hintMs : null;
}

/** What is asked now. What nobody could be asked is left out: the status is flagged, and bounded by the wait budget. */
function questionsOf(value: JsonObject, { job, replySchema }: JobSession, redact: Redact): WireQuestion[] {
  const { input } = job;
  const message = input === null ? null : textAt(value, input.questionPointer);
  if (input === null || message === null) return [];
  const requestedSchema = schemaAt(value, input) ?? replySchema;
  const question = requestedSchema && readQuestion({ message, requestedSchema }, redact);
  if (!question || !isDigestible({ ...question })) return [];
  const key = keyAt(value, input);
  if (key === undefined) return [];
  // Without a key of its own, one text is one question.
  const wireKey = key === null ? jsonDigest({ ...question }, digests) : JSON.stringify(key);
  return [{ wireKey, wire: { wireKey, key }, question }];
}

function schemaAt(value: JsonObject, { schemaPointer }: JobInputTool): JsonObject | null {
  const member = schemaPointer === null ? null : memberAt(value, schemaPointer);
  return member?.kind === 'value' && isObject(member.value) ? member.value : null;
}

/** Null: none is declared; undefined: it is not there. */
function keyAt(value: JsonObject, { key }: JobInputTool): string | number | null | undefined {
  if (key === null) return null;
  const said = idAt(value, key.pointer);
  if (said.kind !== 'named') return undefined;
  return said.isNumber ? Number(said.remoteId) : said.remoteId;
}

/** The tool's own words for its failure, for people. */
export function errorTextOf(value: JsonObject, redact: Redact): string {
  return clip(redact(firstTextOf(value) ?? 'without a text'), 200);
}

interface Answer {
  readonly value: JsonObject;
  readonly result: ReceivedResult;
}

function readAnswer(bytes: Uint8Array): Answer | null {
  const result = plainResultOf(bytes);
  const value: JsonValue = result ? parseJson(bytes) : null;
  return result && isObject(value) ? { value, result } : null;
}
