// Owns the published tools: their names, their support of tasks, the schema of their arguments.
// Must never publish a word that the plan does not know, or withhold one: both are made from the same tables.

import type { JsonObject } from './json.js';
import { jobToolDescriptors, START_JOB, START_TEXT_JOB } from './jobs.js';
import { LOOK_UP_DESCRIPTOR } from './look-ups.js';
import { CHOICES, FLAGS, NUMBERS, PHASES } from './plan.js';
import { CANCEL_PATTERN, CANCEL_WORDS, COUNTED_PATTERN, PLAIN_WORDS, WORDS } from './words.js';

export type TaskSupport = 'forbidden' | 'optional' | 'required';

export const TOOLS: Readonly<Record<string, TaskSupport>> = {
  work: 'optional',
  'work-required': 'required',
  'work-plain': 'forbidden',
  [START_JOB]: 'forbidden',
  [START_TEXT_JOB]: 'forbidden',
};

/** The argument, and the `_meta` key, that a requester may put its idempotency key in. */
export const KEY_ARGUMENT = 'idempotencyKey';
export const KEY_META = 'faultserver.test/idempotencyKey';

const meanings = (words: Readonly<Record<string, string>>): string =>
  Object.entries(words)
    .map(([word, meaning]) => `${word}: ${meaning}`)
    .join('; ');

const WORD = [
  { type: 'string', enum: [...PLAIN_WORDS] },
  { type: 'string', pattern: COUNTED_PATTERN },
];
const WORD_LIST = { anyOf: [...WORD, { type: 'array', items: { anyOf: WORD } }] };

const PLAN_SCHEMA: JsonObject = {
  type: 'object',
  description: `What goes wrong with this call. Nothing does where it is absent. ${meanings(WORDS)}`,
  additionalProperties: false,
  properties: {
    ...Object.fromEntries(PHASES.map((phase) => [phase, WORD_LIST])),
    ...Object.fromEntries(
      Object.entries(CHOICES).map(([field, choices]) => [field, { type: 'string', enum: [...choices] }]),
    ),
    ...Object.fromEntries(
      Object.entries(FLAGS).map(([field, description]) => [field, { type: 'boolean', description }]),
    ),
    ...Object.fromEntries(
      Object.entries(NUMBERS).map(([field, [minimum, maximum]]) => [
        field,
        { type: 'number', minimum, maximum },
      ]),
    ),
    cancel: { type: 'string', pattern: CANCEL_PATTERN, description: meanings(CANCEL_WORDS) },
    pollIntervals: { type: 'array', items: { type: ['number', 'null'] } },
    ttlsMs: { type: 'array', items: { type: ['number', 'null'] } },
    workingStatus: { type: 'string', minLength: 1 },
    reusedOf: { type: 'string', minLength: 1 },
    seed: { type: 'integer', minimum: 0, description: 'stands alone: the whole plan is drawn from it' },
  },
};

const INPUT_SCHEMA: JsonObject = {
  type: 'object',
  additionalProperties: false,
  required: ['label'],
  properties: {
    label: {
      type: 'string',
      minLength: 1,
      description: 'Names the call in the journal; its own for each call.',
    },
    durationMs: { type: 'number', minimum: 0, maximum: 600_000 },
    resultBytes: { type: 'integer', minimum: 0, maximum: 64_000_000 },
    [KEY_ARGUMENT]: { type: 'string', minLength: 1 },
    plan: PLAN_SCHEMA,
  },
};

export function descriptors(): readonly JsonObject[] {
  const tools = Object.entries(TOOLS).map(([name, taskSupport]) => ({
    name,
    description: 'Works for durationMs, and goes wrong as the plan says.',
    inputSchema: INPUT_SCHEMA,
    execution: { taskSupport },
  }));
  return [...tools, LOOK_UP_DESCRIPTOR, ...jobToolDescriptors()];
}
