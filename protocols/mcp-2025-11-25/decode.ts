// Owns the words of MCP 2025-11-25 tasks as servers send them, mapped once into ours. Pure.
// Must never parse, trim or re-encode an id, nor take a word it does not know for one that it does.

import { ElicitRequestURLParamsSchema, RELATED_TASK_META_KEY } from '@modelcontextprotocol/sdk/types.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { Question } from '../../operation/row.js';
import type { Observation, WireQuestion } from '../adapter.js';
import type { ServerMessage } from '../mcp/channel.js';
import { isObject } from '../mcp/json-rpc.js';

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
export function taskOf(value: JsonValue | undefined): SeenTask | null {
  if (!isObject(value)) return null;
  const { taskId, status, statusMessage, createdAt, ttl, pollInterval } = value;
  if (typeof taskId !== 'string' || taskId === '' || typeof status !== 'string') return null;
  const bornAt = typeof createdAt === 'string' ? Date.parse(createdAt) : Number.NaN;
  const createdAtMs = Number.isFinite(bornAt) ? bornAt : null;
  const observation: Observation = {
    remoteStatus: clip(status, 80),
    meaning: Object.hasOwn(MEANINGS, status) ? (MEANINGS[status] ?? 'other') : 'other',
    statusMessage: typeof statusMessage === 'string' ? clip(statusMessage, LIMITS.statusMessageChars) : null,
    intervalMs: typeof pollInterval === 'number' ? pollInterval : null,
    // `ttl: null` is unlimited. Negative or absurd values say nothing about an end.
    expiresAt: createdAtMs !== null && isLifetime(ttl) ? createdAtMs + ttl : null,
  };
  return { taskId, createdAt: createdAtMs, observation };
}

function isLifetime(ttl: JsonValue | undefined): ttl is number {
  return typeof ttl === 'number' && ttl >= 0 && Number.isSafeInteger(Math.round(ttl));
}

/** The id of the task that `_meta` relates a message to, or undefined where it names none. */
export function relatedTaskOf(value: JsonValue): string | undefined {
  if (!isObject(value) || !isObject(value['_meta'])) return undefined;
  const related = value['_meta'][RELATED_TASK_META_KEY];
  if (!isObject(related)) return undefined;
  return typeof related['taskId'] === 'string' ? related['taskId'] : '';
}

/** Typed, so that the ids 0 and "0" of one session differ. */
export function wireKeyOf(sessionId: string | null, jsonRpcId: string | number): string {
  return JSON.stringify([sessionId, jsonRpcId]);
}

/** A question of ours, or `refused` where nobody could be asked what the server sent, or null where it is none. */
export function questionOf(
  message: ServerMessage,
  at: { readonly sessionId: string | null; readonly eventId: string | null },
): WireQuestion | 'refused' | null {
  if (message.kind !== 'request' || message.method !== 'elicitation/create') return null;
  const question = readQuestion(message.params);
  if (!question) return 'refused';
  const wire: JsonObject = {
    jsonRpcId: message.id,
    sessionId: at.sessionId,
    ...(at.eventId === null ? {} : { eventId: at.eventId }),
  };
  return { wireKey: wireKeyOf(at.sessionId, message.id), wire, question };
}

function readQuestion(params: JsonObject): Question | null {
  const { mode, message, requestedSchema } = params;
  if (typeof message !== 'string' || Buffer.byteLength(JSON.stringify(params)) > LIMITS.questionBytes)
    return null;
  if (mode === 'url') {
    const asked = ElicitRequestURLParamsSchema.safeParse(params);
    if (!asked.success || !/^https?:/i.test(asked.data.url)) return null;
    return { mode: 'url', message, schema: null, url: asked.data.url };
  }
  // "Clients MUST treat missing mode as form"; any other word is a mode we did not declare.
  if ((mode !== undefined && mode !== 'form') || !isObject(requestedSchema)) return null;
  return { mode: 'form', message, schema: requestedSchema, url: null };
}
