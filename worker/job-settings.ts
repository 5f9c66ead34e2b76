// Owns the shape of `job` under one tool in `tool-servers.json`: which tools of the server look after what it starts.
// Must never let a declaration pass by which no job could ever be seen to end. (docs/JOB-TOOLS.md)

import { z } from 'zod';
import { JOB_MEANINGS, type JobInterval, type JobSettings } from '../operation/job-settings.js';
import { isJsonPointer } from '../operation/json-pointer.js';
import { duration, keyName, oneOf, strict } from './strict-shapes.js';

/** The declaration stays in every row of its operations, so it is kept small. */
const WORDS_MAX = 64;
const WORD_CHARS = 80;
const POINTER_CHARS = 400;

const POINTER_FORM =
  'must be a JSON pointer into the tool\'s answer, e.g. "/structuredContent/state", or "/state" in the JSON of its first text';
const pointer = z
  .string({ error: POINTER_FORM })
  .max(POINTER_CHARS, { error: POINTER_FORM })
  .refine(isJsonPointer, { error: POINTER_FORM });

const tool = (what: string) => keyName(`the name of the tool that ${what}`);
const argument = keyName('the name of the argument that takes the id there');
const flag = z.boolean({ error: 'must be true or false' }).default(false);

const WORDS_FORM = `must name 1 to ${WORDS_MAX} words of 1 to ${WORD_CHARS} characters, each with its meaning`;
const words = z
  .record(z.string().min(1).max(WORD_CHARS), oneOf(JOB_MEANINGS), { error: WORDS_FORM })
  .refine((given) => Object.keys(given).length > 0 && Object.keys(given).length <= WORDS_MAX, {
    error: WORDS_FORM,
  })
  .refine((given) => Object.keys(given).length === 0 || Object.values(given).includes('completed'), {
    error: 'must have a word for "completed", or no job would ever be seen to end',
  });

const INTERVAL_FORM = 'must be a duration such as "5s", or {"pointer": …, "unit": "ms" or "s"}';
const told = strict({ pointer, unit: oneOf(['ms', 's']).default('ms') }).transform(
  ({ pointer: at, unit }): JobInterval => ({ kind: 'told', pointer: at, unitMs: unit === 's' ? 1_000 : 1 }),
);
const fixed = duration.transform((intervalMs): JobInterval => ({ kind: 'fixed', intervalMs }));
const interval = z.unknown().transform((value, context): JobInterval => {
  const isObject = typeof value === 'object' && value !== null;
  const read = isObject ? told.safeParse(value) : fixed.safeParse(value);
  if (read.success) return read.data;
  for (const { path, message } of read.error.issues)
    context.addIssue({ code: 'custom', path: [...path], message: isObject ? message : INTERVAL_FORM });
  return z.NEVER;
});

const status = strict({
  tool: tool('tells how the job is'),
  argument,
  pointer,
  words,
  id: pointer.optional(),
  message: pointer.optional(),
  interval: interval.optional(),
});

const result = strict({ tool: tool('gives the result'), argument, retryErrors: flag });
const cancel = strict({ tool: tool('cancels the job'), argument });
const key = strict({
  pointer,
  argument: keyName('the name of the argument that takes the key').optional(),
});
const input = strict({
  tool: tool('takes the reply'),
  argument,
  question: pointer,
  schema: pointer.optional(),
  key: key.optional(),
});

export const jobSettings = strict({
  id: pointer,
  refusedByError: flag,
  status,
  result: result.optional(),
  cancel: cancel.optional(),
  input: input.optional(),
})
  .refine((given) => given.input !== undefined || !asksFor(given.status.words), {
    error: 'must have "input" where a word means "inputRequired": who could answer?',
  })
  .refine((given) => given.input === undefined || asksFor(given.status.words), {
    error: 'has "input", but no word of "status" means "inputRequired"',
  })
  .transform((given): JobSettings => ({
    idPointer: given.id,
    refusedByError: given.refusedByError,
    status: {
      tool: given.status.tool,
      argument: given.status.argument,
      pointer: given.status.pointer,
      words: given.status.words,
      idPointer: given.status.id ?? null,
      messagePointer: given.status.message ?? null,
      interval: given.status.interval ?? null,
    },
    result: given.result ?? null,
    cancel: given.cancel ?? null,
    input: given.input ? inputOf(given.input) : null,
  }));

function asksFor(given: Readonly<Record<string, string>>): boolean {
  return Object.values(given).includes('inputRequired');
}

function inputOf(given: z.infer<typeof input>): JobSettings['input'] {
  return {
    tool: given.tool,
    argument: given.argument,
    questionPointer: given.question,
    schemaPointer: given.schema ?? null,
    key: given.key ? { pointer: given.key.pointer, argument: given.key.argument ?? null } : null,
  };
}
