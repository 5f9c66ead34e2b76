// Owns the small scripts that the explorer strikes at every point: one per way an operation may go.
// Must never hold a blow that is not part of the way itself.

import { LOOK_UP_TOOL } from './plan.js';
import { quietScript, type PlannedReply, type Script } from './script.js';

const ANSWERED: PlannedReply = {
  round: 0,
  afterMs: 2_000,
  content: { year: 2024 },
  action: 'accept',
  by: 'update',
};
const ASKS = [
  { kind: 'work', forMs: 3_000 },
  { kind: 'ask', givesUpAfterMs: null, lingers: 0 },
  { kind: 'work', forMs: 3_000 },
] as const;
const GIVEN_UP = { kind: 'ask', givesUpAfterMs: 20_000, lingers: 0 } as const;
const CANCELLED = { when: { atMs: 9_000 }, blow: { kind: 'cancel' } } as const;
const LONG = [{ kind: 'work', forMs: 30_000 }] as const;
/** Looks 20 s apart keep the schedules short. */
const SLOW = { hintsMs: [20_000] };

export const PLAIN: Script = quietScript('plain', {}, { phases: [{ kind: 'work', forMs: 3_000 }] });

/** How each ends where nobody is stopped; all others are completed. */
export const ENDS: Readonly<Record<string, string>> = {
  'a plain call with a lost reply': 'unresolved',
  'a tool that fails': 'failed',
  refused: 'rejected',
  'an unknown tool': 'rejected',
  cancelled: 'cancelled',
  'cancelled before anything was sent': 'cancelled',
  'cancelled while asked': 'cancelled',
  'a lost reply, at most once': 'unresolved',
  'a result that is gone': 'unresolved',
};

/** Two people answer at once, and the server goes on showing its question for some looks. */
export const TWO_PEOPLE: Script = quietScript(
  'two people and a question that lingers',
  { replies: [ANSWERED, { ...ANSWERED, afterMs: 2_100, content: { year: 1999 }, by: 'signal' }] },
  {
    phases: [ASKS[0], { kind: 'ask', givesUpAfterMs: null, lingers: 3 }, { kind: 'work', forMs: 90_000 }],
    answers: ['lostAfter'],
    ...SLOW,
  },
);

export const SCRIPTS: readonly Script[] = [
  PLAIN,
  quietScript('answered at once', {}, { creates: ['answered', 'answered'] }),
  quietScript('a plain call', {}, { contract: 'synchronous' }),
  quietScript('a plain call with a lost reply', {}, { contract: 'synchronous', creates: ['lost'] }),
  quietScript('a tool that fails', {}, { isToolError: true }),
  quietScript('refused', {}, { creates: ['refused'] }),
  quietScript('not sent at first', {}, { creates: ['notSent', 'notSent'] }),
  quietScript('an unknown tool', {}, { negotiations: ['unknownTool'] }),
  quietScript('a question', { replies: [ANSWERED] }, { phases: ASKS }),
  quietScript(
    'a question with two people and a lost acknowledgement',
    { replies: [ANSWERED, { ...ANSWERED, afterMs: 2_100, content: { year: 1999 }, by: 'signal' }] },
    { phases: ASKS, answers: ['lostAfter'], ...SLOW },
  ),
  TWO_PEOPLE,
  quietScript(
    'a refused answer',
    { replies: [ANSWERED] },
    // Nobody answers a second time: the server goes on by itself.
    { phases: [ASKS[0], GIVEN_UP, ASKS[2]], answers: ['refused'], ...SLOW },
  ),
  quietScript('a question the server gives up', {}, { phases: [ASKS[0], GIVEN_UP, ASKS[2]], ...SLOW }),
  quietScript('cancelled', { blows: [CANCELLED] }, { phases: LONG, ...SLOW }),
  quietScript(
    'cancelled before anything was sent',
    { blows: [{ when: { atMs: 0 }, blow: { kind: 'cancel' } }] },
    { negotiations: ['notSent'] },
  ),
  quietScript(
    'cancelled, acknowledged late and completed',
    { blows: [CANCELLED] },
    { phases: LONG, cancels: ['lostBefore', 'acknowledged'], honours: 'never', ...SLOW },
  ),
  quietScript(
    'cancelled while asked',
    { blows: [CANCELLED], replies: [{ ...ANSWERED, afterMs: 3_000 }] },
    { phases: ASKS },
  ),
  quietScript(
    'a lost reply with a key',
    {},
    { creates: ['lost'], deduplicates: true, policy: { submissionPolicy: 'key-argument', keyName: 'key' } },
  ),
  ...(['lost', 'vanished', 'late'] as const).map((reply) =>
    quietScript(
      `a look-up tool after a reply that was ${reply}`,
      {},
      {
        creates: [reply],
        provesAbsence: true,
        policy: { submissionPolicy: 'lookup-tool', keyName: 'key', lookUp: LOOK_UP_TOOL },
      },
    ),
  ),
  quietScript('a lost reply with a list', {}, { creates: ['lost'], canList: true }),
  quietScript(
    'a lost reply, at most once',
    {},
    { creates: ['lost'], policy: { submissionPolicy: 'at-most-once' } },
  ),
  quietScript(
    'a lost reply of a repeatable tool',
    {},
    { creates: ['lost'], policy: { submissionPolicy: 'repeatable', sideEffects: 'none' } },
  ),
  quietScript(
    // Whoever is stopped before it sends brings a second piece of work to light.
    'a second reference',
    {},
    {
      creates: ['vanished'],
      policy: { submissionPolicy: 'repeatable', sideEffects: 'unknown' },
      phases: LONG,
      ...SLOW,
    },
  ),
  quietScript(
    'a lost reply, and an operator who knows how it ended',
    { blows: [{ when: { atMs: 30_000 }, blow: { kind: 'operator', word: 'ended' } }] },
    { creates: ['lost'], policy: { submissionPolicy: 'at-most-once' } },
  ),
  quietScript('a result lost once', {}, { fetches: ['transient', 'notYet'] }),
  quietScript('a result behind a lost session', {}, { fetches: ['sessionLost'] }),
  quietScript('a lost session', {}, { looks: ['sessionLost'], ...SLOW }),
  quietScript('a result that is gone', {}, { isResultLost: true }),
];
