// Owns finding the operation that a lost submission made, in the list that the configuration names for it.
// Must never take an operation whose maker is not known, nor absence from a list for proof.

import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { WireFault, type ToolCall } from '../adapter.js';
import type { OperationList } from '../declared-method.js';
import { memberAt, nameOf, operationsPageOf } from './decode.js';
import { listUrl, textAt } from './encode.js';
import { isUnsupported, readFaultOf } from './faults.js';
import type { Locator } from './locator.js';
import { fillText } from './path-template.js';
import { exchangeJson } from './rest-exchange.js';

/** The pages read of one list; a server that never ends its list is left alone. */
const PAGES = 20;
/** Both times may be cut to whole seconds. */
const CLOCK_GRAIN_MS = 2_000;

export type Finding =
  | { readonly kind: 'found'; readonly remoteId: string }
  | { readonly kind: 'cannotTell'; readonly evidence: string };

interface Listed {
  readonly operations: readonly Uint8Array[];
  readonly isWhole: boolean;
  /** What to add to our time to have the server's (ms). */
  readonly serverAheadMs: number;
}

/**
 * `submittedAt`: null where no time need be compared, as the id is derived from the call itself.
 * @throws WireFault Transient; TemplateValueError
 */
export async function findOperation(
  call: ToolCall,
  args: JsonObject,
  { list, tool }: Locator,
  submittedAt: number | null,
): Promise<Finding> {
  if (list === null) return cannotTell('no "operation.list" is declared to look it up in');
  const listed = await readList(call, args, list, tool);
  if (typeof listed === 'string') return cannotTell(listed);
  const fitting = listed.operations.flatMap((operation) => {
    const isFitting = matches(operation, list, args) && isSince(operation, list, submittedAt, listed);
    // Its end may be broken; its name is all that is needed here.
    const name = isFitting ? nameOf(operation) : null;
    return name === null || name === '' ? [] : [name];
  });
  const [only, ...more] = fitting;
  if (only === undefined)
    return cannotTell(`${listed.operations.length} operations listed, ours is none of them`);
  if (more.length > 0) return cannotTell(`${fitting.length} listed operations may be ours`);
  // What could not be read may hold another one.
  if (!listed.isWhole) return cannotTell('one listed operation may be ours, but the list is not whole');
  return { kind: 'found', remoteId: only };
}

function cannotTell(evidence: string): Finding {
  return { kind: 'cannotTell', evidence };
}

/** All pages, or why there is no list. @throws WireFault Transient */
async function readList(
  { server }: ToolCall,
  args: JsonObject,
  { path }: OperationList,
  tool: string,
): Promise<Listed | string> {
  const operations: Uint8Array[] = [];
  let leftBytes: number = LIMITS.wireListBytes;
  let pageToken: string | null = null;
  let isPartial = false;
  let serverAheadMs = 0;
  for (let page = 0; page < PAGES; page += 1) {
    const request = { verb: 'GET', url: listUrl(server.url, path, args, pageToken), body: null } as const;
    const outcome = await exchangeJson(server, request, {
      timeoutMs: LIMITS.requestTimeoutMs,
      tool,
      maxReplyBytes: leftBytes,
    });
    if (outcome.kind !== 'object') {
      if (isUnsupported(outcome)) return 'the server offers no such list';
      const fault = readFaultOf(outcome, 'list');
      if (fault.kind !== 'Transient') return fault.message;
      throw new WireFault('Transient', fault.message, fault);
    }
    if (outcome.serverNowMs !== null) serverAheadMs = outcome.serverNowMs - Date.now();
    leftBytes -= outcome.bytes.byteLength;
    const read = operationsPageOf(outcome.bytes);
    operations.push(...read.operations);
    isPartial ||= read.isPartial;
    pageToken = read.nextPageToken;
    if (pageToken === null) break;
  }
  return { operations, isWhole: !isPartial && pageToken === null, serverAheadMs };
}

function matches(operation: Uint8Array, { match }: OperationList, args: JsonObject): boolean {
  return Object.entries(match).every(([pointer, template]) => {
    const held = memberAt(operation, pointer);
    const wanted = fillText(template, (name) => textAt(args, name));
    return typeof held === 'string' ? held === wanted : JSON.stringify(held) === wanted;
  });
}

/** One that began before our submission was started by somebody else. */
function isSince(
  operation: Uint8Array,
  { startedAt, idIsOurs }: OperationList,
  submittedAt: number | null,
  { serverAheadMs }: Listed,
): boolean {
  if (submittedAt === null) return true;
  if (startedAt === null) return idIsOurs;
  const text = memberAt(operation, startedAt);
  const beganAt = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return beganAt >= submittedAt + serverAheadMs - CLOCK_GRAIN_MS;
}
