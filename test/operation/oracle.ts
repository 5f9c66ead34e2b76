// Owns a second opinion on the machine, written from DESIGN.md: a judge that reads the whole list of facts each time.
// Must never import from operation/, and never be mended to agree with it without a line of DESIGN.md.

import type {
  Moment,
  OracleFact,
  OracleHold,
  OracleReply,
  OracleRound,
  OracleRow,
  OracleVerdict,
} from './oracle-shapes.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const TERMINAL = ['ACCEPTED', 'CANCELLED_ACCEPTED', 'REJECTED'];
/** Policies whose look-up sends nothing. */
const READS: readonly (string | null)[] = ['session-list', 'operation-list', 'lookup-tool'];
const LOOKS_AGAIN = ['handle-lost', 'cancel-never-settled', 'wait-budget', 'protocol-violation'];
const GOOD_FINDINGS = ['terminal', 'inputRequired', 'roundClosed', 'deadlinePassed'];

export class Judge {
  readonly moments: Moment[] = [];
  /** As the start of the run says. */
  readonly #lastRunTerminated: boolean;

  constructor(lastRunTerminated = false) {
    this.#lastRunTerminated = lastRunTerminated;
  }

  /** Takes the next fact and says what must be true now. */
  hear(fact: OracleFact): Moment {
    const before = this.moments.at(-1) ?? null;
    const verdict = this.#verdictOn(fact, before);
    const moment = this.#after(fact, verdict, before);
    this.moments.push(moment);
    return moment;
  }

  get last(): Moment {
    const moment = this.moments.at(-1);
    if (!moment) throw new Error('the judge has heard nothing yet');
    return moment;
  }

  // ---------------------------------------------------------------- what is true after a fact

