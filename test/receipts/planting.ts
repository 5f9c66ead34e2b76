// Owns the means to plant a corruption in a good store, by raw SQL. Must never plant by the store's own calls: they
// would refuse.

import type Sqlite from 'better-sqlite3';

import type { Receipt } from '../../operation/receipt.js';
import type { AuditCheck } from '../../receipts/audit/findings.js';
import { canonicalText, sha256Hex } from '../../receipts/receipt-json.js';

export type Plant = (db: Sqlite.Database) => void;

export function sql(text: string): Plant {
  return (db) => {
    const { changes } = db.prepare(text).run();
    if (changes === 0) throw new Error(`planted nothing: ${text}`);
  };
}

/** Forged with care: canonical, under its own digest, and named so by its ready row. */
export function forge(callNodeId: string, change: (receipt: Receipt) => object): Plant {
  return (db) => {
    const held = db
      .prepare('select receipt_json from receipt where call_node_id = ?')
      .pluck()
      .get(callNodeId);
    const json = canonicalText(change(JSON.parse(String(held)) as Receipt));
    const digest = sha256Hex(json);
    const set = 'update receipt set receipt_json = ?, receipt_digest = ? where call_node_id = ?';
    db.prepare(set).run(json, digest, callNodeId);
    db.prepare('update ready_outbox set receipt_digest = ? where call_node_id = ?').run(digest, callNodeId);
  };
}

export const of = (callNodeId: string): string => `where call_node_id = '${callNodeId}'`;

/** What is planted, by which means, and the only finding that may come of it. */
export type Corruption = readonly [
  what: string,
  plant: Plant,
  check: AuditCheck,
  callNodeId: string,
  says: string | RegExp,
];
