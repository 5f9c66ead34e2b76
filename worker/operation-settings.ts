// Owns the shape of a declared method in `tool-servers.json` (`operationServers.NAME.durable`). Strict, like all of ours.
// Must never read the environment; headers, which may hold references to it, are read elsewhere.

import { z } from 'zod';
import { isJsonPointer } from '../operation/json-pointer.js';
import type { JsonObject } from '../operation/json.js';
import { LIMITS } from '../operation/limits.js';
import { guardSchema } from '../operation/schema-guard.js';
import { type DeclaredMethod, METHOD_VERBS, type OperationList } from '../protocols/declared-method.js';
import { parseTemplate, variablesOf } from '../protocols/aip-151/path-template.js';
import { listOf } from './configuration-error.js';
import {
  auth,
  commonShape,
  pollRate,
  resultBytes,
  type SubmissionSettings,
  type ToolSettings,
} from './durable-settings.js';
import { duration, keyName, oneOf, strict } from './strict-shapes.js';

/** What one method says, its headers still to be read. */
export interface MethodSettings {
  readonly settings: ToolSettings;
  readonly method: Omit<DeclaredMethod, 'headers'>;
}

const PATH_FORM = 'must be a path like "/{parent=projects/*}/things?thingId={id}"';
const OWN_FORM = 'must be a path like "/{name=**}:cancel"';
const BODY_FORM =
  'must be "*" (all arguments the path does not take), the name of one argument, or null for none';
const POINTER_FORM = 'must be a JSON pointer, e.g. "/metadata/createTime"';
const ARGUMENT = /^[A-Za-z_$][\w$-]*$/;

function template(form: string) {
  return z.string({ error: form }).superRefine((text, context) => {
    const parsed = parseTemplate(text);
    if (parsed.kind === 'mistake') context.addIssue({ code: 'custom', message: parsed.message });
  });
}

/** Of the operation's own methods: nothing but its name is known there. */
const ownPath = template(OWN_FORM).superRefine((text, context) => {
  const parsed = parseTemplate(text);
  if (parsed.kind === 'mistake') return;
  const names = variablesOf(parsed.template).map(({ name }) => name);
  if (names.length > 0 && names.every((name) => name === 'name')) return;
  context.addIssue({ code: 'custom', message: `${OWN_FORM}: its one variable is "name", the operation's` });
});

const ownPathOrNot = z.union([z.literal(false), ownPath], {
  error: `${OWN_FORM}, or false where it is not offered`,
});

const pointer = z.string({ error: POINTER_FORM }).refine(isJsonPointer, { error: POINTER_FORM });
const isTrue = z.boolean({ error: 'must be true or false' });
const MATCH_FORM =
  'must be an object of JSON pointers and the texts there, e.g. {"/metadata/database": "{database}"}';

const list = strict({
  path: template(PATH_FORM),
  match: z
    .record(z.string().refine(isJsonPointer), z.string({ error: MATCH_FORM }), { error: MATCH_FORM })
    .default({}),
  startedAt: pointer.optional(),
  idIsOurs: isTrue.default(false),
}).transform(({ startedAt, ...given }): OperationList => ({ ...given, startedAt: startedAt ?? null }));

const operation = strict({
  get: ownPath.default('/{name=**}'),
  cancel: ownPathOrNot.default('/{name=**}:cancel'),
  delete: ownPathOrNot.default('/{name=**}'),
  list: list.optional(),
});

const POLICIES = ['request-id', 'key-argument', 'operation-list', 'repeatable', 'at-most-once'] as const;

const submission = z.discriminatedUnion(
  'policy',
  [
    strict({
      policy: z.literal('key-argument'),
      argument: keyName('the name of the argument that takes the key'),
    }),
    ...(['request-id', 'operation-list', 'repeatable', 'at-most-once'] as const).map((policy) =>
      strict({ policy: z.literal(policy) }),
    ),
  ],
  { error: `must be an object whose "policy" is ${listOf(POLICIES)}` },
);

/** What the engine's clamp would silently make of another interval is told instead. */
const pollInterval = duration.refine(
  (intervalMs) => intervalMs >= LIMITS.pollFloorMs && intervalMs <= LIMITS.pollCeilingMs,
  { error: 'must be between "1s" and "5m"' },
);

/** One that could not be checked would refuse every call. */
const inputSchema = z
  .custom<JsonObject>((value) => typeof value === 'object' && value !== null && !Array.isArray(value), {
    error: 'must be a JSON schema (an object)',
  })
  .superRefine((schema, context) => {
    const guarded = guardSchema(schema);
    if (guarded.kind === 'refused') context.addIssue({ code: 'custom', message: guarded.reason });
  });

