// Owns whether a server has the tools that a job declaration names, and what must be remembered of them.
// Must never call a tool: what does not fit is told before anything is sent.

import type { JobSettings, JobTool } from '../../operation/job-settings.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import { isPublished } from '../../operation/published-member.js';
import type { Negotiation, PublishedTool, ToolServer } from '../adapter.js';
import {
  describeTool,
  findDescriptor,
  publishedTool,
  unsupported,
  withLookUpTool,
} from '../mcp/describe-tool.js';
import { isObject } from '../json-members.js';
import { taskSupportOf } from '../mcp/negotiate.js';
import type { Redact } from '../redact.js';
import { type IdKind, jobSessionJson } from './job-session.js';

/** It stays in every row of the operation, so it is kept small; a larger one has to come with the question. */
const REPLY_SCHEMA_BYTES = 8 * 1024;

export interface WantedJob {
  readonly server: ToolServer;
  readonly tool: string;
  readonly job: JobSettings;
  readonly lookUpTool: string | undefined;
}

/** What was found out about the server. `session` null: it is spoken to without one. */
export interface FoundServer {
  readonly tools: readonly JsonObject[];
  readonly session: JsonObject | null;
  readonly serverVersion: string | null;
  readonly redact: Redact;
}

/** @throws WireFault ProtocolViolation where a tool publishes no input schema */
export function describeJob({ server, tool, job, lookUpTool }: WantedJob, found: FoundServer): Negotiation {
  const { tools, redact, session, serverVersion } = found;
  const start = findDescriptor(tools, server, tool, redact);
  if (start.kind !== 'found') return start;
  if (taskSupportOf(start.descriptor) === 'required')
    return unsupported(server, `the tool "${tool}" runs as a task only: take its "job" out`);
  const published = publishedTools(server, job, found);
  if (typeof published === 'string') return unsupported(server, published);
  const objection = objectionTo(job, published, outputSchemaOf(start.descriptor));
  if (objection !== null) return unsupported(server, objection);
  const replySchema = replySchemaOf(job, published.input);
  if (replySchema === 'tooLarge')
    return unsupported(server, `the arguments of "${job.input?.tool}" are too much: name job.input.schema`);
  const negotiated = describeTool(start.descriptor, {
    adapter: 'mcp/job-tools',
    session: jobSessionJson(session, {
      job,
      idKind: idKindOf(published.status.inputSchema, job.status.argument),
      replySchema,
    }),
    serverVersion,
    canList: false,
    hasTasks: true,
    canCancel: job.cancel !== null,
    redact,
  });
  const { outputSchema } = published.result ?? published.status;
  return withLookUpTool({ ...negotiated, outputSchema }, lookUpTool, tools, (second) =>
    publishedTool(second, taskSupportOf(second) === 'required', redact),
  );
}

type Role = 'status' | 'result' | 'cancel' | 'input';
const ROLES: readonly Role[] = ['status', 'result', 'cancel', 'input'];
type PublishedJob = { readonly status: PublishedTool } & { readonly [role in Role]?: PublishedTool };

/** Each named tool as it is published, or the sentence that says what to mend. */
function publishedTools(
  server: ToolServer,
  job: JobSettings,
  { tools, redact }: FoundServer,
): PublishedJob | string {
  const published: Partial<Record<Role, PublishedTool>> = {};
  for (const role of ROLES) {
    const named: JobTool | null = job[role];
    if (named === null) continue;
    const found = findDescriptor(tools, server, named.tool, redact);
    if (found.kind !== 'found') return `job.${role}.tool: ${found.message}`;
    if (taskSupportOf(found.descriptor) === 'required')
      return `job.${role}.tool: "${named.tool}" runs as a task only, and is needed as a plain call`;
    published[role] = publishedTool(found.descriptor, false, redact);
  }
  const { status } = published;
  if (!status) throw new Error('a job declaration without a status tool');
  return { ...published, status };
}

