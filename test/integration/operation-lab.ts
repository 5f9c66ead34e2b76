// Owns what an integration test of AIP-151 needs: real engine, killable workers, the project's own operation server and,
// where it is asked for, java-lro. Must never count by our own side: executions come from the servers. When it closes, each
// run it closed is replayed and its store is audited.

import { readFileSync } from 'node:fs';
import type { ToolOperationHandle } from '../../client/index.js';
import type { JsonObject } from '../../operation/json.js';
import { type OperationServer, startOperationServer } from '../operation-server/start-operation-server.js';
import { openServerLab, type ServerLab } from './server-lab.js';

const REPORTS = '/{parent=projects/*}/reports';
const REPORT_LIST = `${REPORTS}/{reportId}/operations`;
const BACKUPS = '/{parent=projects/*/instances/*}/backups';
const BACKUP_LIST = `${BACKUPS}/{backupId}/operations`;

/** Methods of the operation server, each under its own policy. */
const REPORT_METHODS = {
  report: { path: REPORTS, submission: { policy: 'at-most-once' } },
  keyed: { path: REPORTS, requestIdField: 'requestId' },
  'keyed-briefly': { path: REPORTS, requestIdField: 'requestId', requestIdWindow: '10s' },
  listed: {
    path: REPORTS,
    operation: { list: { path: REPORT_LIST, startedAt: '/metadata/startTime' } },
  },
  tidy: { path: REPORTS, requestIdField: 'requestId', deleteAfterReceipt: true },
  small: { path: REPORTS, requestIdField: 'requestId', maxResultBytes: 1_024, deleteAfterReceipt: true },
} as const;

/** What the README shows is what runs here. */
const EXAMPLE = JSON.parse(
  readFileSync(new URL('../../examples/operation-servers.json', import.meta.url), 'utf8'),
) as { operationServers: { spanner: { durable: { tools: Record<'create-backup', JsonObject> } } } };

/** Methods of java-lro: the id is the caller's, or made of the call's own key. */
const BACKUP_METHODS = {
  'create-backup': {
    path: `${BACKUPS}?backupId={backupId}`,
    body: 'backup',
    operation: {
      list: {
        path: BACKUP_LIST,
        match: { '/metadata/database': '{backup.database}' },
        startedAt: '/metadata/progress/startTime',
      },
    },
  },
  'create-own-backup': EXAMPLE.operationServers.spanner.durable.tools['create-backup'],
} as const;

export interface OperationCall {
  /** Names the operation and, in the journal, the call. */
  readonly label: string;
  readonly tool?: keyof typeof REPORT_METHODS;
  readonly reportId?: string;
  readonly plan?: JsonObject;
  readonly waitBudgetMs?: number;
}

export interface OperationLab extends ServerLab {
  readonly server: OperationServer;
  start(call: OperationCall): Promise<ToolOperationHandle>;
}

/** What no text of ours may ever hold. */
export const SECRET = 'planted-4711-do-not-tell';

export async function openOperationLab(spannerUrl?: string): Promise<OperationLab> {
  const server = await startOperationServer();
  const durable = { maxPollsPerSecond: 50, pollInterval: '1s' };
  const operationServers = {
    reports: {
      url: server.url,
      headers: { 'x-api-key': SECRET },
      durable: { ...durable, tools: REPORT_METHODS },
    },
    ...(spannerUrl === undefined
      ? {}
      : { spanner: { url: spannerUrl, durable: { ...durable, tools: BACKUP_METHODS } } }),
  };
  const lab = await openServerLab({ operationServers });
  return {
    ...lab,
    server,
    start: ({ label, tool = 'report', reportId, plan = {}, waitBudgetMs }) =>
      lab.client.start({
        callNodeId: label,
        server: 'reports',
        tool,
        arguments: { parent: 'projects/p', label, plan, ...(reportId === undefined ? {} : { reportId }) },
        ...(waitBudgetMs === undefined ? {} : { waitBudgetMs }),
      }),
    async close() {
      await lab.close();
      await server.stop();
    },
  };
}
