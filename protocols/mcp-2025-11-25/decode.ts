// Owns the words of MCP 2025-11-25 tasks as servers send them, mapped once into ours. Pure.
// Must never parse, trim or re-encode an id, nor take a word it does not know for one that it does.

import type { JsonObject, JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { Observation, WireQuestion } from '../adapter.js';
import type { ServerMessage } from '../mcp/channel.js';
import { isObject } from '../json-members.js';
import { isDigestible } from '../mcp/json-rpc.js';
import { readQuestion } from '../mcp/question.js';
import type { Redact } from '../redact.js';

const MEANINGS: Readonly<Record<string, Observation['meaning']>> = {
  working: 'working',
  input_required: 'inputRequired',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
};

export interface SeenTask {
  readonly taskId: string;
  readonly createdAt: number | null;
  readonly observation: Observation;
}

/** A task object, or null. Only id and status are demanded; the SDK's schema would refuse unknown statuses. */
export function taskOf(value: JsonValue | undefined, redact: Redact): SeenTask | null {
  if (!isObject(value)) return null;
  const { taskId, status, statusMessage, createdAt, ttl, pollInterval } = value;
  if (typeof taskId !== 'string' || taskId === '' || typeof status !== 'string') return null;
  // Half a character does not survive UTF-8: the id could neither be sent back nor digested.
  if (/\p{Surrogate}/u.test(taskId)) return null;
  const isKnown = Object.hasOwn(MEANINGS, status);
  const bornAt = typeof createdAt === 'string' ? Date.parse(createdAt) : Number.NaN;
  const createdAtMs = Number.isFinite(bornAt) ? bornAt : null;
  const observation: Observation = {
    remoteStatus: isKnown ? status : clip(redact(status), 80),
    meaning: isKnown ? (MEANINGS[status] ?? 'other') : 'other',
    statusMessage:
      typeof statusMessage === 'string' ? clip(redact(statusMessage), LIMITS.statusMessageChars) : null,
    // 1e999 is read as Infinity, which no JSON of ours could carry on.
    intervalMs: typeof pollInterval === 'number' && Number.isFinite(pollInterval) ? pollInterval : null,
    // `ttl: null` is unlimited. Negative or absurd values say nothing about an end.
    expiresAt: createdAtMs !== null && isLifetime(ttl) ? createdAtMs + ttl : null,
  };
  return { taskId, createdAt: createdAtMs, observation };
}

function isLifetime(ttl: JsonValue | undefined): ttl is number {
  return typeof ttl === 'number' && ttl >= 0 && Number.isSafeInteger(Math.round(ttl));
}

/** Typed, so that the ids 0 and "0" of one session differ. */
function wireKeyOf(sessionId: string | null, jsonRpcId: string | number): string {
  return JSON.stringify([sessionId, jsonRpcId]);
}

/**
 * A question of ours, or null where the message is none. `refused`: nobody could be asked what the server sent;
 * `breach`: likewise, because it holds what no JSON can carry on (1e999, half a character).
 */
export function questionOf(
  message: ServerMessage,
  at: { readonly sessionId: string | null; readonly eventId: string | null },
  redact: Redact,
): WireQuestion | 'refused' | 'breach' | null {
  if (message.kind !== 'request' || message.method !== 'elicitation/create') return null;
  const question = readQuestion(message.params, redact);
  if (!question) return 'refused';
  if (!isDigestible({ ...question })) return 'breach';
  const wire: JsonObject = {
    jsonRpcId: message.id,
    sessionId: at.sessionId,
    ...(at.eventId === null ? {} : { eventId: at.eventId }),
  };
  return { wireKey: wireKeyOf(at.sessionId, message.id), wire, question };
}
