// Owns what a caller can do with one operation: look, watch, answer, cancel, wait for its end.
// Must never cancel by giving up: a local timeout stops waiting and nothing else.

import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { type Client, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import type { OperatorDecision, ReplyVerdict } from '../operation/facts.js';
import { replyDigest } from '../operation/digests.js';
import type { JsonValue } from '../operation/json.js';
import { LIMITS } from '../operation/limits.js';
import { MESSAGES, type Outcome, workflowIdOf } from '../operation/names.js';
import type { Receipt } from '../operation/receipt.js';
import type { InputAction } from '../operation/row.js';
import { checkSchema, digests } from '../primitives/node-primitives.js';
import type { CancelMessage, OperationEnd, ReplyMessage } from '../workflows/contract.js';
import { awaitEnd } from './await-end.js';
import { describeRun } from './described-run.js';
import { ToolOperationError } from './errors.js';
import { lookAtRun, queryRecord, viewOfRun } from './look-at-run.js';
import { checkDurationMs, LONGEST_TIMER_MS, pause } from './pause.js';
import { type Grounds, sendWord } from './send-word.js';
import { type CancelResult, cancelVerdictOf, isHeld, type OperationView, type PendingInput } from './view.js';

/** Reads a stored result by its digest. */
export interface ResultReader {
  readResult(digest: string): Promise<Uint8Array | null>;
}

/** The end of an operation, whatever the outcome. */
export interface OperationResult {
  readonly receipt: Receipt;
  readonly outcome: Outcome;
  /** The tool's result (or the protocol error), parsed; null where there is none or it is read by its digest. */
  readonly toolResult: JsonValue;
  /** The result's JSON text exactly as received; null as `toolResult`. */
  readonly resultJson: string | null;
}

export interface AnswerOptions {
  /** Default: the only open round. */
  readonly roundId?: string;
  /** Default `accept`. */
  readonly action?: InputAction;
  /** The reply; for `accept` in form mode it fits the question's schema. */
  readonly content?: JsonValue;
  /** ms to wait for the verdict; default 60,000, at most 24 days. The reply may still be applied later. */
  readonly timeoutMs?: number;
}

const HOLD_CHECK_MS = 2_000;
/** A lost submission is looked up for long, and only a query tells it from a ledger that is behind. */
const LEDGER_CHECK_MS = 6_000;
const ANSWER_TIMEOUT_MS = 60_000;

export class ToolOperationHandle {
  readonly callNodeId: string;
  readonly workflowId: string;
  readonly #client: Client;
  readonly #results: ResultReader | null;

  /** Use `ToolOperationClient.start` or `getHandle`. */
  constructor(client: Client, callNodeId: string, results: ResultReader | null) {
    this.#client = client;
    this.callNodeId = callNodeId;
    this.workflowId = workflowIdOf(callNodeId);
    this.#results = results;
  }

  /**
   * The operation as it stands. Answers without a live worker too, and then says since when one is missing. Without one,
   * an operation may show as held after an operator's word: what was decided shows once a worker lives.
   * @throws ToolOperationError `OperationNotFound`
   */
  async status(): Promise<OperationView> {
    return (await lookAtRun(this.#client, this.callNodeId)).view;
  }

  /**
   * Yields the operation whenever it changed, and ends after the view that shows it ended, held (an operator is needed) or
   * its run closed without a receipt (`reason` says what to do); adds nothing to its history.
   * @param options.everyMs pace of looking, default 1,000
   * @throws ToolOperationError `InvalidRequest`, `OperationNotFound`
   */
  async *watch(
    options: { readonly everyMs?: number; readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<OperationView> {
    checkDurationMs('everyMs', options.everyMs);
    let last = '';
    for (;;) {
      const { view, isClosed } = await lookAtRun(this.#client, this.callNodeId);
      const now = JSON.stringify(view);
      if (now !== last) yield view;
      last = now;
      if (view.receipt || isClosed || isHeld(view) || options.signal?.aborted) return;
      await pause(options.everyMs ?? 1_000, options.signal);
    }
  }

  /**
   * Answers the open question and waits for the store's verdict. Giving the same reply again is safe.
   * @throws ToolOperationError `InvalidRequest` (nothing was sent), `LocalTimeout`, `OperationNotFound`
   */
  async answer(options: AnswerOptions = {}): Promise<ReplyVerdict> {
    checkDurationMs('timeoutMs', options.timeoutMs);
    const view = await this.status();
    if (view.receipt) return { kind: 'roundClosed' };
    const round = pickRound(view, options.roundId);
    const action = options.action ?? 'accept';
    const content = options.content ?? null;
    const objection = round && objectionTo(round, action, content);
    if (objection) return { kind: 'refused', reason: objection };
    const roundId = round?.roundId ?? options.roundId;
    if (roundId === undefined) throw new ToolOperationError('InvalidRequest', 'no question is open', view);
    const digest = replyDigest({ action, content }, digests);
    const message: ReplyMessage = { roundId, replyDigest: digest, action, content };
    const timeoutMs = Math.min(options.timeoutMs ?? ANSWER_TIMEOUT_MS, LONGEST_TIMER_MS);
    return this.#sendReply(message, timeoutMs, view);
  }

  /**
   * Asks for the operation's cancellation; durable without a worker, and then always `requested`. The end still decides:
   * see `result`. Asked again, an operation that is held has the cancel sent once more.
   * @throws ToolOperationError `OperationNotFound`
   */
  async cancel(reason = 'cancelled by the caller', requestedBy = 'client'): Promise<CancelResult> {
    const handle = this.#client.workflow.getHandle(this.workflowId);
    const message = { reason, requestedBy, requestToken: randomUUID() } satisfies CancelMessage;
    try {
      await handle.signal(MESSAGES.cancelSignal, message);
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      const view = await this.status();
      return { kind: 'tooLate', outcome: view.outcome };
    }
    // The engine hands a query over after every signal that came before it: the record has seen this one.
    const record = await queryRecord(this.#client, this.callNodeId);
    return record ? cancelVerdictOf(record, message) : { kind: 'requested' };
  }

  /**
   * An operator's word about an operation that is held; it needs evidence and a name. `found` names the remote work and
   * leads back to it, and while no look has seen it another word may take it back; `neverCreated` ends as rejected;
   * `close` ends as `unresolved`, never as success; `ended` ends as `completed` or `failed`, with the result's JSON text
   * stored byte for byte (at most 512 kB). An operation whose store is older than its run takes `close` and `ended`. The end
   * comes as `result`. Durable without a worker: until one lives, the operation may still show as held.
   * @throws ToolOperationError `InvalidRequest` where it is not held or the word does not fit; `OperationNotFound`
   */
  async resolve(decision: OperatorDecision, grounds: Grounds): Promise<void> {
    await sendWord(this.#client, this.callNodeId, decision, grounds);
  }

  /**
   * Waits for the receipt and the tool's result, whatever the outcome; over a reset and a new start of the run too.
   * @param options.timeoutMs stops waiting after so long; cancels nothing
   * @param options.signal stops waiting when aborted; cancels nothing
   * @throws ToolOperationError `LocalTimeout`; `OperationUnresolved` with the evidence (it stays held), or where its latest
   *   run is closed without a receipt; `CallNodeConflict` where only the store could find it; `OperationNotFound`;
   *   `InvalidRequest`
   */
  async result(
    options: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<OperationResult> {
    checkDurationMs('timeoutMs', options.timeoutMs);
    const stop = new AbortController();
    // Each request of the long poll listens to it.
    setMaxListeners(0, stop.signal);
    try {
      // The long poll must not outlive this wait: it would crash a process that closes its connection.
      const end = this.#client.withAbortSignal(stop.signal, async () =>
        this.#resultOf(await awaitEnd(this.#client, this.callNodeId)),
      );
      const racers: Promise<OperationResult>[] = [end, this.#untilHeld(stop.signal)];
      if (options.timeoutMs !== undefined) racers.push(this.#localTimeout(options.timeoutMs, stop.signal));
      if (options.signal) racers.push(this.#stopped(options.signal, stop.signal));
      return await Promise.race(racers);
    } finally {
      stop.abort();
    }
  }

  async #resultOf(end: OperationEnd): Promise<OperationResult> {
    const { receipt } = end;
    let { resultJson } = end;
    if (resultJson === null && receipt.result && this.#results) {
      const bytes = await this.#results.readResult(receipt.result.digest);
      resultJson = bytes === null || bytes.byteLength === 0 ? null : Buffer.from(bytes).toString('utf8');
    }
    const toolResult = resultJson === null ? null : (JSON.parse(resultJson) as JsonValue);
    return { receipt, outcome: receipt.outcome, toolResult, resultJson };
  }

  /** Rejects once the operation is visibly held; never resolves. */
  async #untilHeld(signal: AbortSignal): Promise<never> {
    let ledgerLookDueMs = 0;
    while (!signal.aborted) {
      const held = await this.#heldView(performance.now() >= ledgerLookDueMs).catch(() => null);
      if (held?.kind === 'held') {
        throw new ToolOperationError('OperationUnresolved', heldSentence(held.view), held.view);
      }
      if (held?.kind === 'lookedUp') ledgerLookDueMs = performance.now() + LEDGER_CHECK_MS;
      await pause(HOLD_CHECK_MS, signal);
    }
    return new Promise<never>(() => {});
  }

  async #heldView(
    mayQueryLookUps: boolean,
  ): Promise<{ readonly kind: 'held' | 'lookedUp'; readonly view: OperationView } | null> {
    const described = await describeRun(this.#client, this.workflowId);
    const isLookedUp = described.state === 'SUBMISSION_UNKNOWN';
    if (described.status !== 'RUNNING') return null;
    if (described.state !== 'UNRESOLVED' && !(isLookedUp && mayQueryLookUps)) return null;
    const view = await viewOfRun(this.#client, this.callNodeId, described);
    if (isHeld(view)) return { kind: 'held', view };
    return isLookedUp ? { kind: 'lookedUp', view } : null;
  }

  async #localTimeout(timeoutMs: number, signal: AbortSignal): Promise<never> {
    await pause(timeoutMs, signal);
    if (signal.aborted) return new Promise<never>(() => {});
    throw new ToolOperationError('LocalTimeout', `"${this.callNodeId}" has not ended within ${timeoutMs} ms`);
  }

  async #stopped(asked: AbortSignal, over: AbortSignal): Promise<never> {
    const either = AbortSignal.any([asked, over]);
    if (!either.aborted)
      await new Promise((resolve) => either.addEventListener('abort', resolve, { once: true }));
    if (!asked.aborted) return new Promise<never>(() => {});
    throw new ToolOperationError('LocalTimeout', `waiting for "${this.callNodeId}" was stopped`);
  }

  async #sendReply(message: ReplyMessage, timeoutMs: number, view: OperationView): Promise<ReplyVerdict> {
    const handle = this.#client.workflow.getHandle(this.workflowId);
    // The same id gives one outcome, also when asked again after a lost connection.
    const updateId = `${message.roundId}:${message.replyDigest.slice(0, 32)}`;
    try {
      return await this.#client.withDeadline(Date.now() + timeoutMs, () =>
        handle.executeUpdate<ReplyVerdict, [ReplyMessage]>(MESSAGES.answerUpdate, {
          args: [message],
          updateId,
        }),
      );
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { kind: 'roundClosed' };
      if (error instanceof WorkflowUpdateFailedError) {
        const after = await this.status();
        if (after.receipt) return { kind: 'roundClosed' };
        return { kind: 'refused', reason: error.cause?.message ?? error.message };
      }
      if (!isDeadline(error)) throw error;
      const said = `no verdict within ${timeoutMs} ms; the reply may still be applied, giving it again is safe`;
      throw new ToolOperationError('LocalTimeout', said, view, { cause: error });
    }
  }
}

function heldSentence(view: OperationView): string {
  const told = [view.reason, view.evidence].filter(Boolean).join(': ');
  return `"${view.callNodeId}" is held: ${told || 'the evidence is in its run and is shown once a worker answers'}`;
}

function pickRound(view: OperationView, roundId: string | undefined): PendingInput | null {
  if (roundId !== undefined) return view.pendingInput.find((round) => round.roundId === roundId) ?? null;
  if (view.pendingInput.length > 1) {
    const ids = view.pendingInput.map((round) => round.roundId).join(', ');
    throw new ToolOperationError('InvalidRequest', `several questions are open, name one: ${ids}`, view);
  }
  return view.pendingInput[0] ?? null;
}

function objectionTo(round: PendingInput, action: InputAction, content: JsonValue): string | null {
  if (action !== 'accept') return content === null ? null : `"${action}" carries no content`;
  const replyBytes = Buffer.byteLength(JSON.stringify(content));
  if (replyBytes > LIMITS.replyBytes)
    return `the reply has ${replyBytes} bytes, more than ${LIMITS.replyBytes}`;
  const { schema, mode } = round.question;
  if (mode === 'url') return content === null ? null : 'a link is opened, not filled in: no content';
  return schema ? checkSchema(schema, content) : null;
}

/** gRPC DEADLINE_EXCEEDED (4) or CANCELLED (1), wrapped by the SDK in more than one way. */
function isDeadline(error: unknown): boolean {
  for (let current: unknown = error; current instanceof Error; current = current.cause) {
    const { code } = current as Error & { code?: unknown };
    if (code === 4 || code === 1 || current.name === 'WorkflowUpdateRPCTimeoutOrCancelledError') return true;
  }
  return false;
}
