// Owns the label that relates a message to a task (2025-11-25, "related task"). Pure.
// Must never parse an id.

import { RELATED_TASK_META_KEY } from '@modelcontextprotocol/sdk/types.js';
import type { JsonValue } from '../../operation/json.js';
import { isObject } from '../json-members.js';

/** The id of the task that `_meta` relates a message to, or undefined where it names none. */
export function relatedTaskOf(value: JsonValue): string | undefined {
  if (!isObject(value) || !isObject(value['_meta'])) return undefined;
  const related = value['_meta'][RELATED_TASK_META_KEY];
  if (!isObject(related)) return undefined;
  return typeof related['taskId'] === 'string' ? related['taskId'] : '';
}
