// Owns the course of one operation in the model world: perform, fold, mail, next step; the judge after every fact.
// Must never know a rule: it compares the machine with the judge and checks what must never happen.

import { apply } from '../../operation/apply.js';
import type { Fact, OutsideFact } from '../../operation/facts.js';
import { nextStep, type Step } from '../../operation/next-step.js';
import { newOperation, type ToolOperation } from '../../operation/record.js';
import { verdictOf } from '../../operation/replies.js';
import { Judge } from './oracle.js';
import { isOpen, randomMail } from './mail.js';
import { T0, sampleRow } from './sample-row.js';
import { World } from './world.js';

const TERMINAL = ['ACCEPTED', 'CANCELLED_ACCEPTED', 'REJECTED'];

export class Course {
  readonly world: World;
  record: ToolOperation = newRun(false);
  judge = new Judge();
  readonly trail: string[] = [];
  /** Which states, steps, holds, verdicts, findings and ends this course has met. */
  readonly met = new Set<string>();
  step: Step;

  constructor(seed: number) {
    this.world = new World(seed);
    this.#begin();
    this.step = nextStep(this.record, T0);
  }

  get isOver(): boolean {
    return TERMINAL.includes(this.record.state);
  }

  /** One turn of the workflow's loop. */
  turn(): void {
    const { world } = this;
    const interrupts =
      world.fault(0.1) && ['observe', 'askHuman', 'lookUp', 'submit'].includes(this.step.kind);
    const outcome = interrupts ? null : world.perform(this.record, this.step);
    this.fold(outcome ?? { kind: interrupts ? 'interrupted' : 'timePassed', at: world.nowMs });
    while (world.fault(0.25)) this.fold(randomMail(world, this.record));
    if (world.fault(0.03)) world.zombieWrites();
    if (world.fault(0.02)) world.overtake();
    if (world.fault(0.01)) this.startNewRun();
  }

  /** The engine lost the run: another one begins with nothing but the store's row. */
  startNewRun(): void {
    this.trail.push('-- new run');
    this.#begin();
    this.step = nextStep(this.record, this.world.nowMs);
  }

