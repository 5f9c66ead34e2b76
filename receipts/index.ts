// Owns the public entry `durable-tool-calls/receipts`: opening the store for workers, reading it for everybody else.

export { openReceiptsReader, openSqliteStore, type ReceiptsReader, type StoreCheck } from './open-store.js';
export { auditStore, type StoreAudit } from './audit/audit-store.js';
export type { AuditCheck, AuditFinding } from './audit/findings.js';
export type { ListedReconciliation, Reconciliation, ReconciliationEntry } from './effect-reads.js';
export type { Settlement, SettlementWord } from './effects.js';
export { type ReceiptStore, StoreError, type StoreErrorCode } from './store.js';
export type { StoredOperation } from './store-reads.js';
