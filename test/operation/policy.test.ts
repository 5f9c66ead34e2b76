// Owns the tests of legs, rounds, deadlines and intervals: the rules that fold and store share.
// Must never use a real clock or real randomness.

import { describe, expect, it } from 'vitest';
import * as policy from '../../operation/policy.js';
import type { SubmissionPolicyName } from '../../operation/names.js';
import type { InputRound, LegOutcome, RowSnapshot } from '../../operation/row.js';
import { REFERENCE, sampleLeg, sampleLookUp, sampleRound, sampleRow, T0 } from './sample-row.js';
import { sampleReceipt, terminal } from './sample-facts.js';

const ALL_LEGS: readonly LegOutcome[] = [
  'open',
  'referenced',
  'answered',
  'asked',
  'notSent',
  'refused',
  'ambiguous',
];

function rowWith(legs: readonly LegOutcome[], changes: Partial<RowSnapshot> = {}): RowSnapshot {
  return sampleRow({ legs: legs.map((outcome, at) => sampleLeg(outcome, at + 1)), ...changes });
}

describe('legs', () => {
  it('are unsettled while nobody knows what became of their bytes', () => {
    const unsettled = policy.unsettledLegs(ALL_LEGS.map((outcome) => sampleLeg(outcome)));
    expect(unsettled.map((leg) => leg.outcome)).toEqual(['open', 'ambiguous']);
    expect(policy.isUnsettled(sampleLeg('refused'))).toBe(false);
  });

  it('may have been sent unless proved not sent', () => {
    const sent = ALL_LEGS.filter((outcome) => policy.mayHaveBeenSent(sampleLeg(outcome)));
    expect(sent).toEqual(['open', 'referenced', 'answered', 'asked', 'refused', 'ambiguous']);
  });

  it('allow a rejection only where each is proved not started', () => {
    const may = (...legs: LegOutcome[]): boolean => policy.mayReject(rowWith(legs));
    expect(may()).toBe(true);
    expect(may('notSent', 'refused', 'asked')).toBe(true);
    for (const outcome of ['open', 'referenced', 'answered', 'ambiguous'] as const) {
      expect(may('refused', outcome)).toBe(false);
    }
  });

  it('but not while a question waits that a leg has brought: a late refusal was of another one', () => {
    const rounds = [sampleRound('round-1', { leg: 2 })];
    expect(policy.mayReject(rowWith(['refused', 'asked'], { rounds }))).toBe(false);
    const over = [sampleRound('round-1', { leg: 2, closedAt: T0 })];
    expect(policy.mayReject(rowWith(['refused', 'asked'], { rounds: over }))).toBe(true);
  });

  it('or proved absent, also where a later one was refused', () => {
    const may = (provedAbsentAtLeg: number, ...legs: LegOutcome[]): boolean =>
      policy.mayReject(rowWith(legs, { provedAbsentAtLeg }));
    expect([may(1, 'ambiguous'), may(1, 'ambiguous', 'refused', 'notSent')]).toEqual([true, true]);
    expect([may(1, 'ambiguous', 'ambiguous'), may(0, 'ambiguous')]).toEqual([false, false]);
    expect([may(1, 'referenced'), may(1, 'answered')]).toEqual([false, false]);
  });

  it('are proved absent only up to the leg of the proof', () => {
    const absent = (provedAbsentAtLeg: number | null): boolean =>
      policy.isAbsenceProved(rowWith(['ambiguous', 'ambiguous'], { provedAbsentAtLeg }));
    expect([absent(null), absent(1), absent(2)]).toEqual([false, false, true]);
    const later = (outcome: LegOutcome): boolean =>
      policy.isAbsenceProved(rowWith(['ambiguous', outcome], { provedAbsentAtLeg: 1 }));
    expect([later('notSent'), later('refused'), later('open')]).toEqual([true, true, false]);
    expect(policy.isAbsenceProved({ legs: [], provedAbsentAtLeg: 0 })).toBe(true);
    expect(policy.isAbsenceProved({ legs: [], provedAbsentAtLeg: null })).toBe(false);
  });
});