  #after(fact: OracleFact, verdict: OracleVerdict, before: Moment | null): Moment {
    const old = before?.row ?? null;
    const same = { fact, verdict, row: old, askedItself: null, foundBehind: false, endsBehind: false };
    if (before && TERMINAL.includes(before.state)) {
      return { ...same, state: before.state, hold: null, behind: before.behind };
    }
    if (fact.kind === 'superseded' || (fact.kind === 'storeRestored' && old)) {
      // The epoch is another run's: this one has none until it has opened the row again.
      const unowned = old && { ...old, executionEpoch: 0 };
      const { state = 'SUBMITTING', hold = null, behind = false } = before ?? {};
      return { ...same, row: unowned, state, hold, behind };
    }
    const given = 'row' in fact ? fact.row : null;
    const isOpening = fact.kind === 'opened';
    // A submission and an opening have the row to themselves.
    const isAlone = isOpening || fact.kind === 'submitted';
    const lacks = given !== null && old !== null && isOlder(given, old, isAlone && this.#takenBack);
    const isBackup = lacks || given?.hasForgotten === true;
    const isAsked = before?.behind && this.operatorWord()?.isAboutLedger === true;
    const endsBehind = isBackup && isOpening && isAsked === true;
    const foundBehind = fact.kind === 'ledgerMissing' || (lacks && !endsBehind);
    const behind = foundBehind || ((before?.behind ?? false) && fact.kind !== 'opened');
    const row =
      foundBehind || !given
        ? old
        : { ...given, rounds: given.rounds.map((round) => this.#allKnownOf(round)) };
    if (row?.receipt) return { ...same, row, state: row.receipt.state, hold: null, behind: false };
    if (endsBehind) {
      const since = this.moments.findLastIndex((m) => !m.behind) + 1;
      const hold = { reason: 'ledger-behind', sinceAt: this.moments[since]?.fact.at ?? fact.at };
      return { ...same, row, state: 'UNRESOLVED', hold, behind: false, endsBehind };
    }
    const kept = before?.hold && !this.#releases(fact, verdict, row, before.hold) ? before.hold : null;
    if (behind) {
      const hold = foundBehind ? (before?.hold ?? null) : kept;
      return { ...same, row, state: 'SUBMISSION_UNKNOWN', hold, behind, foundBehind };
    }
    const asked = this.#cancelAsked() || verdict.kind === 'requested';
    const free = stateOf(row, asked, this.#fetchTried() || fact.kind === 'resultFetched');
    // Just asked for: it has not been sent, so it has nothing to settle.
    const isJustAsked = verdict.kind === 'requested' && free === 'CANCEL_REQUESTED';
    const timeHold = isJustAsked ? null : this.#timeHold(fact, row, free, asked);
    const reason = kept ? null : (this.#stepHold(fact, row) ?? timeHold);
    const first = kept ?? (reason ? { reason, sinceAt: fact.at } : null);
    const askedItself = first || !row ? null : this.#ownCancel(fact, row, free);
    const then = askedItself !== null ? stateOf(row, true, false) : free;
    // Nobody answered, and an earlier submission is still in doubt: nothing can look it up any more.
    const isStuck = askedItself !== null && then === 'SUBMISSION_UNKNOWN';
    const late = isStuck ? this.#timeHold(fact, row, then, true) : null;
    const hold = first ?? (late ? { reason: late, sinceAt: fact.at } : null);
    const state = hold ? 'UNRESOLVED' : then;
    return { ...same, row, state, hold, behind, askedItself };
  }

  #releases(fact: OracleFact, verdict: OracleVerdict, row: OracleRow | null, hold: OracleHold): boolean {
    if (!row) return false;
    if (fact.kind === 'cancelRequested') {
      // DESIGN section 4: what surely never became work ends at once; what we can name is cancelled where it is.
      const isWorkless = !row.hasForgotten && !isUnsure(row);
      const mayLeave = (row.remoteReference !== null || isWorkless) && hold.reason !== 'ledger-behind';
      return verdict.kind === 'requested' && mayLeave;
    }
    if (fact.kind === 'endRecorded' && row.terminalObservation && row.result) return true;
    // The third refusal voids the word that led here: a new hold begins, and nobody retries without end.
    if (this.#acceptRefusals(fact) >= 3) return true;
    const held = this.last.row;
    // Evidence ends every hold, whichever step brought it: the end, or where the work is.
    if (row.terminalObservation && !held?.terminalObservation) return true;
    if (row.remoteReference && !held?.remoteReference) return true;
    // So does a late word that nothing was started, where that was all that was in doubt.
    const isDoubt = hold.reason === 'ambiguous-submission' || hold.reason === 'look-up-deadline';
    if (isDoubt && isUnsure(held) && !isUnsure(row)) return true;
    // Or that a submission came back with a question.
    if (isDoubt && stateOf(row, this.#cancelAsked(), false) === 'INPUT_REQUIRED') return true;
    // DESIGN section 4: UNRESOLVED -> NOT_FOUND_SAFE (proof by key), unless somebody has decided the end already.
    if (fact.kind === 'lookedUp' && fact.finding === 'provedAbsent' && !row.remoteReference) {
      const mayKnow = !row.hasForgotten && !this.operatorWord() && !this.#standingWord();
      return mayKnow && isAbsent(row);
    }
    if (hold.reason !== 'handle-lost' || fact.kind !== 'observed') return false;
    return isSighting(fact);
  }

  /** Holds that the outcome of a step brings at once. */
  #stepHold(fact: OracleFact, row: OracleRow | null): string | null {
    if (this.#acceptRefusals(fact) >= 3) return 'acceptance-refused';
    const isNoWork = !row?.remoteReference && !row?.terminalObservation;
    if (fact.kind === 'submitted' && fact.violation !== undefined && isNoWork) return 'protocol-violation';
    if (this.#isRefusedForSize(fact, row)) return 'result-too-large';
    if (fact.kind === 'resultFetched') return fact.finding === 'lost' && !row?.result ? 'result-lost' : null;
    if (fact.kind !== 'observed' || row?.terminalObservation) return null;
    const looks = [...this.#looks(), fact];
    const streak = (finding: string): number =>
      looks.slice(looks.findLastIndex(isSighting) + 1).filter((look) => look.finding === finding).length;
    // DESIGN section 4: spaced reads and a fresh session only before expiry.
    const expiresAt = looks.findLast((look) => look.expiresAt !== null)?.expiresAt ?? null;
    const isLost = fact.finding === 'notFound' || fact.finding === 'sessionLost';
    if (isLost && expiresAt !== null && fact.at >= expiresAt) return 'expired';
    if (isLost)
      return streak('notFound') + streak('sessionLost') >= 3 && this.#sessionRenewed() ? 'handle-lost' : null;
    if (fact.finding !== 'violation' || streak('violation') < 3) return null;
    return fact.tooLarge === undefined ? 'protocol-violation' : 'result-too-large';
  }

  /** Promise 3 and case E1: a result that may not be taken is refused once, its cause named, and never asked for again. */
  #isRefusedForSize(fact: OracleFact, row: OracleRow | null): boolean {
    if (!row || row.result) return false;
    if (fact.kind === 'resultFetched') return fact.finding === 'tooLarge';
    // Where the status itself was too large, it is looked at as often as any that broke the contract.
    if (fact.kind === 'observed') return fact.tooLarge !== undefined && fact.finding !== 'violation';
    const isFound = Boolean(row.remoteReference || row.terminalObservation);
    return fact.kind === 'submitted' && fact.tooLarge !== undefined && !isFound;
  }

  /** Holds that a passed deadline brings, whatever the fact. */
  #timeHold(fact: OracleFact, row: OracleRow | null, free: string, asked: boolean): string | null {
    if (!row) return null;
    if (free === 'SUBMISSION_UNKNOWN') {
      // A store from before a submission proves nothing, and sends nothing.
      if (row.hasForgotten) return 'ambiguous-submission';
      if (row.submissionPolicy === null || row.submissionPolicy === 'at-most-once')
        return 'ambiguous-submission';
      // A raised generation, or a question that waits, bars every further claim: sending again can look nothing up any more.
      const isBarred = row.cancelGeneration > 0 || row.rounds.some(isOpen);
      if (!READS.includes(row.submissionPolicy) && isBarred) return 'ambiguous-submission';
      if (row.submissionPolicy === 'request-id' && isIdForgotten(row, fact.at)) return 'ambiguous-submission';
      const lastAsked = row.legs.findLastIndex(({ outcome }) => outcome === 'asked');
      const tries = row.legs.length - 1 - lastAsked;
      const spent = row.submissionPolicy === 'repeatable' && (tries >= 3 || asked);
      if (spent) return 'ambiguous-submission';
      // Proof of absence ends the doubt: a further leg brings its own.
      const settled = this.moments.findLastIndex((m) => {
        return m.state === 'NOT_FOUND_SAFE' || (m.state === 'INPUT_REQUIRED' && !m.row?.remoteReference);
      });
      const since = this.moments.slice(settled + 1).find(isInDoubt)?.fact.at ?? fact.at;
      return fact.at >= since + row.policy.lookUpBudgetMs ? 'look-up-deadline' : null;
    }
    if (free === 'CANCEL_REQUESTED') {
      const sent = [...this.#cancelReplies(), ...(fact.kind === 'cancelSent' ? [fact] : [])];
      if (row.cancelDelivery === 'unsupported' && this.#isCancelRaised(row)) {
        return fact.at >= this.#waitDeadlineAt(row, fact) ? 'wait-budget' : null;
      }
      const first = sent.find((reply) => ['acknowledged', 'refused', 'lost'].includes(reply.reply));
      return first && fact.at >= first.at + row.policy.settleBudgetMs ? 'cancel-never-settled' : null;
    }
    const wantsResult = free === 'TERMINAL_OBSERVED' || free === 'FETCHING_RESULT';
    if (wantsResult && row.terminalObservation?.remoteStatus !== 'cancelled' && !row.result) {
      const seenAt = this.moments.find((m) => m.row?.terminalObservation)?.fact.at ?? fact.at;
      const until = Math.min(
        seenAt + row.policy.fetchBudgetMs,
        Math.max(this.#expiryAt(seenAt, fact), seenAt),
      );
      const facts = [...this.#heard(), fact];
      return fact.at >= until && facts.some((f) => f.kind === 'resultFetched') ? 'result-lost' : null;
    }
    return null;
  }

  /** The last expiry the server told by then. */
  #expiryAt(at: number, fact: OracleFact): number {
    const told = [...this.#heard(), fact].flatMap((f) =>
      f.kind === 'observed' && f.at <= at && f.expiresAt !== null ? [f.expiresAt] : [],
    );
    return told.at(-1) ?? Number.POSITIVE_INFINITY;
  }

  #ownCancel(fact: OracleFact, row: OracleRow, free: string): string | null {
    if (this.#lastRunTerminated && !this.moments.some((m) => m.row)) {
      // DESIGN section 3: only before any claim, and only for the run that adopts.
      const isUntouched = row.legs.length === 0 && row.cancelGeneration === 0 && !this.#cancelAsked();
      const isKnown = row.hasForgotten || row.rejection || row.remoteReference || row.terminalObservation;
      if (fact.kind === 'opened' && isUntouched && !isKnown) return 'terminated';
    }
    if (free === 'WORKING' && fact.at >= this.#waitDeadlineAt(row, fact)) return 'wait-budget';
    if (free !== 'INPUT_REQUIRED') return null;
    return row.rounds.some((round) => isOpen(round) && fact.at >= round.deadlineAt) ? 'input-deadline' : null;
  }

  // ---------------------------------------------------------------- verdicts

  #verdictOn(fact: OracleFact, before: Moment | null): OracleVerdict {
    switch (fact.kind) {
      case 'cancelRequested': {
        const row = before?.row ?? null;
        if (row?.receipt || row?.terminalObservation) return { kind: 'tooLate' };
        const isAsked = this.#cancelAsked() || (row?.cancelGeneration ?? 0) > 0;
        return { kind: isAsked && !this.#mayAskAgain(before) ? 'alreadyRequested' : 'requested' };
      }
      case 'replyGiven':
        return this.#verdictOnReply(fact.reply, before?.row ?? null, this.#cancelAsked());
      case 'operatorDecided': {
        const isEnded = TERMINAL.includes(before?.state ?? '');
        const mayBeFirst = before?.behind
          ? !this.operatorWord()?.isAboutLedger && fact.decision.kind !== 'neverCreated'
          : before?.state === 'UNRESOLVED' && !this.operatorWord() && !this.#standingWord();
        const isRefuted =
          (fact.decision.kind === 'neverCreated' && isCreated(before?.row)) ||
          (fact.decision.kind === 'ended' &&
            (!isJson(fact.decision.resultJson) || !this.#mayEndAs(fact.decision.outcome, before)));
        return { kind: !isEnded && mayBeFirst && !isRefuted ? 'folded' : 'ignored' };
      }
      default:
        return { kind: 'folded' };
    }
  }

  /**
   * Issue 5: who asks again while the operation is held, and nobody is about to end it, has the cancel sent once more; as
   * long as the one before is being sent or watched, he has not.
   */
  #mayAskAgain(before: Moment | null): boolean {
    if (!before?.hold || before.behind || before.hold.reason === 'ledger-behind') return false;
    return Boolean(before.row?.remoteReference) && !this.operatorWord() && !this.#standingWord();
  }

  /** What nothing was sent for cannot have ended, nor otherwise than the far side said; a stored result is not replaced. */
  #mayEndAs(outcome: string | undefined, before: Moment | null): boolean {
    const row = before?.row;
    const mayBeSent = row?.hasForgotten || row?.legs.some((leg) => leg.outcome !== 'notSent');
    if (!row || row.rejection || !mayBeSent) return false;
    if (row.result && !before?.behind) return false;
    const seen = row.terminalObservation;
    return !seen || seen.evidence === 'operator' || seen.remoteStatus === outcome;
  }

  #verdictOnReply(reply: OracleReply, row: OracleRow | null, asked: boolean): OracleVerdict {
    const round = row?.rounds.find((known) => known.roundId === reply.roundId);
    if (round?.reply && round.reply.deliveredAt !== null) {
      if (round.reply.replyToken === reply.replyToken) return { kind: 'applied' };
      if (round.reply.replyDigest === reply.replyDigest) return { kind: 'duplicate' };
      return { kind: 'alreadyAnswered', whenAt: round.reply.recordedAt };
    }
    const over =
      asked || !row || row.cancelGeneration > 0 || row.terminalObservation || row.rejection || row.receipt;
    return { kind: over || !round || round.closedAt !== null ? 'roundClosed' : 'waiting' };
  }

  /** Replies without a final word, oldest first. */
  waitingReplies(): readonly OracleReply[] {
    return this.#replies().filter((reply) => this.verdictOfReply(reply.replyToken) === null);
  }

  /** The final word on a reply that had to wait (or got it at once); null while it waits. */
  verdictOfReply(replyToken: string): OracleVerdict | null {
    const from = this.moments.findLastIndex(
      (m) => m.fact.kind === 'replyGiven' && m.fact.reply.replyToken === replyToken,
    );
    const arrival = this.moments[from];
    if (!arrival || arrival.fact.kind !== 'replyGiven') return null;
    if (arrival.verdict.kind !== 'waiting') return arrival.verdict;
    for (let index = from; index < this.moments.length; index += 1) {
      const { fact, verdict: heard, row, foundBehind } = this.moments[index] as Moment;
      // A row that is behind tells nothing of its rounds, a run without its epoch opens first, a void word is none.
      const isUnopened = fact.kind === 'superseded' || fact.kind === 'storeRestored';
      if (foundBehind || isUnopened || heard.kind === 'ignored') continue;
      if (fact.kind === 'answered' && fact.replyToken === replyToken) return fact.verdict;
      // It may be in flight when the cancel comes: the next fact tells.
      if (fact.kind === 'cancelRequested' && index > from) continue;
      const verdict = this.#verdictOnReply(arrival.fact.reply, row, this.#cancelAsked(index + 1));
      if (verdict.kind !== 'waiting') return verdict;
    }
    return null;
  }

  // ---------------------------------------------------------------- the next step

  nextKind(nowMs: number): string {
    const moment = this.moments.at(-1);
    const row = moment?.row ?? null;
    if (moment && TERMINAL.includes(moment.state)) return 'done';
    if (moment?.behind) {
      const isToOpen = this.operatorWord()?.isAboutLedger || this.#isToReopen();
      return isToOpen || nowMs >= this.#opensAgainAt() ? 'open' : 'awaitOperator';
    }
    if (!row || row.executionEpoch === 0 || this.#isToReopen()) return 'open';
    if (moment?.hold) return this.#nextWhileHeld(row, moment.hold, nowMs);
    if (row.terminalObservation) {
      return row.terminalObservation.remoteStatus === 'cancelled' || row.result ? 'accept' : 'fetchResult';
    }
    if (row.rejection) return 'accept';
    if (row.remoteReference) {
      if (moment?.state === 'CANCEL_REQUESTED') return this.#cancelIsDue(nowMs) ? 'cancel' : 'observe';
      if (moment?.state === 'WORKING') return 'observe';
      return this.waitingReplies().length > 0 ? 'answer' : 'askHuman';
    }
    if (moment?.state === 'INPUT_REQUIRED') return this.waitingReplies().length > 0 ? 'answer' : 'awaitReply';
    if (moment?.state === 'SUBMISSION_UNKNOWN')
      return READS.includes(row.submissionPolicy) ? 'lookUp' : 'submit';
    if (row.cancelGeneration > 0) return 'accept';
    return this.#cancelAsked() ? 'cancel' : 'submit';
  }

  #nextWhileHeld(row: OracleRow, hold: OracleHold, nowMs: number): string {
    if (this.operatorWord()?.kind === 'ended') return 'recordEnd';
    if (this.operatorWord() || this.#standingWord()) return 'accept';
    const unsent = hold.reason === 'ambiguous-submission' || hold.reason === 'look-up-deadline';
    if (!unsent && (!row.remoteReference || !LOOKS_AGAIN.includes(hold.reason))) return 'awaitOperator';
    const looks = this.#looksWithin(hold);
    const lastAt = looks.at(-1)?.fact.at ?? hold.sinceAt;
    return nowMs >= lastAt + Math.min(10 * MINUTE_MS * 2 ** looks.length, 6 * HOUR_MS)
      ? row.remoteReference
        ? 'observe'
        : 'lookUp'
      : 'awaitOperator';
  }

  /** 30 s after the row was found behind, doubling each time in a row, to 6 h. */
  #opensAgainAt(): number {
    const since = this.moments.findLastIndex((m) => !m.behind);
    const found = this.moments.slice(since + 1).filter((m) => m.foundBehind);
    const gapMs = Math.min(30 * SECOND_MS * 2 ** (found.length - 1), 6 * HOUR_MS);
    return (found.at(-1)?.fact.at ?? 0) + gapMs;
  }

  #looksWithin(hold: OracleHold): readonly Moment[] {
    const first = this.moments.findIndex((m) => m.hold === hold);
    return this.moments
      .slice(first + 1)
      .filter((m) => m.hold === hold && !m.foundBehind)
      .filter(({ fact }) => fact.kind === 'observed' || fact.kind === 'lookedUp');
  }

  #cancelIsDue(nowMs: number): boolean {
    const replies = this.#cancelReplies();
    const last = replies.at(-1);
    const { row } = this.last;
    if (!last) return row?.cancelDelivery !== 'unsupported' || !this.#isCancelRaised(row);
    if (last.reply !== 'refused' && last.reply !== 'lost') return false;
    return nowMs >= last.at + Math.min(2 * SECOND_MS * 2 ** (replies.length - 1), 2 * MINUTE_MS);
  }

  /** The outcome an accept proposed now must have. */
  expectedOutcome(): string {
    const { row, hold } = this.last;
    const seen = row?.terminalObservation;
    // What is proved outweighs every word.
    if (seen && (!hold || seen.remoteStatus === 'cancelled' || row.result)) return seen.remoteStatus;
    if (hold) return this.operatorWord()?.kind === 'neverCreated' ? 'rejected' : 'unresolved';
    return row?.rejection ? 'rejected' : 'cancelled';
  }

  // ---------------------------------------------------------------- reading the list

  /** The operator's word that counts since evidence last overtook one; one about the ledger ends when it has caught up. */
  operatorWord(): { readonly kind: string; readonly isAboutLedger: boolean } | null {
    const from = this.#overtakenAt() + 1;
    let word: { readonly kind: string; readonly isAboutLedger: boolean } | null = null;
    this.moments.slice(from).forEach(({ fact, verdict, endsBehind, foundBehind }, index) => {
      if (fact.kind === 'operatorDecided' && verdict.kind === 'folded') {
        const isAboutLedger = this.moments[from + index - 1]?.behind ?? false;
        word = { kind: fact.decision.kind, isAboutLedger };
      } else if (fact.kind === 'opened' && word?.isAboutLedger && !endsBehind && !foundBehind) word = null;
    });
    return word;
  }

  /** Somebody restored the store, and the row has not been opened since. */
  #isToReopen(): boolean {
    const restored = this.moments.findLastIndex((m) => m.fact.kind === 'storeRestored' && m.row);
    if (restored < 0) return false;
    return !this.moments.slice(restored + 1).some(({ fact }) => {
      return fact.kind === 'opened' || (fact.kind === 'ledgerMissing' && fact.isOpening === true);
    });
  }

  /** The standing decision of the configuration has spoken: some fact of this hold came late enough. */
  #standingWord(): boolean {
    return this.moments.slice(this.#overtakenAt() + 1).some(({ fact, hold, row, behind }) => {
      if (behind || fact.kind === 'superseded') return false;
      const standing = row?.policy.onUnresolved;
      return hold !== null && standing?.kind === 'closeAfter' && fact.at >= hold.sinceAt + standing.afterMs;
    });
  }

  /** Where a word last lost its ground: evidence ended its hold, or the store refused it three times and more. */
  #overtakenAt(): number {
    return this.moments.findLastIndex(({ fact, hold, endsBehind, foundBehind }, index) => {
      // In a row that is behind nothing was recorded for good.
      if (fact.kind === 'endRecorded') return !foundBehind;
      const held = this.moments[index - 1]?.hold;
      if (fact.kind === 'accepted' && hold && hold !== held) return true;
      return held && hold !== held && fact.kind !== 'cancelRequested' && !endsBehind;
    });
  }

  /** Facts of two steps side by side may come home in the wrong order: a round keeps all that was ever seen of it. */
  #allKnownOf(round: OracleRound): OracleRound {
    const seen = this.moments.flatMap(
      (m) => m.row?.rounds.filter((known) => known.roundId === round.roundId) ?? [],
    );
    const replies = seen.flatMap(({ reply }) => (reply && !standsNoMore(reply, round) ? [reply] : []));
    const delivered = replies.find(({ deliveredAt }) => deliveredAt !== null);
    const last = seen.at(-1)?.reply ?? null;
    const reply = delivered ?? round.reply ?? (last && standsNoMore(last, round) ? null : last);
    return { ...round, reply, closedAt: round.closedAt ?? seen.at(-1)?.closedAt ?? null };
  }

