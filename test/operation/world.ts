// Owns a model world for one operation: a remote server, the store's row, and steps performed against both.
// Must never decide what the core decides; it only answers, as stores and servers do: late, twice, or not at all.

import { buildReceipt, decideEnd, presentedBy, operatorWordOf } from '../../operation/build-receipt.js';
import type { CancelReply, StepFact } from '../../operation/facts.js';
import type { ObserveStep, Step } from '../../operation/next-step.js';
import { isUnsettled, mayReject, rulingOnClaim } from '../../operation/policy.js';
import type { ToolOperation } from '../../operation/record.js';
import type { InputRound, RowSnapshot, SubmissionLeg } from '../../operation/row.js';
import { isOlder } from './oracle.js';
import { Random } from './random.js';
import { Remote } from './remote.js';
import { HOUR_MS, MINUTE_MS, POLICY, RESULT, sampleRow, T0 } from './sample-row.js';

const OWN_RUN = 'run-1';
const OTHER_RUN = 'run-9';

/** Recorded by another run, and not delivered by it. */
const OTHERS_REPLY = 'reply of another run';

/** The server refused it there. */
function withoutOthersReply(round: InputRound): InputRound {
  const { reply, takenBack = [] } = round;
  if (reply?.replyToken !== OTHERS_REPLY || reply.deliveredAt !== null || round.closedAt !== null)
    return round;
  const { replyToken, recordedAt } = reply;
  return { ...round, reply: null, takenBack: [...takenBack, { replyToken, recordedAt }] };
}

type Opened<K> = Extract<Step, { kind: K }>;

/** The reply holds a result, or may, and is too large to be taken. */
const TOO_LARGE = { tooLarge: 'too large' };

