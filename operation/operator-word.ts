// Owns what an operator may say about a held operation, and why a word is not taken.
// Must never weigh an operator's evidence: it asks only whether the word can be true beside what is known.

import type { OperatorDecision, OperatorEnd } from './facts.js';
import { LIMITS } from './limits.js';
import { mayHaveBeenSent } from './policy.js';
import type { ToolOperation } from './record.js';

/** One sentence on why the word is not taken, or null. The client asks it before it sends the word, the fold decides by it. */
export function objectionToWord(record: ToolOperation, decision: OperatorDecision): string | null {
  const { receipt, ledgerBehind, state, operator } = record;
  if (receipt) return `it has ended: ${receipt.outcome}`;
  if (ledgerBehind) {
    if (operator?.isAboutLedger) return SPOKEN;
    // What the store has forgotten may be just the proof that such a word would have to respect.
    if (decision.kind === 'found' || decision.kind === 'neverCreated') {
      return 'its store is older than its run: close it, or say how it ended';
    }
  } else {
    if (state !== 'UNRESOLVED') return `it is not held, it is ${state}`;
    if (operator) return SPOKEN;
  }
  switch (decision.kind) {
    case 'close':
      return null;
    case 'ended':
      return objectionToEnd(record, decision);
    default:
      return objectionToName(record, decision.kind);
  }
}

const SPOKEN = 'an operator has spoken about it already; its end is being written';

/**
 * Nobody's word undoes a reference that the server knows: what it named was created, and is not something else. One that
 * is itself only a word, never seen by a look, may be taken back.
 */
function objectionToName(record: ToolOperation, kind: 'found' | 'neverCreated'): string | null {
  const { remoteReference: known, terminalObservation } = record;
  if ((known && !known.isUnseen) || terminalObservation) {
    return 'the server has named its work, so it was created and is nothing else';
  }
  if (kind === 'neverCreated' || (record.adapter !== null && record.adapter !== 'synchronous')) return null;
  return 'a tool without tasks has no remote work to name';
}

function objectionToEnd(record: ToolOperation, end: OperatorEnd): string | null {
  const result = readOperatorResult(end.resultJson);
  if (result.kind === 'unfit') return result.why;
  if (record.rejection) return `the call was rejected (${record.rejection.code}): nothing was started`;
  const mayBeSent = record.hasForgotten || record.submissionLegs.some(mayHaveBeenSent);
  if (!mayBeSent) return 'nothing was sent, so nothing can have ended';
  // The result that a restored store has lost may be given again.
  if (record.result && !record.ledgerBehind) return 'its result is stored already';
  const seen = record.terminalObservation;
  // Of an earlier word that a restored store has lost nothing is left.
  const said = seen?.evidence === 'operator' ? undefined : seen?.remoteStatus;
  // A tool's own error may come as a completed task, on the wire of some servers.
  const isSaidToFail = said === 'failed' || result.isToolError;
  if (said === 'cancelled') return 'the server said that it was cancelled';
  if (end.outcome === 'failed')
    return said === 'completed' && !isSaidToFail ? 'the server said that it completed' : null;
  if (said === 'failed') return 'the server said that it failed';
  return result.isToolError ? 'the result says isError: that is a failure of the tool' : null;
}

export type OperatorResult =
  | { readonly kind: 'fits'; readonly isToolError: boolean }
  | { readonly kind: 'unfit'; readonly why: string };

/** Whether this text can be a result: valid JSON within the bounds. It is stored as it is, never re-serialised. */
export function readOperatorResult(resultJson: string): OperatorResult {
  if (utf8Bytes(resultJson) > LIMITS.operatorResultBytes) {
    return { kind: 'unfit', why: `the result is larger than ${LIMITS.operatorResultBytes} bytes` };
  }
  try {
    const value = JSON.parse(resultJson) as { readonly isError?: unknown } | null;
    if (jsonDepth(resultJson) > LIMITS.wireJsonDepth) {
      return { kind: 'unfit', why: `the result is nested deeper than ${LIMITS.wireJsonDepth} levels` };
    }
    return { kind: 'fits', isToolError: value?.isError === true };
  } catch {
    return { kind: 'unfit', why: 'the result is not valid JSON' };
  }
}

/** Of a text that is valid JSON. */
function jsonDepth(json: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at];
    if (isInString) {
      if (character === '\\') at += 1;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === '[' || character === '{') deepest = Math.max(deepest, (depth += 1));
    else if (character === ']' || character === '}') depth -= 1;
  }
  return deepest;
}

/** Without Node: the workflow sandbox has no Buffer. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}
