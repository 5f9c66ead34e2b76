// Owns what a broken twin is, and the twins without a rule of submitting, deciding, answering or cancelling.
// Must never test the product: with the rule in place the same scripts pass, which the explorer shows.

import type { SubmissionLeg } from '../../operation/row.js';
import { type Fence, type ReceiptStore, StoreError } from '../../receipts/store.js';
import { MANNERS } from './explore.js';
import { FENCED } from './fence-watch.js';
import type { MemoryStore } from './memory-store.js';
import type { Blow, Script } from './script.js';
import { PLAIN, SCRIPTS, TWO_PEOPLE } from './scripts.js';
import type { World } from './world.js';

export interface Twin {
  /** What is taken out: "a store without the rule that …". */
  readonly rule: string;
  readonly script: Script;
  /** Struck at every point in turn; none = the script as it is. */
  readonly blows?: readonly Blow[];
  readonly breaks: (store: ReceiptStore, world: World, memory: MemoryStore) => Partial<ReceiptStore>;
  /** What the judge says of it. */
  readonly noticed: RegExp;
}

const KILLED: readonly Blow[] = [{ kind: 'kill' }];
const ANYHOW: readonly Blow[] = Object.values(MANNERS);
const AFTER_THE_RECEIPT: readonly Blow[] = [{ kind: 'zombie', thaw: { kind: 'receipt' } }];

export function script(name: string): Script {
  const found = SCRIPTS.find((candidate) => candidate.name === name);
  if (!found) throw new Error(`no script ${name}`);
  return found;
}

export async function rowOf(store: ReceiptStore, callNodeId: string) {
  const row = await store.read(callNodeId);
  if (!row) throw new Error('no row');
  return row;
}

/** Whoever asks is let through as the owner. */
function unfenced(store: ReceiptStore): Partial<ReceiptStore> {
  const asOwner = async (fence: Fence): Promise<Fence> => {
    const { ownerRunId: runId, executionEpoch } = await rowOf(store, fence.callNodeId);
    return { callNodeId: fence.callNodeId, runId, executionEpoch };
  };
  const open = FENCED.map((name) => {
    const method = store[name].bind(store) as (fence: Fence, ...rest: unknown[]) => Promise<unknown>;
    return [name, async (fence: Fence, ...rest: unknown[]) => method(await asOwner(fence), ...rest)];
  });
  return Object.fromEntries(open) as Partial<ReceiptStore>;
}

/** Whoever looks before it sends finds its claim as it wants it. */
function readingLegs(
  store: ReceiptStore,
  legs: (legs: readonly SubmissionLeg[]) => readonly SubmissionLeg[],
): Pick<ReceiptStore, 'read'> {
  return {
    read: async (callNodeId) => {
      const row = await store.read(callNodeId);
      return row && { ...row, legs: legs(row.legs) };
    },
  };
}

function claimed(claimToken: string): SubmissionLeg {
  return { leg: 9, claimToken, claimedAt: 0, closedAt: null, outcome: 'open', detail: null };
}

/** Everybody is told that his reply is the one; nobody remembers what the first one said. */
const MANY_REPLIES: Twin['breaks'] = (store) => ({
  begin: async ({ callNodeId }) => {
    const row = await rowOf(store, callNodeId);
    return { ...row, rounds: row.rounds.map((round) => ({ ...round, reply: null })) };
  },
  recordReply: async ({ callNodeId }, roundId, reply) => {
    const row = await rowOf(store, callNodeId);
    const rounds = row.rounds.map((round) => (round.roundId === roundId ? { ...round, reply } : round));
    return { ...row, rounds };
  },
});

const TWO_UPDATES: Script = {
  ...TWO_PEOPLE,
  replies: TWO_PEOPLE.replies.map((reply) => ({ ...reply, by: 'update' })),
};

