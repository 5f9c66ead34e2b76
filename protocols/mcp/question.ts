// Owns what can be asked of a person, read from the parameters of an `elicitation/create` of either generation. Pure.
// Must never let through what nobody could be shown: unknown modes, links that are none, forms without a schema.

import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import type { Question } from '../../operation/row.js';
import { withCleanTexts, type Redact } from '../redact.js';
import { isObject } from './json-rpc.js';

/** Null where nobody could be asked this. */
export function readQuestion(params: JsonObject, redact: Redact): Question | null {
  const { mode, message, requestedSchema } = params;
  if (typeof message !== 'string' || Buffer.byteLength(JSON.stringify(params)) > LIMITS.questionBytes)
    return null;
  if (mode === 'url') {
    // 2025-11-25 demands an elicitationId as well, 2026-07-28 knows none; nothing here needs it.
    const { url } = params;
    if (typeof url !== 'string' || !URL.canParse(url) || !/^https?:/i.test(url)) return null;
    return { mode: 'url', message: redact(message), schema: null, url: redact(url) };
  }
  // "Clients MUST treat missing mode as form"; any other word is a mode we did not declare.
  if ((mode !== undefined && mode !== 'form') || !isObject(requestedSchema)) return null;
  return {
    mode: 'form',
    message: redact(message),
    schema: withCleanTexts(requestedSchema, redact),
    url: null,
  };
}
