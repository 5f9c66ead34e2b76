// Owns the choice of the wire contract for one call, from what server and tool declare.
// Must never call a tool, and never leave behind a session that no operation will use.

import type { JsonObject } from '../../operation/json.js';
import type { AdapterName } from '../../operation/names.js';
import { LIMITS } from '../../operation/limits.js';
import { WireFault, type Negotiation, type ToolServer } from '../adapter.js';
import { describeTool, findDescriptor, publishedTool, unsupported, withLookUpTool } from './describe-tool.js';
import { refusedRead } from './faults.js';
import { isObject } from '../json-members.js';
import { COUNTS } from './pace.js';
import {
  listTools,
  openSession,
  readPages,
  sessionJson,
  type McpSession,
  type OpenedSession,
} from './session.js';

/** @throws WireFault NotSent | Transient | ProtocolViolation */
export async function negotiateMcp(
  server: ToolServer,
  tool: string,
  lookUpTool?: string,
): Promise<Negotiation> {
  const opening = await openSession(server);
  if (opening.kind === 'unsupported') {
    return {
      kind: 'unsupported',
      message: `${server.name}: ${opening.message}. Check "${server.program ? 'command' : 'url'}" of this server.`,
    };
  }
  const { opened } = opening;
  let isKept = false;
  try {
    const negotiation = await choose(server, { tool, lookUpTool }, opened);
    isKept = negotiation.kind === 'negotiated';
    return negotiation;
  } catch (error) {
    throw refusedRead(error);
  } finally {
    if (!isKept) await opened.channel.end(LIMITS.releaseTimeoutMs);
  }
}

interface Wanted {
  readonly tool: string;
  readonly lookUpTool: string | undefined;
}

async function choose(
  server: ToolServer,
  { tool, lookUpTool }: Wanted,
  opened: OpenedSession,
): Promise<Negotiation> {
  const tools = await listTools(opened.channel);
  const found = findDescriptor(tools, server, tool, opened.channel.redact);
  if (found.kind !== 'found') return found;
  const { descriptor } = found;
  const choice = chooseContract(server, tool, taskSupportOf(descriptor), opened.hasTaskCalls);
  if (choice.kind === 'unsupported') return choice;
  const { adapter } = choice;
  const withTasks = adapter === 'mcp/2025-11-25';
  const canReplay =
    opened.session.canReplay || (opened.session.sessionId !== null && opened.channel.hasPrimingEvents);
  const canList = withTasks && opened.session.canList;
  const session: McpSession = {
    ...opened.session,
    canReplay,
    canList,
    canCancel: withTasks && opened.session.canCancel,
    listWasEmpty: canList ? await isListEmpty(opened) : null,
  };
  const negotiated = describeTool(descriptor, {
    adapter,
    session: sessionJson(session),
    serverVersion: opened.serverVersion,
    // Offered only where a look-up can ever tell: without a session the list shows other operations' tasks too.
    canList: session.canList && session.sessionId !== null && session.listWasEmpty === true,
    hasTasks: withTasks,
    canCancel: session.canCancel,
    redact: opened.channel.redact,
  });
  return withLookUpTool(negotiated, lookUpTool, tools, (second) =>
    publishedTool(second, taskSupportOf(second) === 'required', opened.channel.redact),
  );
}

type TaskSupport = 'forbidden' | 'optional' | 'required';
type Choice =
  | { readonly kind: 'chosen'; readonly adapter: AdapterName }
  | { readonly kind: 'unsupported'; readonly message: string };

/** Absent or an unknown word means forbidden (2025-11-25, "tool-level negotiation"): such a body may run at once. */
export function taskSupportOf(descriptor: JsonObject): TaskSupport {
  const execution = descriptor['execution'];
  const support = isObject(execution) ? execution['taskSupport'] : undefined;
  return support === 'optional' || support === 'required' ? support : 'forbidden';
}

function chooseContract(
  server: ToolServer,
  tool: string,
  support: TaskSupport,
  hasTaskCalls: boolean,
): Choice {
  const pin = server.protocol;
  const hasTasks = hasTaskCalls && support !== 'forbidden';
  if (support === 'required' && !hasTaskCalls) {
    return unsupported(
      server,
      `the tool "${tool}" requires tasks, but the server does not declare tasks.requests.tools.call ` +
        'for MCP 2025-11-25. No "protocol" setting helps: the server has to declare it.',
    );
  }
  if (pin === 'synchronous') {
    if (support !== 'required') return { kind: 'chosen', adapter: 'synchronous' };
    return unsupported(
      server,
      `"protocol" is "synchronous", but the tool "${tool}" requires tasks. ` +
        'Set "protocol" to "auto" or "mcp/2025-11-25".',
    );
  }
  if (hasTasks) return { kind: 'chosen', adapter: 'mcp/2025-11-25' };
  if (pin === 'auto') return { kind: 'chosen', adapter: 'synchronous' };
  const lack = hasTaskCalls
    ? `the tool "${tool}" does not take tasks`
    : 'the server does not declare tasks for tool calls';
  return unsupported(
    server,
    `"protocol" is "${pin}", but ${lack}. Set "protocol" to "auto" or "synchronous".`,
  );
}

/** null where the server declares a list and then refuses it: nothing can be looked up, which is no reason not to submit. */
async function isListEmpty(opened: OpenedSession): Promise<boolean | null> {
  try {
    return (await readPages(opened.channel, 'tasks/list', 'tasks', COUNTS.taskPages)).length === 0;
  } catch (error) {
    if (WireFault.isInstance(error) && (error.wireCode === -32601 || error.wireCode === -32602)) return null;
    throw error;
  }
}
