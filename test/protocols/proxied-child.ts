// Owns one look at a server from a process whose environment names proxy and authorities: Node reads them at its start.
// Must never decide what is right: it prints what happened.

import { exchange, HttpFault } from '../../protocols/http.js';
import { WireFault } from '../../protocols/adapter.js';
import { createProtocolRegistry } from '../../protocols/registry.js';

export interface ProxiedLook {
  readonly url: string;
  /** Negotiate with an MCP server, instead of one plain GET. */
  readonly tool: string | null;
}

const { url, tool } = JSON.parse(process.argv[2] ?? 'null') as ProxiedLook;
console.log(JSON.stringify(tool === null ? await get() : await negotiate(tool)));
process.exit();

async function get(): Promise<object> {
  const limits = { connectTimeoutMs: 5_000, totalTimeoutMs: 5_000, maxReplyBytes: 10_000 };
  try {
    const reply = await exchange({
      method: 'GET',
      url,
      headers: { 'x-token': 'T0ken' },
      body: null,
      ...limits,
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of reply.body) chunks.push(chunk);
    return { status: reply.status, body: Buffer.concat(chunks).toString() };
  } catch (error) {
    if (!(error instanceof HttpFault)) throw error;
    return { reason: error.reason, isSent: error.isSent, message: error.message };
  }
}

async function negotiate(name: string): Promise<object> {
  const settings = { headers: {}, protocol: 'auto', maxPollsPerSecond: 9, trustAnnotations: false } as const;
  const server = { name: 'proxied', url, ...settings };
  try {
    const negotiation = await createProtocolRegistry().negotiate(server, name);
    return negotiation.kind === 'negotiated' ? { adapter: negotiation.negotiated.adapter } : negotiation;
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    return { kind: error.kind, message: error.message };
  }
}
