// Owns finding out whether a server speaks MCP 2026-07-28, and what it publishes about a tool there.
// Must never call a tool. There is no session: nothing is left behind.

import type { JsonValue } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { clip } from '../../operation/policy.js';
import type { Negotiation, ToolServer } from '../adapter.js';
import { describeTool, findDescriptor, publishedTool, withLookUpTool } from '../mcp/describe-tool.js';
import { refusedRead, wireFaultOf } from '../mcp/faults.js';
import { isObject } from '../json-members.js';
import type { RpcOutcome } from '../mcp/rpc-outcome.js';
import { listTools } from '../mcp/session.js';
import { PROTOCOL_VERSION, TASKS_EXTENSION } from './encode.js';
import { ModernChannel } from './modern-channel.js';

export interface Discovered {
  /** The server may answer a tool call with a task. */
  readonly hasTasks: boolean;
  readonly serverVersion: string | null;
}

/** What `server/discover` says; null where the server does not speak this revision. @throws WireFault NotSent | Transient */
export async function discover(server: ToolServer): Promise<Discovered | null> {
  const channel = new ModernChannel(server);
  const outcome = await channel.request('server/discover', {}, { timeoutMs: LIMITS.requestTimeoutMs });
  if (outcome.kind === 'result') return readDiscovery(outcome.value, channel.redact);
  if (isNotNow(outcome)) throw wireFaultOf(outcome, 'server/discover');
  return null;
}

/** Everything but "not now" is the word of a server of another revision: 4xx, -32601, a page of HTML, an empty reply. */
function isNotNow(outcome: Exclude<RpcOutcome, { kind: 'result' }>): boolean {
  if (outcome.kind === 'notSent') return true;
  if (outcome.kind === 'error' || outcome.kind === 'status') {
    return (
      outcome.status === 429 || outcome.status === 502 || outcome.status === 503 || outcome.status === 504
    );
  }
  return outcome.kind === 'lost' && !outcome.isContractBreach;
}

function readDiscovery(value: JsonValue, redact: (text: string) => string): Discovered | null {
  if (!isObject(value)) return null;
  const versions = value['supportedVersions'];
  if (!Array.isArray(versions) || !versions.includes(PROTOCOL_VERSION)) return null;
  const capabilities = isObject(value['capabilities']) ? value['capabilities'] : {};
  const extensions = isObject(capabilities['extensions']) ? capabilities['extensions'] : {};
  const meta = isObject(value['_meta']) ? value['_meta'] : {};
  const info = value['serverInfo'] ?? meta['io.modelcontextprotocol/serverInfo'];
  const version = isObject(info) ? info['version'] : undefined;
  return {
    hasTasks: isObject(extensions[TASKS_EXTENSION]),
    serverVersion: typeof version === 'string' ? clip(redact(version), 200) : null,
  };
}

/** @throws WireFault NotSent | Transient | ProtocolViolation */
export async function negotiateModern(
  server: ToolServer,
  { tool, lookUpTool }: { readonly tool: string; readonly lookUpTool: string | undefined },
  discovered: Discovered,
): Promise<Negotiation> {
  const channel = new ModernChannel(server);
  const { redact } = channel;
  const tools = await listTools(channel).catch((error: unknown) => {
    throw refusedRead(error);
  });
  const found = findDescriptor(tools, server, tool, redact);
  if (found.kind !== 'found') return found;
  const negotiated = describeTool(found.descriptor, {
    adapter: 'mcp/2026-07-28',
    session: {},
    serverVersion: discovered.serverVersion,
    canList: false,
    hasTasks: discovered.hasTasks,
    canCancel: discovered.hasTasks,
    redact,
  });
  // This generation's tool list says nothing of tasks.
  return withLookUpTool(negotiated, lookUpTool, tools, (second) => publishedTool(second, false, redact));
}
