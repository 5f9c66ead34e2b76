/** Owns: reading JSON-RPC out of MCP bodies, for counting and for played faults. Must never change a byte of them. */
import { createParser } from 'eventsource-parser';

export type JsonRpcId = string | number | null;
export type JsonObject = Record<string, unknown>;

/** A client's answer to a server's question (elicitation, sampling) has no method; it goes by this name. */
export const ANSWER = 'answer';

/** One message of a request body. `method` is the JSON-RPC method, or `answer`. */
export interface WireMessage {
  readonly method: string;
  /** null for notifications. */
  readonly jsonRpcId: JsonRpcId;
  readonly params: JsonObject;
}

/** The messages of a POST body, single or batch; none where it is no JSON-RPC. */
export function readMessages(body: Buffer): readonly WireMessage[] {
  return readObjects(body.toString('utf8')).flatMap((message) => {
    const jsonRpcId = toJsonRpcId(message['id']);
    if (typeof message['method'] === 'string') {
      const { method, params } = message;
      return [{ method, jsonRpcId, params: isObject(params) ? params : {} }];
    }
    if ('result' in message || 'error' in message) return [{ method: ANSWER, jsonRpcId, params: {} }];
    return [];
  });
}

/** The JSON-RPC messages of a complete reply, whether it came as JSON or as SSE. */
export function readReply(body: Buffer, contentType: string | undefined): readonly JsonObject[] {
  const text = body.toString('utf8');
  if (!contentType?.startsWith('text/event-stream')) return readObjects(text);
  const messages: JsonObject[] = [];
  const parser = createParser({ onEvent: (event) => messages.push(...readObjects(event.data)) });
  parser.feed(text);
  return messages;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readObjects(text: string): readonly JsonObject[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return (Array.isArray(parsed) ? parsed : [parsed]).filter(isObject);
  } catch {
    return [];
  }
}

function toJsonRpcId(value: unknown): JsonRpcId {
  return typeof value === 'string' || typeof value === 'number' ? value : null;
}
