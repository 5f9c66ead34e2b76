/**
 * Owns: the faults a pass-through can play, each set at any time and used up in the order it was set. Must never
 * play one that was not asked for, nor touch sockets itself: it asks the exchange.
 */
import type { Exchange, WholeReply } from './exchange.js';
import { defer, type Deferred } from './pass-through-ledger.js';
import { createFailedTasks, type TaskFailure } from './played-failure.js';

export interface PlayedFault {
  /** Resolves when the fault was played as often as asked; rejects when the pass-through stops before. */
  readonly played: Promise<void>;
}

export interface HeldExchange {
  /** At `request`: the request is here, complete and not forwarded. At `reply`: the server's reply is here, complete. */
  readonly arrived: Promise<void>;
  /** Lets it go on. Before `arrived` it means: do not hold at all. */
  release(): void;
}

export interface PlayedAnswer {
  readonly httpStatus: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON; a function gets the first message, e.g. for its JSON-RPC id. */
  readonly body?: unknown;
  /** Default: 1. */
  readonly times?: number;
}

/** `method` is a JSON-RPC method, `answer`, `GET` or `DELETE`. One fault plays per exchange. */
export interface PassThroughFaults {
  /** Forwards, waits for the server's whole reply, then closes the client's socket without a byte of it. */
  dropReply(method: string, times?: number): PlayedFault;
  /** As `dropReply`, but the first half of the reply gets through. */
  cutReply(method: string, times?: number): PlayedFault;
  /** Holds the next request before it is forwarded (default), or its complete reply. A request goes on even if its client left meanwhile: its bytes were on the wire. */
  holdNext(method: string, where?: 'request' | 'reply'): HeldExchange;
  /** Answers in the server's place; nothing is forwarded. */
  answerNext(method: string, answer: PlayedAnswer): PlayedFault;
  /** From now on the task has failed, whatever the server thinks. A `tasks/result` already under way is not touched. */
  failTask(remoteTaskId: string, failure: TaskFailure): void;
  /** The same for the next task that a `tools/call` creates; resolves with its id. */
  failNextTask(failure: TaskFailure): Promise<string>;
  /** Forgets every fault that was not played yet, failed tasks too. Held exchanges go on. */
  clear(): void;
}

interface ArmedFault {
  readonly method: string;
  timesLeft: number;
  readonly played: Deferred<void>;
  perform(exchange: Exchange): Promise<void>;
}

export interface FaultPlayer extends PassThroughFaults {
  play(exchange: Exchange): Promise<void>;
  /** Refuses whoever still waits for a fault to be played. */
  close(): void;
}

export function createFaults(): FaultPlayer {
  let armed: ArmedFault[] = [];
  const held = new Set<{ readonly arrived: Deferred<void>; readonly released: Deferred<void> }>();
  const failedTasks = createFailedTasks();

  function arm(method: string, times: number, perform: ArmedFault['perform']): ArmedFault {
    const fault: ArmedFault = { method, timesLeft: times, played: defer<void>(), perform };
    armed.push(fault);
    return fault;
  }

  function take(exchange: Exchange): ArmedFault | undefined {
    const fault = armed.find(({ method }) => exchange.messages.some((message) => message.method === method));
    if (!fault) return undefined;
    fault.timesLeft -= 1;
    // Off the list before it plays: the next exchange may come while this one is still under way.
    if (fault.timesLeft <= 0) armed = armed.filter((other) => other !== fault);
    return fault;
  }

  return {
    dropReply: (method, times = 1) => handleOf(arm(method, times, dropReply)),
    cutReply: (method, times = 1) => handleOf(arm(method, times, cutReply)),
    answerNext(method, answer) {
      return handleOf(
        arm(method, answer.times ?? 1, (exchange) => exchange.sendPlayed(toReply(answer, exchange))),
      );
    },
    holdNext(method, where = 'request') {
      const hold = { arrived: defer<void>(), released: defer<void>() };
      held.add(hold);
      const holding = where === 'request' ? holdRequest : holdReply;
      const fault = arm(method, 1, (exchange) => holding(exchange, hold));
      return {
        arrived: hold.arrived.promise,
        release() {
          armed = armed.filter((other) => other !== fault);
          held.delete(hold);
          hold.released.resolve();
        },
      };
    },
    failTask: failedTasks.fail,
    failNextTask: failedTasks.failNext,
    clear() {
      armed = [];
      failedTasks.clear();
      for (const hold of held) hold.released.resolve();
      held.clear();
    },
    async play(exchange) {
      const fault = take(exchange);
      if (fault) {
        await fault.perform(exchange);
        if (fault.timesLeft <= 0) fault.played.resolve();
      } else if (!(await failedTasks.play(exchange))) {
        await exchange.stream();
      }
    },
    close() {
      const stopped = new Error('The pass-through stopped before the fault was played.');
      for (const fault of armed) fault.played.reject(stopped);
      for (const hold of held) hold.arrived.reject(stopped);
      failedTasks.close(stopped);
    },
  };
}

function handleOf(fault: ArmedFault): PlayedFault {
  return { played: fault.played.promise };
}

async function dropReply(exchange: Exchange): Promise<void> {
  await exchange.collect();
  exchange.hangUp();
}

async function cutReply(exchange: Exchange): Promise<void> {
  const reply = await exchange.collect();
  if (reply) await exchange.sendHalf(reply);
  else exchange.hangUp();
}

interface Hold {
  readonly arrived: Deferred<void>;
  readonly released: Deferred<void>;
}

async function holdRequest(exchange: Exchange, hold: Hold): Promise<void> {
  hold.arrived.resolve();
  await hold.released.promise;
  await exchange.streamRegardless();
}

async function holdReply(exchange: Exchange, hold: Hold): Promise<void> {
  const reply = await exchange.collect();
  hold.arrived.resolve();
  await hold.released.promise;
  if (reply) await exchange.send(reply);
  else exchange.hangUp();
}

function toReply(answer: PlayedAnswer, exchange: Exchange): WholeReply {
  const value: unknown = typeof answer.body === 'function' ? answer.body(exchange.messages[0]) : answer.body;
  const hasBody = value !== undefined;
  return {
    httpStatus: answer.httpStatus,
    headers: { ...(hasBody && { 'content-type': 'application/json' }), ...answer.headers },
    body: Buffer.from(hasBody ? JSON.stringify(value) : ''),
  };
}
