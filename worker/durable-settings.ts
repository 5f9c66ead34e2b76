// Owns the shape of our one key in `tool-servers.json`: `durable`. Strict: an unknown key there is a mistake, because
// a misspelt bound would silently be no bound. Must never read the environment.

import { z } from 'zod';
import type { JobSettings } from '../operation/job-settings.js';
import { LIMITS } from '../operation/limits.js';
import { ADAPTERS, type SubmissionPolicyName } from '../operation/names.js';
import { isJsonPointer } from '../operation/json-pointer.js';
import type { LookUpSettings, OperationPolicy } from '../operation/row.js';
import { listOf } from './configuration-error.js';
import { jobSettings } from './job-settings.js';
import { duration, keyName, oneOf, strict } from './strict-shapes.js';

/** What is configured for one tool; null = the default of operation/limits.ts, or decided at submission. */
export interface ToolSettings {
  readonly waitBudgetMs: number | null;
  readonly synchronousBoundMs: number | null;
  /** Absent: what is configured for the server, or the default. */
  readonly maxResultBytes?: number;
  /** The only digest of its published descriptor under which the tool is called. */
  readonly descriptorDigest?: string;
  readonly submission: SubmissionSettings | null;
  /** The tool starts a job that other tools look after. */
  readonly job?: JobSettings;
  readonly sideEffects: OperationPolicy['sideEffects'];
  readonly onUnresolved: OperationPolicy['onUnresolved'];
  /** Of a declared method whose server deduplicates by a request id. */
  readonly requestId?: { readonly field: string; readonly windowMs: number };
}

export interface SubmissionSettings {
  readonly policy: SubmissionPolicyName;
  /** Argument name (key-argument) or `_meta` key (key-meta); of a declared method its own field. */
  readonly keyName: string | null;
  /** Of `lookup-tool` only. */
  readonly lookUp?: LookUpSettings;
}

const ARGUMENT = 'the name of the argument that takes the key';
const META_KEY = 'the _meta key that takes the key';
const POINTER_FORM =
  'must be a JSON pointer to the id in the tool\'s answer, e.g. "/structuredContent/jobId", or "/jobId" in the JSON of its first text';

const lookUp = strict({
  tool: keyName('the name of the tool that looks work up by its key'),
  argument: keyName(`${ARGUMENT} there`),
  id: z.string({ error: POINTER_FORM }).refine(isJsonPointer, { error: POINTER_FORM }),
  provesAbsence: z.boolean({ error: 'must be true or false' }).default(false),
  settleAfter: duration.optional(),
});

/** Absent counts only so long after the last leg was closed: requests under way, and lists that lag. */
const SETTLE_AFTER_MS = 30_000;

const lookUpTool = strict({
  policy: z.literal('lookup-tool'),
  argument: keyName(ARGUMENT).optional(),
  key: keyName(META_KEY).optional(),
  lookUp,
}).refine(({ argument, key }) => (argument === undefined) !== (key === undefined), {
  error: 'must have either "argument" or "key" to carry the key of the submission',
});

/** Policies of calls to a published tool. */
const POLICIES = [
  'key-argument',
  'key-meta',
  'lookup-tool',
  'session-list',
  'repeatable',
  'at-most-once',
] as const;

const submission = z
  .discriminatedUnion(
    'policy',
    [
      strict({
        policy: z.literal('key-argument'),
        argument: keyName(ARGUMENT),
      }),
      strict({ policy: z.literal('key-meta'), key: keyName(META_KEY) }),
      lookUpTool,
      strict({ policy: z.literal('session-list') }),
      strict({ policy: z.literal('repeatable') }),
      strict({ policy: z.literal('at-most-once') }),
    ],
    { error: `must be an object whose "policy" is ${listOf(POLICIES)}` },
  )
  .transform((given): SubmissionSettings => {
    switch (given.policy) {
      case 'key-argument':
        return { policy: given.policy, keyName: given.argument };
      case 'key-meta':
        return { policy: given.policy, keyName: given.key };
      case 'lookup-tool':
        return {
          policy: given.policy,
          keyName: given.argument ?? given.key ?? null,
          lookUp: {
            keyPlace: given.argument === undefined ? 'meta' : 'argument',
            tool: given.lookUp.tool,
            argument: given.lookUp.argument,
            idPointer: given.lookUp.id,
            provesAbsence: given.lookUp.provesAbsence,
            settleAfterMs: given.lookUp.settleAfter ?? SETTLE_AFTER_MS,
          },
        };
      default:
        return { policy: given.policy, keyName: null };
    }
  });