  readonly #takenBack = (replyToken: string): boolean => this.verdictOfReply(replyToken)?.kind === 'refused';

  #cancelAsked(within = this.moments.length): boolean {
    return this.moments
      .slice(0, within)
      .some((m) => m.verdict.kind === 'requested' || m.askedItself !== null);
  }

  /** All facts but those that only showed that the row is behind. */
  #heard(): readonly OracleFact[] {
    return this.moments.filter((m) => !m.foundBehind).map((m) => m.fact);
  }

  #fetchTried(): boolean {
    return this.#heard().some((fact) => fact.kind === 'resultFetched');
  }

  /** How often the store refused, this fact included; 0 for any other fact. */
  #acceptRefusals(fact: OracleFact): number {
    const isRefusal = (heard: OracleFact): boolean =>
      heard.kind === 'accepted' && heard.finding === 'refused';
    return isRefusal(fact) ? this.#heard().filter(isRefusal).length + 1 : 0;
  }

  #looks(): readonly Extract<OracleFact, { kind: 'observed' }>[] {
    return this.#heard().filter((fact) => fact.kind === 'observed');
  }

  /** To the cancel that was asked for last. */
  #cancelReplies(): readonly Extract<OracleFact, { kind: 'cancelSent' }>[] {
    const heard = this.moments.slice(this.#askedAt() + 1).filter((m) => !m.foundBehind);
    return heard.map((m) => m.fact).filter((fact) => fact.kind === 'cancelSent');
  }

  #askedAt(): number {
    return this.moments.findLastIndex((m) => m.verdict.kind === 'requested');
  }

  /** The row has gained a generation since somebody asked; or nobody did, and another run's is in it. */
  #isCancelRaised(row: OracleRow): boolean {
    const asked = this.moments[this.#askedAt()];
    return !asked || row.cancelGeneration > (asked.row?.cancelGeneration ?? 0);
  }

  #replies(): readonly OracleReply[] {
    const replies = this.moments.map((m) => m.fact).filter((fact) => fact.kind === 'replyGiven');
    return replies.map((fact) => fact.reply);
  }

  /** A fresh session was asked for before: after a third read in a row that missed. */
  #sessionRenewed(): boolean {
    let inARow = 0;
    for (const look of this.#looks()) {
      if (isSighting(look)) inARow = 0;
      if (look.finding === 'notFound' || look.finding === 'sessionLost') inARow += 1;
      if (inARow >= 3) return true;
    }
    return false;
  }

  /** Human time and held time do not count; a hold that ends with `fact` counts as held until then. */
  #waitDeadlineAt(row: OracleRow, fact: OracleFact): number {
    const ending = this.moments.at(-1)?.hold;
    let heldMs = ending ? fact.at - ending.sinceAt : 0;
    this.moments.forEach((m, index) => {
      const next = this.moments[index + 1];
      if (m.hold && next && next.hold !== m.hold) heldMs += next.fact.at - m.hold.sinceAt;
    });
    return row.createdAt + row.policy.waitBudgetMs + humanTimeMs(row) + heldMs;
  }
}

