// Owns what an outcome on the wire means: proof that nothing started, ambiguity, or a reason to look again.
// Must never read the text of a server's message to decide; codes only.

import { clip } from '../../operation/policy.js';
import { LIMITS } from '../../operation/limits.js';
import { WireFault } from '../adapter.js';
import type { RpcOutcome } from './rpc-outcome.js';

type Unanswered = Exclude<RpcOutcome, { kind: 'result' }>;

/** DESIGN section 5: the replies that prove nothing started. -32602 is not one (server-everything runs the body first). */
const REFUSING_STATUSES: readonly number[] = [401, 403, 404, 405, 413, 415];
const REFUSING_CODES: readonly number[] = [-32700, -32600, -32601, -32021, -32020, -32022];
/** Only these may come without an id and still be about our request: it was never understood (JSON-RPC 2.0, section 5). */
const IDLESS_CODES: readonly number[] = [-32700, -32600];

/** What a submission that was not answered by a result is: NotSent, RefusedByServer, or else Ambiguous. */
export function submitFaultOf(outcome: Unanswered): WireFault {
  const message = describe(outcome, 'tools/call');
  if (outcome.kind === 'notSent') return new WireFault('NotSent', message);
  if (outcome.kind !== 'error' && outcome.kind !== 'status') return new WireFault('Ambiguous', message);
  const retryAfterMs = outcome.retryAfterMs;
  if (REFUSING_STATUSES.includes(outcome.status)) {
    return new WireFault('RefusedByServer', message, { wireCode: outcome.status, retryAfterMs });
  }
  if (outcome.kind === 'status')
    return new WireFault('Ambiguous', message, { wireCode: outcome.status, retryAfterMs });
  // A 5xx comes from whoever gave up on the request, whatever its body claims.
  const isProof =
    outcome.status < 500 &&
    REFUSING_CODES.includes(outcome.code) &&
    (outcome.isOurs || IDLESS_CODES.includes(outcome.code));
  return new WireFault(isProof ? 'RefusedByServer' : 'Ambiguous', message, {
    wireCode: outcome.code,
    retryAfterMs,
  });
}

/**
 * As `submitFaultOf`, where the reply may be the result itself: only that can be so large. (A create reply of 2025-11-25 is
 * none, and its task may still be found.)
 */
export function plainFaultOf(outcome: Unanswered): WireFault {
  const fault = submitFaultOf(outcome);
  if (outcome.kind !== 'lost' || !outcome.isTooLarge) return fault;
  return new WireFault(fault.kind, fault.message, { isTooLarge: true });
}

/** The session is gone: HTTP 404 by the specification, 400 with -32000 from server-everything, or its process has ended. */
export function isSessionLost(outcome: RpcOutcome): boolean {
  if (outcome.kind === 'notSent') return outcome.isSessionGone === true;
  if (outcome.kind === 'status') return outcome.status === 404;
  if (outcome.kind !== 'error') return false;
  if (outcome.code === -32602) return false;
  return outcome.status === 404 || (outcome.status === 400 && outcome.code === -32000);
}

/** JSON-RPC codes after which asking the same again cannot help. */
const HOPELESS_CODES: readonly number[] = [-32601, -32600, -32700];

/** What a read that was not answered by a result is. An error while polling is never the failure of the operation. */
export function readFaultOf(outcome: Unanswered, what: string): WireFault {
  const message = describe(outcome, what);
  if (isSessionLost(outcome)) return new WireFault('SessionLost', message, { wireCode: codeOf(outcome) });
  if (outcome.kind === 'lost' && outcome.isContractBreach)
    return new WireFault('ProtocolViolation', message, { isTooLarge: outcome.isTooLarge === true });
  if (outcome.kind === 'error' && outcome.code === -32602) {
    return new WireFault('NotFound', message, { wireCode: outcome.code });
  }
  if (outcome.kind === 'error' && outcome.status < 500 && HOPELESS_CODES.includes(outcome.code)) {
    return new WireFault('ProtocolViolation', message, { wireCode: outcome.code });
  }
  return transientOf(outcome, message);
}

