// Owns the proof of what the doctor says of an engine: each answer of the server has its finding and its mending.
// Must never need an engine: one with wrong attributes or four partitions is not to be had in a test.

import { describe, expect, test } from 'vitest';
import { checkEngine } from '../../cli/doctor/check-engine.js';
import type { Runtime } from '../../cli/runtime.js';
import { parseToolServers } from '../../worker/tool-servers.js';

const KEYWORD = 2;
const TEXT = 1;
const ALL = {
  ToolServer: KEYWORD,
  ToolName: KEYWORD,
  OperationState: KEYWORD,
  OperationOutcome: KEYWORD,
  ProtocolAdapter: KEYWORD,
};

interface Answers {
  readonly attributes?: Readonly<Record<string, number>>;
  readonly pollers?: number;
  readonly partitions?: number | Error;
  readonly limits?: object | null;
}

function runtimeOf(answers: Answers): Runtime {
  const { attributes = ALL, pollers = 1, partitions = 1, limits = LIMITS } = answers;
  const workflowService = {
    getSystemInfo: async () => ({ serverVersion: '1.32.0' }),
    describeTaskQueue: async () => ({ pollers: Array.from({ length: pollers }), config: limits }),
    listTaskQueuePartitions: async () => {
      if (partitions instanceof Error) throw partitions;
      return { activityTaskQueuePartitions: Array.from({ length: partitions }) };
    },
  };
  const operatorService = { listSearchAttributes: async () => ({ customAttributes: attributes }) };
  const temporal = { connection: { workflowService, operatorService }, options: { namespace: 'tools' } };
  const runtime = { temporal, taskQueue: 'q', temporalAddress: 'there:7233', uiUrl: null, isEmbedded: false };
  return runtime as unknown as Runtime;
}

const config = parseToolServers(
  { mcpServers: { search: { url: 'http://127.0.0.1:9/', durable: { maxPollsPerSecond: 3 } } } },
  {},
);
const LIMITS = {
  fairnessKeysRateLimitDefault: { rateLimit: { requestsPerSecond: 1 } },
  fairnessWeightOverrides: { search: 3 },
};

async function findingsOf(answers: Answers) {
  const findings = await checkEngine(runtimeOf(answers), config);
  return Object.fromEntries(findings.map((finding) => [finding.what, finding]));
}

describe('engine', () => {
  test('all is well where everything is as our workers want it', async () => {
    const findings = await findingsOf({});
    expect(Object.values(findings).map(({ kind }) => kind)).toEqual(Array(6).fill('well'));
    expect(findings['Temporal server']?.says).toBe('1.32.0 at there:7233');
    expect(findings['poll rate limits']?.says).toBe('search 3/s');
  });

  test('missing search attributes and those of another type each get their command', async () => {
    const { ToolName: _missing, ...others } = ALL;
    const { 'search attributes': finding } = await findingsOf({
      attributes: { ...others, OperationState: TEXT },
    });
    expect(finding).toMatchObject({
      kind: 'wrong',
      says: 'ToolName is missing, OperationState is Text, not Keyword',
    });
    expect(finding?.mend).toContain(
      'search-attribute remove --namespace tools --name OperationState --yes && ',
    );
    expect(finding?.mend).toContain(
      'create --namespace tools --name ToolName --type Keyword --name OperationState',
    );
  });

  test('several partitions are told, and a server that does not tell is no fault', async () => {
    const { 'poll queue partitions': many } = await findingsOf({ partitions: 4 });
    expect(many).toMatchObject({
      kind: 'wrong',
      mend: expect.stringContaining('numTaskqueueReadPartitions'),
    });
    const { 'poll queue partitions': silent } = await findingsOf({ partitions: new Error('UNIMPLEMENTED') });
    expect(silent).toMatchObject({ kind: 'unknown' });
  });

  test('rate limits of another configuration are told with both numbers', async () => {
    const limits = { ...LIMITS, fairnessWeightOverrides: { search: 10 } };
    const { 'poll rate limits': other } = await findingsOf({ limits });
    expect(other).toMatchObject({ kind: 'wrong', says: 'search 10/s instead of 3/s' });
    const { 'poll rate limits': none } = await findingsOf({ limits: null });
    expect(none?.kind).toBe('unknown');
  });

  test('a running engine without workers is told', async () => {
    const { workers } = await findingsOf({ pollers: 0 });
    expect(workers).toMatchObject({ kind: 'wrong', mend: 'restart "dtc up"' });
  });
});