const method = strict({
  method: oneOf(METHOD_VERBS).default('POST'),
  path: template(PATH_FORM),
  body: z
    .union([z.literal('*'), z.string().regex(ARGUMENT, { error: BODY_FORM }), z.null()], { error: BODY_FORM })
    .optional(),
  headers: z.unknown().optional(),
  requestIdField: z
    .string({ error: 'must be the name of a field of the request' })
    .regex(ARGUMENT, { error: 'must be the name of a field of the request' })
    .optional(),
  requestIdWindow: duration.optional(),
  inputSchema: inputSchema.optional(),
  operation: operation.optional(),
  deleteAfterReceipt: isTrue.default(false),
  pollInterval: pollInterval.optional(),
  submission: submission.optional(),
  ...commonShape,
}).superRefine(crossCheck);

type Given = Omit<z.infer<typeof method>, never>;

/** What only the whole of a method shows. */
function crossCheck(given: Given, context: z.RefinementCtx): void {
  const wrong = (path: readonly string[], message: string): void =>
    context.addIssue({ code: 'custom', path: [...path], message });
  const { submission: chosen, requestIdField, requestIdWindow } = given;
  const listed = given.operation?.list;
  if (given.method === 'GET' && given.body != null) wrong(['body'], 'a GET carries no body: leave it out');
  if (chosen?.policy === 'request-id' && requestIdField === undefined)
    wrong(['submission', 'policy'], '"request-id" needs "requestIdField"');
  if (requestIdWindow !== undefined && requestIdField === undefined)
    wrong(['requestIdWindow'], 'says how long "requestIdField" is remembered, which is missing');
  if (chosen?.policy === 'operation-list' && !listed)
    wrong(['submission', 'policy'], '"operation-list" needs "operation.list"');
  if (chosen?.policy === 'repeatable' && given.sideEffects !== 'none')
    wrong(['submission', 'policy'], '"repeatable" needs "sideEffects": "none" on the tool');
  if (given.deleteAfterReceipt && given.operation?.delete === false)
    wrong(['deleteAfterReceipt'], 'needs "operation.delete", which is false');
  const isTold =
    listed && (listed.startedAt !== null || listed.idIsOurs || chosen?.policy === 'key-argument');
  if (listed && !isTold) {
    const message =
      'needs "startedAt" (a JSON pointer to the time an operation began) or "idIsOurs": true (nobody else chooses ' +
      'this id), or an operation of somebody else would be taken for ours';
    wrong(['operation', 'list'], message);
  }
}

const shape = {
  auth: auth.optional(),
  maxPollsPerSecond: pollRate.default(1),
  pollInterval: pollInterval.default(LIMITS.pollDefaultMs),
  /** Of every method that says nothing else. */
  maxResultBytes: resultBytes.optional(),
  tools: z.record(z.string(), method, { error: 'must be an object with one key per declared method' }),
};

/** The value under `durable` of an operation server. */
export const operationSettings = strict(shape);
type OperationSettings = z.infer<typeof operationSettings>;

export function methodSettingsOf(given: Given, server: OperationSettings): MethodSettings {
  const { requestIdField, requestIdWindow, deleteAfterReceipt, body } = given;
  const own = given.operation ?? operation.parse({});
  const hasBody = given.method === 'POST' || given.method === 'PUT' || given.method === 'PATCH';
  const requestId =
    requestIdField === undefined
      ? {}
      : { requestId: { field: requestIdField, windowMs: requestIdWindow ?? LIMITS.requestIdWindowMs } };
  return {
    settings: {
      waitBudgetMs: given.waitBudget ?? null,
      synchronousBoundMs: given.synchronousBound ?? null,
      ...(given.maxResultBytes === undefined ? {} : { maxResultBytes: given.maxResultBytes }),
      submission: submissionOf(given),
      sideEffects: given.sideEffects ?? 'unknown',
      onUnresolved: given.onUnresolved ?? { kind: 'hold' },
      ...requestId,
    },
    method: {
      verb: given.method,
      path: given.path,
      body: body === undefined ? (hasBody ? '*' : null) : body,
      requestIdField: requestIdField ?? null,
      inputSchema: given.inputSchema ?? null,
      operation: {
        get: own.get,
        cancel: own.cancel === false ? null : own.cancel,
        deleteAfterReceipt: deleteAfterReceipt && own.delete !== false ? own.delete : null,
        list: own.list ?? null,
        pollIntervalMs: given.pollInterval ?? server.pollInterval,
      },
    },
  };
}

function submissionOf({ submission: chosen, requestIdField }: Given): SubmissionSettings | null {
  if (!chosen) return null;
  if (chosen.policy === 'key-argument') return { policy: chosen.policy, keyName: chosen.argument };
  return { policy: chosen.policy, keyName: requestIdField ?? null };
}