describe('the ruling on a claim', () => {
  const policies: readonly (SubmissionPolicyName | null)[] = [
    'key-argument',
    'key-meta',
    'repeatable',
    'lookup-tool',
    'session-list',
    'operation-list',
    'request-id',
    'at-most-once',
    null,
  ];
  const rulings = (legs: readonly LegOutcome[], changes: Partial<RowSnapshot> = {}, at = T0): string =>
    policies
      .map((submissionPolicy) => policy.rulingOnClaim(rowWith(legs, { submissionPolicy, ...changes }), at))
      .join(' ');
  const all = (ruling: string): string => policies.map(() => ruling).join(' ');

  it('grants a leg where none is in doubt', () => {
    expect(rulings([])).toBe(all('granted'));
    expect(rulings(['notSent', 'refused', 'notSent', 'notSent'])).toBe(all('granted'));
  });

  it('grants a leg over an ambiguous one only where the policy makes the resend a look-up or harmless', () => {
    const thrice = 'granted granted granted ambiguous ambiguous ambiguous granted ambiguous ambiguous';
    expect(rulings(['ambiguous'])).toBe(thrice);
    expect(rulings(['ambiguous', 'ambiguous'])).toBe(thrice);
    expect(rulings(['ambiguous', 'ambiguous', 'ambiguous'])).toBe(
      'granted granted ambiguous ambiguous ambiguous ambiguous granted ambiguous ambiguous',
    );
  });

  it('grants a request id again only while the server remembers it, from the first leg in doubt', () => {
    const under = (legs: readonly LegOutcome[], at: number, requestIdWindowMs?: number): string => {
      const row = rowWith(legs, { submissionPolicy: 'request-id' });
      const known = requestIdWindowMs === undefined ? row.policy : { ...row.policy, requestIdWindowMs };
      return policy.rulingOnClaim({ ...row, policy: known }, at);
    };
    // Legs are claimed at T0 + their number; the window is an hour, its last tenth is left alone.
    expect(under(['ambiguous'], T0 + 1 + 54 * 60_000 - 1)).toBe('granted');
    expect(under(['ambiguous'], T0 + 1 + 54 * 60_000)).toBe('ambiguous');
    expect(under(['ambiguous', 'ambiguous'], T0 + 1 + 54 * 60_000)).toBe('ambiguous');
    expect(under(['notSent', 'ambiguous'], T0 + 1 + 54 * 60_000)).toBe('granted');
    expect(under(['ambiguous'], T0 + 900, 1_000)).toBe('granted');
    expect(under(['ambiguous'], T0 + 901, 1_000)).toBe('ambiguous');
    // Nothing in doubt: nothing the server could have begun to remember.
    expect(under(['notSent'], T0 + 1e9)).toBe('granted');
    // Who does not say when it is gets none.
    expect(policy.rulingOnClaim(rowWith(['ambiguous'], { submissionPolicy: 'request-id' }))).toBe(
      'ambiguous',
    );
  });

  it('counts tries from the last leg that was asked on', () => {
    const some = 'granted granted granted ambiguous ambiguous ambiguous granted ambiguous ambiguous';
    expect(rulings(['asked', 'asked', 'asked', 'asked'])).toBe(all('granted'));
    expect(rulings(['ambiguous', 'ambiguous', 'asked', 'ambiguous', 'ambiguous'])).toBe(some);
    expect(rulings(['asked', 'ambiguous', 'ambiguous', 'ambiguous'])).toBe(
      'granted granted ambiguous ambiguous ambiguous ambiguous granted ambiguous ambiguous',
    );
    const absent = (...legs: LegOutcome[]): string => rulings(legs, { provedAbsentAtLeg: legs.length });
    expect(absent('ambiguous', 'ambiguous', 'asked', 'ambiguous', 'ambiguous')).toBe(all('granted'));
    expect(absent('asked', 'ambiguous', 'ambiguous', 'ambiguous')).toBe(all('spent'));
  });

  it('grants none while a question waits that the last leg has brought', () => {
    const asking = { rounds: [sampleRound('round-1', { leg: 1 })] };
    expect(rulings(['asked'], asking)).toBe(all('asked'));
    expect(rulings(['asked'], { ...asking, cancelGeneration: 1 })).toBe(all('cancelled'));
    expect(rulings(['asked'], { ...asking, remoteReference: REFERENCE })).toBe(all('settled'));
    const reply = {
      replyDigest: 'd',
      replyToken: 't',
      action: 'decline',
      recordedAt: T0,
      sendingAt: T0,
      deliveredAt: T0,
    } as const;
    expect(rulings(['asked'], { rounds: [sampleRound('round-1', { leg: 1, reply })] })).toBe(all('granted'));
  });

  it('never grants a leg over an open one', () => {
    expect(rulings(['open'])).toBe(all('ambiguous'));
    expect(rulings(['ambiguous', 'open'])).toBe(all('ambiguous'));
    expect(rulings(['open', 'ambiguous'])).toBe(all('ambiguous'));
  });

  it('grants a leg once absence is proved at the last leg', () => {
    expect(rulings(['ambiguous'], { provedAbsentAtLeg: 1 })).toBe(all('granted'));
    expect(
      rulings(['ambiguous', 'ambiguous'], { provedAbsentAtLeg: 1, submissionPolicy: 'at-most-once' }),
    ).toBe(all('ambiguous'));
  });

  it('grants three legs that may have been sent over proved absence, and then says that they are spent', () => {
    const absent = (...legs: LegOutcome[]): string =>
      rulings(legs, { provedAbsentAtLeg: legs.length, submissionPolicy: 'lookup-tool' });
    expect(absent('ambiguous', 'ambiguous')).toBe(all('granted'));
    expect(absent('ambiguous', 'notSent', 'notSent', 'ambiguous')).toBe(all('granted'));
    expect(absent('ambiguous', 'ambiguous', 'ambiguous')).toBe(all('spent'));
    expect(absent('ambiguous', 'refused', 'ambiguous')).toBe(all('spent'));
  });

  it('grants nothing once a cancel was raised, and nothing once the course went on', () => {
    expect(rulings([], { cancelGeneration: 1 })).toBe(all('cancelled'));
    expect(rulings(['ambiguous'], { cancelGeneration: 1, provedAbsentAtLeg: 1 })).toBe(all('cancelled'));
    expect(rulings([], { remoteReference: REFERENCE, cancelGeneration: 1 })).toBe(all('settled'));
    expect(rulings([], { terminalObservation: terminal('failed') })).toBe(all('settled'));
    expect(rulings([], { rejection: { code: 'bad-arguments', message: 'no' } })).toBe(all('settled'));
    expect(rulings([], { receipt: sampleReceipt('REJECTED', 'rejected') })).toBe(all('settled'));
  });
});

