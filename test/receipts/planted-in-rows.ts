// Owns the corruptions of rows that an audit must find, one finding each: references, identity, submissions, questions,
// cancel, result. Must never leave a second fault behind.

import { of, sql, type Corruption } from './planting.js';
import { resultOf } from './suite-fixtures.js';

export const ROW_CORRUPTIONS: readonly Corruption[] = [
  // orphans
  [
    'a ready row whose receipt is gone',
    sql(`delete from receipt ${of('completed')}`),
    'orphans',
    'completed',
    'a row of ready_outbox has no row in receipt',
  ],
  [
    'a submission of an operation that is not there',
    sql(`insert into submission_leg values ('gone', 1, 't', 1, null, 'open', null, null)`),
    'orphans',
    'gone',
    'submission_leg',
  ],
  [
    'a question of an operation that is not there',
    sql(`update input_round set call_node_id = 'gone' ${of('asking')}`),
    'orphans',
    'gone',
    'input_round',
  ],
  [
    'a receipt of an operation that is not there',
    (db) => {
      sql(`delete from submission_leg ${of('failed')}`)(db);
      sql(`delete from operation ${of('failed')}`)(db);
      sql(`delete from result_blob where digest = '${resultOf('{"isError":true}').stored.digest}'`)(db);
    },
    'orphans',
    'failed',
    'a row of receipt has no row in operation',
  ],
  [
    'a reconciliation of an operation that is not there',
    sql(`insert into effect_reconciliation values ('gone', 'open', 1, 'n')`),
    'orphans',
    'gone',
    'effect_reconciliation',
  ],
  [
    'an entry of a reconciliation that is not there',
    sql(`insert into reconciliation_entry values (900, 'gone', 'owed', 'n', null, 1)`),
    'orphans',
    'gone',
    'reconciliation_entry',
  ],
  // row
  [
    'other arguments',
    sql(`update operation set arguments_json = replace(arguments_json, '2024', '2025') ${of('completed')}`),
    'row',
    'completed',
    'its arguments have another digest, and its request has another digest',
  ],
  [
    'arguments that are cut',
    sql(`update operation set arguments_json = substr(arguments_json, 1, 9) ${of('opened')}`),
    'row',
    'opened',
    'its arguments cannot be read',
  ],
  [
    'another digest of the arguments',
    sql(`update operation set arguments_digest = 'other' ${of('completed')}`),
    'row',
    'completed',
    /its arguments have another digest;/,
  ],
  [
    'another tool before the end',
    sql(`update operation set tool = 'erase' ${of('asking')}`),
    'row',
    'asking',
    'its request has another digest',
  ],
  [
    'another key',
    sql(`update operation set submission_key = 'dtc-0' ${of('claimed')}`),
    'row',
    'claimed',
    'its submission key is not its own',
  ],
  [
    'a remote id to be found by that is another one',
    sql(`update operation set remote_id = 'other' ${of('asking')}`),
    'row',
    'asking',
    'it is found by another remote id',
  ],
  [
    'a policy that is no JSON',
    sql(`update operation set policy_json = '{' ${of('asking')}`),
    'row',
    'asking',
    'a column of its row cannot be read',
  ],
  // legs
  [
    'a submission that is missing',
    sql(`delete from submission_leg ${of('completed')} and leg = 1`),
    'legs',
    'completed',
    'submission 1 is missing',
  ],
  [
    'two submissions taken up where only one may be',
    sql(`update submission_leg set outcome = 'referenced' ${of('completed')}`),
    'legs',
    'completed',
    '2 submissions were taken up, with no evidence of it',
  ],
  [
    'a submission open and closed',
    sql(`update submission_leg set closed_at = 5 ${of('claimed')}`),
    'legs',
    'claimed',
    'open and closed at once',
  ],
  // rounds
  [
    'a question of a submission that was not asked',
    sql(`update submission_leg set outcome = 'ambiguous' ${of('asked-first')} and leg = 1`),
    'rounds',
    'asked-first',
    'question 1 was brought by submission 1, which was not asked',
  ],
  [
    'a delivery that was never recorded',
    sql(`update input_round set reply_delivered_at = 5, reply_sending_at = 5 ${of('asking')}`),
    'rounds',
    'asking',
    'a reply to question 1 was sent that was never recorded',
  ],
  [
    'a delivery without a sending',
    sql(`update input_round set reply_sending_at = null ${of('completed')}`),
    'rounds',
    'completed',
    'delivered without being sent',
  ],
  [
    'half a reply',
    sql(`update input_round set reply_token = null ${of('completed')}`),
    'rounds',
    'completed',
    'half of the reply to question 1 is missing',
  ],
  [
    'another reply',
    sql(`update input_round set reply_json = replace(reply_json, '2024', '2025') ${of('completed')}`),
    'rounds',
    'completed',
    'not the one its digest says',
  ],
  [
    'a reply turned round',
    sql(`update input_round set reply_action = 'decline' ${of('completed')}`),
    'rounds',
    'completed',
    'not the one its digest says',
  ],
  [
    'another question',
    sql(`update input_round set question_json = replace(question_json, 'object', 'string') ${of('asking')}`),
    'rounds',
    'asking',
    'another schema',
  ],
  [
    'a question that is missing',
    sql(`update input_round set position = 2 ${of('asking')}`),
    'rounds',
    'asking',
    'question 1 is missing',
  ],
  // cancel
  [
    'a cancel without a reason',
    sql(`update operation set cancel_reason = null ${of('fetching')}`),
    'cancel',
    'fetching',
    'generation 1, reason none, delivery unsent',
  ],
  [
    'a delivery of no cancel',
    sql(`update operation set cancel_delivery = 'sent' ${of('asking')}`),
    'cancel',
    'asking',
    'generation 0, reason none, delivery sent',
  ],
  [
    'an earlier cancel that is gone',
    sql(`update operation set cancel_generation = 2 ${of('fetching')}`),
    'cancel',
    'fetching',
    'of 2 cancels it keeps those before the last as none',
  ],
  // result
  [
    'bytes that are gone',
    sql(`delete from result_blob where digest = '${resultOf('{"total":3}').stored.digest}'`),
    'result',
    'adopted',
    'are not in the store',
  ],
  [
    'a changed byte',
    sql(
      `update result_blob set bytes = cast('{"total":9}' as blob) where digest = '${resultOf('{"total":3}').stored.digest}'`,
    ),
    'result',
    'adopted',
    'have another digest',
  ],
  [
    'a changed byte of a result of two',
    sql(
      `update result_blob set bytes = cast('{"total":9}' as blob) where digest = '${resultOf('{"total":1}').stored.digest}'`,
    ),
    'result',
    'completed',
    'also the result of "completed-twin"',
  ],
  [
    'another size beside the bytes',
    sql(`update result_blob set size_bytes = 12 where digest = '${resultOf('{"total":3}').stored.digest}'`),
    'result',
    'adopted',
    'has 11 bytes, and its size says 12',
  ],
  [
    'another size in the row',
    sql(
      `update operation set result_json = replace(result_json, '"sizeBytes":11', '"sizeBytes":12') ${of('fetching')}`,
    ),
    'result',
    'fetching',
    'its result has 11 bytes, and the row says 12',
  ],
];
