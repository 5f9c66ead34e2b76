// Owns asking a person one open question in the terminal.
// Must never send the reply, nor write to standard output: that may be a JSON document.

import * as clack from '@clack/prompts';
import type { JsonValue } from '../operation/json.js';
import type { InputAction, Question } from '../operation/row.js';
import { oneLine, printable } from './printable.js';
import { countObjection, type Field, fieldsOf, typedValue } from './question-form.js';

export interface HumanReply {
  readonly kind: 'reply';
  readonly action: InputAction;
  readonly content: JsonValue;
}

export interface AskOptions {
  /** The question is over: asking stops at once. */
  readonly signal: AbortSignal;
  readonly input?: NodeJS.ReadStream;
  readonly output?: NodeJS.WriteStream;
}

/** Left with Ctrl-C or Escape: the question stays open. */
export interface LeftOpen {
  readonly kind: 'left';
}

/** What one prompt gives: a symbol where it was left or stopped. */
type Answer<Value> = Value | symbol;
type Terminal = { input: NodeJS.ReadStream; output: NodeJS.WriteStream; signal: AbortSignal };

/** Null where the signal stopped it. */
export async function askHuman(
  question: Question,
  options: AskOptions,
): Promise<HumanReply | LeftOpen | null> {
  const terminal: Terminal = {
    input: options.input ?? process.stdin,
    output: options.output ?? process.stderr,
    signal: options.signal,
  };
  const left = (): LeftOpen | null => (options.signal.aborted ? null : { kind: 'left' });
  clack.log.info(printable(question.message), { output: terminal.output });
  if (question.mode === 'url') {
    clack.log.message(`Open this link yourself, if you trust it:\n${oneLine(question.url ?? '')}`, {
      output: terminal.output,
    });
  }
  const consent = await askConsent(question.mode, terminal);
  if (typeof consent === 'symbol') return left();
  if (consent === 'decline') return { kind: 'reply', action: 'decline', content: null };
  if (question.mode === 'url') return { kind: 'reply', action: 'accept', content: null };
  const content: Record<string, JsonValue> = {};
  for (const field of fieldsOf(question.schema)) {
    const value = await askField(field, terminal);
    if (typeof value === 'symbol') return left();
    if (value !== undefined) content[field.name] = value;
  }
  return { kind: 'reply', action: 'accept', content };
}

function askConsent(mode: Question['mode'], terminal: Terminal): Promise<Answer<'accept' | 'decline'>> {
  return clack.select<'accept' | 'decline'>({
    ...terminal,
    message: mode === 'url' ? 'Go on?' : 'Answer it?',
    options: [
      { value: 'accept', label: mode === 'url' ? 'I have opened it: go on' : 'Answer' },
      { value: 'decline', label: 'Decline', hint: 'the tool is told so' },
    ],
  });
}

/** Undefined where it was left out. */
function askField(field: Field, terminal: Terminal): Promise<Answer<JsonValue | undefined>> {
  switch (field.kind) {
    case 'boolean':
      return askChoice<boolean>(field, field.initial, terminal, [
        { value: true, label: 'Yes' },
        { value: false, label: 'No' },
      ]);
    case 'choice':
      return askChoice<string>(field, field.initial, terminal, field.choices);
    case 'choices':
      return askChoices(field, terminal);
    case 'text':
    case 'number':
    case 'json':
      return askTyped(field, terminal);
  }
}

async function askChoice<Value extends string | boolean>(
  field: Field,
  initial: Value | null,
  terminal: Terminal,
  choices: readonly { readonly value: Value; readonly label: string }[],
): Promise<Answer<Value | undefined>> {
  // By position: a server may offer any word, also one that we would use for "left out".
  const options = choices.map(({ label }, index) => ({ value: index, label: oneLine(label) }));
  if (!field.isRequired) options.push({ value: -1, label: '(leave it out)' });
  const initialIndex = choices.findIndex(({ value }) => value === initial);
  const chosen = await clack.select<number>({
    ...terminal,
    message: promptOf(field),
    options,
    ...(initialIndex === -1 ? {} : { initialValue: initialIndex }),
  });
  return typeof chosen === 'symbol' ? chosen : choices[chosen]?.value;
}

async function askChoices(
  field: Extract<Field, { kind: 'choices' }>,
  terminal: Terminal,
): Promise<Answer<JsonValue | undefined>> {
  for (;;) {
    const chosen = await clack.multiselect<string>({
      ...terminal,
      message: promptOf(field),
      options: field.choices.map(({ value, label }) => ({ value, label: oneLine(label) })),
      initialValues: [...field.initial],
      required: field.isRequired && (field.minItems ?? 0) > 0,
    });
    if (typeof chosen === 'symbol') return chosen;
    const objection = countObjection(field, chosen.length);
    if (objection === null) return chosen.length === 0 && !field.isRequired ? undefined : chosen;
    clack.log.warn(objection, { output: terminal.output });
  }
}

async function askTyped(field: Field, terminal: Terminal): Promise<Answer<JsonValue | undefined>> {
  const initial = 'initial' in field && field.initial !== null ? String(field.initial) : null;
  const typed = await clack.text({
    ...terminal,
    message: promptOf(field),
    ...(initial === null ? {} : { initialValue: printable(initial) }),
    validate: (text) => {
      const value = typedValue(field, text ?? '');
      return value.kind === 'objection' ? value.message : undefined;
    },
  });
  if (typeof typed === 'symbol') return typed;
  const value = typedValue(field, typed ?? '');
  return value.kind === 'value' ? value.value : undefined;
}

function promptOf(field: Field): string {
  const format = field.kind === 'text' && field.format !== null ? ` (${oneLine(field.format)})` : '';
  const optional = field.isRequired ? '' : ' (optional)';
  const description = field.description === null ? '' : `\n${printable(field.description)}`;
  return `${oneLine(field.label)}${format}${optional}${description}`;
}