/** A tool that does not take the call as it will be made, or an answer that cannot hold what is read from it. */
function objectionTo(
  job: JobSettings,
  published: PublishedJob,
  startOutput: JsonObject | null,
): string | null {
  for (const role of ROLES) {
    const named = job[role];
    const inputSchema = published[role]?.inputSchema;
    if (!named || !inputSchema) continue;
    const miss = argumentObjection(job, role, named, inputSchema);
    if (miss !== null) return `job.${role}: the tool "${named.tool}" ${miss}`;
  }
  if (!isPublished(startOutput, job.idPointer))
    return `job.id: the tool publishes no ${job.idPointer} in its output`;
  const { outputSchema } = published.status;
  const missing = statusPointersOf(job).find(([, pointer]) => !isPublished(outputSchema, pointer));
  return missing
    ? `${missing[0]}: the tool "${job.status.tool}" publishes no ${missing[1]} in its output`
    : null;
}

function argumentObjection(job: JobSettings, role: Role, { argument }: JobTool, schema: JsonObject) {
  const keyArgument = role === 'input' ? (job.input?.key?.argument ?? null) : null;
  const given = [argument, ...(keyArgument === null ? [] : [keyArgument])];
  const { properties } = schema;
  const strange = given.find((name) => isObject(properties) && !Object.hasOwn(properties, name));
  if (strange !== undefined) return `has no argument "${strange}"`;
  // The reply of a person brings the rest.
  if (role === 'input') return null;
  const lacking = requiredBy(schema).find((name) => !given.includes(name));
  return lacking === undefined ? null : `needs the argument "${lacking}" too`;
}

function requiredBy({ required }: JsonObject): readonly string[] {
  if (!Array.isArray(required)) return [];
  return (required as readonly JsonValue[]).filter((name) => typeof name === 'string');
}

function statusPointersOf({ status, input }: JobSettings): readonly (readonly [string, string])[] {
  const pointers: readonly (readonly [string, string | null | undefined])[] = [
    ['job.status.pointer', status.pointer],
    ['job.status.id', status.idPointer],
    ['job.status.message', status.messagePointer],
    ['job.status.interval', status.interval?.kind === 'told' ? status.interval.pointer : null],
    ['job.input.question', input?.questionPointer],
    ['job.input.schema', input?.schemaPointer],
    ['job.input.key', input?.key?.pointer],
  ];
  return pointers.flatMap(([name, pointer]) => (pointer ? [[name, pointer] as const] : []));
}

/** What the status tool publishes decides; where it takes either, or does not say, the id goes back as it came. */
function idKindOf({ properties }: JsonObject, argument: string): IdKind {
  const property = isObject(properties) ? properties[argument] : undefined;
  const type = isObject(property) ? property['type'] : undefined;
  if (type === 'string') return 'string';
  return type === 'integer' || type === 'number' ? 'number' : 'asGiven';
}

/** What a person can fill in: the arguments that the declaration does not. */
function replySchemaOf({ input }: JobSettings, published: PublishedTool | undefined) {
  if (input === null || !published) return null;
  const { inputSchema } = published;
  const { properties } = inputSchema;
  const ours = [input.argument, ...(input.key?.argument ? [input.key.argument] : [])];
  const schema: JsonObject = {
    ...inputSchema,
    type: 'object',
    properties: isObject(properties)
      ? Object.fromEntries(Object.entries(properties).filter(([name]) => !ours.includes(name)))
      : {},
    required: requiredBy(inputSchema).filter((name) => !ours.includes(name)),
  };
  if (Buffer.byteLength(JSON.stringify(schema)) <= REPLY_SCHEMA_BYTES) return schema;
  return input.schemaPointer === null ? 'tooLarge' : null;
}

function outputSchemaOf({ outputSchema }: JsonObject): JsonObject | null {
  return isObject(outputSchema) ? outputSchema : null;
}
