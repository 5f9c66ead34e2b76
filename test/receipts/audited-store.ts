// Owns a good store as real store calls leave it: several operations of every outcome, open ones, late words.
// Must never write to a table itself; tests plant their corruptions beside it.

import { jsonDigest, replyDigest, requestDigest, roundId, submissionKey } from '../../operation/digests.js';
import type { JsonObject } from '../../operation/json.js';
import type { OperatorWord } from '../../operation/build-receipt.js';
import { digests } from '../../primitives/node-primitives.js';
import type { NewRound, OpenRequest, ReceiptStore, ResultBytes } from '../../receipts/store.js';
import {
  accept,
  AT,
  ended,
  fence,
  NEGOTIATION,
  newRound,
  POLICY,
  REFERENCE,
  request,
  resultOf,
} from './suite-fixtures.js';

const SERVER = 'reports';
const TOOL = 'build-report';
const HARMLESS = { ...POLICY, sideEffects: 'none' as const };
const CLOSE: OperatorWord = { decision: 'close', evidence: 'the provider is gone', decidedBy: 'ann' };
const NEVER: OperatorWord = { decision: 'neverCreated', evidence: 'not in its log', decidedBy: 'ann' };

/** As `open` asks for it: every digest is true. */
function call(callNodeId: string, patch: Partial<OpenRequest> = {}): OpenRequest {
  const args: JsonObject = { year: 2024, title: `Umsätze "${callNodeId}" \u{1F600}` };
  return request({
    callNodeId,
    argumentsJson: JSON.stringify(args),
    argumentsDigest: jsonDigest(args, digests),
    requestDigest: requestDigest({ server: SERVER, tool: TOOL, arguments: args }, digests),
    submissionKey: submissionKey(callNodeId, digests),
    ...patch,
  });
}

function asked(callNodeId: string): NewRound {
  const round = newRound(`round of ${callNodeId}`);
  const wire = { remoteId: REFERENCE.remoteId, wireKey: round.wireKey, request: { ...round.question } };
  return {
    ...round,
    roundId: roundId(wire, digests),
    schemaDigest: jsonDigest(round.question.schema, digests),
  };
}

/** A run on a store, written as the step bodies write it. */
class Writer {
  readonly store: ReceiptStore;
  readonly callNodeId: string;
  readonly #runId: string;

  constructor(store: ReceiptStore, callNodeId: string, runId = 'run-1') {
    this.store = store;
    this.callNodeId = callNodeId;
    this.#runId = runId;
  }

