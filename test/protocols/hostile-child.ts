// Owns one exchange with a hostile server in a process of its own: what the adapter made of it, how long it took, and the
// memory it cost. Must never judge: the test does.

import { createProtocolRegistry } from '../../protocols/registry.js';
import { WireFault } from '../../protocols/adapter.js';
import { locatorOf } from '../../protocols/aip-151/locator.js';
import { declaredCall, declaredMethod, operationServer, submitCall } from './declared.js';
import { NO_HOOKS, SESSION, toolCall, toolServer } from './scripted-server.js';

export type Exchange = 'create' | 'plain call' | 'poll' | 'result' | 'negotiation';
/** Of AIP-151. */
export type OperationExchange = 'submit' | 'get' | 'result of an operation' | 'list' | 'cancel';

export interface HostileReport {
  /** The kind of the fault, or of the answer. */
  readonly kind: string;
  readonly message: string;
  readonly durationMs: number;
  readonly peakGrowthBytes: number;
  /** The longest that nothing else in this process could run. */
  readonly longestPauseMs: number;
}

const [url = '', exchange = ''] = process.argv.slice(2);
const server = toolServer(url);
const registry = createProtocolRegistry();
const adapter = registry.adapter('mcp/2025-11-25');
const reference = { remoteId: 'task-1', locator: SESSION };

const operations = registry.adapter('aip-151');
const method = declaredMethod(
  {},
  {
    list: { path: '/{parent=projects/*}/operations', match: {}, startedAt: '/metadata/at', idIsOurs: false },
  },
);
const lro = operationServer(url, method, { headers: { 'x-api-key': 'not-for-strangers' } });
const operation = () => ({ remoteId: 'operations/1', locator: locatorOf('report', method) });
const operationCall = () => declaredCall(lro, {}, { synchronousBoundMs: 30_000 });

function run(): Promise<{ readonly kind: string } | { readonly remoteStatus: string }> {
  switch (exchange as Exchange | OperationExchange) {
    case 'create':
      return adapter.submit(toolCall(server), SESSION, NO_HOOKS);
    case 'plain call': {
      const call = toolCall(server, { synchronousBoundMs: 30_000 });
      return registry.adapter('synchronous').submit(call, SESSION, NO_HOOKS);
    }
    case 'poll':
      return adapter.observe(server, reference);
    case 'result':
      return adapter.fetchResult(server, reference);
    case 'negotiation':
      return registry.negotiate(server, 'report');
    case 'submit':
      return submitCall(operationCall());
    case 'get':
      return operations.observe(lro, operation());
    case 'result of an operation':
      return operations.fetchResult(lro, operation());
    case 'list':
      return operations.findBySubmission(operationCall(), operation().locator, Date.now());
    case 'cancel':
      return operations.cancel(lro, operation(), async () => {}).then((kind) => ({ kind }));
  }
}

let longestPauseMs = 0;
let lastTickAt = performance.now();
const ticker = setInterval(() => {
  const now = performance.now();
  longestPauseMs = Math.max(longestPauseMs, now - lastTickAt);
  lastTickAt = now;
}, 10);

const before = process.resourceUsage().maxRSS;
const beganAt = performance.now();
let kind: string;
let message = '';
try {
  const answer = await run();
  kind = 'kind' in answer ? answer.kind : answer.remoteStatus;
} catch (error) {
  if (!WireFault.isInstance(error)) throw error;
  ({ kind, message } = error);
}
const durationMs = performance.now() - beganAt;
clearInterval(ticker);
const peakGrowthBytes = (process.resourceUsage().maxRSS - before) * 1024;
const report: HostileReport = { kind, message, durationMs, peakGrowthBytes, longestPauseMs };
process.send?.(report);
process.disconnect();
