// Owns replies that are whole and say what is not so: about another task, of other types, under another id.
// Must never touch the envelope: replies.ts puts the answer into it.

import { randomUUID } from 'node:crypto';
import { isObject, type JsonObject, type JsonValue } from './json.js';
import type { RpcAnswer } from './replies.js';

/** What the word makes of an answer; the same answer where the word says nothing false. */
export function falsified(answer: RpcAnswer, word: string): RpcAnswer {
  if (!('result' in answer)) return answer;
  const { result } = answer;
  switch (word) {
    case 'foreign-task':
      return { result: aboutTask(result, randomUUID(), 'completed') };
    case 'tool-error':
      return { result: { content: [{ type: 'text', text: 'the tool failed, as planned' }], isError: true } };
    case 'bare': {
      const { result: _, error: __, content: ___, ...bare } = result;
      return { result: bare };
    }
    case 'wrong-types':
      return { result: ofOtherTypes(result) as JsonObject };
    case 'other-bytes':
      return { result: saidOtherwise(result) as JsonObject };
    default:
      return answer;
  }
}

/** The same reply about the task of that id: a task, a task in a `create` reply, or a result related to it. */
export function aboutTask(result: JsonObject, remoteTaskId: string, status?: string): JsonObject {
  const meant = (value: JsonValue | undefined): JsonValue | undefined => {
    if (!isObject(value)) return value;
    const members = Object.entries(value).map(([name, member]) => [name, meant(member)] as const);
    const other: JsonObject = Object.fromEntries(members);
    // Of a job that ended as its state says.
    if (typeof value['jobId'] === 'string')
      return { ...other, jobId: remoteTaskId, ...(status === undefined ? {} : { state: 'done' }) };
    if (typeof value['taskId'] !== 'string') return other;
    const isTask = typeof value['status'] === 'string' && status !== undefined;
    return { ...other, taskId: remoteTaskId, ...(isTask ? { status } : {}) };
  };
  return meant(result) as JsonObject;
}

function ofOtherTypes(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, ofOtherTypes(member)]));
  }
  if (typeof value === 'string') return 7;
  return typeof value === 'number' ? '7' : [];
}

const TEXTS: readonly string[] = ['text', 'statusMessage'];

function saidOtherwise(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(saidOtherwise);
  if (!isObject(value)) return value ?? null;
  const members = Object.entries(value).map(([name, member]) => {
    const isText = TEXTS.includes(name) && typeof member === 'string';
    return [name, isText ? `${member} (said otherwise)` : saidOtherwise(member)] as const;
  });
  return Object.fromEntries(members);
}