/** 4xx that say "not now" or "not as this one" rather than "not this": worth another POST of the same bytes. */
const PASSING_STATUSES: readonly number[] = [401, 404, 408, 409, 425, 429];
/** JSON-RPC codes that refuse the message itself, whatever HTTP status they come with. */
const REFUSED_ANSWER_CODES: readonly number[] = [...HOPELESS_CODES, -32602];

/** What an answer to a question that was not taken with a 2xx is: the same bytes are not sent for ever. */
export function answerFaultOf(outcome: Unanswered): WireFault {
  const fault = readFaultOf(outcome, 'answer');
  if (fault.kind === 'SessionLost') return fault;
  const isDefinite =
    (outcome.kind === 'error' || outcome.kind === 'status') &&
    outcome.status < 500 &&
    !PASSING_STATUSES.includes(outcome.status) &&
    (outcome.status >= 400 || (outcome.kind === 'error' && REFUSED_ANSWER_CODES.includes(outcome.code)));
  return new WireFault(isDefinite ? 'RefusedByServer' : 'Transient', fault.message, fault);
}

/** While negotiating: nothing was submitted either way, so all but a broken contract may be tried again. */
export function wireFaultOf(outcome: Unanswered, what: string): WireFault {
  const message = describe(outcome, what);
  if (outcome.kind === 'notSent') return new WireFault('NotSent', message);
  if (outcome.kind === 'lost' && outcome.isContractBreach) return violation(message);
  return transientOf(outcome, message);
}

function transientOf(outcome: Unanswered, message: string): WireFault {
  const retryAfterMs = outcome.kind === 'error' || outcome.kind === 'status' ? outcome.retryAfterMs : null;
  return new WireFault('Transient', message, { wireCode: codeOf(outcome), retryAfterMs });
}

/** For methods whose port knows no other faults: whatever it was, it may be tried again. */
export function transientFrom(error: unknown): unknown {
  if (!WireFault.isInstance(error) || error.kind === 'SessionLost' || error.kind === 'Transient')
    return error;
  return new WireFault('Transient', error.message, error);
}

/** Without a session HTTP 404 has nothing to do with one: it comes with "method not found" too. */
export function sessionless(fault: WireFault): WireFault {
  return fault.kind === 'SessionLost' ? new WireFault('Transient', fault.message, fault) : fault;
}

/** In negotiation the session and its tools were only read: a refused read can be tried again, in a new session. */
export function refusedRead(error: unknown): unknown {
  const isRefused =
    WireFault.isInstance(error) && (error.kind === 'NotFound' || error.kind === 'SessionLost');
  return isRefused ? new WireFault('Transient', error.message, error) : error;
}

export function violation(message: string): WireFault {
  return new WireFault('ProtocolViolation', clip(message, LIMITS.evidenceChars));
}

function codeOf(outcome: Unanswered): number | null {
  if (outcome.kind === 'error') return outcome.code;
  return outcome.kind === 'status' ? outcome.status : null;
}

/** Evidence for people: codes, and the server's own words clipped. Never a body, never what we sent. */
function describe(outcome: Unanswered, what: string): string {
  switch (outcome.kind) {
    case 'error': {
      const said = `${what}: JSON-RPC ${outcome.code}, HTTP ${outcome.status}: ${outcome.message}`;
      return withAdvice(outcome.link === null ? said : `${said} ${outcome.link}`, outcome.advice);
    }
    case 'status':
      return withAdvice(`${what}: HTTP ${outcome.status} without a JSON-RPC reply`, outcome.advice);
    case 'notSent':
    case 'lost':
      return clip(`${what}: ${outcome.detail}`, LIMITS.evidenceChars);
    case 'stopped':
      return `${what}: given up`;
  }
}

/** The advice counts more than a stranger's words before it. */
function withAdvice(said: string, advice: string | undefined): string {
  if (advice === undefined) return clip(said, LIMITS.evidenceChars);
  const end = `; ${clip(advice, LIMITS.evidenceChars / 2)}`;
  return `${clip(said, LIMITS.evidenceChars - end.length)}${end}`;
}
