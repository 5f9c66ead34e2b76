// Owns the look at a server before a call is submitted: everything that can be refused while nothing is written yet.
// Must never call a tool, nor leave a session behind.

import { submissionKey } from '../operation/digests.js';
import type { JsonObject } from '../operation/json.js';
import { LIMITS } from '../operation/limits.js';
import { keyPlaceOf } from '../operation/policy.js';
import { checkSchema, digests } from '../primitives/node-primitives.js';
import { type Negotiated, type Negotiation, type ToolServer, WireFault } from '../protocols/adapter.js';
import { endProgram } from '../protocols/mcp/stdio-channel.js';
import { createProtocolRegistry } from '../protocols/registry.js';
import { nearestWord } from './nearest-word.js';
import { policyOf, type ToolServersConfig } from './tool-servers.js';

export type PreflightErrorCode =
  | 'unknown-server'
  | 'unavailable-server'
  | 'unknown-tool'
  | 'bad-arguments'
  | 'unsupported'
  | 'unreachable';

const brand: unique symbol = Symbol.for('durable-tool-calls/PreflightError');

/** Why the call cannot be made, in one sentence without arguments or credentials. Nothing was started. */
export class PreflightError extends Error {
  override readonly name = 'PreflightError';
  readonly code: PreflightErrorCode;
  readonly [brand] = true;

  constructor(code: PreflightErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Works over two copies of this package in one process, where `instanceof` does not. */
  static isInstance(value: unknown): value is PreflightError {
    return typeof value === 'object' && value !== null && brand in value;
  }
}

/**
 * Negotiates as the submission will, checks the arguments against the tool's published schema, and ends the session.
 * A pass is no promise: the submission asks again, and its answer is the one that counts.
 *
 * @throws PreflightError
 */
export async function preflight(
  config: ToolServersConfig,
  serverName: string,
  tool: string,
  args: JsonObject,
): Promise<void> {
  const server = configuredServer(config, serverName);
  const argumentsBytes = Buffer.byteLength(JSON.stringify(args));
  if (argumentsBytes > LIMITS.argumentsBytes) {
    throw new PreflightError(
      'bad-arguments',
      `the arguments have ${argumentsBytes} bytes, more than ${LIMITS.argumentsBytes}; hand large data over by reference`,
    );
  }
  const negotiation = await negotiatedOnce(server, tool);
  const { submissionPolicy, keyName, lookUp } = policyOf(config.servers.get(serverName), tool);
  // The key's value is derived later; one of the same form is as good for the schema.
  const keyed =
    keyPlaceOf(submissionPolicy, lookUp) === 'argument' && keyName !== null
      ? { ...args, [keyName]: submissionKey('preflight', digests) }
      : args;
  const miss = checkSchema(negotiation.inputSchema, keyed) ?? negotiation.objectionTo?.(keyed) ?? null;
  if (miss === null) return;
  throw new PreflightError('bad-arguments', `the arguments do not fit "${tool}" of ${serverName}: ${miss}`);
}

async function negotiatedOnce(server: ToolServer, tool: string): Promise<Negotiated> {
  const protocols = createProtocolRegistry();
  try {
    const negotiation = await negotiated(() => protocols.negotiate(server, tool), server);
    await protocols.adapter(negotiation.adapter).release(server, negotiation.session);
    return negotiation;
  } finally {
    // A process of this look alone; the worker has its own.
    await endProgram(server);
  }
}

function configuredServer(config: ToolServersConfig, name: string): ToolServer {
  const configured = config.servers.get(name);
  if (!configured) {
    const names = [...config.servers.keys()];
    const near = nearestWord(name, names);
    const hint = near === undefined ? 'none is configured' : `did you mean "${near}"?`;
    throw new PreflightError(
      'unknown-server',
      `no tool server is named "${name}" in the configuration; ${hint}`,
    );
  }
  if (configured.unavailable !== null) {
    throw new PreflightError('unavailable-server', `${name} cannot be used: ${configured.unavailable}`);
  }
  return configured.server;
}

async function negotiated(negotiate: () => Promise<Negotiation>, server: ToolServer): Promise<Negotiated> {
  let negotiation: Negotiation;
  try {
    negotiation = await negotiate();
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    throw new PreflightError('unreachable', serverSentence(error, server), { cause: error });
  }
  switch (negotiation.kind) {
    case 'negotiated':
      return negotiation.negotiated;
    case 'unknownTool':
      throw new PreflightError('unknown-tool', negotiation.message);
    case 'unsupported':
      throw new PreflightError('unsupported', negotiation.message);
  }
}

export function serverSentence(fault: WireFault, server: ToolServer): string {
  // What could not be started says itself what to check.
  if (server.program && fault.kind === 'NotSent') return `${server.name}: ${fault.message}`;
  if (server.program)
    return `${server.name}: ${fault.message}; check "command", "args" and "env" of this server`;
  // Configured URLs carry no credentials in their user part, but a query may.
  const { origin, pathname } = new URL(server.url);
  const where = `${server.name} at ${origin}${pathname}`;
  if (fault.kind === 'NotSent') return `${where} cannot be reached (${fault.message})`;
  if (fault.wireCode === 401 || fault.wireCode === 403) {
    const credential = server.auth ? 'durable.auth' : 'headers';
    return `${where} refuses us (${fault.message}); check "${credential}" of this server`;
  }
  return `${where} does not answer as an MCP server (${fault.message}); check "url" of this server`;
}
