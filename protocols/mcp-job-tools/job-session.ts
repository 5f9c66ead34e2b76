// Owns what finds a job again from any process: how its server is spoken to, and the declaration of its tools. It is the
// operation's session, and with the kind of the id the locator of its reference.
// Must never hold a credential, nor be read out of the configuration of the day.

import type { JobSettings } from '../../operation/job-settings.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import type { ToolServer } from '../adapter.js';
import type { RpcChannel } from '../mcp/channel.js';
import { violation } from '../mcp/faults.js';
import { isObject } from '../json-members.js';
import { channelOf, readSession } from '../mcp/session.js';

/** How an id goes into an argument. `asGiven`: no tool says, so it goes back as the kind of value that it came as. */
export type IdKind = 'string' | 'number' | 'asGiven';

export interface JobSession {
  readonly job: JobSettings;
  readonly idKind: IdKind;
  /** What a reply has to look like where the question does not say: the other arguments of the answer tool. */
  readonly replySchema: JsonObject | null;
}

/** All that one plain `tools/call` needs of a channel. */
export type PlainChannel = Pick<RpcChannel, 'request' | 'redact'>;

/** Opens the channel of the generation that needs no session (MCP 2026-07-28). */
export type SessionlessChannel = (server: ToolServer) => PlainChannel;

/** `wire`: the MCP session; null where the server is spoken to without one. */
export function jobSessionJson(wire: JsonObject | null, session: JobSession): JsonObject {
  const { job, idKind, replySchema } = session;
  return {
    ...wire,
    isSessionless: wire === null,
    job: job as unknown as JsonObject,
    idKind,
    ...(replySchema === null ? {} : { replySchema }),
  };
}

/** @throws WireFault ProtocolViolation when the stored JSON is not one of ours. */
export function readJobSession(json: JsonObject): JobSession {
  const { job, idKind, replySchema } = json;
  if (!isObject(job) || !isObject(job['status']))
    throw violation('the stored session has no job declaration');
  return {
    job: job as unknown as JobSettings,
    idKind: idKind === 'string' || idKind === 'number' ? idKind : 'asGiven',
    replySchema: isObject(replySchema) ? replySchema : null,
  };
}

export function isSessionless(json: JsonObject): boolean {
  return json['isSessionless'] === true;
}

export function jobChannelOf(
  server: ToolServer,
  json: JsonObject,
  sessionless: SessionlessChannel,
): PlainChannel {
  return isSessionless(json) ? sessionless(server) : channelOf(server, readSession(json));
}

/** The locator of a job whose id came as a number, or not. */
export function locatorOf(session: JsonObject, isNumber: boolean): JsonObject {
  const { idKind } = readJobSession(session);
  return idKind === 'asGiven' ? { ...session, idKind: isNumber ? 'number' : 'string' } : session;
}

/** The id as an argument: exactly the value that the server gave, or of the kind that its tools publish. */
export function idArgument(remoteId: string, { idKind }: JobSession): JsonValue {
  const number = Number(remoteId);
  const isExact = Number.isSafeInteger(number) && String(number) === remoteId;
  return idKind === 'number' && isExact ? number : remoteId;
}
