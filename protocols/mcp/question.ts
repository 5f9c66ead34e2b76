// Owns what can be asked of a person, read from the parameters of an `elicitation/create` of either generation. Pure.
// Must never let through what nobody could be shown: unknown modes, links that are none, forms without a schema.

import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import type { Question } from '../../operation/row.js';
import { withCleanTexts, type Redact } from '../redact.js';
import type { Submission } from '../adapter.js';
import { isObject } from '../json-members.js';
import { isDigestible } from './json-rpc.js';
import type { RpcOutcome } from './rpc-outcome.js';

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

/**
 * "The request cannot be processed until" a link was opened (2025-11-25, client features, elicitation, -32042): nothing was
 * started, and the same call is good afterwards. Null where the error is no such one, or names what nobody could open.
 */
export function linksBeforeWork(outcome: RpcOutcome, redact: Redact): Submission | null {
  if (outcome.kind !== 'error' || !outcome.isOurs || outcome.status >= 500) return null;
  const asked = outcome.elicitations.slice(0, LIMITS.openQuestions);
  const questions = asked.flatMap((elicitation, at) => {
    const question = readQuestion(elicitation, redact);
    const isLink = question?.mode === 'url' && isDigestible({ ...question });
    return isLink ? [{ wireKey: `link ${at + 1}`, wire: {}, question }] : [];
  });
  if (questions.length === 0 || questions.length < outcome.elicitations.length) return null;
  return { kind: 'inputBeforeTask', requestState: null, questions, needsConsent: true };
}
