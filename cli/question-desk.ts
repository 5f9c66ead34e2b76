// Owns getting open questions answered: from the command line first, then from the person at the terminal.
// Must never give a reply twice to two rounds, nor answer a question that nobody answered.

import { type AnswerOptions, ToolOperationError } from '../client/index.js';
import type { OperationView, PendingInput } from '../client/view.js';
import type { ReplyVerdict } from '../operation/facts.js';
import type { HumanReply, LeftOpen } from './ask-human.js';
import type { PreparedReply } from './call-request.js';
import type { Progress } from './progress.js';
import { fieldLines, fieldsOf } from './question-form.js';
import { questionOf } from './render-view.js';

export interface QuestionDeskOptions {
  /** Gives a reply to the operation and brings the verdict; the signal stops waiting for it. */
  readonly answer: (reply: AnswerOptions, signal: AbortSignal) => Promise<ReplyVerdict>;
  readonly progress: Progress;
  /** For the next questions in order; taken from the front. */
  readonly prepared: PreparedReply[];
  /** Null where nobody sits at a terminal. */
  readonly ask: ((round: PendingInput, signal: AbortSignal) => Promise<HumanReply | LeftOpen | null>) | null;
  /** The person left the question with Ctrl-C. */
  readonly onLeft: () => void;
  readonly onError: (error: unknown) => void;
}

export interface QuestionDesk {
  /** Called with each view: takes up a new question, drops one that is over. */
  consider(view: OperationView): void;
  close(): void;
}

export function createQuestionDesk(options: QuestionDeskOptions): QuestionDesk {
  const seen = new Set<string>();
  let current: { readonly roundId: string; readonly over: AbortController } | null = null;
  let open: readonly PendingInput[] = [];
  let isClosed = false;

  async function work(round: PendingInput, over: AbortController): Promise<void> {
    try {
      await settleRound(round, over.signal, options);
    } catch (error) {
      if (!over.signal.aborted) options.onError(error);
    } finally {
      current = null;
      // A view comes only when something changed: what was listed meanwhile is taken up now.
      takeNext();
    }
  }
  function takeNext(): void {
    if (current || isClosed) return;
    const next = open.find(({ roundId }) => !seen.has(roundId));
    if (!next) return;
    seen.add(next.roundId);
    const over = new AbortController();
    current = { roundId: next.roundId, over };
    void work(next, over);
  }
  return {
    consider(view) {
      open = view.pendingInput;
      if (current && !open.some(({ roundId }) => roundId === current?.roundId)) current.over.abort();
      takeNext();
    },
    close() {
      isClosed = true;
      current?.over.abort();
    },
  };
}

async function settleRound(
  round: PendingInput,
  over: AbortSignal,
  options: QuestionDeskOptions,
): Promise<void> {
  const { progress, prepared, ask } = options;
  const ready = prepared.shift();
  // A person at the terminal is shown the question by the prompt.
  if (ready || !ask) progress.note(`question: ${questionOf(round)}`);
  if (ready && (await giveReply(round, ready, over, options))) return;
  if (!ask) {
    for (const line of fieldLines(fieldsOf(round.question.schema))) progress.note(line);
    progress.note(
      'it waits for an answer: "dtc answer CALL_NODE JSON", or call again with the same --call-node and --answer JSON',
    );
    return;
  }
  while (!over.aborted) {
    progress.pause();
    const reply = await ask(round, over).finally(() => progress.resume());
    if (reply === null) {
      progress.note('the question is over: the tool has moved on');
      return;
    }
    if (reply.kind === 'left') return options.onLeft();
    if (await giveReply(round, reply, over, options)) return;
  }
}

/** False where the reply was refused and the question is still open. */
async function giveReply(
  round: PendingInput,
  reply: PreparedReply,
  over: AbortSignal,
  options: QuestionDeskOptions,
): Promise<boolean> {
  const { progress } = options;
  const { action, content } = reply;
  while (!over.aborted) {
    try {
      const verdict = await options.answer({ roundId: round.roundId, action, content }, over);
      progress.note(sentenceOf(verdict));
      return verdict.kind !== 'refused';
    } catch (error) {
      // The verdict is late, perhaps no worker lives: giving the same reply again is safe.
      if (!ToolOperationError.isInstance(error) || error.code !== 'LocalTimeout') throw error;
      progress.note('no verdict on the answer yet; giving it again');
    }
  }
  return true;
}

export function sentenceOf(verdict: ReplyVerdict): string {
  switch (verdict.kind) {
    case 'applied':
      return 'answered';
    case 'duplicate':
      return 'this answer had been given already';
    case 'alreadyAnswered':
      return `another answer was given at ${new Date(verdict.whenAt).toISOString()}; this one was not used`;
    case 'roundClosed':
      return 'the question is over; the answer was not used';
    case 'refused':
      return `the answer was refused: ${verdict.reason}`;
  }
}
