// Owns one MCP session: opening it, what must be remembered of it, finding a tool's descriptor in it, ending it.
// Must never put a header or a credential into what is remembered.

import { InitializeResultSchema } from '@modelcontextprotocol/sdk/types.js';
import type { JsonObject, JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import { WireFault, type ToolServer } from '../adapter.js';
import type { RpcChannel } from './channel.js';
import { isSessionLost, violation, wireFaultOf } from './faults.js';
import { isObject } from '../json-members.js';
import { openChannel } from './open-channel.js';
import { COUNTS } from './pace.js';

const TASKS_VERSION = '2025-11-25';
/** Revisions whose plain `tools/call` over streamable HTTP is the same. */
const SPOKEN_VERSIONS: readonly string[] = [TASKS_VERSION, '2025-06-18', '2025-03-26'];

/** All that a later process needs to go on; it is the session's and the locator's JSON. */
export interface McpSession {
  readonly sessionId: string | null;
  readonly protocolVersion: string;
  readonly canList: boolean;
  readonly canCancel: boolean;
  /** Streams begin with an event id that a lost question can be replayed from. */
  readonly canReplay: boolean;
  /** `tasks/list` showed nothing before anything was submitted; null = not asked. */
  readonly listWasEmpty: boolean | null;
}

export interface OpenedSession {
  readonly session: McpSession;
  readonly channel: RpcChannel;
  readonly hasTaskCalls: boolean;
  readonly serverVersion: string | null;
}

export type Opening =
  | { readonly kind: 'opened'; readonly opened: OpenedSession }
  | { readonly kind: 'unsupported'; readonly message: string };

// `tasks: {}`: we ask for tasks, but take none ourselves; declaring `requests` would invite task-augmented questions.
const CLIENT = {
  protocolVersion: TASKS_VERSION,
  capabilities: { elicitation: { form: {}, url: {} }, tasks: {} },
  clientInfo: { name: 'durable-tool-calls', version: '1' },
} satisfies JsonObject;

/** JSON-RPC codes that say "not this method, not this revision" rather than "not now". */
const NOT_SPOKEN: readonly number[] = [-32601, -32602, -32600, -32022, -32021];

/** @throws WireFault NotSent | Transient | ProtocolViolation */
export async function openSession(server: ToolServer): Promise<Opening> {
  const timeoutMs = LIMITS.requestTimeoutMs;
  const greeting = openChannel(server, { sessionId: null, protocolVersion: null });
  const outcome = await greeting.request('initialize', CLIENT, { timeoutMs });
  // A 5xx or 429 comes from whoever gave up on the request, whatever its body claims: that says "not now".
  const isNow = outcome.kind === 'error' && outcome.status < 500 && outcome.status !== 429;
  if (isNow && NOT_SPOKEN.includes(outcome.code)) {
    return { kind: 'unsupported', message: `the server refused to initialize (JSON-RPC ${outcome.code})` };
  }
  if (outcome.kind !== 'result') throw wireFaultOf(outcome, 'initialize');
  const greeted = InitializeResultSchema.safeParse(outcome.value);
  if (!greeted.success) throw violation('the reply to initialize does not have its shape');
  const { protocolVersion, capabilities, serverInfo } = greeted.data;
  // "visible ASCII characters only" (streamable HTTP, session management); anything else could not be sent back.
  if (outcome.sessionId !== null && !/^[\x21-\x7e]{1,1024}$/.test(outcome.sessionId)) {
    throw violation('the session id is not visible ASCII');
  }
  const channel = openChannel(server, { sessionId: outcome.sessionId, protocolVersion });
  if (!SPOKEN_VERSIONS.includes(protocolVersion)) {
    await channel.end(LIMITS.releaseTimeoutMs);
    return {
      kind: 'unsupported',
      message: `the server speaks MCP ${clip(channel.redact(protocolVersion), 40)}, which is not spoken here`,
    };
  }
  await sayInitialized(channel, timeoutMs);
  const tasks = protocolVersion === TASKS_VERSION ? capabilities.tasks : undefined;
  const session: McpSession = {
    sessionId: outcome.sessionId,
    protocolVersion,
    // One process holds the tasks of all operations: its list says nothing about one of them.
    canList: tasks?.list !== undefined && !channel.isShared,
    canCancel: tasks?.cancel !== undefined,
    canReplay: outcome.sessionId !== null && greeting.hasPrimingEvents,
    listWasEmpty: null,
  };
  const hasTaskCalls = tasks?.requests?.tools?.call !== undefined;
  const serverVersion = clip(channel.redact(serverInfo.version), 200);
  return { kind: 'opened', opened: { session, channel, hasTaskCalls, serverVersion } };
}

async function sayInitialized(channel: RpcChannel, timeoutMs: number): Promise<void> {
  const ready = await channel.post({ method: 'notifications/initialized' }, { timeoutMs });
  if (ready.kind === 'status' && ready.status < 300) return;
  await channel.end(LIMITS.releaseTimeoutMs);
  throw ready.kind === 'result'
    ? violation('a notification was answered')
    : wireFaultOf(ready, 'notifications/initialized');
}

export function sessionJson(session: McpSession): JsonObject {
  return { ...session };
}

/** @throws WireFault ProtocolViolation when the stored JSON is not one of ours. */
export function readSession(json: JsonObject): McpSession {
  const { sessionId, protocolVersion, canList, canCancel, canReplay, listWasEmpty } = json;
  if ((typeof sessionId !== 'string' && sessionId !== null) || typeof protocolVersion !== 'string') {
    throw violation('the stored session lacks its id or version');
  }
  return {
    sessionId,
    protocolVersion,
    canList: canList === true,
    canCancel: canCancel === true,
    canReplay: canReplay === true,
    listWasEmpty: typeof listWasEmpty === 'boolean' ? listWasEmpty : null,
  };
}

export function channelOf(server: ToolServer, session: McpSession): RpcChannel {
  return openChannel(server, session);
}

/** Every entry of a paged list. @throws WireFault */
export async function readPages(
  channel: Pick<RpcChannel, 'request'>,
  method: 'tools/list' | 'tasks/list',
  member: 'tools' | 'tasks',
  maxPages: number,
): Promise<readonly JsonValue[]> {
  const entries: JsonValue[] = [];
  const seen = new Set<string>();
  let cursor: string | null = null;
  let maxReplyBytes: number = LIMITS.wireListBytes;
  for (let page = 0; page < maxPages; page += 1) {
    const params: JsonObject = cursor === null ? {} : { cursor };
    const timeoutMs = LIMITS.requestTimeoutMs;
    const outcome = await channel.request(method, params, { timeoutMs, maxReplyBytes });
    if (outcome.kind !== 'result') {
      const fault = wireFaultOf(outcome, method);
      throw isSessionLost(outcome) ? new WireFault('SessionLost', fault.message, fault) : fault;
    }
    maxReplyBytes -= outcome.bytes.byteLength;
    const value: JsonValue = outcome.value;
    const entriesOfPage = isObject(value) ? value[member] : undefined;
    if (!isObject(value) || !Array.isArray(entriesOfPage))
      throw violation(`the reply to ${method} has no list`);
    entries.push(...(entriesOfPage as readonly JsonValue[]));
    const next: JsonValue | undefined = value['nextCursor'];
    if (typeof next !== 'string') return entries;
    if (seen.has(next)) throw violation(`${method} gave the same cursor twice`);
    seen.add(next);
    cursor = next;
  }
  throw violation(`${method} has more than ${maxPages} pages`);
}

/** @throws WireFault */
export async function listTools(channel: Pick<RpcChannel, 'request'>): Promise<readonly JsonObject[]> {
  const tools = await readPages(channel, 'tools/list', 'tools', COUNTS.toolPages);
  return tools.filter((tool): tool is JsonObject => isObject(tool) && typeof tool['name'] === 'string');
}

/** Best effort, never throws. */
export async function releaseSession(server: ToolServer, json: JsonObject): Promise<void> {
  try {
    await channelOf(server, readSession(json)).end(LIMITS.releaseTimeoutMs);
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
  }
}
