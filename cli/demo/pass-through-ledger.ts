/**
 * Owns: what a pass-through saw, and who waits for it to see more. Must never lose a request: it is written down
 * when its body is complete, before anything is forwarded.
 */
import { ANSWER, type JsonRpcId } from './wire-messages.js';

export interface PassThroughCounts {
  readonly toolsCall: number;
  readonly tasksResult: number;
  readonly tasksGet: number;
  readonly tasksCancel: number;
  /** Answers of the client to questions of the server. */
  readonly answers: number;
  /** By JSON-RPC method (notifications too), and `answer`; HTTP GET and DELETE go by these words. */
  readonly byMethod: Readonly<Record<string, number>>;
}

export interface PassThroughEntry {
  readonly atMs: number;
  readonly method: string;
  readonly jsonRpcId: JsonRpcId;
  /** null until the head of a reply came, and for ever where none did. */
  readonly httpStatus: number | null;
}

export interface PassThroughLedger {
  readonly log: readonly PassThroughEntry[];
  readonly counts: () => PassThroughCounts;
  readonly waitFor: (method: string, count: number) => Promise<void>;
  readonly waitForReplies: (method: string, count: number) => Promise<void>;
  /** Writes down the messages of one HTTP request. */
  open(messages: readonly { readonly method: string; readonly jsonRpcId: JsonRpcId }[]): LedgerLine;
  /** Whoever still waits is refused. */
  close(): void;
}

export interface LedgerLine {
  replyBegan(httpStatus: number): void;
  replyEnded(): void;
}

export function createLedger(now: () => number = Date.now): PassThroughLedger {
  const log: { atMs: number; method: string; jsonRpcId: JsonRpcId; httpStatus: number | null }[] = [];
  const requests = createTally('requests');
  const replies = createTally('replies');
  return {
    log,
    counts() {
      const of = requests.count;
      return {
        toolsCall: of('tools/call'),
        tasksResult: of('tasks/result'),
        tasksGet: of('tasks/get'),
        tasksCancel: of('tasks/cancel'),
        answers: of(ANSWER),
        byMethod: requests.all(),
      };
    },
    waitFor: requests.waitFor,
    waitForReplies: replies.waitFor,
    open(messages) {
      const entries = messages.map(({ method, jsonRpcId }) => ({
        atMs: now(),
        method,
        jsonRpcId,
        httpStatus: null as number | null,
      }));
      log.push(...entries);
      for (const { method } of entries) requests.add(method);
      return {
        replyBegan(httpStatus) {
          for (const entry of entries) entry.httpStatus = httpStatus;
        },
        replyEnded() {
          for (const { method } of entries) replies.add(method);
        },
      };
    },
    close() {
      requests.close();
      replies.close();
    },
  };
}

interface Tally {
  add(method: string): void;
  readonly count: (method: string) => number;
  all(): Record<string, number>;
  readonly waitFor: (method: string, count: number) => Promise<void>;
  close(): void;
}

function createTally(what: string): Tally {
  const seen = new Map<string, number>();
  const count = (method: string): number => seen.get(method) ?? 0;
  let waiting: { method: string; count: number; awaited: Deferred<void> }[] = [];
  return {
    count,
    all: () => Object.fromEntries(seen),
    add(method) {
      seen.set(method, count(method) + 1);
      const met = waiting.filter((waiter) => count(waiter.method) >= waiter.count);
      waiting = waiting.filter((waiter) => !met.includes(waiter));
      for (const waiter of met) waiter.awaited.resolve();
    },
    waitFor(method, wanted) {
      const awaited = defer<void>();
      if (count(method) >= wanted) awaited.resolve();
      else waiting.push({ method, count: wanted, awaited });
      return awaited.promise;
    },
    close() {
      for (const waiter of waiting) {
        const sofar = `${count(waiter.method)} of ${waiter.count} ${what} of ${waiter.method}`;
        waiter.awaited.reject(new Error(`The pass-through stopped after ${sofar}.`));
      }
      waiting = [];
    },
  };
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: Error): void;
}

/** A promise settled from outside. A rejection that nobody awaits is no crash of the process. */
export function defer<T>(): Deferred<T> {
  let settle: { resolve(value: T): void; reject(error: Error): void } | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  promise.catch(() => {});
  return {
    promise,
    resolve: (value) => settle?.resolve(value),
    reject: (error) => settle?.reject(error),
  };
}
