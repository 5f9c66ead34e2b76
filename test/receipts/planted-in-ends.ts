// Owns the corruptions of ends that an audit must find, one finding each: receipts, ready rows, what is owed.
// Must never leave a second fault behind.

import { sha256Hex } from '../../receipts/receipt-json.js';
import { forge, of, sql, type Corruption } from './planting.js';
import { resultOf } from './suite-fixtures.js';

export const END_CORRUPTIONS: readonly Corruption[] = [
  // receipt
  [
    'a receipt with a changed character',
    sql(
      `update receipt set receipt_json = replace(receipt_json, 'completed', 'Completed') ${of('completed')}`,
    ),
    'receipt',
    'completed',
    'its receipt is not the one that its digest says',
  ],
  [
    'a receipt under another digest',
    (db) => {
      sql(`update receipt set receipt_digest = 'other' ${of('completed')}`)(db);
    },
    'receipt',
    'completed',
    'its receipt is not the one',
  ],
  [
    'a receipt that is not canonical',
    (db) => {
      const spaced = `${String(
        db
          .prepare(`select receipt_json from receipt ${of('completed')}`)
          .pluck()
          .get(),
      )} `;
      db.prepare(`update receipt set receipt_json = ?, receipt_digest = ? ${of('completed')}`).run(
        spaced,
        sha256Hex(spaced),
      );
      db.prepare(`update ready_outbox set receipt_digest = ? ${of('completed')}`).run(sha256Hex(spaced));
    },
    'receipt',
    'completed',
    'its receipt is not the one',
  ],
  // facts
  [
    'another request in the receipt',
    forge('completed', (receipt) => ({ ...receipt, requestDigest: 'other' })),
    'facts',
    'completed',
    'receipt and row differ in requestDigest',
  ],
  [
    'another call in the receipt',
    forge('completed', (receipt) => ({ ...receipt, callNodeId: 'other' })),
    'facts',
    'completed',
    'differ in callNodeId',
  ],
  [
    'another tool version in the row',
    sql(`update operation set tool_version = '9' ${of('completed')}`),
    'facts',
    'completed',
    'differ in toolVersion',
  ],
  [
    'another remote reference',
    (db) => {
      sql(
        `update operation set remote_id = 'x', remote_reference_json = '{"remoteId":"x","locator":{}}' ${of('completed')}`,
      )(db);
    },
    'facts',
    'completed',
    'differ in remoteReference',
  ],
  [
    'another generation in the row',
    (db) => {
      sql(`update operation set cancel_generation = 2 ${of('cancelled')}`)(db);
      sql(`insert into earlier_cancel values ('cancelled', 1, 'no longer needed', 'sent')`)(db);
    },
    'facts',
    'cancelled',
    'differ in cancelGeneration, earlierCancels',
  ],
  [
    'an epoch that never was',
    forge('completed', (receipt) => ({ ...receipt, executionEpoch: 2 })),
    'facts',
    'completed',
    'differ in executionEpoch',
  ],
  [
    'the result of another operation',
    forge('adopted', (receipt) => ({ ...receipt, result: resultOf('{"total":1}').stored })),
    'facts',
    'adopted',
    'differ in result',
  ],
  [
    'an audit result that nobody saw',
    forge('cancelled', (receipt) => ({ ...receipt, auditResult: resultOf('{"total":1}').stored })),
    'facts',
    'cancelled',
    'differ in auditResult',
  ],
  [
    'another word of the server',
    forge('completed', (receipt) => ({
      ...receipt,
      remoteSaid: { ...receipt.remoteSaid, remoteStatus: 'failed' },
    })),
    'facts',
    'completed',
    'differ in remoteStatus',
  ],
  [
    'a submission that the receipt forgot',
    forge('completed', (receipt) => ({ ...receipt, submissionLegs: receipt.submissionLegs.slice(1) })),
    'facts',
    'completed',
    'differ in submissionLegs',
  ],
  [
    'a settled submission that changed',
    sql(`update submission_leg set outcome = 'refused' ${of('completed')} and leg = 1`),
    'facts',
    'completed',
    'differ in submissionLegs',
  ],
  // end
  [
    'an outcome that its row does not prove',
    (db) => {
      forge('cancelled-with-result', (receipt) => ({
        ...receipt,
        outcome: 'completed',
        state: 'ACCEPTED',
        result: receipt.auditResult,
        auditResult: null,
        effects: 'none-owed',
      }))(db);
      sql(`update ready_outbox set outcome = 'completed', advances = 1 ${of('cancelled-with-result')}`)(db);
      sql(`delete from reconciliation_entry ${of('cancelled-with-result')}`)(db);
      sql(`delete from effect_reconciliation ${of('cancelled-with-result')}`)(db);
    },
    'end',
    'cancelled-with-result',
    'nothing in its row proves the end completed',
  ],
  [
    'an end without an operator',
    forge('closed', (receipt) => ({ ...receipt, decision: { evidence: 'time', reason: null } })),
    'end',
    'closed',
    'nothing in its row proves the end unresolved',
  ],
  [
    'a state of another outcome',
    forge('completed', (receipt) => ({ ...receipt, state: 'REJECTED' })),
    'end',
    'completed',
    'is in state REJECTED',
  ],
  [
    'a failure of another kind',
    forge('failed', (receipt) => ({ ...receipt, failureKind: 'protocol' })),
    'end',
    'failed',
    'failure kind protocol',
  ],
  [
    'a rejection of what was sent',
    (db) => {
      forge('rejected', (receipt) => ({
        ...receipt,
        submissionLegs: [
          { leg: 1, claimToken: 'a', claimedAt: 1, closedAt: 2, outcome: 'ambiguous', detail: null },
        ],
      }))(db);
      sql(`insert into submission_leg values ('rejected', 1, 'a', 1, 2, 'ambiguous', null, null)`)(db);
    },
    'end',
    'rejected',
    'nothing in its row proves the end rejected',
  ],
  // ready
  [
    'a receipt without its ready row',
    sql(`delete from ready_outbox ${of('completed')}`),
    'ready',
    'completed',
    'has no ready row',
  ],
  [
    'a ready row of another receipt',
    sql(`update ready_outbox set receipt_digest = 'other' ${of('completed')}`),
    'ready',
    'completed',
    'names another receipt',
  ],
  [
    'a ready row of another outcome',
    sql(`update ready_outbox set outcome = 'cancelled' ${of('failed')}`),
    'ready',
    'failed',
    'its ready row says cancelled, and the receipt failed',
  ],
  [
    'a cancelled operation that advances',
    sql(`update ready_outbox set advances = 1 ${of('cancelled')}`),
    'ready',
    'cancelled',
    'advances an operation that ended cancelled',
  ],
  [
    'a completed operation that does not',
    sql(`update ready_outbox set advances = 0 ${of('completed')}`),
    'ready',
    'completed',
    'holds back an operation that ended completed',
  ],
  // effects
  [
    'a reconciliation that was forgotten',
    (db) => {
      sql(`delete from reconciliation_entry ${of('cancelled')}`)(db);
      sql(`delete from effect_reconciliation ${of('cancelled')}`)(db);
    },
    'effects',
    'cancelled',
    'no reconciliation is kept for it',
  ],
  [
    'second remote work that nobody owes',
    (db) => {
      sql(`delete from reconciliation_entry ${of('doubled')}`)(db);
      sql(`delete from effect_reconciliation ${of('doubled')}`)(db);
    },
    'effects',
    'doubled',
    'no reconciliation is kept for it',
  ],
  [
    'a reconciliation without a reason',
    sql(`insert into effect_reconciliation values ('failed', 'open', 1, 'n')`),
    'effects',
    'failed',
    'with no reason',
  ],
  [
    'a receipt that owes what it says it does not',
    forge('cancelled', (receipt) => ({ ...receipt, effects: 'none-owed' })),
    'effects',
    'cancelled',
    'says of its effects none-owed',
  ],
  [
    'a settlement without a person',
    sql(`update effect_reconciliation set status = 'settled' ${of('cancelled')}`),
    'effects',
    'cancelled',
    'is settled, and its last entry says open',
  ],
];