function stateOf(row: OracleRow | null, asked: boolean, fetchTried: boolean): string {
  if (!row) return 'SUBMITTING';
  if (row.terminalObservation) {
    if (row.terminalObservation.remoteStatus === 'cancelled') return 'TERMINAL_OBSERVED';
    return row.result || fetchTried ? 'FETCHING_RESULT' : 'TERMINAL_OBSERVED';
  }
  if (row.remoteReference) {
    if (asked || row.cancelGeneration > 0) return 'CANCEL_REQUESTED';
    return row.rounds.some(isOpen) ? 'INPUT_REQUIRED' : 'WORKING';
  }
  if (row.hasForgotten) return 'SUBMISSION_UNKNOWN';
  // Asked before there is any work (MCP 2026-07-28): it goes on with the replies.
  if (row.rounds.some(isOpen) && !asked && row.cancelGeneration === 0) return 'INPUT_REQUIRED';
  if (!row.legs.some((leg) => leg.outcome === 'open' || leg.outcome === 'ambiguous')) return 'SUBMITTING';
  return isAbsent(row) ? 'NOT_FOUND_SAFE' : 'SUBMISSION_UNKNOWN';
}

function isUnsure(row: OracleRow | null): boolean {
  return Boolean(row?.legs.some(({ outcome }) => outcome === 'open' || outcome === 'ambiguous'));
}

