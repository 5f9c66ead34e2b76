// Owns reading the open questions of a task: replayed from an anchor, or from the stream that delivers them.
// Must never let go of a stream before the question read from it is stored, nor answer for a person.

import { setTimeout as sleep } from 'node:timers/promises';
import { LIMITS } from '../../operation/limits.js';
import type { KnownQuestions, WireQuestion } from '../adapter.js';
import type { RpcChannel, MessageVerdict, ServerMessage } from '../mcp/channel.js';
import type { RpcOutcome } from '../mcp/rpc-outcome.js';
import { readFaultOf, violation } from '../mcp/faults.js';
import { PACE } from '../mcp/pace.js';
import { relatedTaskOf } from '../mcp/related-task.js';
import { questionOf } from './decode.js';
import { taskParams } from './encode.js';

export interface PickUp {
  readonly channel: RpcChannel;
  readonly sessionId: string | null;
  readonly remoteId: string;
  readonly known: KnownQuestions;
  readonly onQuestion: (question: WireQuestion) => Promise<void>;
}

/** Returns when a new question was stored or the patience is spent. @throws WireFault Transient | SessionLost | ProtocolViolation */
export async function pickUp(job: PickUp): Promise<void> {
  const taker = new QuestionTaker(job);
  const eventId = anchoredEventId(job.known, job.sessionId);
  if (eventId !== null) await replayUntilNews(job, taker, eventId);
  // Each opened stream leaves a reader behind in the server; nobody opens one every poll while a person thinks.
  if (taker.newQuestions === 0 && job.known.hasOpenRound !== true) await holdUntilNews(job, taker, eventId);
  // After the others: one broken question keeps none of them from being asked.
  if (taker.newQuestions === 0 && taker.hasBreach)
    throw violation('a question holds a number or a text that JSON cannot carry on; it was refused');
}

/**
 * The anchor, or where the first question was read: the stream it came on was let go, but the server may still take it
 * for the oldest reader and put the next question there (typescript-sdk does).
 */
function anchoredEventId({ anchor, wires = [] }: KnownQuestions, sessionId: string | null): string | null {
  // What belongs to a session that was replaced meanwhile points into nothing.
  const places = [...(anchor ? [anchor] : []), ...wires].filter((place) => place['sessionId'] === sessionId);
  for (const { eventId } of places) if (typeof eventId === 'string' && eventId !== '') return eventId;
  return null;
}

class QuestionTaker {
  newQuestions = 0;
  hasSeenKnown = false;
  hasBreach = false;
  private readonly job: PickUp;
  private readonly taken: Set<string>;

  constructor(job: PickUp) {
    this.job = job;
    this.taken = new Set(job.known.wireKeys);
  }

  /**
   * On the stream of our own `tasks/result` a question that names no task can only be about ours; the one stream of a
   * program carries everybody's.
   */
  readonly onDirect = (message: ServerMessage, eventId: string | null): Promise<MessageVerdict> => {
    const isOurs = this.job.channel.isShared ? undefined : this.job.remoteId;
    return this.take(message, eventId, relatedTaskOf(message.params) ?? isOurs);
  };

  /** A replay brings the whole session: only what names our task counts. */
  readonly onReplayed = (message: ServerMessage, eventId: string | null): Promise<MessageVerdict> =>
    this.take(message, eventId, relatedTaskOf(message.params));

  private async take(
    message: ServerMessage,
    eventId: string | null,
    relatedTask: string | undefined,
  ): Promise<MessageVerdict> {
    const at = { sessionId: this.job.sessionId, eventId };
    const question = questionOf(message, at, this.job.channel.redact);
    if (question === null || relatedTask !== this.job.remoteId) return 'ignored';
    if (question === 'breach') this.hasBreach = true;
    if (question === 'breach' || question === 'refused') return 'refused';
    if (this.taken.has(question.wireKey)) {
      this.hasSeenKnown = true;
      return 'taken';
    }
    // The server hands a question out once. A crash before this line: it is replayed, or (without event ids) lost
    // in this very window; a crash after it: it is stored, and the stream may go.
    await this.job.onQuestion(question);
    this.taken.add(question.wireKey);
    this.newQuestions += 1;
    return 'stopSoon';
  }
}

/** A replay may bring all that its stream ever carried. */
const REPLAY = { timeoutMs: LIMITS.requestTimeoutMs, maxReplyBytes: LIMITS.wireListBytes } as const;

async function replayUntilNews(job: PickUp, taker: QuestionTaker, eventId: string): Promise<void> {
  const untilAt = Date.now() + PACE.replaysMs;
  for (;;) {
    const options = { ...REPLAY, onMessage: taker.onReplayed };
    const outcome = await job.channel.replay(eventId, PACE.replayQuietMs, options);
    if (taker.newQuestions > 0 || cannotReplay(outcome)) return;
    throwUnlessQuiet(outcome, 'replay');
    if (taker.hasSeenKnown || job.known.hasOpenRound === true || Date.now() >= untilAt) return;
    await sleep(PACE.replayAgainMs);
  }
}

/** The server knows no GET, or not this event any more: the question may still be handed out directly. */
function cannotReplay(outcome: RpcOutcome): boolean {
  const status = outcome.kind === 'status' || outcome.kind === 'error' ? outcome.status : null;
  return (
    status === 405 ||
    status === 409 ||
    (status === 400 && !(outcome.kind === 'error' && outcome.code === -32000))
  );
}

async function holdUntilNews(job: PickUp, taker: QuestionTaker, eventId: string | null): Promise<void> {
  const timeoutMs = job.known.wireKeys.length > 0 ? PACE.pickUpAgainMs : PACE.pickUpMs;
  const options = { timeoutMs, onMessage: taker.onDirect };
  const outcome = await job.channel.request('tasks/result', taskParams(job.remoteId), options);
  if (taker.newQuestions > 0) return;
  if (eventId !== null && outcome.kind === 'lost') {
    // Two readers wait now, ours and the anchor's; the server wakes one of them.
    const last = { ...REPLAY, onMessage: taker.onReplayed };
    throwUnlessQuiet(await job.channel.replay(eventId, PACE.replayQuietMs, last), 'replay');
    return;
  }
  throwUnlessQuiet(outcome, 'tasks/result');
}

/**
 * A result or -32602 (over, unknown, or FastMCP 3's "not terminal") and a silence say only that there is no question
 * here; the next status read says the rest.
 */
function throwUnlessQuiet(outcome: RpcOutcome, what: string): void {
  if (outcome.kind === 'result' || outcome.kind === 'stopped') return;
  // A result that comes meanwhile may be large: the next status read says so.
  if (outcome.kind === 'lost' && (outcome.isTooLarge || !outcome.isContractBreach)) return;
  const fault = readFaultOf(outcome, what);
  if (fault.kind !== 'NotFound') throw fault;
}
