// Owns the twins without a rule of the end: what is accepted, how it is written down, what is handed out.
// Must never test the product: with the rule in place the same scripts pass, which the explorer shows.

import { createHash } from 'node:crypto';
import type { Receipt } from '../../operation/receipt.js';
import type { ReceiptStore, ResultBytes } from '../../receipts/store.js';
import type { MemoryStore } from './memory-store.js';
import { PLAIN } from './scripts.js';
import { rowOf, script, type Twin } from './twins.js';

const OTHER_TEXT = JSON.stringify({ content: [], isError: false });
const OTHER_BYTES = new TextEncoder().encode(OTHER_TEXT);

/** The receipt says something else than was decided. */
function receiptThat(change: (receipt: Receipt) => Partial<Receipt>): Twin['breaks'] {
  return (store) => ({
    acceptTerminal: (fence, presented, decide, at) =>
      store.acceptTerminal(
        fence,
        presented,
        (row) => {
          const decided = decide(row);
          return decided && { ...decided, receipt: { ...decided.receipt, ...change(decided.receipt) } };
        },
        at,
      ),
  });
}

/** The tables are changed behind the store's back, right after the receipt was written. */
function afterwards(...statements: readonly string[]): Twin['breaks'] {
  return (store, _, memory) => ({
    acceptTerminal: async (fence, ...rest) => {
      const acceptance = await store.acceptTerminal(fence, ...rest);
      for (const sql of statements) memory.spoil(sql, fence.callNodeId);
      return acceptance;
    },
  });
}

function otherResult({ stored }: ResultBytes): ResultBytes {
  const digest = createHash('sha256').update(OTHER_BYTES).digest('hex');
  return { stored: { ...stored, digest, sizeBytes: OTHER_BYTES.byteLength }, bytes: OTHER_BYTES };
}

function withoutReceipt(store: ReceiptStore, memory: MemoryStore): Partial<ReceiptStore> {
  return {
    acceptTerminal: (fence, ...rest) => {
      memory.spoil('delete from ready_outbox where call_node_id = ?', fence.callNodeId);
      memory.spoil('delete from receipt where call_node_id = ?', fence.callNodeId);
      return store.acceptTerminal(fence, ...rest);
    },
  };
}