export const TWINS: readonly Twin[] = [
  {
    rule: 'an attempt sends only on its own claim',
    script: PLAIN,
    blows: ANYHOW,
    // Granted without a leg, and found there when it looks once more.
    breaks: (store) => {
      const tokens: string[] = [];
      return {
        claimLeg: async (fence, token, at) => {
          tokens.push(token);
          return { ...(await store.claimLeg(fence, token, at)), ruling: 'granted' };
        },
        ...readingLegs(store, (legs) => [...legs, ...tokens.map(claimed)]),
      };
    },
    noticed: /submissions arrived on|submitted 2 times/,
  },
  {
    rule: 'a claim that was given up is never sent',
    script: script('a look-up tool after a reply that was vanished'),
    blows: AFTER_THE_RECEIPT,
    breaks: (store) => readingLegs(store, (legs) => legs.map((leg) => ({ ...leg, outcome: 'open' }))),
    noticed: /submitted 2 times/,
  },
  {
    rule: 'the submission key stays the same',
    script: script('a lost reply of a repeatable tool'),
    breaks: (store) => {
      let keys = 0;
      return {
        begin: async (fence) => ({ ...(await store.begin(fence)), submissionKey: `key ${(keys += 1)}` }),
        recordNegotiation: async (...args) => ({
          ...(await store.recordNegotiation(...args)),
          submissionKey: `key ${(keys += 1)}`,
        }),
      };
    },
    noticed: /the submission key changed/,
  },
  {
    rule: 'a leg in doubt is not taken for one that was never sent',
    script: script('a lost reply, at most once'),
    breaks: (store) => ({
      closeLeg: (callNodeId, token, end) => store.closeLeg(callNodeId, token, { ...end, outcome: 'notSent' }),
    }),
    noticed: /submitted 2 times/,
  },
  {
    rule: 'an older epoch decides nothing',
    script: script('cancelled'),
    blows: [{ kind: 'secondEngine' }],
    breaks: unfenced,
    noticed: /was let through under an older epoch/,
  },
  {
    rule: 'a run that lost its row may take it again',
    script: PLAIN,
    // For one run, until it gives up.
    breaks: (store) => ({
      claimLeg: (fence, ...rest) =>
        fence.runId.endsWith('run-1')
          ? Promise.reject(new StoreError('Superseded', 'somebody else has it'))
          : store.claimLeg(fence, ...rest),
    }),
    noticed: /the run failed/,
  },
  {
    rule: 'the same call finds its own row',
    script: PLAIN,
    breaks: () => ({ open: async () => ({ kind: 'conflict', storedDigest: 'another' }) }),
    noticed: /no run, and no receipt/,
  },
  {
    rule: 'a question is recorded once',
    script: TWO_PEOPLE,
    breaks: (store) => {
      let asked = 0;
      return {
        wireState: async (callNodeId) => ({ ...(await store.wireState(callNodeId)), rounds: {} }),
        recordRound: (callNodeId, round) =>
          store.recordRound(callNodeId, { ...round, roundId: `${round.roundId} ${(asked += 1)}` }),
      };
    },
    noticed: /a question was asked twice/,
  },
  {
    rule: 'a round has one reply',
    script: TWO_PEOPLE,
    breaks: MANY_REPLIES,
    noticed: /was answered with 2 replies/,
  },
  {
    rule: 'only one reply of a round is told that it is applied',
    script: TWO_UPDATES,
    breaks: MANY_REPLIES,
    noticed: /two replies to one question were told that they are applied/,
  },
  {
    rule: 'a reply is checked against its schema',
    script: {
      ...script('a question'),
      replies: [
        { round: 0, afterMs: 2_000, content: { year: 'not a number' }, action: 'accept', by: 'update' },
      ],
    },
    breaks: (store) => ({
      wireState: async (callNodeId) => {
        const wire = await store.wireState(callNodeId);
        const rounds = Object.entries(wire.rounds).map(([roundId, round]) => [
          roundId,
          { ...round, question: { ...round.question, schema: null } },
        ]);
        return { ...wire, rounds: Object.fromEntries(rounds) as typeof wire.rounds };
      },
    }),
    noticed: /a reply that does not fit was sent/,
  },
  {
    rule: 'a reply is marked before its bytes leave',
    script: script('a question'),
    blows: KILLED,
    breaks: (store) => ({ recordSending: (callNodeId) => rowOf(store, callNodeId) }),
    noticed: /the server took a reply that was told roundClosed/,
  },
  {
    rule: 'a cancel raises the generation before anything else',
    script: script('cancelled before anything was sent'),
    breaks: (store) => ({
      raiseCancel: async ({ callNodeId }) => ({ ...(await rowOf(store, callNodeId)), cancelGeneration: 1 }),
    }),
    noticed: /neither ended nor held/,
  },
  {
    rule: 'nobody but a person or a budget cancels',
    script: script('cancelled'),
    breaks: (store, { story }) => ({
      // Nobody asked, as far as the story goes.
      raiseCancel: (...args) => {
        story.cancelsAskedAt.length = 0;
        return store.raiseCancel(...args);
      },
    }),
    noticed: /a cancel that nobody asked for/,
  },
  {
    rule: 'a second reference leaves evidence',
    script: script('a second reference'),
    blows: ANYHOW,
    breaks: (store, _, memory) => ({
      recordReference: async (callNodeId, ...rest) => {
        const recorded = await store.recordReference(callNodeId, ...rest);
        memory.spoil(`delete from evidence where call_node_id = ?`, callNodeId);
        return recorded;
      },
    }),
    noticed: /a cancel of something else/,
  },
];