const ON_UNRESOLVED_FORMS = 'must be "hold" or {"closeAfter": duration}';
const onUnresolved = z.unknown().transform((value, context): OperationPolicy['onUnresolved'] => {
  if (value === 'hold') return { kind: 'hold' };
  const close = closeAfter.safeParse(value);
  if (close.success) return { kind: 'closeAfter', afterMs: close.data.closeAfter };
  for (const { path, message } of close.error.issues) {
    const isObject = typeof value === 'object' && value !== null;
    context.addIssue({ code: 'custom', path: [...path], message: isObject ? message : ON_UNRESOLVED_FORMS });
  }
  return z.NEVER;
});
const closeAfter = strict({ closeAfter: duration });

const RESULT_BYTES_FORMS = `must be a whole number of bytes from 1024 to ${LIMITS.storedResultCeilingBytes}`;
export const resultBytes = z
  .int({ error: RESULT_BYTES_FORMS })
  .min(1_024, { error: RESULT_BYTES_FORMS })
  .max(LIMITS.storedResultCeilingBytes, { error: RESULT_BYTES_FORMS });

const DIGEST_FORM = "must be the SHA-256 of the tool's descriptor as 64 hex digits (dtc doctor shows it)";
const descriptorDigest = z.string({ error: DIGEST_FORM }).regex(/^[0-9a-f]{64}$/, { error: DIGEST_FORM });

/** What may be said of every tool, whatever its contract. */
export const commonShape = {
  waitBudget: duration.optional(),
  synchronousBound: duration.optional(),
  maxResultBytes: resultBytes.optional(),
  sideEffects: oneOf(['none', 'unknown']).optional(),
  onUnresolved: onUnresolved.optional(),
};

const toolSettings = strict({
  ...commonShape,
  descriptor: descriptorDigest.optional(),
  submission: submission.optional(),
  job: jobSettings.optional(),
}).transform((given): ToolSettings => ({
  waitBudgetMs: given.waitBudget ?? null,
  synchronousBoundMs: given.synchronousBound ?? null,
  ...(given.maxResultBytes === undefined ? {} : { maxResultBytes: given.maxResultBytes }),
  ...(given.descriptor === undefined ? {} : { descriptorDigest: given.descriptor }),
  submission: given.submission ?? null,
  ...(given.job === undefined ? {} : { job: given.job }),
  sideEffects: given.sideEffects ?? 'unknown',
  onUnresolved: given.onUnresolved ?? { kind: 'hold' },
}));

/** A declared method lives in a map of its own: no published tool speaks that contract. */
const PUBLISHED = ADAPTERS.filter((adapter) => adapter !== 'aip-151');

export const pollRate = z
  .number({ error: 'must be a number above 0' })
  .positive({ error: 'must be a number above 0' });

function word(what: string) {
  const error = `must be ${what}`;
  return z.string({ error }).min(1, { error });
}

const COMMAND_FORM = 'must be a list of strings: the program that prints the token, and its arguments';

const oauth = strict({
  clientId: word('the id of the client at the authorization server'),
  clientSecret: word('the secret of the client').optional(),
  issuer: word('the URL of the authorization server; its credentials are shown to no other'),
  scope: word('the scopes to ask for, separated by spaces').optional(),
  refreshToken: word('the refresh token to begin with').optional(),
}).refine(({ clientSecret, refreshToken }) => clientSecret !== undefined || refreshToken !== undefined, {
  error: 'needs "clientSecret" (client credentials) or "refreshToken"',
});

/** As it is written: references to the environment are filled in later. */
export const auth = strict({
  bearer: word('the token, e.g. "${TOKEN}"').optional(),
  command: z
    .array(z.string({ error: COMMAND_FORM }), { error: COMMAND_FORM })
    .min(1, { error: COMMAND_FORM })
    .optional(),
  lifetime: duration.optional(),
  oauth: oauth.optional(),
})
  .refine(
    ({ bearer, command, oauth: grant }) =>
      [bearer, command, grant].filter((one) => one !== undefined).length === 1,
    {
      error: 'must have exactly one of "bearer", "command" and "oauth"',
    },
  )
  .refine(({ command, lifetime }) => command !== undefined || lifetime === undefined, {
    error: '"lifetime" goes with "command" only: other tokens say themselves how long they are good for',
  });
export type GivenAuth = z.infer<typeof auth>;

const shape = {
  protocol: oneOf(['auto', ...PUBLISHED]).default('auto'),
  auth: auth.optional(),
  maxPollsPerSecond: pollRate.default(1),
  /** Of every tool that says nothing else. */
  maxResultBytes: resultBytes.optional(),
  trustAnnotations: z.boolean({ error: 'must be true or false' }).default(false),
  tools: z
    .record(z.string(), toolSettings, { error: 'must be an object with one key per tool name' })
    .default({}),
};

export const DURABLE_KEYS: readonly string[] = Object.keys(shape);

/** The value under `durable`; everything in it may be left out. */
export const durableSettings = strict(shape);
export type DurableSettings = z.infer<typeof durableSettings>;