  #begin(): void {
    const lastRunTerminated = this.world.fault(0.15);
    this.record = newRun(lastRunTerminated);
    this.judge = new Judge(lastRunTerminated);
  }

  fold(fact: Fact): void {
    const before = this.record;
    const { record, verdict } = apply(before, fact);
    const expected = this.judge.hear(fact);
    const step = nextStep(record, fact.at);
    this.trail.push(`${fact.kind} ${detailOf(fact)} -> ${record.state}/${step.kind}`);
    this.record = record;
    this.step = step;
    this.#note(before, fact, verdict.kind);
    this.#agree('state', record.state, expected.state);
    this.#agree('verdict', JSON.stringify(verdict), JSON.stringify(expected.verdict));
    this.#agree('hold', record.hold?.reason ?? null, expected.hold?.reason ?? null, this.isOver);
    this.#agree('ledger behind', record.ledgerBehind !== null, expected.behind, this.isOver);
    this.#agree('next step', step.kind, this.judge.nextKind(fact.at));
    this.#agree('waiting', record.waitingReplies.length, this.judge.waitingReplies().length);
    if (record.replyVerdicts !== before.replyVerdicts) this.#agreeOnReplies(record);
    if (step.kind === 'accept') this.#agreeOnOutcome();
    this.#forbid(before, step);
  }

  #note(before: ToolOperation, fact: Fact, verdict: string): void {
    const { record, step, met } = this;
    for (const name of [record.state, step.kind, fact.kind, `verdict ${verdict}`]) met.add(name);
    if (record.hold) met.add(`hold ${record.hold.reason}`).add(`held ${step.kind}`);
    if (before.hold && record.state === 'NOT_FOUND_SAFE') met.add('freed by proof');
    if (record.rejection?.code === 'submit-deadline') met.add('rejected for time or number');
    if (record.receipt && before.hold?.reason === 'ledger-behind') met.add('an end on a lost row');
    if (step.kind === 'answer' && !record.remoteReference) met.add('answered before there is work');
    if (record.rounds.some(({ takenBack }) => takenBack)) met.add('a reply of another run taken back');
    if (record.receipt) met.add(`outcome ${record.receipt.outcome}`);
    if (record.hold) met.add(`held under ${record.submissionPolicy}: ${record.hold.reason}`);
    if (record.ledgerBehind) met.add('ledger behind');
    if (record.ledgerBehind?.rechecks) met.add('ledger behind again');
    if (before.ledgerBehind && !record.ledgerBehind) met.add('ledger caught up');
    if (record.cancelAsked) met.add(`asked ${record.cancelAsked.reason}`);
    if (before.hold && before.cancelGeneration > 0 && verdict === 'requested') met.add('asked again');
    if (record.cancelGeneration > 1) met.add('a second cancel');
    if ('finding' in fact) met.add(`${fact.kind} ${fact.finding}`);
    if (fact.kind === 'cancelSent') met.add(`cancelSent ${fact.reply}`);
    if (fact.kind === 'answered') met.add(`answered ${fact.verdict.kind}`);
  }

  #agreeOnReplies(record: ToolOperation): void {
    for (const { replyToken } of record.replyVerdicts.slice(-3)) {
      const word = JSON.stringify(verdictOf(record, replyToken));
      this.#agree(`verdict of ${replyToken}`, word, JSON.stringify(this.judge.verdictOfReply(replyToken)));
    }
  }

  #agreeOnOutcome(): void {
    const outcome = this.judge.expectedOutcome();
    const receipt = this.world.row.receipt;
    if (receipt && this.isOver) this.#agree('outcome', receipt.outcome, outcome);
  }

  #forbid(before: ToolOperation, step: Step): void {
    const { record } = this;
    const never = (what: string, happened: boolean): void => this.#agree(what, happened, false);
    never(
      'a second receipt',
      before.receipt !== null && JSON.stringify(record.receipt) !== JSON.stringify(before.receipt),
    );
    never('an end is left', TERMINAL.includes(before.state) && record.state !== before.state);
    const outcome = record.receipt?.outcome;
    never(
      'success without result',
      (outcome === 'completed' || outcome === 'failed') && !record.receipt?.result,
    );
    const cancelled = record.cancelAsked !== null || record.cancelGeneration > 0;
    never('asking after a cancel', cancelled && ['askHuman', 'awaitReply', 'answer'].includes(step.kind));
    const resends = ['key-argument', 'key-meta', 'request-id', 'repeatable'].includes(
      record.submissionPolicy ?? '',
    );
    const doubt = record.submissionLegs.some((leg) => leg.outcome === 'open' || leg.outcome === 'ambiguous');
    const absent = record.submissionLegs.every(
      ({ leg, outcome }) =>
        !['open', 'ambiguous'].includes(outcome) || leg <= (record.provedAbsentAtLeg ?? 0),
    );
    never('a submit in doubt', step.kind === 'submit' && doubt && !resends && !absent);
    never('a submit on what was forgotten', step.kind === 'submit' && record.hasForgotten);
    never('a submit with a reference', step.kind === 'submit' && record.remoteReference !== null);
    const isForgotten = record.hold?.reason === 'ledger-behind';
    never(
      'work on what was forgotten',
      isForgotten && !['open', 'accept', 'recordEnd', 'awaitOperator', 'done'].includes(step.kind),
    );
    const mayHaveLeft = before.submissionLegs.some((leg) => leg.outcome !== 'notSent');
    const isOwed = outcome === 'unresolved' && (mayHaveLeft || record.hasForgotten);
    never('effects forgotten', isOwed && record.receipt?.effects === 'none-owed');
    // In the row or overtaken, the word is used up, and its result with it.
    const isRecorded = this.trail.at(-1)?.startsWith('endRecorded') === true && !record.ledgerBehind;
    never('a result carried on', isRecorded && record.operator?.end !== undefined);
    never('a late reply', this.isOver && record.waitingReplies.length > 0);
    for (const reply of record.waitingReplies) {
      const round = record.rounds.find((known) => known.roundId === reply.roundId);
      never('a reply waits for a closed round', !record.ledgerBehind && !(round && isOpen(round)));
    }
  }

  #agree(what: string, got: unknown, expected: unknown, unless = false): void {
    if (got === expected || unless) return;
    const story = this.trail.map((line, at) => `${at} ${line}`).join('\n');
    throw new Error(`${what}: machine ${String(got)}, judge ${String(expected)}\n${story}`);
  }
}

function newRun(lastRunTerminated: boolean): ToolOperation {
  const { callNodeId, requestDigest, server, tool } = sampleRow();
  return newOperation({ callNodeId, requestDigest, server, tool, startedAt: T0, lastRunTerminated });
}

function detailOf(fact: Fact | OutsideFact): string {
  const row = 'row' in fact ? fact.row : null;
  const parts = [
    'finding' in fact ? fact.finding : null,
    fact.kind === 'cancelSent' ? fact.reply : null,
    fact.kind === 'answered' ? fact.verdict.kind : null,
    fact.kind === 'replyGiven' ? `${fact.reply.replyToken} to ${fact.reply.roundId}` : null,
    row ? `[${row.submissionPolicy} legs ${row.legs.map((leg) => leg.outcome).join(',')}` : null,
    row?.remoteReference ? 'ref' : null,
    row?.terminalObservation ? row.terminalObservation.remoteStatus : null,
    row?.cancelGeneration ? `gen ${row.cancelDelivery}` : null,
    row ? `]` : null,
    `+${fact.at - T0}`,
  ];
  return parts.filter((part) => part !== null).join(' ');
}
