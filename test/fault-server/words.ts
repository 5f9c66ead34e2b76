// Owns the words for what may happen to the reply of one request: the same ones for every kind of request.
// Must never take a word it does not know for one that it does.

/** The word as it is written, and what it does. `:ms`, `:s`, `:code`, `:MB` stand for its number. */
export const WORDS = {
  ok: 'answers',
  // The request is handled, its reply suffers.
  lose: 'handles it, then closes the socket without a byte',
  cut: 'handles it, sends the first half of the reply, closes the socket; the rest is never to be had',
  'cut-resumable': 'as cut, but where the stream has event ids the rest can be had with Last-Event-ID',
  empty: 'handles it, answers 200 without a body',
  'empty-object': 'handles it, answers 200 with the body {}',
  'empty-result': 'handles it, answers a JSON-RPC result {}',
  'delay:ms': 'handles it, answers so much later',
  hang: 'handles it, never answers; the socket stays open',
  duplicate: 'handles it; on a stream the reply comes twice',
  reorder: 'handles it; on a stream a notification and a false reply to another request come first',
  // Handled, and the reply is false.
  'wrong-id': 'handles it, answers under a JSON-RPC id that nobody asked under',
  'foreign-task': 'handles it, answers about a task that is not this one and has ended',
  'reused-id':
    'handles it, answers with the id of a task that an earlier call has; that task is found in this session too',
  'tool-error': 'handles it, answers a tool result that says isError',
  bare: 'handles it, answers without the result or the error that the reply is for',
  'other-bytes': 'handles it, says something else than it says without this word',
  // Handled, and what comes is no reply at all.
  html: 'handles it, answers 200 with a page of HTML',
  'wrong-json': 'handles it, answers 200 with JSON that has a hole',
  'wrong-types': 'handles it, answers with every value of another type',
  'deep-json': 'handles it, answers with a result that is nested 200,000 deep',
  'huge:MB': 'handles it, answers with so many megabytes more than the reply needs',
  endless: 'handles it, sends one value that never ends',
  flood: 'handles it, sends notifications without end (as JSON: as endless)',
  drip: 'handles it, sends a byte now and then, without end',
  bomb: 'handles it, sends a few kB of gzip that unpack to a GB',
  redirect: 'handles it, answers 307 to another path of this server, where everything is in the journal',
  // The request is not handled.
  reset: 'resets the connection',
  '429': 'answers 429',
  '429:s': 'answers 429 with Retry-After',
  '503': 'answers 503',
  '503:s': 'answers 503 with Retry-After',
  '504': 'answers 504',
  '504:s': 'answers 504 with Retry-After',
  'error:code': 'answers that JSON-RPC error',
  // For ever.
  lost: 'handles it, closes the socket without a byte, this time and every later one',
  gone: 'answers -32602, this time and every later one',
} as const;

export const PLAIN_WORDS: readonly string[] = Object.keys(WORDS).filter((word) => !word.includes(':'));
/** Bounded repeats: a requester's guard against hostile patterns must let it pass. */
export const COUNTED_PATTERN =
  '^(delay:[0-9]{1,6}|huge:[0-9]{1,3}|(429|503|504):[0-9]{1,4}|error:-[0-9]{5})$';

/** What a cancel comes to. */
export const CANCEL_WORDS = {
  honour: 'answers with the task, cancelled',
  refuse: 'answers -32602, the work goes on',
  ignore: 'answers with the task as it is, the work goes on',
  'ignore:n': 'so do the first n, every later one is honoured',
  'delay:ms': 'answers with the task as it is, and cancels so much later',
  'complete-first': 'the work completes, then the cancel is refused',
  'complete-after': 'answers with the task as it is, then the work completes',
  'flip:ms': 'answers with the task, cancelled; so much later it has completed after all',
} as const;
export const CANCEL_PATTERN =
  '^(honour|refuse|ignore|complete-first|complete-after|(delay|flip):[0-9]{1,6}|ignore:[0-9]{1,2})$';

export interface Word {
  readonly name: string;
  /** ms, seconds, MB or a code; null where the word takes none. */
  readonly amount: number | null;
}

export const OK: Word = { name: 'ok', amount: null };

/** The word as written, or null where there is none such. */
export function readReplyWord(given: unknown): Word | null {
  if (typeof given !== 'string') return null;
  return PLAIN_WORDS.includes(given) || new RegExp(COUNTED_PATTERN).test(given) ? wordOf(given) : null;
}

export function readCancelWord(given: unknown): Word | null {
  return typeof given === 'string' && new RegExp(CANCEL_PATTERN).test(given) ? wordOf(given) : null;
}

function wordOf(text: string): Word {
  const [name = text, amount] = text.split(':');
  return { name, amount: amount === undefined ? null : Number(amount) };
}

export function spell(word: Word): string {
  return word.amount === null ? word.name : `${word.name}:${word.amount}`;
}

/** The word for the n-th request, counted from 0. After the last one all goes well (`lost` and `gone` stay). */
export function wordAt(words: readonly Word[], n: number): Word {
  const last = words.at(-1);
  return words[n] ?? (last && isForEver(last) ? last : OK);
}

function isForEver(word: Word): boolean {
  return word.name === 'lost' || word.name === 'gone';
}

/** The request is not handled at all. */
export function isInsteadOfHandling(word: Word): boolean {
  return ['reset', '429', '503', '504', 'error', 'gone'].includes(word.name);
}
