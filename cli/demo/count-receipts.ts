// Owns the count of receipts by SQL, past all code of ours that could be wrong about it.

import Database from 'better-sqlite3';

export function countReceipts(storeFile: string, callNodeId: string): number {
  const database = new Database(storeFile, { readonly: true });
  try {
    const row = database.prepare('select count(*) as n from receipt where call_node_id = ?').get(callNodeId);
    return (row as { n: number }).n;
  } finally {
    database.close();
  }
}
