// Owns the look at a configured server for a doctor: is it there, what does it speak, which tools does it publish.
// Must never call a tool, nor leave a session behind.

import { LIMITS } from '../operation/limits.js';
import { type ToolServer, WireFault } from '../protocols/adapter.js';
import { CredentialFault } from '../protocols/credentials/credential-fault.js';
import { keeperOf } from '../protocols/credentials/keepers.js';
import { listTools, openSession } from '../protocols/mcp/session.js';
import { endProgram } from '../protocols/mcp/stdio-channel.js';
import { redactorOf } from '../protocols/redact.js';
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
  } finally {
    await endProgram(configured.server);
  }
}

export type CredentialInspection =
  | { readonly kind: 'had'; readonly what: string }
  | { readonly kind: 'missing'; readonly why: string };

/** Whether the server's credential can be had now; null where it needs none beyond its entry. Never throws. */
export async function inspectCredential({ server }: ConfiguredServer): Promise<CredentialInspection | null> {
  const { auth } = server;
  if (!auth) return null;
  if (auth.kind === 'bearer') return { kind: 'had', what: 'a bearer token from the configuration' };
  const keeper = keeperOf(server);
  if (!keeper) return null;
  try {
    await keeper.token();
  } catch (error) {
    if (!(error instanceof CredentialFault)) throw error;
    return { kind: 'missing', why: redactorOf(server)(error.message) };
  }
  const source = auth.kind === 'command' ? 'a token from its command' : `a token from ${auth.issuer}`;
  const expiresAt = keeper.expiresAt();
  const until =
    expiresAt === null ? 'until it is refused' : `for ${Math.round((expiresAt - Date.now()) / 1_000)} s`;
  return { kind: 'had', what: `${source}, good ${until}` };
}

async function inspect(server: ToolServer, named: readonly string[]): Promise<ServerInspection> {
  const opening = await openSession(server);
  if (opening.kind === 'unsupported')
    return {
      kind: 'unusable',
      why: `${opening.message}; check "${server.program ? 'command' : 'url'}" of this server`,
    };
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
