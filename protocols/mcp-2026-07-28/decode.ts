// Owns the words of MCP 2026-07-28 and its tasks extension as servers send them, mapped once into ours. Pure.
// Must never parse, trim or re-encode an id or a state, nor take a word it does not know for one that it does.

import type { JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { FetchedResult, Observation, WireQuestion } from '../adapter.js';
import { isObject, memberOf, membersOf } from '../json-members.js';
import { isDigestible } from '../mcp/json-rpc.js';
import { readQuestion } from '../mcp/question.js';
import { protocolErrorOf, toolResultOf } from '../mcp/tool-call.js';
import type { Redact } from '../redact.js';

const MEANINGS: Readonly<Record<string, Observation['meaning']>> = {
  working: 'working',
  input_required: 'inputRequired',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
};

/** The discriminator of every result; servers of earlier drafts leave it out where the result is complete. */
export function resultTypeOf(bytes: Uint8Array): string {
  const word = memberOf(bytes, 'resultType');
  return typeof word === 'string' ? word : 'complete';
}

export interface SeenTask {
  readonly taskId: string;
  readonly observation: Observation;
}

/** A task, flat as the extension sends it, with all that rides in it; null where the bytes hold none. */
export function taskOf(bytes: Uint8Array, redact: Redact): SeenTask | null {
  const read = (name: string): JsonValue | undefined => memberOf(bytes, name);
  const [taskId, status, statusMessage] = [read('taskId'), read('status'), read('statusMessage')];
  if (typeof taskId !== 'string' || taskId === '' || typeof status !== 'string') return null;
  // Half a character does not survive UTF-8: the id could neither be sent back nor digested.
  if (/\p{Surrogate}/u.test(taskId)) return null;
  const isKnown = Object.hasOwn(MEANINGS, status);
  const meaning = isKnown ? (MEANINGS[status] ?? 'other') : 'other';
  const observation: Observation = {
    remoteStatus: isKnown ? status : clip(redact(status), 80),
    meaning,
    statusMessage:
      typeof statusMessage === 'string' ? clip(redact(statusMessage), LIMITS.statusMessageChars) : null,
    intervalMs: finiteOr(read('pollIntervalMs')),
    expiresAt: expiryOf(read('createdAt'), read('ttlMs')),
    ...(meaning === 'inputRequired' ? { questions: questionsOf(read('inputRequests'), redact) } : {}),
    ...(meaning === 'completed' || meaning === 'failed' ? { inline: inlineResultOf(status, bytes) } : {}),
  };
  return { taskId, observation };
}

/** 1e999 is read as Infinity, which no JSON of ours could carry on. */
function finiteOr(value: JsonValue | undefined): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** "createdAt + ttlMs": past it the server may fail or delete the task; null or absent is unlimited. */
function expiryOf(createdAt: JsonValue | undefined, ttlMs: JsonValue | undefined): number | null {
  const bornAt = typeof createdAt === 'string' ? Date.parse(createdAt) : Number.NaN;
  if (!Number.isFinite(bornAt) || typeof ttlMs !== 'number' || ttlMs < 0) return null;
  return Number.isSafeInteger(Math.round(ttlMs)) ? bornAt + ttlMs : null;
}

/**
 * What is asked, by key. A request that nobody could be asked (sampling, roots, an unknown mode) is left out: it was not
 * declared, the server must not send it, and its task ends by its own budget.
 */
function questionsOf(inputRequests: JsonValue | undefined, redact: Redact): readonly WireQuestion[] {
  if (!isObject(inputRequests)) return [];
  const questions: WireQuestion[] = [];
  for (const [key, request] of Object.entries(inputRequests).slice(0, LIMITS.openQuestions)) {
    if (!isObject(request) || request['method'] !== 'elicitation/create' || key.length > LIMITS.remoteIdChars)
      continue;
    const params = isObject(request['params']) ? request['params'] : {};
    const question = readQuestion(params, redact);
    if (question && isDigestible({ ...question, key }))
      questions.push({ wireKey: key, wire: { key }, question });
  }
  return questions;
}

/** The bytes of the inline `result` or `error`, exactly as received; `lost` where a terminal task carries none. */
function inlineResultOf(status: string, bytes: Uint8Array): FetchedResult {
  const member = status === 'failed' ? 'error' : 'result';
  const span = membersOf(bytes)?.get(member);
  if (!span) return { kind: 'lost', evidence: `tasks/get: ${status} without its ${member}` };
  // A copy of its own: the whole reply need not live as long as its result.
  const cut = bytes.slice(span.start, span.end);
  if (member === 'error') {
    return Number.isSafeInteger(memberOf(cut, 'code'))
      ? { kind: 'result', result: protocolErrorOf(cut) }
      : { kind: 'lost', evidence: 'tasks/get: the error of the failed task has no code' };
  }
  const result = toolResultOf(cut);
  return result
    ? { kind: 'result', result }
    : { kind: 'lost', evidence: 'tasks/get: the inline result is not a tool result' };
}

/** Asked before there is a task (SEP-2322); null where nothing is asked that could be continued. */
export function inputBeforeTaskOf(
  bytes: Uint8Array,
  redact: Redact,
): { readonly requestState: string | null; readonly questions: readonly WireQuestion[] } | null {
  const state = memberOf(bytes, 'requestState');
  const requestState = typeof state === 'string' ? state : null;
  const inputRequests = memberOf(bytes, 'inputRequests');
  const questions = questionsOf(inputRequests, redact);
  const asked = isObject(inputRequests) ? Object.keys(inputRequests).length : 0;
  // One that nobody can be asked leaves the call without a way on.
  if (questions.length !== asked) return null;
  return questions.length === 0 && requestState === null ? null : { requestState, questions };
}
