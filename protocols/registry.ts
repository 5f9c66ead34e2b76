// Owns the door to all wire contracts: negotiation, and the adapter that an operation is pinned to.
// Must never hold state of an operation, nor choose again for one that was submitted.

import type { AdapterName } from '../operation/names.js';
import type { ProtocolRegistry, ToolAdapter } from './adapter.js';
import { Aip151Adapter } from './aip-151/adapter.js';
import { Mcp20251125Adapter } from './mcp-2025-11-25/adapter.js';
import { Mcp20260728Adapter } from './mcp-2026-07-28/adapter.js';
import { ModernChannel } from './mcp-2026-07-28/modern-channel.js';
import { McpJobToolsAdapter } from './mcp-job-tools/adapter.js';
import { createNegotiation } from './negotiate.js';
import { SynchronousAdapter } from './synchronous/adapter.js';

export function createProtocolRegistry(): ProtocolRegistry {
  const adapters: Readonly<Record<AdapterName, ToolAdapter>> = {
    'mcp/2025-11-25': new Mcp20251125Adapter(),
    'mcp/2026-07-28': new Mcp20260728Adapter(),
    'aip-151': new Aip151Adapter(),
    'mcp/job-tools': new McpJobToolsAdapter((server) => new ModernChannel(server, 'plain')),
    synchronous: new SynchronousAdapter(),
  };
  return { negotiate: createNegotiation(), adapter: (name) => adapters[name] };
}
