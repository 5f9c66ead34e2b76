// Owns facts from outside as the model world makes them: fitting, late, doubled, unknown, hostile.
// Must never look at how the core treats them.

import type { OutsideFact, ReplyMail } from '../../operation/facts.js';
import type { ToolOperation } from '../../operation/record.js';
import type { InputRound } from '../../operation/row.js';
import { HOUR_MS, MINUTE_MS } from './sample-row.js';
import type { World } from './world.js';

export function isOpen(round: InputRound): boolean {
  return round.closedAt === null && (round.reply === null || round.reply.deliveredAt === null);
}

export function randomMail(world: World, record: ToolOperation): OutsideFact {
  const { random } = world;
  world.nowMs += random.below(200);
  // Another run owns the row: a step of this one was refused under its older epoch.
  if (world.isOvertaken && random.chance(0.6)) return { kind: 'superseded', at: world.nowMs };
  const draw = random.below(20);
  if (draw < 2)
    return { kind: 'cancelRequested', at: world.nowMs, reason: 'changed my mind', requestedBy: 'caller' };
  if (draw < 12) return { kind: 'replyGiven', at: world.nowMs, reply: replyFor(world, record) };
  if (draw < 14) {
    const said = { at: world.nowMs, evidence: 'looked at it', decidedBy: 'ops' };
    const kind = random.pick(['close', 'neverCreated', 'ended'] as const);
    if (kind !== 'ended') return { kind: 'operatorDecided', decision: { kind }, ...said };
    const outcome = random.pick(['completed', 'failed'] as const);
    const decision = { kind, outcome, resultJson: random.pick(['{"content":[]}', '{}', '{"content']) };
    return { kind: 'operatorDecided', decision, ...said };
  }
  if (draw < 15) return { kind: 'interrupted', at: world.nowMs };
  if (draw < 16) return { kind: 'storeRestored', at: world.nowMs };
  world.nowMs += random.pick([1, MINUTE_MS, 11 * MINUTE_MS, 3 * HOUR_MS]);
  return { kind: 'timePassed', at: world.nowMs };
}

function replyFor(world: World, record: ToolOperation): ReplyMail {
  const { random } = world;
  const waiting = record.waitingReplies.at(-1);
  if (waiting && random.chance(0.2)) return waiting;
  const rounds = record.rounds.filter((round) => random.chance(0.2) || isOpen(round));
  const round = random.chance(0.1) ? null : (rounds.at(-1) ?? record.rounds.at(-1) ?? null);
  // Of what was delivered the same message may come again; an undelivered one is another run's.
  const applied = round?.reply?.deliveredAt == null ? null : round.reply;
  return {
    roundId: round?.roundId ?? random.pick(['round-99', '', '__proto__']),
    replyDigest: applied && random.chance(0.4) ? applied.replyDigest : `digest-${random.below(3)}`,
    replyToken: applied && random.chance(0.3) ? applied.replyToken : `token-${random.below(1_000_000)}`,
    action: random.pick(['accept', 'decline', 'cancel']),
    content: { choice: random.below(3) },
  };
}