  get fence() {
    return fence(this.#runId, 1, this.callNodeId);
  }

  async open(patch: Partial<OpenRequest> = {}): Promise<this> {
    await this.store.open(call(this.callNodeId, { runId: this.#runId, ...patch }));
    await this.store.recordNegotiation(this.fence, NEGOTIATION);
    return this;
  }

  async leg(claimToken: string, outcome: 'open' | 'referenced' | 'notSent' | 'ambiguous'): Promise<this> {
    const { store, callNodeId } = this;
    await store.claimLeg(this.fence, claimToken, AT + 1);
    if (outcome === 'referenced') await store.recordReference(callNodeId, claimToken, REFERENCE, AT + 2);
    else if (outcome !== 'open')
      await store.closeLeg(callNodeId, claimToken, { outcome, detail: 'x', at: AT });
    return this;
  }

  async ask(content: JsonObject | null): Promise<this> {
    const { store, callNodeId } = this;
    const round = asked(callNodeId);
    await store.recordRound(callNodeId, round);
    return content ? this.answer(round, content) : this;
  }

  async askedFirst(claimToken: string): Promise<void> {
    const rounds = [asked(this.callNodeId)];
    await this.store.recordAsked(this.callNodeId, claimToken, {
      requestState: 'state',
      needsConsent: false,
      rounds,
      at: AT + 2,
    });
  }

  async answer(round: NewRound, content: JsonObject): Promise<this> {
    const { store, callNodeId } = this;
    const reply = { action: 'accept' as const, content };
    const digest = replyDigest(reply, digests);
    const times = { recordedAt: AT + 20, sendingAt: null, deliveredAt: null };
    const recorded = { replyDigest: digest, replyToken: 'token', action: reply.action, ...times };
    await store.recordReply(this.fence, round.roundId, recorded, JSON.stringify(reply));
    await store.recordSending(callNodeId, round.roundId, digest, AT + 21);
    await store.recordDelivery(callNodeId, round.roundId, digest, AT + 22);
    return this;
  }

  async cancel(): Promise<this> {
    await this.store.raiseCancel(this.fence, 0, 'no longer needed');
    return this;
  }

  async saw(status: 'completed' | 'failed' | 'cancelled', result: ResultBytes | null = null): Promise<this> {
    await this.store.recordTerminal(this.callNodeId, ended(status), result);
    return this;
  }

  async end(operator: OperatorWord | null = null): Promise<void> {
    const row = await this.store.read(this.callNodeId);
    const acceptance = row && (await accept(this.store, row, operator));
    if (acceptance?.kind !== 'accepted') throw new Error(`${this.callNodeId} was not accepted`);
  }
}

/** Operations of every outcome, and open ones; none has a fault. */
export async function fillStore(store: ReceiptStore): Promise<void> {
  await fillEnded(store);
  await fillDoubted(store);
  await fillOpen(store);
  await fillAbsent(store);
  await store.settleReconciliation('closed', { note: 'nothing was left', settledBy: 'ann' }, AT + 300);
  // Settled, and opened again by what came later.
  await store.settleReconciliation('doubled', { note: 'undone by hand', settledBy: 'ann' }, AT + 300);
  await store.recordReference('doubled', null, { ...REFERENCE, remoteId: 'a third' }, AT + 400);
}

/** As far as its remote reference. */
export async function workingOne(store: ReceiptStore, callNodeId: string): Promise<Writer> {
  return (await new Writer(store, callNodeId).open()).leg('a', 'referenced');
}

async function fillEnded(store: ReceiptStore): Promise<void> {
  const call_ = (callNodeId: string): Writer => new Writer(store, callNodeId);
  const answered = await (await (await call_('completed').open()).leg('a', 'notSent')).leg('b', 'referenced');
  await (await answered.ask({ year: 2024 })).saw('completed', resultOf('{"total":1}'));
  await answered.end();
  // The same bytes as the one before.
  const twin = await (await call_('completed-twin').open()).leg('a', 'referenced');
  await (await twin.saw('completed', resultOf('{"total":1}'))).end();
  const failed = await (await call_('failed').open()).leg('a', 'referenced');
  await (await failed.saw('failed', resultOf('{"isError":true}', { isToolError: true }))).end();
  const cancelled = await (await (await call_('cancelled').open()).leg('a', 'referenced')).cancel();
  await store.recordCancelDelivery('cancelled', 1, 'acknowledged');
  await (await cancelled.saw('cancelled')).end();
  await (await (await call_('never-sent').open()).cancel()).end();
  const rejected = await call_('rejected').open();
  await store.recordRejection(rejected.fence, { code: 'bad-arguments', message: 'no year' });
  await rejected.end();
  // A run that lost the row ended it under the next epoch; a reset run took it over after the end.
  const adopted = await (await call_('adopted').open()).leg('a', 'referenced');
  await store.open(call('adopted', { runId: 'run-2' }));
  await (await adopted.saw('completed', resultOf('{"total":3}'))).end();
  await store.open(call('adopted', { runId: 'run-3' }));
  const halves = await (await call_('half-character').open()).leg('a', 'referenced');
  await store.recordTerminal(
    'half-character',
    ended('completed', { statusMessage: 'done \ud83d' }),
    resultOf('{}'),
  );
  await halves.end();
}

async function fillDoubted(store: ReceiptStore): Promise<void> {
  const call_ = (callNodeId: string): Writer => new Writer(store, callNodeId);
  await (await (await call_('closed').open()).leg('a', 'ambiguous')).end(CLOSE);
  await (await (await call_('closed-harmless').open({ policy: HARMLESS })).leg('a', 'ambiguous')).end(CLOSE);
  await (await (await call_('never-created').open()).leg('a', 'ambiguous')).end(NEVER);
  // Completed after it had ended as cancelled, with its result.
  const flipped = await (await (await call_('flipped').open()).leg('a', 'referenced')).cancel();
  await (await flipped.saw('cancelled')).end();
  await flipped.saw('completed');
  await store.recordResult('flipped', resultOf('{"total":4}'));
  // The task of a submission nobody knew the end of, found after an operator had closed it.
  const late = await (await call_('closed-too-soon').open()).leg('a', 'ambiguous');
  await late.end(CLOSE);
  await store.recordReference(late.callNodeId, 'a', REFERENCE, AT + 200);
  // The result of a cancelled operation came before its receipt: for audit, never a payload.
  const audited = await (await (await call_('cancelled-with-result').open()).leg('a', 'referenced')).cancel();
  await (await audited.saw('cancelled', resultOf('{"total":5}'))).end();
  // Sent twice under one key: the first send was answered after the second.
  const keyed = new Writer(store, 'keyed');
  await store.open(call('keyed'));
  await store.recordNegotiation(keyed.fence, { ...NEGOTIATION, submissionPolicy: 'key-argument' });
  await (await keyed.leg('a', 'ambiguous')).leg('b', 'referenced');
  await store.recordReference('keyed', 'a', REFERENCE, AT + 3);
  await (await keyed.saw('completed', resultOf('{"total":6}'))).end();
  // A second piece of remote work for one operation.
  const doubled = await (await call_('doubled').open()).leg('a', 'referenced');
  await store.recordReference('doubled', null, { ...REFERENCE, remoteId: 'another' }, AT + 4);
  await (await doubled.saw('completed', resultOf('{"total":7}'))).end();
}

/** Absence was proved after a submission in doubt; one of them is cancelled before another one. */
async function fillAbsent(store: ReceiptStore): Promise<void> {
  for (const callNodeId of ['absent', 'absent-cancelled']) {
    const writer = await (await new Writer(store, callNodeId).open()).leg('a', 'ambiguous');
    await store.recordAbsence(writer.fence, 'the look-up tool does not know the key', AT + 500_000);
    if (callNodeId === 'absent-cancelled') await (await writer.cancel()).end();
  }
}

async function fillOpen(store: ReceiptStore): Promise<void> {
  const call_ = (callNodeId: string): Writer => new Writer(store, callNodeId);
  await store.open(call('opened'));
  await (await call_('claimed').open()).leg('a', 'open');
  await (await (await call_('asking').open()).leg('a', 'referenced')).ask(null);
  // Asked before there is any work, and gone on from.
  const first = await (await call_('asked-first').open()).leg('a', 'open');
  await first.askedFirst('a');
  await (await first.answer(asked('asked-first'), { year: 2024 })).leg('b', 'open');
  const closing = await (await (await call_('fetching').open()).leg('a', 'referenced')).cancel();
  await closing.saw('completed', resultOf('{"total":8}'));
}
