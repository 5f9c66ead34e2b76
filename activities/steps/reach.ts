// Owns how a step body finds its server and adapter again from the row.
// Must never fall back to another contract: an operation stays with the one it was submitted under.

import type { RowSnapshot } from '../../operation/row.js';
import type { RemoteReference } from '../../operation/row.js';
import type { ToolAdapter, ToolServer } from '../../protocols/adapter.js';
import { StoreError } from '../../receipts/store.js';
import { type Ports, StepRetry } from '../ports.js';

const UNCONFIGURED_RETRY_MS = 30_000;

export function serverOf(ports: Ports, row: RowSnapshot): ToolServer {
  const server = ports.servers.find(row.server);
  if (server) return server;
  // A deploy without this server must not end an operation that lives there.
  throw new StepRetry(
    'ServerNotConfigured',
    `tool server "${row.server}" is not configured on this worker; add it, the operation waits`,
    UNCONFIGURED_RETRY_MS,
  );
}

export interface Reach {
  readonly server: ToolServer;
  readonly adapter: ToolAdapter;
  readonly reference: RemoteReference;
}

/** @throws StepRetry where the server is not configured; StoreError LedgerMissing where the row has no reference */
export function reachOf(ports: Ports, row: RowSnapshot): Reach {
  if (!row.adapter || !row.remoteReference) {
    // Only a run that has seen them asks for this step: the store was restored from a backup.
    throw new StoreError('LedgerMissing', `The row of ${row.callNodeId} has lost its remote reference.`);
  }
  const adapter = ports.protocols.adapter(row.adapter);
  return { server: serverOf(ports, row), adapter, reference: row.remoteReference };
}
