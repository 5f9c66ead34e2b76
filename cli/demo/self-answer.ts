// Owns the demo's answer: half a minute for a person at a terminal, then it answers itself and says so.

import type { JsonValue } from '../../operation/json.js';
import type { InputAction, Question } from '../../operation/row.js';
import { askHuman } from '../ask-human.js';
import type { Progress } from '../progress.js';
import { fieldsOf } from '../question-form.js';

/** The server itself gives up after 60 s. */
const PATIENCE_MS = 30_000;

export interface DemoAnswer {
  readonly action: InputAction;
  readonly content: JsonValue;
}

/** Null where the person left with Ctrl-C or Escape. */
export async function answerQuestion(
  question: Question,
  options: {
    readonly signal: AbortSignal;
    readonly say: (line: string) => void;
    readonly progress: Progress;
  },
): Promise<DemoAnswer | null> {
  if (!process.stdin.isTTY) {
    options.say('no terminal to ask on: the demo answers itself');
    return selfAnswer(question, options.say);
  }
  options.say(`answer within ${PATIENCE_MS / 1_000} s, or the demo answers itself`);
  options.progress.pause();
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const reply = await askHuman(question, { signal: AbortSignal.any([patience, options.signal]) });
  options.progress.resume();
  if (reply?.kind === 'reply') return { action: reply.action, content: reply.content };
  // Ctrl-C at the prompt ends the demo, as it does anywhere else in it.
  if (reply?.kind === 'left') return null;
  options.say('nobody answered: the demo answers itself');
  return selfAnswer(question, options.say);
}

/** The first thing each field allows. */
function selfAnswer(question: Question, say: (line: string) => void): DemoAnswer {
  const content: Record<string, JsonValue> = {};
  for (const field of fieldsOf(question.schema)) {
    if (field.kind === 'choice') content[field.name] = field.choices[0]?.value ?? '';
    else if (field.kind === 'text') content[field.name] = field.initial ?? 'demo';
  }
  say(`its answer: ${JSON.stringify(content)}`);
  return { action: 'accept', content };
}