describe('a look that saw nothing', () => {
  const closedAt = T0 + 2;
  const row = (outcome: LegOutcome, settleAfterMs?: number): RowSnapshot => {
    const { policy: plain } = sampleRow();
    const policyOfRow =
      settleAfterMs === undefined ? plain : { ...plain, lookUp: { ...sampleLookUp, settleAfterMs } };
    return rowWith(['notSent', outcome], { policy: policyOfRow });
  };

  it('proves absence only once every leg is closed and the last one has settled', () => {
    const may = (lookedAt: number, settleAfterMs?: number): boolean =>
      policy.mayProveAbsence(row('ambiguous', settleAfterMs), lookedAt);
    expect([may(closedAt - 1), may(closedAt)]).toEqual([false, true]);
    expect([may(closedAt + 29_999, 30_000), may(closedAt + 30_000, 30_000)]).toEqual([false, true]);
    expect(policy.mayProveAbsence(row('open', 0), closedAt + 99_999)).toBe(false);
    expect(policy.mayProveAbsence(rowWith([]), T0)).toBe(true);
  });
});

describe('the place of the key', () => {
  it('is where the policy says, for a look-up where its own settings say', () => {
    const lookUp = { ...sampleLookUp, keyPlace: 'meta' } as const;
    const places = (['key-argument', 'key-meta', 'lookup-tool', 'session-list', null] as const).map((name) =>
      policy.keyPlaceOf(name, lookUp),
    );
    expect(places).toEqual(['argument', 'meta', 'meta', null, null]);
    expect(policy.keyPlaceOf('lookup-tool', sampleLookUp)).toBe('argument');
    expect(policy.keyPlaceOf('lookup-tool', undefined)).toBeNull();
  });

  it('is looked at without sending anything only by lists and look-up tools', () => {
    const reads = (
      ['lookup-tool', 'session-list', 'key-meta', 'repeatable', 'at-most-once', null] as const
    ).map(policy.looksWithoutSending);
    expect(reads).toEqual([true, true, false, false, false, false]);
  });
});

