// Owns one fetch of a large result in a process of its own: the shipped fetch step, adapter and store, and the memory of it.
// Must never hold the result itself: what it reports is size, digest and peak.

import { join } from 'node:path';
import type { Attempt, Ports } from '../../activities/ports.js';
import { fetchResult } from '../../activities/steps/fetch-result.js';
import { checkSchema, digests } from '../../primitives/node-primitives.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { openSqliteStore } from '../../receipts/open-store.js';
import { serverDirectory } from '../../worker/server-directory.js';
import { parseToolServers } from '../../worker/tool-servers.js';
import { AT, CALL, ended, fence, POLICY, working } from '../receipts/suite-fixtures.js';

const COLLECT_EVERY_MS = 100;

/** Handed over as JSON in the first argument. */
export interface LargeResultJob {
  readonly url: string;
  readonly dir: string;
  readonly maxResultBytes: number | null;
}

export interface LargeResultReport {
  readonly finding: string;
  readonly evidence: string | null;
  readonly digest: string | null;
  readonly sizeBytes: number | null;
  /** Growth of the process's peak over what it was before the fetch (bytes). */
  readonly peakGrowthBytes: number;
  readonly durationMs: number;
}

const ATTEMPT: Attempt = {
  signal: new AbortController().signal,
  attempt: 1,
  seam: async () => undefined,
  show: () => undefined,
  lastShown: () => null,
};

const job = JSON.parse(process.argv[2] ?? 'null') as LargeResultJob;
const store = await openSqliteStore(join(job.dir, 'operations.sqlite'));
const servers = parseToolServers({ mcpServers: { reports: { url: job.url } } }, {});
const ports: Ports = {
  receipts: store,
  protocols: createProtocolRegistry(),
  servers: serverDirectory(servers),
  clock: { nowMs: () => Date.now() },
  random: () => 0,
  newToken: () => 'token',
  digests,
  checkSchema,
};
const limit = job.maxResultBytes === null ? {} : { maxResultBytes: job.maxResultBytes };
await working(store, { policy: { ...POLICY, ...limit } });
await store.recordTerminal(CALL, ended('completed'), null);
const input = { ...fence(), notBeforeAt: null, deadlineAt: AT };
// Collected on a clock, so that the peak is what is held and not what the collector of this Node has not come to yet.
if (!globalThis.gc) throw new Error('start this program with --expose-gc');
const collecting = setInterval(() => globalThis.gc?.(), COLLECT_EVERY_MS);
const before = process.resourceUsage().maxRSS;
const beganAt = performance.now();
const fact = await fetchResult(input, ports, ATTEMPT);
const durationMs = performance.now() - beganAt;
clearInterval(collecting);
const peakGrowthBytes = (process.resourceUsage().maxRSS - before) * 1024;
if (fact.kind !== 'resultFetched') throw new Error('the fetch step told of another step');
const { result } = fact.row;
const report: LargeResultReport = {
  finding: fact.finding,
  evidence: fact.evidence,
  digest: result?.digest ?? null,
  sizeBytes: result?.sizeBytes ?? null,
  peakGrowthBytes,
  durationMs,
};
process.send?.(report);
await store.close();
