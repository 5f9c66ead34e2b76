// Owns what may come in a message: everything is unknown until it is read here, bounded and made plain.
// Must never throw: a throw in a handler bricks the run. Nor let through what would not fit into a later input.

import type { OperatorDecision } from '../operation/facts.js';
import type { JsonValue } from '../operation/json.js';
import { LIMITS } from '../operation/limits.js';
import { readOperatorResult, utf8Bytes } from '../operation/operator-word.js';
import { clip } from '../operation/policy.js';
import type { InputAction } from '../operation/row.js';
import type { ReplyMessage } from './contract.js';

const ACTIONS: readonly unknown[] = ['accept', 'decline', 'cancel'];

/** The reply, or one sentence on why it is none. */
export function readReply(message: unknown): ReplyMessage | string {
  const { roundId, replyDigest, action, content } = membersOf(message);
  if (!isId(roundId) || !isId(replyDigest)) return 'a reply names its roundId and its replyDigest';
  if (!ACTIONS.includes(action)) return 'the action of a reply is accept, decline or cancel';
  const plain = (content ?? null) as JsonValue;
  if (utf8Bytes(JSON.stringify(plain)) > LIMITS.replyBytes) {
    return `the reply is larger than ${LIMITS.replyBytes} bytes`;
  }
  return { roundId, replyDigest, action: action as InputAction, content: plain };
}

export function readCancel(message: unknown): {
  reason: string;
  requestedBy: string;
  requestToken?: string;
} {
  const { reason, requestedBy, requestToken } = membersOf(message);
  return {
    reason: textOf(reason) ?? 'cancelled by a signal',
    requestedBy: textOf(requestedBy) ?? 'signal',
    ...(isId(requestToken) ? { requestToken } : {}),
  };
}

/** Null for a word without evidence and a name: that is no decision. */
export function readOperatorWord(
  message: unknown,
): { decision: OperatorDecision; evidence: string; decidedBy: string } | null {
  const { decision, remoteId, outcome, resultJson, evidence, decidedBy } = membersOf(message);
  const grounds = { evidence: textOf(evidence), decidedBy: textOf(decidedBy) };
  if (grounds.evidence === null || grounds.decidedBy === null) return null;
  const word = { evidence: grounds.evidence, decidedBy: grounds.decidedBy };
  if (decision === 'neverCreated' || decision === 'close') return { ...word, decision: { kind: decision } };
  if (decision === 'ended') {
    if (outcome !== 'completed' && outcome !== 'failed') return null;
    if (typeof resultJson !== 'string' || readOperatorResult(resultJson).kind === 'unfit') return null;
    return { ...word, decision: { kind: decision, outcome, resultJson } };
  }
  if (decision !== 'found' || typeof remoteId !== 'string' || remoteId === '') return null;
  return remoteId.length > LIMITS.remoteIdChars ? null : { ...word, decision: { kind: decision, remoteId } };
}

function membersOf(message: unknown): Record<string, unknown> {
  return typeof message === 'object' && message !== null ? (message as Record<string, unknown>) : {};
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= LIMITS.messageIdChars;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? clip(value, LIMITS.evidenceChars) : null;
}