describe('the submission policy', () => {
  const grounds = {
    configured: null,
    sideEffects: 'unknown',
    trustAnnotations: false,
    readOnly: false,
    idempotent: false,
    canList: false,
  } as const satisfies policy.PolicyGrounds;
  const decide = (changes: Partial<policy.PolicyGrounds>): SubmissionPolicyName =>
    policy.decideSubmissionPolicy({ ...grounds, ...changes });

  it('is at-most-once unless something better is known', () => {
    expect(decide({})).toBe('at-most-once');
    expect(decide({ canList: true })).toBe('session-list');
    expect(decide({ sideEffects: 'none', canList: true })).toBe('repeatable');
  });

  it('takes what is declared of the tool itself: a request id before all else, a list before nothing', () => {
    expect(decide({ offered: 'request-id' })).toBe('request-id');
    expect(decide({ offered: 'request-id', sideEffects: 'none' })).toBe('request-id');
    expect(decide({ offered: 'request-id', configured: 'at-most-once' })).toBe('at-most-once');
    expect(decide({ offered: 'operation-list' })).toBe('operation-list');
    expect(decide({ offered: 'operation-list', sideEffects: 'none' })).toBe('repeatable');
    expect(decide({ offered: undefined })).toBe('at-most-once');
  });

  it('believes annotations only of a trusted server', () => {
    expect(decide({ readOnly: true, idempotent: true })).toBe('at-most-once');
    expect(decide({ trustAnnotations: true })).toBe('at-most-once');
    expect(decide({ trustAnnotations: true, readOnly: true })).toBe('repeatable');
    expect(decide({ trustAnnotations: true, idempotent: true, canList: true })).toBe('repeatable');
  });

  it('follows the configuration, except that nobody can list where the contract cannot', () => {
    expect(decide({ configured: 'key-meta', sideEffects: 'none' })).toBe('key-meta');
    expect(decide({ configured: 'at-most-once', canList: true })).toBe('at-most-once');
    expect(decide({ configured: 'session-list', canList: true, sideEffects: 'none' })).toBe('session-list');
    expect(decide({ configured: 'session-list', sideEffects: 'none' })).toBe('at-most-once');
  });
});

