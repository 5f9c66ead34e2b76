// Owns the choice of the generation that a server is spoken to in, for one call.
// Must never call a tool, nor leave a session behind that no operation will use.

import type { JobSettings } from '../operation/job-settings.js';
import type { Negotiation, ToolServer } from './adapter.js';
import { negotiateDeclared } from './aip-151/negotiate.js';
import { unsupported } from './mcp/describe-tool.js';
import { negotiateMcp } from './mcp/negotiate.js';
import { releaseSession } from './mcp/session.js';
import { discover, negotiateModern } from './mcp-2026-07-28/negotiate.js';
import { negotiateJob } from './negotiate-job.js';

/** How long a server that speaks no MCP 2026-07-28 is not asked again (ms): it may be deployed anew. */
const REMEMBERED_MS = 10 * 60_000;

/**
 * `auto` takes, in this order: tasks of 2025-11-25, which can be looked up after a lost reply; 2026-07-28 where the server
 * offers its tasks extension; a plain call. What was found out is pinned with the operation.
 */
export function createNegotiation(nowMs: () => number = Date.now) {
  const askedAt = new Map<string, number>();

  const discoverOnce = async (server: ToolServer) => {
    const place = JSON.stringify([server.name, server.url]);
    const spokeNotAt = askedAt.get(place);
    if (spokeNotAt !== undefined && nowMs() < spokeNotAt + REMEMBERED_MS) return null;
    const discovered = await discover(server);
    if (discovered === null) askedAt.set(place, nowMs());
    return discovered;
  };

  return async function negotiate(
    server: ToolServer,
    tool: string,
    lookUpTool?: string,
    job?: JobSettings,
  ): Promise<Negotiation> {
    if (server.protocol === 'aip-151') return negotiateDeclared(server, tool);
    if (job) return negotiateJob({ server, tool, job, lookUpTool }, discoverOnce);
    if (server.protocol === 'mcp/job-tools') return undeclared(server, tool);
    if (server.protocol === 'mcp/2026-07-28') return negotiatePinned(server, tool, lookUpTool);
    const legacy = await negotiateMcp(server, tool, lookUpTool);
    if (server.protocol !== 'auto' || isTasked(legacy)) return legacy;
    const release = async (): Promise<void> => {
      if (legacy.kind === 'negotiated') await releaseSession(server, legacy.negotiated.session);
    };
    try {
      const discovered = await discoverOnce(server);
      const isBetter = discovered !== null && (discovered.hasTasks || legacy.kind === 'unsupported');
      if (!isBetter) return legacy;
      const modern = await negotiateModern(server, { tool, lookUpTool }, discovered);
      await release();
      return modern;
    } catch (error) {
      await release();
      throw error;
    }
  };
}

function undeclared(server: ToolServer, tool: string): Negotiation {
  return unsupported(
    server,
    `"protocol" is "mcp/job-tools", but the tool "${tool}" has no "job" declaration. ` +
      'Declare it, or set "protocol" to "auto".',
  );
}

function isTasked(negotiation: Negotiation): boolean {
  return negotiation.kind === 'negotiated' && negotiation.negotiated.hasTasks;
}

/** @throws WireFault */
async function negotiatePinned(
  server: ToolServer,
  tool: string,
  lookUpTool: string | undefined,
): Promise<Negotiation> {
  const discovered = await discover(server);
  if (discovered) return negotiateModern(server, { tool, lookUpTool }, discovered);
  return {
    kind: 'unsupported',
    message:
      `${server.name}: "protocol" is "mcp/2026-07-28", but the server does not speak it (server/discover). ` +
      `Check "${server.program ? 'command' : 'url'}", or set "protocol" to "auto".`,
  };
}