export class World {
  readonly random: Random;
  readonly remote: Remote;
  row: RowSnapshot;
  nowMs = T0;
  faults = true;
  /** An older copy of the row: what a restored backup would bring back. */
  backup: RowSnapshot | null = null;
  /** The row that a restored backup stands for; the store may find it again. */
  #mislaid: RowSnapshot | null = null;
  #roundsBefore: readonly InputRound[] = [];
  /** When the leg that made the remote work was claimed, and when that work began. */
  #made: { readonly claimedAt: number; readonly at: number } | null = null;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.remote = new Remote(this.random);
    const closes = this.random.chance(0.25);
    this.row = sampleRow({
      executionEpoch: 0,
      submissionPolicy: null,
      policy: {
        ...POLICY,
        waitBudgetMs: this.random.pick([10 * MINUTE_MS, 2 * HOUR_MS, 24 * HOUR_MS]),
        ...this.random.pick([{}, { requestIdWindowMs: 30_000 }, { requestIdWindowMs: 40 * MINUTE_MS }]),
        onUnresolved: closes
          ? { kind: 'closeAfter', afterMs: 1 + this.random.below(HOUR_MS) }
          : { kind: 'hold' },
      },
    });
  }

  fault(share: number): boolean {
    return this.faults && this.random.chance(share);
  }

  /** Performs one step of a run. Null: the step waited until `nowMs` and found nothing to report. */
  perform(record: ToolOperation, step: Step): StepFact | null {
    this.nowMs += 1 + this.random.below(400);
    if (step.kind === 'answer') this.#roundsBefore = this.row.rounds;
    if (!record.ledgerBehind) this.#mislaid = null;
    const mayRestore = step.kind !== 'open' && !this.#mislaid;
    if (mayRestore && this.backup && isOlder(this.backup, this.row, () => false) && this.fault(0.02)) {
      this.#mislaid = this.row;
      this.row = this.backup;
      if (this.random.chance(0.3)) return { kind: 'ledgerMissing', at: this.nowMs, evidence: 'no such row' };
    }
    if (this.fault(0.05)) this.backup = this.row;
    switch (step.kind) {
      case 'open':
        return this.#open(record);
      case 'recordEnd':
        return this.#recordOperatorEnd(record, step);
      case 'submit':
        return this.#submit(step);
      case 'lookUp':
        return this.#lookUp(step);
      case 'observe':
      case 'askHuman':
        return this.#observe(step);
      case 'answer':
        return this.#answer(step);
      case 'cancel':
        return { kind: 'cancelSent', at: this.nowMs, reply: this.#cancel(step), row: this.row };
      case 'fetchResult':
        return this.#fetch(step);
      case 'accept':
        return this.#accept(record);
      case 'awaitReply':
        this.nowMs = this.fault(0.8) ? this.nowMs + this.random.below(20 * MINUTE_MS) : step.untilAt;
        return null;
      case 'awaitOperator':
        if (step.untilAt !== null) this.nowMs = Math.max(this.nowMs, step.untilAt);
        return null;
      case 'done':
        return null;
    }
  }

  get isOvertaken(): boolean {
    return this.row.ownerRunId === OTHER_RUN;
  }

  /** Another run opens the row and takes its epoch, while this one lives. */
  overtake(): void {
    if (this.row.executionEpoch === 0) return;
    this.#put({ executionEpoch: this.row.executionEpoch + 1, ownerRunId: OTHER_RUN });
    if (this.fault(0.7)) this.#put({ rounds: this.row.rounds.map(withoutOthersReply) });
  }

  /** Evidence that a process thought dead writes late. */
  zombieWrites(): void {
    if (this.remote.created && !this.row.remoteReference && this.row.legs.some(isUnsettled))
      this.#recordReference();
    else if (this.row.remoteReference && this.remote.endedAt <= this.nowMs) this.#recordEnd('status');
  }

  #open(record: ToolOperation): StepFact {
    const isWord = record.ledgerBehind !== null && record.operator?.isAboutLedger === true;
    if (this.#mislaid && !isWord && this.fault(0.2))
      return { kind: 'ledgerMissing', at: this.nowMs, evidence: 'no such row', isOpening: true };
    if (this.#mislaid && !this.fault(0.6)) {
      this.row = this.#mislaid;
      this.#mislaid = null;
    }
    this.#put({ executionEpoch: this.row.executionEpoch + 1, ownerRunId: OWN_RUN });
    if (record.policy !== null && this.#hasForgotten(record)) this.#put({ hasForgotten: true });
    if (isWord) this.#giveBack(record);
    return { kind: 'opened', at: this.nowMs, row: this.row };
  }

  #hasForgotten({ submissionLegs, remoteReference, terminalObservation: seen }: ToolOperation): boolean {
    const tokens = this.row.legs.map(({ claimToken }) => claimToken);
    return (
      submissionLegs.some(({ claimToken }) => !tokens.includes(claimToken)) ||
      (remoteReference !== null && this.row.remoteReference === null) ||
      (seen !== null && seen.evidence !== 'operator' && this.row.terminalObservation === null)
    );
  }

  #giveBack(record: ToolOperation): void {
    const lost = record.submissionLegs.filter(
      (leg) => !this.row.legs.some(({ claimToken }) => claimToken === leg.claimToken),
    );
    const settled = lost.map((leg) =>
      leg.outcome === 'open' ? { ...leg, outcome: 'ambiguous' as const } : leg,
    );
    const seen = record.terminalObservation;
    this.#put({
      legs: [...this.row.legs, ...settled],
      remoteReference: this.row.remoteReference ?? record.remoteReference,
      cancelGeneration: Math.max(this.row.cancelGeneration, record.cancelGeneration),
      terminalObservation: this.row.terminalObservation ?? (seen?.evidence === 'operator' ? null : seen),
    });
  }

  #recordOperatorEnd(record: ToolOperation, step: Opened<'recordEnd'>): StepFact {
    const { remoteReference, terminalObservation: seen, result, rejection } = this.row;
    const known = presentedBy(record);
    const isAsSeen =
      known.remoteId === (remoteReference?.remoteId ?? null) &&
      known.terminalStatus === (seen?.remoteStatus ?? null);
    if (isAsSeen && !result && !rejection) {
      const observation = {
        remoteStatus: step.end.outcome,
        failureKind: null,
        statusMessage: null,
        observedAt: this.nowMs,
        evidence: 'operator',
        note: step.note,
      } as const;
      this.#put({ terminalObservation: seen ?? observation, result: RESULT });
    }
    return { kind: 'endRecorded', at: this.nowMs, row: this.row };
  }

  #put(changes: Partial<RowSnapshot>): void {
    this.row = { ...this.row, ...changes };
  }

  #closeLeg(outcome: SubmissionLeg['outcome'], which: (leg: SubmissionLeg) => boolean): void {
    const legs = this.row.legs.map((leg) => (which(leg) ? { ...leg, outcome, closedAt: this.nowMs } : leg));
    this.#put({ legs });
  }

  #recordReference(): void {
    const last = this.row.legs.findLast(isUnsettled);
    this.#closeLeg('referenced', (leg) => leg === last);
    this.#put({ remoteReference: this.row.remoteReference ?? { remoteId: 'task-7', locator: {} } });
  }

  #recordEnd(evidence: 'submit-reply' | 'status' | 'cancel-reply'): void {
    const remoteStatus = evidence === 'cancel-reply' ? 'cancelled' : this.remote.endsAs;
    const seen = { remoteStatus, failureKind: null, statusMessage: null, observedAt: this.nowMs, evidence };
    const inline = evidence === 'submit-reply' || this.random.chance(0.4);
    this.#put({ terminalObservation: this.row.terminalObservation ?? seen });
    if (inline && this.row.terminalObservation?.remoteStatus !== 'cancelled')
      this.#put({ result: this.row.result ?? RESULT });
  }

  #submit(step: Opened<'submit'>): StepFact {
    const submitted = (): StepFact => ({ kind: 'submitted', at: this.nowMs, row: this.row });
    if (this.row.submissionPolicy === null) {
      if (this.fault(0.03)) return submitted();
      this.#put({ submissionPolicy: this.remote.submissionPolicy });
      if (this.fault(0.05)) this.#put({ rejection: { code: 'unknown-tool', message: 'no such tool' } });
    }
    this.#closeLeg('ambiguous', (leg) => leg.outcome === 'open');
    const ruling = rulingOnClaim(this.row, this.nowMs);
    if (ruling === 'spent')
      this.#put({ rejection: { code: 'submit-deadline', message: 'absent, again and again' } });
    if (ruling !== 'granted') return submitted();
    this.#forbidForgottenId();
    const leg = this.row.legs.length + 1;
    const claimed = {
      leg,
      claimToken: `c${leg}`,
      claimedAt: this.nowMs,
      closedAt: null,
      outcome: 'open',
      detail: null,
    } as const;
    this.#put({ legs: [...this.row.legs, claimed] });
    this.nowMs += this.random.below(3_000);
    const isThis = (other: SubmissionLeg): boolean => other.leg === leg;
    const reply = this.faults ? this.remote.submitReply() : 'created';
    if (reply === 'notSent' || reply === 'refused') {
      this.#closeLeg(reply, isThis);
      const late = reply === 'notSent' && this.nowMs >= step.deadlineAt;
      const code = late ? 'submit-deadline' : 'refused-by-server';
      const proved = mayReject(this.row) && !this.row.remoteReference;
      if (proved && (late || reply === 'refused')) this.#put({ rejection: { code, message: 'not started' } });
      return submitted();
    }
    if (reply === 'open') return submitted();
    if (reply === 'asked') {
      const said = this.#takeQuestion(leg);
      return { kind: 'submitted', at: this.nowMs, row: this.row, ...said };
    }
    if (reply === 'vanished') this.#closeLeg('ambiguous', isThis);
    else {
      this.#made ??= { claimedAt: claimed.claimedAt, at: this.nowMs };
      this.remote.create(this.nowMs);
    }
    if (reply === 'lost') this.#closeLeg('ambiguous', isThis);
    if (reply === 'lost' && this.fault(0.1)) return { ...submitted(), ...TOO_LARGE };
    if (reply === 'openButCreated' || reply === 'lost' || reply === 'vanished') return submitted();
    if (reply === 'answered') {
      this.#closeLeg('answered', isThis);
      this.remote.endAt(this.nowMs);
      this.#recordEnd('submit-reply');
    } else this.#recordReference();
    return submitted();
  }

  #takeQuestion(leg: number): { readonly violation?: string } {
    this.#closeLeg('asked', (other) => other.leg === leg);
    if (this.fault(0.2)) return { violation: 'asked too often' };
    // Some are asked nothing but to call again.
    if (this.fault(0.2)) return {};
    this.#put({ rounds: [...this.row.rounds, { ...this.remote.askBeforeWork(this.nowMs), leg }] });
    return {};
  }

  /** The remote has forgotten the id by then: what is sent under it starts a second piece of work. */
  #forbidForgottenId(): void {
    const { submissionPolicy, policy } = this.row;
    const made = this.#made;
    // A restored row may not know of that leg, and a new run on it knows no better than the row.
    if (submissionPolicy !== 'request-id' || !made || !this.row.legs.some(isUnsettled)) return;
    if (!this.row.legs.some(({ claimedAt }) => claimedAt === made.claimedAt)) return;
    if (this.nowMs >= made.at + (policy.requestIdWindowMs ?? HOUR_MS))
      throw new Error('a forgotten request id is sent again');
  }

  #lookUp(step: Opened<'lookUp'>): StepFact {
    this.nowMs = Math.max(this.nowMs, step.notBeforeAt ?? 0);
    const looked = (finding: 'found' | 'provedAbsent' | 'cannotTell'): StepFact => {
      return { kind: 'lookedUp', at: this.nowMs, row: this.row, finding, evidence: null };
    };
    if (this.fault(0.5)) return looked('cannotTell');
    if (this.remote.created) {
      this.#recordReference();
      return looked('found');
    }
    this.#closeLeg('ambiguous', (leg) => leg.outcome === 'open');
    if (!this.remote.provesAbsence) return looked('cannotTell');
    this.#put({ provedAbsentAtLeg: this.row.legs.length });
    return looked('provedAbsent');
  }

  #observe(step: ObserveStep): StepFact | null {
    this.nowMs = Math.max(this.nowMs, step.notBeforeAt ?? 0);
    const { remote, random } = this;
    const fault = this.faults ? remote.lookFault() : null;
    if (fault) {
      const isUnread = fault === 'violation' && this.fault(0.3);
      return { ...this.#observed(fault), ...(isUnread ? TOO_LARGE : {}) };
    }
    if (remote.forgottenAt <= this.nowMs) return this.#observed('notFound');
    // The step goes on until something happens, its deadline, or mail that interrupts it.
    const limitAt = step.once ? this.nowMs : (step.deadlineAt ?? Number.POSITIVE_INFINITY);
    const eventAt = remote.nextEventAt(step.openRoundIds, this.nowMs);
    if (this.fault(0.1)) {
      this.nowMs = Math.min(limitAt, eventAt, this.nowMs + random.below(20 * MINUTE_MS));
      return null;
    }
    if (eventAt > limitAt) {
      if (limitAt === Number.POSITIVE_INFINITY) return null;
      this.nowMs = Math.max(this.nowMs, limitAt);
      return this.#observed('deadlinePassed', this.fault(0.3) ? null : 'working');
    }
    if (eventAt === Number.POSITIVE_INFINITY) return null;
    this.nowMs = Math.max(this.nowMs, eventAt);
    if (remote.endedAt <= this.nowMs) {
      this.#recordEnd('status');
      const isUnfetched =
        this.row.result === null && this.row.terminalObservation?.remoteStatus !== 'cancelled';
      const isRefused = isUnfetched && this.fault(0.1);
      return { ...this.#observed('terminal'), ...(isRefused ? TOO_LARGE : {}) };
    }
    if (step.openRoundIds.length > 0 && remote.gaveUpAt <= this.nowMs) {
      this.closeRounds();
      return this.#observed('roundClosed');
    }
    this.#put({ rounds: [...this.row.rounds, ...remote.ask(this.nowMs)] });
    return this.#observed('inputRequired');
  }

  #observed(
    finding: Extract<StepFact, { kind: 'observed' }>['finding'],
    status: string | null = null,
  ): StepFact {
    const cursor = {
      observationCount: 1,
      transientFaults: 0,
      lastIntervalMs: null,
      nextPollNotBeforeAt: null,
    };
    const expiresAt = this.remote.expiresAt;
    const said = { remoteStatus: status, statusMessage: null, expiresAt, evidence: null };
    // An answer runs beside a look, whose row may have been read before the answer was recorded.
    const isLate = this.#roundsBefore.length === this.row.rounds.length && this.fault(0.3);
    const row = isLate ? { ...this.row, rounds: this.#roundsBefore } : this.row;
    return { kind: 'observed', at: this.nowMs, row, finding, cursor, ...said };
  }

  closeRounds(): void {
    this.remote.movedOn();
    const rounds = this.row.rounds.map((round) => ({ ...round, closedAt: round.closedAt ?? this.nowMs }));
    this.#put({ rounds });
  }

  #answer(step: Opened<'answer'>): StepFact {
    const { roundId, replyToken, replyDigest, action } = step.reply;
    const answered = (verdict: Extract<StepFact, { kind: 'answered' }>['verdict']): StepFact => {
      return { kind: 'answered', at: this.nowMs, row: this.row, replyToken, verdict };
    };
    if (this.fault(0.2)) return answered({ kind: 'refused', reason: 'does not fit the schema' });
    if (this.fault(0.15)) {
      const reply = { replyDigest: 'other', replyToken: OTHERS_REPLY, action, recordedAt: this.nowMs };
      const others = { ...reply, sendingAt: null, deliveredAt: null };
      const rounds = this.row.rounds.map((round) =>
        round.roundId === roundId && !round.reply ? { ...round, reply: others } : round,
      );
      this.#put({ rounds });
      return answered({ kind: 'alreadyAnswered', whenAt: this.nowMs });
    }
    const isBeforeWork = !this.row.remoteReference;
    if (!isBeforeWork && (this.remote.gaveUpAt <= this.nowMs || this.remote.endedAt <= this.nowMs)) {
      this.closeRounds();
      return answered({ kind: 'roundClosed' });
    }
    const reply = {
      replyDigest,
      replyToken,
      action,
      recordedAt: this.nowMs,
      sendingAt: this.nowMs,
      deliveredAt: this.nowMs + 5,
    };
    const rounds: readonly InputRound[] = this.row.rounds.map((round) =>
      round.roundId === roundId ? { ...round, reply } : round,
    );
    this.#put({ rounds });
    this.nowMs += 5;
    if (!isBeforeWork) this.remote.movedOn();
    return answered({ kind: 'applied' });
  }

  #cancel({ generation, reason }: Opened<'cancel'>): CancelReply {
    const { cancelGeneration } = this.row;
    const raised = { cancelGeneration: generation, cancelReason: reason, cancelDelivery: 'unsent' } as const;
    if (cancelGeneration === generation - 1) this.#put(raised);
    // A row from before an earlier cancel: its run finds out.
    if (!this.row.remoteReference || cancelGeneration < generation - 1) return 'neverSent';
    const reply = this.faults ? this.remote.cancelReply() : 'acknowledged';
    if (reply === 'confirmed') {
      this.remote.endAt(this.nowMs, 'cancelled');
      this.#recordEnd('cancel-reply');
    } else if (reply === 'acknowledged') this.remote.hearCancel(this.nowMs);
    const deliveries = { confirmed: 'acknowledged', lost: 'sent', neverSent: 'unsent' } as const;
    // A resend whose reply is lost does not take back what the server once answered.
    const isAnswered = ['acknowledged', 'refused', 'unsupported'].includes(this.row.cancelDelivery);
    if (reply === 'lost' && isAnswered) return reply;
    this.#put({ cancelDelivery: reply in deliveries ? deliveries[reply as 'lost'] : (reply as 'refused') });
    return reply;
  }

  #fetch(step: Opened<'fetchResult'>): StepFact {
    this.nowMs = Math.max(this.nowMs, step.notBeforeAt ?? 0);
    const finding = this.faults ? this.remote.fetchReply() : 'stored';
    if (finding === 'stored') this.#put({ result: this.row.result ?? RESULT });
    return { kind: 'resultFetched', at: this.nowMs, row: this.row, finding, evidence: null };
  }

  #accept(record: ToolOperation): StepFact {
    const presented = presentedBy(record);
    const isWhole = this.row.legs.length >= record.submissionLegs.length;
    const isSame = isWhole && JSON.stringify(presented) === JSON.stringify(presentedBy(this.row));
    const end = decideEnd(this.row, operatorWordOf(record));
    const accepted = isSame && end !== null && !this.fault(0.15);
    const course = {
      cursor: record.pollCursor,
      remoteStatus: record.remoteStatus,
      statusMessage: null,
      reason: null,
    };
    if (accepted) this.#put({ receipt: this.row.receipt ?? buildReceipt(this.row, end, course, this.nowMs) });
    const finding = accepted ? 'accepted' : 'refused';
    return { kind: 'accepted', at: this.nowMs, row: this.row, finding, evidence: null };
  }
}
