// Owns what a reply that is no operation means: proof that nothing started, ambiguity, or a reason to look again.
// Must never read the text of a server's message to decide; statuses and words of google.rpc.Code only.

import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import { WireFault } from '../adapter.js';
import type { RestOutcome } from './rest-exchange.js';

export type Refusal = Extract<RestOutcome, { kind: 'error' }>;

/** DESIGN section 5: the statuses that prove nothing started. 400 is none: a front may make it of its own late fault. */
const REFUSING_STATUSES: readonly number[] = [401, 403, 404, 405, 413, 415];
/**
 * AIP-151, parallel operations: ABORTED where a resource takes no second one; google.rpc.Code: RESOURCE_EXHAUSTED is a
 * quota. Only with their word: the bare status may come from anyone on the way.
 */
const REFUSING_WORDS: Readonly<Record<number, string>> = { 409: 'ABORTED', 429: 'RESOURCE_EXHAUSTED' };

/** A submission that no operation answered: NotSent, RefusedByServer, or else Ambiguous. */
export function submitFaultOf(outcome: RestOutcome): WireFault {
  const message = describe(outcome, 'submit');
  if (outcome.kind === 'notSent') return new WireFault('NotSent', message);
  if (outcome.kind !== 'error') return new WireFault('Ambiguous', message, sizeOf(outcome));
  const { status, word, retryAfterMs } = outcome;
  const isProof = REFUSING_STATUSES.includes(status) || (word !== null && REFUSING_WORDS[status] === word);
  return new WireFault(isProof ? 'RefusedByServer' : 'Ambiguous', message, {
    wireCode: status,
    retryAfterMs,
  });
}

/** The id that the call chose is taken: by an earlier delivery of this very submission, or by somebody else. */
export function isAlreadyExists(outcome: RestOutcome): boolean {
  return outcome.kind === 'error' && outcome.status === 409 && outcome.word === 'ALREADY_EXISTS';
}

/** 4xx that say "not now" or "not as this one" rather than "not this". */
const PASSING_STATUSES: readonly number[] = [401, 408, 409, 425, 429];

/** A read that no operation answered. An error while polling is never the failure of the operation. */
export function readFaultOf(outcome: RestOutcome, what: string): WireFault {
  const message = describe(outcome, what);
  if (outcome.kind === 'garbled' || outcome.kind === 'object')
    return new WireFault('ProtocolViolation', message);
  if (outcome.kind === 'lost' && outcome.isTooLarge)
    return new WireFault('ProtocolViolation', message, sizeOf(outcome));
  if (outcome.kind !== 'error') return new WireFault('Transient', message);
  const { status, retryAfterMs } = outcome;
  return new WireFault(readFaultKind(outcome), message, { wireCode: status, retryAfterMs });
}

function sizeOf(outcome: RestOutcome): { readonly isTooLarge: boolean } {
  return { isTooLarge: outcome.kind === 'lost' && outcome.isTooLarge === true };
}

function readFaultKind({ status, word, retryAfterMs }: Refusal): WireFault['kind'] {
  if (status === 404 || status === 410) return 'NotFound';
  // AIP-211: a reader without permission is not told whether it is there. As not found it is read again, spaced, and then
  // held in sight of people; as a passing fault it would be polled in silence. One that names a time is passing.
  if (status === 403) return retryAfterMs === null ? 'NotFound' : 'Transient';
  // Nobody would ever hear the end of an operation that cannot be read.
  if (status === 501 || word === 'UNIMPLEMENTED') return 'ProtocolViolation';
  if (status >= 500 || PASSING_STATUSES.includes(status)) return 'Transient';
  // Redirects are never followed; any other 4xx says that asking the same again cannot help.
  return 'ProtocolViolation';
}

/** The method itself is not there. A 404 with the word NOT_FOUND comes from the method, so it is. */
export function isUnsupported(outcome: RestOutcome): boolean {
  if (outcome.kind !== 'error') return false;
  const { status, word } = outcome;
  return status === 501 || word === 'UNIMPLEMENTED' || status === 405 || (status === 404 && word === null);
}

/** Statuses with which a server that knows the operation says no to a cancel: a read tells what became of it. */
const CANCEL_REFUSALS: readonly number[] = [400, 403, 409, 412];

export function isCancelRefused(outcome: RestOutcome): boolean {
  return outcome.kind === 'error' && CANCEL_REFUSALS.includes(outcome.status);
}

function describe(outcome: RestOutcome, what: string): string {
  return clip(`${what}: ${detailOf(outcome)}`, LIMITS.evidenceChars);
}

function detailOf(outcome: RestOutcome): string {
  switch (outcome.kind) {
    case 'object':
      return `HTTP ${outcome.status}, but the reply is no operation`;
    case 'error': {
      const { status, word, message, advice } = outcome;
      const remedy = advice === undefined ? '' : `; ${advice}`;
      return `HTTP ${status}${word === null ? '' : ` ${word}`}${remedy}${message === '' ? '' : ` (${message})`}`;
    }
    case 'garbled':
      return `HTTP ${outcome.status}, but ${outcome.detail}`;
    case 'lost':
    case 'notSent':
      return outcome.detail;
  }
}
