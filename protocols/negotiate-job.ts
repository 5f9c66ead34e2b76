// Owns the choice of the generation that a job's tools are called in: without a session where the server can, because
// there is then none to lose.
// Must never call a tool, nor leave a session behind that no operation will use.

import { LIMITS } from '../operation/limits.js';
import type { Negotiation, ToolServer } from './adapter.js';
import { unsupported } from './mcp/describe-tool.js';
import { refusedRead } from './mcp/faults.js';
import { listTools, openSession, sessionJson } from './mcp/session.js';
import { ModernChannel } from './mcp-2026-07-28/modern-channel.js';
import type { Discovered } from './mcp-2026-07-28/negotiate.js';
import { describeJob, type WantedJob } from './mcp-job-tools/negotiate.js';

type Discover = (server: ToolServer) => Promise<Discovered | null>;

/** "protocol" says which generation; `auto` and `mcp/job-tools` find it. @throws WireFault NotSent | Transient | ProtocolViolation */
export async function negotiateJob(wanted: WantedJob, discover: Discover): Promise<Negotiation> {
  const { server } = wanted;
  const mustBeSessionless = server.protocol === 'mcp/2026-07-28';
  const mayBeSessionless =
    mustBeSessionless || server.protocol === 'auto' || server.protocol === 'mcp/job-tools';
  const discovered = mayBeSessionless ? await discover(server) : null;
  if (discovered) return inNoSession(wanted, discovered);
  if (!mustBeSessionless) return inSession(wanted);
  return unsupported(
    server,
    '"protocol" is "mcp/2026-07-28", but the server does not speak it (server/discover): set it to "auto"',
  );
}

async function inNoSession(wanted: WantedJob, { serverVersion }: Discovered): Promise<Negotiation> {
  const channel = new ModernChannel(wanted.server, 'plain');
  const { redact } = channel;
  const tools = await listTools(channel).catch((error: unknown) => {
    throw refusedRead(error);
  });
  return describeJob(wanted, { tools, session: null, serverVersion, redact });
}

async function inSession(wanted: WantedJob): Promise<Negotiation> {
  const { server } = wanted;
  const opening = await openSession(server);
  if (opening.kind === 'unsupported')
    return unsupported(
      server,
      `${opening.message}. Check "${server.program ? 'command' : 'url'}" of this server.`,
    );
  const { channel, session, serverVersion } = opening.opened;
  let isKept = false;
  try {
    const tools = await listTools(channel);
    const found = { tools, session: sessionJson(session), serverVersion, redact: channel.redact };
    const negotiation = describeJob(wanted, found);
    isKept = negotiation.kind === 'negotiated';
    return negotiation;
  } catch (error) {
    throw refusedRead(error);
  } finally {
    if (!isKept) await channel.end(LIMITS.releaseTimeoutMs);
  }
}