/** No leg in doubt is younger than the proof. */
function isAbsent({ legs, provedAbsentAtLeg }: OracleRow): boolean {
  const lastDoubt = legs.findLastIndex(({ outcome }) => outcome === 'open' || outcome === 'ambiguous') + 1;
  return provedAbsentAtLeg !== null && provedAbsentAtLeg >= lastDoubt;
}

/** A deadline that passed without one answered look is no sighting. */
function isSighting(look: Extract<OracleFact, { kind: 'observed' }>): boolean {
  return (
    GOOD_FINDINGS.includes(look.finding) && (look.finding !== 'deadlinePassed' || look.remoteStatus !== null)
  );
}

/** AIP-155: a request id is good for a time, an hour where nothing else is said; its last tenth is not used. */
function isIdForgotten(row: OracleRow, at: number): boolean {
  const [first] = row.legs
    .filter((leg) => leg.outcome === 'open' || leg.outcome === 'ambiguous')
    .map((leg) => leg.claimedAt)
    .sort((a, b) => a - b);
  const windowMs = row.policy.requestIdWindowMs ?? HOUR_MS;
  return first !== undefined && at - first >= windowMs - windowMs / 10;
}

/** Where the ledger is behind, the submission is not in doubt: no budget runs. */
function isInDoubt(moment: Moment): boolean {
  return moment.state === 'SUBMISSION_UNKNOWN' && !moment.behind;
}

