// Owns what is asked before there is any work (SEP-2322): one question a call, all that was said so far in `requestState`.
// Must never remember a call: the state that comes back is all there is.

import type { WorkOrder } from '../executions.js';
import { isObject, type JsonObject, type JsonValue } from '../json.js';
import type { Arrival, Journal } from '../journal.js';
import type { RpcAnswer } from '../replies.js';
import { CallRefused, ELICITATION, elicitationOf } from '../wire.js';

interface State {
  readonly label: string;
  readonly heard: readonly JsonValue[];
}

const keyOf = (question: number): string => `before-${question}`;

export function askFirst(
  order: WorkOrder,
  params: JsonObject,
  journal: Journal,
  arrival: Arrival,
): { readonly ask: RpcAnswer } | { readonly heard: WorkOrder['heard'] } {
  const { label, plan } = order;
  if (plan.questionsBeforeTask === 0) return { heard: [] };
  const heard = heardSoFar(label, params, journal, arrival);
  const question = heard.length + 1;
  if (question > plan.questionsBeforeTask) return { heard };
  const inputKey = keyOf(question);
  journal.write({ kind: 'questionAsked', label, question }, arrival);
  journal.write({ kind: 'questionHandedOut', label, question, inputKey }, arrival);
  const request = { method: ELICITATION, params: elicitationOf(label, question) };
  const result = {
    resultType: 'input_required',
    inputRequests: { [inputKey]: request },
    requestState: write({ label, heard }),
  };
  return { ask: { result } };
}

/** @throws CallRefused where the state is not what this server gave out for this call */
function heardSoFar(label: string, params: JsonObject, journal: Journal, arrival: Arrival): State['heard'] {
  const { requestState, inputResponses } = params;
  if (requestState === undefined) return [];
  const state = read(requestState);
  if (state?.label !== label) throw new CallRefused(-32602, 'the request state is not of this call');
  const question = state.heard.length + 1;
  const answer = isObject(inputResponses) ? inputResponses[keyOf(question)] : undefined;
  if (answer === undefined) return state.heard;
  journal.write({ kind: 'answerReceived', label, question, answer }, arrival);
  return [...state.heard, answer];
}

function write(state: State): string {
  return Buffer.from(JSON.stringify(state)).toString('base64');
}

function read(text: JsonValue): State | null {
  if (typeof text !== 'string') return null;
  try {
    const state = JSON.parse(Buffer.from(text, 'base64').toString('utf8')) as State;
    // Opaque: whoever re-encodes it gives back other text.
    return write(state) === text ? state : null;
  } catch {
    return null;
  }
}
