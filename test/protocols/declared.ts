// Owns declared methods for tests of AIP-151, and one call of them outside the engine.
// Must never read configuration: worker tests do.

import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import {
  type Submission,
  type ToolAdapter,
  type ToolCall,
  type ToolServer,
  WireFault,
} from '../../protocols/adapter.js';
import type { DeclaredMethod, OperationMethods } from '../../protocols/declared-method.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { NO_HOOKS, toolServer } from './scripted-server.js';

const OWN_METHODS: OperationMethods = {
  get: '/{name=**}',
  cancel: '/{name=**}:cancel',
  deleteAfterReceipt: null,
  list: null,
  pollIntervalMs: 2_000,
};

export function declaredMethod(
  changes: Partial<DeclaredMethod> = {},
  own: Partial<OperationMethods> = {},
): DeclaredMethod {
  return {
    verb: 'POST',
    path: '/{parent=projects/*}/reports',
    body: '*',
    headers: {},
    requestIdField: null,
    inputSchema: null,
    operation: { ...OWN_METHODS, ...own },
    ...changes,
  };
}

export function operationServer(
  url: string,
  method: DeclaredMethod,
  more: Partial<ToolServer> = {},
): ToolServer {
  return toolServer(url, { name: 'reports', protocol: 'aip-151', methods: { report: method }, ...more });
}

export function aip151(): ToolAdapter {
  return createProtocolRegistry().adapter('aip-151');
}

export async function sessionOf(server: ToolServer, tool = 'report'): Promise<JsonObject> {
  const found = await createProtocolRegistry().negotiate(server, tool);
  if (found.kind !== 'negotiated') throw new Error(found.message);
  return found.negotiated.session;
}

export function declaredCall(server: ToolServer, args: JsonObject, more: Partial<ToolCall> = {}): ToolCall {
  return {
    server,
    tool: 'report',
    arguments: { parent: 'projects/p', ...args },
    submissionKey: 'dtc-key',
    submissionPolicy: 'at-most-once',
    keyName: null,
    synchronousBoundMs: 5_000,
    ...more,
  };
}

export async function submitCall(call: ToolCall): Promise<Submission> {
  return aip151().submit(call, await sessionOf(call.server, call.tool), NO_HOOKS);
}

/** Nothing is shared between steps but what JSON carries. */
export async function referenceOf(call: ToolCall): Promise<RemoteReference> {
  const submission = await submitCall(call);
  if (submission.kind !== 'referenced') throw new Error(`no reference: ${submission.kind}`);
  return JSON.parse(JSON.stringify(submission.reference)) as RemoteReference;
}

export async function faultOf(work: Promise<unknown>): Promise<WireFault> {
  const error: unknown = await work.then(
    (value) => new Error(`no fault: ${JSON.stringify(value)}`),
    (fault: unknown) => fault,
  );
  if (!WireFault.isInstance(error)) throw error;
  return error;
}