function isOpen(round: { closedAt: number | null; reply: { deliveredAt: number | null } | null }): boolean {
  return round.closedAt === null && (round.reply?.deliveredAt ?? null) === null;
}

/** Milliseconds during which at least one finished round was open: counted edge by edge. */
function humanTimeMs(row: OracleRow): number {
  const spans = row.rounds.filter((round) => !isOpen(round));
  const ends = spans.map((round) => round.reply?.deliveredAt ?? round.closedAt ?? 0);
  const edges = [...new Set([...spans.map((round) => round.openedAt), ...ends])].sort((a, b) => a - b);
  return edges.reduce((total, edge, index) => {
    const next = edges[index + 1];
    const covered = spans.some((span, at) => span.openedAt <= edge && edge < (ends[at] ?? 0));
    return next !== undefined && covered ? total + next - edge : total;
  }, 0);
}

/**
 * DESIGN section 3: a row that has lost something this run has seen is a restored backup. Of its rounds only a row that is
 * just opened tells, because nothing runs beside that; `takenBack` says of which replies the server would have none.
 */
export function isOlder(
  row: OracleRow,
  seen: OracleRow,
  takenBack: false | ((replyToken: string) => boolean),
): boolean {
  const lost = (
    key: 'remoteReference' | 'terminalObservation' | 'rejection' | 'result' | 'receipt',
  ): boolean => seen[key] !== null && row[key] === null;
  const lostLeg = seen.legs.some((leg) => {
    const same = row.legs.find(({ claimToken }) => claimToken === leg.claimToken);
    return !same || (same.outcome === 'open' && leg.outcome !== 'open');
  });
  const answered = ['acknowledged', 'refused', 'unsupported'];
  const steps = (delivery: string): number =>
    answered.includes(delivery) ? 3 : ['none', 'unsent', 'sent'].indexOf(delivery);
  return (
    lostLeg ||
    (takenBack !== false && seen.rounds.some((round) => hasLostOf(round, row.rounds, takenBack))) ||
    // A further cancel begins anew: how far an earlier one came says nothing about it.
    (row.cancelGeneration <= seen.cancelGeneration &&
      steps(row.cancelDelivery) < steps(seen.cancelDelivery)) ||
    lost('rejection') ||
    row.rounds.length < seen.rounds.length ||
    row.executionEpoch < seen.executionEpoch ||
    row.cancelGeneration < seen.cancelGeneration ||
    lost('remoteReference') ||
    lost('terminalObservation') ||
    lost('result') ||
    lost('receipt')
  );
}

function hasLostOf(
  seen: OracleRound,
  rounds: readonly OracleRound[],
  takenBack: (replyToken: string) => boolean,
): boolean {
  const round = rounds.find(({ roundId }) => roundId === seen.roundId);
  if (!round) return true;
  if (seen.closedAt !== null && round.closedAt === null) return true;
  if (!seen.reply) return false;
  if (seen.reply.deliveredAt !== null) return (round.reply?.deliveredAt ?? null) === null;
  return !round.reply && !standsNoMore(seen.reply, round) && !takenBack(seen.reply.replyToken);
}

/** The store itself says that the server refused just this recording of the reply. */
function standsNoMore(
  reply: { readonly replyToken: string; readonly recordedAt: number },
  { takenBack }: OracleRound,
): boolean {
  return (takenBack ?? []).some(
    (taken) => taken.replyToken === reply.replyToken && taken.recordedAt === reply.recordedAt,
  );
}

function isJson(text = ''): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The far side named the work, or its end: then nobody's word undoes that. */
function isCreated(row: OracleRow | null | undefined): boolean {
  return Boolean(row && (row.remoteReference || row.terminalObservation));
}