export const TWINS_OF_THE_END: readonly Twin[] = [
  {
    rule: 'there is one receipt',
    script: PLAIN,
    blows: [{ kind: 'kill' }],
    breaks: (store, _, memory) => withoutReceipt(store, memory),
    noticed: /2 receipts were written/,
  },
  {
    rule: 'a receipt and its ready row are kept',
    script: PLAIN,
    breaks: afterwards('delete from ready_outbox where call_node_id = ?'),
    noticed: /1 receipts, 0 ready rows/,
  },
  {
    rule: 'the ready row names its receipt',
    script: PLAIN,
    breaks: afterwards(`update ready_outbox set receipt_digest = 'another' where call_node_id = ?`),
    noticed: /a receipt digest is off/,
  },
  {
    rule: 'only a completion advances',
    script: script('cancelled'),
    breaks: afterwards('update ready_outbox set advances = 1 where call_node_id = ?'),
    noticed: /advances without a completion/,
  },
  {
    rule: 'the ready row tells the outcome of the receipt',
    script: PLAIN,
    breaks: afterwards(`update ready_outbox set outcome = 'failed' where call_node_id = ?`),
    noticed: /the ready row tells another outcome/,
  },
  {
    rule: 'a receipt tells every leg',
    script: PLAIN,
    breaks: receiptThat(() => ({ submissionLegs: [] })),
    noticed: /the receipt misses a leg/,
  },
  {
    rule: 'an accepted result is kept',
    script: PLAIN,
    // What the run hands out is still there.
    breaks: (store, world, memory) => {
      const kept = new Map<string, Uint8Array>();
      return {
        ...afterwards(
          'delete from result_blob where digest in (select result_digest from operation where call_node_id = ?)',
        )(store, world, memory),
        recordTerminal: (callNodeId, seen, result, leg) => {
          if (result) kept.set(result.stored.digest, result.bytes);
          return store.recordTerminal(callNodeId, seen, result, leg);
        },
        recordResult: (callNodeId, result) => {
          kept.set(result.stored.digest, result.bytes);
          return store.recordResult(callNodeId, result);
        },
        readResult: async (digest) => kept.get(digest) ?? null,
      };
    },
    noticed: /the result is not stored/,
  },
  {
    rule: 'effects that may exist are owed',
    script: script('cancelled'),
    breaks: afterwards(
      'delete from reconciliation_entry where call_node_id = ?',
      'delete from effect_reconciliation where call_node_id = ?',
    ),
    noticed: /effects are owed and nobody is told/,
  },
  {
    rule: 'an end is what the server said',
    script: script('cancelled'),
    breaks: (store) => ({
      recordTerminal: (callNodeId, seen, ...rest) =>
        store.recordTerminal(callNodeId, { ...seen, remoteStatus: 'completed' }, ...rest),
    }),
    noticed: /held for no reason|completed, in truth cancelled/,
  },
  {
    rule: 'success is what the tool said',
    script: script('a tool that fails'),
    breaks: receiptThat(() => ({ outcome: 'completed', failureKind: null })),
    noticed: /completed, in truth failed/,
  },
  {
    rule: 'a result is what was received',
    script: PLAIN,
    breaks: (store) => ({
      recordTerminal: (callNodeId, seen, result, leg) =>
        store.recordTerminal(callNodeId, seen, result && otherResult(result), leg),
      recordResult: (callNodeId, result) => store.recordResult(callNodeId, otherResult(result)),
    }),
    noticed: /the result is not what the work came to/,
  },
  {
    rule: 'a failure has its kind',
    script: script('a tool that fails'),
    breaks: receiptThat(() => ({ failureKind: 'protocol' })),
    noticed: /the wrong kind of failure/,
  },
  {
    rule: 'what was sent was sent',
    script: script('cancelled'),
    breaks: receiptThat((receipt) => ({ decision: { ...receipt.decision, evidence: 'never sent' } })),
    noticed: /cancelled as never sent, and it ran/,
  },
  {
    rule: 'a completion is no cancellation',
    script: PLAIN,
    breaks: receiptThat(() => ({ outcome: 'cancelled', state: 'CANCELLED_ACCEPTED' })),
    noticed: /cancelled, in truth completed/,
  },
  {
    rule: 'what ran was not absent',
    script: script('cancelled'),
    breaks: receiptThat((receipt) => ({ decision: { ...receipt.decision, evidence: 'proved absent' } })),
    noticed: /cancelled as proved absent, and it ran/,
  },
  {
    rule: 'what ran was not rejected',
    script: PLAIN,
    breaks: receiptThat(() => ({ outcome: 'rejected', state: 'REJECTED' })),
    noticed: /rejected, and it ran/,
  },
  {
    rule: 'only a word closes without a result',
    script: PLAIN,
    breaks: receiptThat(() => ({ outcome: 'unresolved' })),
    noticed: /unresolved without a word/,
  },
  {
    rule: 'a run tells the receipt as it is stored',
    script: PLAIN,
    breaks: (store) => ({
      acceptTerminal: async (...args) => {
        const said = await store.acceptTerminal(...args);
        if (said.kind === 'refused') return said;
        const row = { ...said.row, receipt: { ...said.receipt, acceptedAt: 0 } };
        return { ...said, row };
      },
    }),
    noticed: /tells another receipt/,
  },
  {
    rule: 'a run hands out the result as it is stored',
    script: PLAIN,
    breaks: () => ({ readResult: async () => OTHER_BYTES }),
    noticed: /brings another result/,
  },
  {
    rule: 'an acceptance that was written comes home',
    script: PLAIN,
    breaks: () => ({ readResult: () => new Promise(() => {}) }),
    noticed: /a run never ends/,
  },
  {
    rule: 'a store error is one of its own',
    script: PLAIN,
    breaks: (store) => {
      let tries = 0;
      return {
        recordNegotiation: async (...args) => {
          if ((tries += 1) < 3) throw new TypeError('undefined is not a function');
          return store.recordNegotiation(...args);
        },
        begin: async (fence) => {
          if ((tries += 1) < 3) throw new TypeError('undefined is not a function');
          return store.begin(fence);
        },
      };
    },
    noticed: /StepFailed|StoreUnavailable/,
  },
  {
    rule: 'a word of an operator ends it',
    script: script('a lost reply, at most once'),
    breaks: (store) => ({
      acceptTerminal: async ({ callNodeId }) => ({
        kind: 'refused',
        fact: 'end',
        evidence: 'not today',
        row: await rowOf(store, callNodeId),
      }),
    }),
    noticed: /a word does not end it/,
  },
];