describe('rounds and human time', () => {
  const reply = {
    replyDigest: 'r',
    replyToken: 't',
    action: 'accept',
    recordedAt: T0,
    sendingAt: T0,
  } as const;
  const span = (from: number, to: number | null, closedAt: number | null = null): InputRound =>
    sampleRound(`r${from}`, {
      openedAt: T0 + from,
      closedAt: closedAt === null ? null : T0 + closedAt,
      reply: to === null ? null : { ...reply, deliveredAt: T0 + to },
    });

  it('are open until answered or closed', () => {
    const undelivered = sampleRound('undelivered', { reply: { ...reply, deliveredAt: null } });
    const rounds = [span(0, null), undelivered, span(1, 5), span(2, null, 9)];
    expect(policy.openRounds(rounds).map((round) => round.roundId)).toEqual(['r0', 'undelivered']);
  });

  it('count the union of their spans, in whatever order and overlap', () => {
    expect(policy.humanTimeMs([])).toBe(0);
    expect(policy.humanTimeMs([span(0, null)])).toBe(0);
    expect(policy.humanTimeMs([span(10, 30)])).toBe(20);
    expect(policy.humanTimeMs([span(10, null, 40)])).toBe(30);
    expect(policy.humanTimeMs([span(10, 30, 90)])).toBe(20);
    expect(policy.humanTimeMs([span(100, 150), span(10, 30)])).toBe(70);
    expect(policy.humanTimeMs([span(10, 50), span(20, 30), span(40, 60)])).toBe(50);
    expect(policy.humanTimeMs([span(10, 50), span(20, 30), span(45, 46)])).toBe(40);
    expect(policy.humanTimeMs([span(50, 10)])).toBe(0);
  });

  it('push the wait deadline out, as held time does', () => {
    const row = sampleRow();
    const record = { policy: row.policy, createdAt: T0, rounds: [span(10, 30)], heldMs: 500 };
    expect(policy.waitDeadlineAt(record)).toBe(T0 + 2 * 3_600_000 + 20 + 500);
    expect(policy.waitDeadlineAt({ ...record, policy: null })).toBeNull();
  });
});

describe('pace', () => {
  it('clamps whatever interval a server hints', () => {
    const clamped = [2, 0, -1, Number.NaN, 1e12, undefined, null, Infinity].map(policy.clampIntervalMs);
    expect(clamped).toEqual([1_000, 1_000, 1_000, 5_000, 300_000, 5_000, 5_000, 5_000]);
    expect([1_000, 1_001, 299_999, 300_000].map(policy.clampIntervalMs)).toEqual([
      1_000, 1_001, 299_999, 300_000,
    ]);
    expect(policy.clampIntervalMs('2000' as unknown as number)).toBe(5_000);
  });

  it('never polls under the interval or Retry-After, whatever the jitter', () => {
    expect(policy.pollGapMs(5_000, null, 0)).toBe(5_000);
    expect(policy.pollGapMs(5_000, 20_000, 0)).toBe(20_000);
    expect(policy.pollGapMs(5_000, 100, 0)).toBe(5_000);
    expect(policy.pollGapMs(5_000, null, 0.5)).toBe(5_250);
    expect(policy.pollGapMs(1_001, null, 0.333)).toBe(1_035);
    expect(policy.pollGapMs(5_000, 1e12, 0)).toBe(3_600_000);
  });

  it('doubles a back-off up to its ceiling and never overflows', () => {
    expect([1, 2, 3, 4].map((attempts) => policy.backOffMs(2_000, 120_000, attempts))).toEqual([
      2_000, 4_000, 8_000, 16_000,
    ]);
    expect(policy.backOffMs(2_000, 120_000, 7)).toBe(120_000);
    expect(policy.backOffMs(2_000, 120_000, 5_000)).toBe(120_000);
    expect(policy.backOffMs(1, Infinity, 5_000)).toBe(2 ** 30);
    expect(policy.backOffMs(2_000, 120_000, 0)).toBe(2_000);
    expect(policy.backOffMs(2_000, 120_000, -3)).toBe(2_000);
  });

  it('clips a text to its limit and says so', () => {
    expect(policy.clip('abcd', 4)).toBe('abcd');
    expect(policy.clip('abcde', 4)).toBe('abc…');
  });
});
