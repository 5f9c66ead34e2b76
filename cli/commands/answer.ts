// Owns `answer`: give one reply to an open question, and tell the store's verdict.
// Must never give a reply that was not checked against the question's schema.

import type { AnswerOptions } from '../../client/index.js';
import type { OperationView } from '../../client/view.js';
import type { ReplyVerdict } from '../../operation/facts.js';
import { type PreparedReply, readAnswer, readArgumentsText } from '../call-request.js';
import { CommandError, EXIT_CODES } from '../exit-codes.js';
import { actOn, type Place } from '../open-place.js';
import { printable } from '../printable.js';
import { sentenceOf } from '../question-desk.js';
import { fieldLines, fieldsOf } from '../question-form.js';
import { writeJson } from '../report.js';

export interface AnswerCommandOptions extends Place {
  readonly round?: string;
  readonly decline: boolean;
  readonly json: boolean;
}

const CODES: Readonly<Record<ReplyVerdict['kind'], number>> = {
  applied: EXIT_CODES.completed,
  duplicate: EXIT_CODES.completed,
  alreadyAnswered: EXIT_CODES.overtaken,
  roundClosed: EXIT_CODES.overtaken,
  refused: EXIT_CODES.usage,
};

/** @returns 0 applied or given before, 1 too late, 2 refused. @throws CommandError, and the client's errors */
export async function runAnswer(
  callNodeId: string,
  given: string | undefined,
  options: AnswerCommandOptions,
): Promise<number> {
  const reply = await replyOf(given, options);
  return actOn(callNodeId, options, {
    ended: (view) => Promise.resolve(tell({ kind: 'roundClosed' }, callNodeId, options, view)),
    open: async (handle) => {
      const verdict = await handle.answer({ ...reply, ...roundOf(options) });
      const view = await handle.status().catch(() => null);
      return tell(verdict, callNodeId, options, view);
    },
  });
}

function roundOf({ round }: AnswerCommandOptions): Pick<AnswerOptions, 'roundId'> {
  return round === undefined ? {} : { roundId: round };
}

async function replyOf(given: string | undefined, options: AnswerCommandOptions): Promise<PreparedReply> {
  if (options.decline) {
    if (given !== undefined) throw new CommandError('--decline carries no reply: leave out the JSON');
    return { action: 'decline', content: null };
  }
  if (given === undefined) {
    throw new CommandError('give the reply as JSON (or @file, or - for standard input), or --decline');
  }
  const { text, name } = await readArgumentsText('the reply', given);
  return readAnswer(text, name);
}

function tell(
  verdict: ReplyVerdict,
  callNodeId: string,
  options: AnswerCommandOptions,
  view: OperationView | null,
): number {
  const outcome = view?.outcome ?? null;
  if (options.json) {
    writeJson({ schema: 'answerVerdict.v1', callNodeId, verdict, outcome });
  } else {
    const ended = outcome === null ? '' : ` (the operation ended: ${outcome})`;
    process.stdout.write(`${printable(sentenceOf(verdict))}${ended}\n`);
  }
  if (verdict.kind === 'refused') hint(options, view);
  return CODES[verdict.kind];
}

/** What would fit, for the next try. */
function hint(options: AnswerCommandOptions, view: OperationView | null): void {
  const rounds = view?.pendingInput ?? [];
  const asked = rounds.find(({ roundId }) => roundId === options.round) ?? rounds[0];
  if (!asked) return;
  for (const line of fieldLines(fieldsOf(asked.question.schema))) {
    process.stderr.write(`${printable(line)}\n`);
  }
}
