// Owns the public entry `durable-tool-calls/receipts`: opening the store for workers, reading it for everybody else.

export { openReceiptsReader, openSqliteStore, type ReceiptsReader, type StoreCheck } from './open-store.js';
export { type ReceiptStore, StoreError, type StoreErrorCode } from './store.js';
export type { StoredOperation } from './store-reads.js';
