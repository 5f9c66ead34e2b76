// Owns the two phases of a random course: with faults, and after healing, when it must end.
// Must never pass over a course: one that neither ends nor holds is a failure with its story.

import type { Course } from './drive.js';

const FAULTY_TURNS = 30;

export function faultyCourse(course: Course): Course {
  for (let turn = 0; turn < FAULTY_TURNS && !course.isOver; turn += 1) course.turn();
  for (let turn = 0; turn < 3 && course.isOver; turn += 1) course.turn();
  return course;
}

/** All that the fixed seeds must meet. */
export const EVERYTHING: readonly string[] = [
  'SUBMITTING',
  'SUBMISSION_UNKNOWN',
  'NOT_FOUND_SAFE',
  'freed by proof',
  'rejected for time or number',
  'WORKING',
  'INPUT_REQUIRED',
  'CANCEL_REQUESTED',
  'TERMINAL_OBSERVED',
  'FETCHING_RESULT',
  'UNRESOLVED',
  'ACCEPTED',
  'CANCELLED_ACCEPTED',
  'REJECTED',
  'submit',
  'lookUp',
  'observe',
  'askHuman',
  'awaitReply',
  'answered before there is work',
  'a reply of another run taken back',
  'answer',
  'cancel',
  'fetchResult',
  'accept',
  'awaitOperator',
  'done',
  'opened',
  'submitted',
  'interrupted',
  'timePassed',
  'ledgerMissing',
  'ledger behind',
  'ledger behind again',
  'ledger caught up',
  'superseded',
  'storeRestored',
  'recordEnd',
  'endRecorded',
  'hold ledger-behind',
  'an end on a lost row',
  'open',
  ...['completed', 'failed', 'cancelled', 'rejected', 'unresolved'].map((outcome) => `outcome ${outcome}`),
  ...[
    'ambiguous-submission',
    'look-up-deadline',
    'handle-lost',
    'expired',
    'result-lost',
    'result-too-large',
  ].map((why) => `hold ${why}`),
  ...['cancel-never-settled', 'wait-budget', 'protocol-violation', 'acceptance-refused'].map(
    (why) => `hold ${why}`,
  ),
  ...['ambiguous-submission', 'look-up-deadline'].map((why) => `held under request-id: ${why}`),
  'held under operation-list: look-up-deadline',
  ...['lookUp', 'observe', 'recordEnd', 'accept', 'open', 'awaitOperator'].map((kind) => `held ${kind}`),
  'asked again',
  'a second cancel',
  ...['wait-budget', 'input-deadline', 'changed my mind', 'terminated'].map((reason) => `asked ${reason}`),
  ...['folded', 'ignored', 'waiting', 'requested', 'alreadyRequested', 'tooLate'].map(
    (kind) => `verdict ${kind}`,
  ),
  ...['applied', 'duplicate', 'alreadyAnswered', 'roundClosed'].map((kind) => `verdict ${kind}`),
  ...['applied', 'roundClosed', 'refused'].map((kind) => `answered ${kind}`),
  ...['found', 'provedAbsent', 'cannotTell'].map((finding) => `lookedUp ${finding}`),
  ...['terminal', 'inputRequired', 'roundClosed', 'notFound'].map((finding) => `observed ${finding}`),
  ...['sessionLost', 'violation', 'deadlinePassed'].map((finding) => `observed ${finding}`),
  ...['confirmed', 'acknowledged', 'refused', 'unsupported', 'lost', 'neverSent'].map(
    (r) => `cancelSent ${r}`,
  ),
  ...['stored', 'notYet', 'lost', 'tooLarge'].map((finding) => `resultFetched ${finding}`),
  ...['accepted', 'refused'].map((finding) => `accepted ${finding}`),
];

export function endsAfterHealing(course: Course): void {
  const { world } = course;
  world.faults = false;
  world.remote.heal(world.nowMs);
  // Evidence that came late may overtake a word, and the operation goes on: then it is held or ends once more.
  for (let words = 0; words < 3 && !course.isOver; words += 1) {
    const settled = (): boolean => course.isOver || course.record.state === 'UNRESOLVED';
    for (let turn = 0; turn < 60 && !settled(); turn += 1) {
      // The store finds its row again, or another run adopts the restored one.
      if (course.record.ledgerBehind && world.random.chance(0.3)) course.startNewRun();
      course.turn();
    }
    if (!settled()) throw new Error(`never ends nor holds\n${course.trail.join('\n')}`);
    for (let turn = 0; turn < 6 && !course.isOver; turn += 1) course.turn();
    if (course.isOver) return;
    const word = { decision: { kind: 'close' }, evidence: 'gave up', decidedBy: 'ops' } as const;
    course.fold({ kind: 'operatorDecided', at: world.nowMs, ...word });
    for (let turn = 0; turn < 2 && !course.isOver; turn += 1) course.turn();
  }
  if (!course.isOver) throw new Error(`a word does not end it\n${course.trail.join('\n')}`);
}
