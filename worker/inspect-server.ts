// Owns the look at a configured server for a doctor: is it there, what does it speak, which tools does it publish.
// Must never call a tool, nor leave a session behind.

import { LIMITS } from '../operation/limits.js';
import { type ToolServer, WireFault } from '../protocols/adapter.js';
import { listTools, openSession } from '../protocols/mcp/session.js';
import { nearestWord } from './nearest-word.js';
import { serverSentence } from './preflight.js';
import type { ConfiguredServer } from './tool-servers.js';

export type ServerInspection =
  | {
      readonly kind: 'reached';
      readonly protocolVersion: string;
      /** The server takes tool calls as tasks. */
      readonly hasTasks: boolean;
      readonly toolNames: readonly string[];
      /** Tools with settings that the server does not publish, each with the nearest name it does. */
      readonly strangers: readonly { readonly name: string; readonly nearest: string | null }[];
    }
  /** Nothing can be asked of it without starting work. */
  | { readonly kind: 'declared'; readonly toolNames: readonly string[] }
  | { readonly kind: 'unusable'; readonly why: string };

/** Never throws for what the server does. */
export async function inspectServer(configured: ConfiguredServer): Promise<ServerInspection> {
  if (configured.unavailable !== null) return { kind: 'unusable', why: configured.unavailable };
  if (configured.server.methods)
    return { kind: 'declared', toolNames: Object.keys(configured.server.methods) };
  try {
    return await inspect(configured.server, Object.keys(configured.tools));
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    return { kind: 'unusable', why: serverSentence(error, configured.server) };
  }
}

async function inspect(server: ToolServer, named: readonly string[]): Promise<ServerInspection> {
  const opening = await openSession(server);
  if (opening.kind === 'unsupported')
    return { kind: 'unusable', why: `${opening.message}; check "url" of this server` };
  const { channel, session, hasTaskCalls } = opening.opened;
  try {
    const toolNames = (await listTools(channel)).map((tool) => tool['name'] as string);
    const strangers = named
      .filter((name) => !toolNames.includes(name))
      .map((name) => ({ name, nearest: nearestWord(name, toolNames) ?? null }));
    const { protocolVersion } = session;
    return { kind: 'reached', protocolVersion, hasTasks: hasTaskCalls, toolNames, strangers };
  } finally {
    await channel.end(LIMITS.releaseTimeoutMs);
  }
}
