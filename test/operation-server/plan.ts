// Owns what a call may ask the operation server to do wrong: words in the call's own `plan` argument.
// Must never change what an operation is: only how it is told, lost or ended.

export interface Plan {
  /** One word per submission of this label; then `ok`. The work starts under every word but those of NOT_STARTED. */
  readonly submit: readonly string[];
  /** One word per look at the operation; then `ok`. */
  readonly get: readonly string[];
  readonly durationMs: number;
  readonly end: 'response' | 'error' | 'cancelled' | 'nothing' | 'both' | 'codeless';
  /** JSON text of the response, sent as it is. */
  readonly response: string;
  /** The response is a JSON text of so many bytes instead; null: it is not. */
  readonly responseBytes: number | null;
  /** `odd`: slashes, plus and equals signs, and worse, in the operation's name. */
  readonly name: 'plain' | 'odd';
  readonly cancel: 'works' | 'ignored' | '501 UNIMPLEMENTED' | 'absent' | '400 FAILED_PRECONDITION' | '403';
  readonly list: 'ok' | 'paged' | 'unreachable' | 'lagging' | '501 UNIMPLEMENTED' | '503';
  /** How long a request id is remembered (ms). */
  readonly requestIdWindowMs: number;
}

const DEFAULTS: Plan = {
  submit: [],
  get: [],
  durationMs: 300,
  end: 'response',
  response: '{"@type":"type.example/Report","pages":3}',
  responseBytes: null,
  name: 'plain',
  cancel: 'works',
  list: 'ok',
  requestIdWindowMs: 3_600_000,
};

export function readPlan(given: unknown): Plan {
  return { ...DEFAULTS, ...(given as Partial<Plan> | undefined) };
}

export function responseOf({ response, responseBytes }: Plan): string {
  return responseBytes === null ? response : `"${'x'.repeat(responseBytes - 2)}"`;
}

/** Refusals before anything is started; a number may be followed by its word of google.rpc.Code. */
const NOT_STARTED = /^(?:reset|refuse .*)$/;

export function startsUnder(word: string): boolean {
  return !NOT_STARTED.test(word);
}
