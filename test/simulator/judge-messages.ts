// Owns what must be true of questions, replies and cancels in every simulated course (promises 7 and 8).
// Must never trust the product's own account of what it sent: the server's ledger has it.

import type { ReplyVerdict } from '../../operation/facts.js';
import type { Evidence } from './judge.js';

export function judgeMessages(evidence: Evidence): readonly string[] {
  return [...judgeQuestions(evidence), ...judgeVerdicts(evidence), ...judgeCancels(evidence)];
}

function judgeQuestions({ rows, world }: Evidence): readonly string[] {
  const wrong: string[] = [];
  const asked = rows.rounds.map(({ wire_key }) => wire_key);
  if (new Set(asked).size !== asked.length) wrong.push('a question was asked twice');
  const sent = new Map<string, Set<string>>();
  for (const { remoteId, jsonRpcId, bytes } of world.server.ledger.answers) {
    const question = `${remoteId}/${jsonRpcId}`;
    sent.set(question, (sent.get(question) ?? new Set()).add(bytes));
    if (bytes.includes('not a number')) wrong.push('a reply that does not fit was sent');
  }
  for (const [question, replies] of sent) {
    const round = rows.rounds.find(({ wire_key }) => wire_key === question);
    const given = world.story.repliesGiven.filter(({ roundId }) => roundId === round?.round_id);
    if (replies.size > 1) wrong.push(`${question} was answered with ${replies.size} replies`);
    if ([...replies].some((bytes) => !given.some((reply) => reply.bytes === bytes)))
      wrong.push(`${question} was answered with what nobody said`);
  }
  return wrong;
}

function judgeVerdicts({ rows, world }: Evidence): readonly string[] {
  const { repliesGiven, cancelsAskedAt } = world.story;
  const sandboxes = world.engines.flatMap(({ runs }) => runs.map(({ sandbox }) => sandbox));
  const wrong: string[] = [];
  for (const { round_id, wire_key } of rows.rounds) {
    const replies = repliesGiven.filter(({ roundId, updateId }) => roundId === round_id && updateId !== null);
    const bytesApplied = new Set<string>();
    for (const { updateId, bytes } of replies) {
      for (const sandbox of sandboxes) {
        const verdict = sandbox.updates.get(updateId ?? '') as ReplyVerdict | undefined;
        if (verdict?.kind === 'applied') bytesApplied.add(bytes);
      }
    }
    if (bytesApplied.size > 1) wrong.push('two replies to one question were told that they are applied');
    const taken = takenBy(world, wire_key);
    const isLost = world.server.ledger.faults.some((fault) => fault.startsWith('lost'));
    for (const bytes of bytesApplied) {
      // Accepted whether or not anyone waits any more: that it arrived is all that can be known.
      const hasArrived = arrivedAt(world, wire_key).includes(bytes);
      if (!hasArrived && !isLost && !mayBeRefusedUnheard(world))
        wrong.push(`told applied, the server took ${taken}`);
    }
    for (const { updateId, bytes } of replies) {
      if (bytes !== taken || !isSettled(world) || cancelsAskedAt.length > 0) continue;
      const verdict = sandboxes[0]?.updates.get(updateId ?? '') as ReplyVerdict | undefined;
      // Refused once, and sent again by an attempt that had been given up: no fence tells it from the first.
      if (verdict?.kind === 'refused' && world.server.ledger.faults.includes('refused')) continue;
      if (verdict && verdict.kind !== 'applied' && verdict.kind !== 'duplicate')
        wrong.push(`the server took a reply that was told ${verdict.kind}`);
    }
  }
  return wrong;
}

/**
 * Refused to an attempt that was stopped before it could say so: the next one is refused too, and cannot tell it from a
 * reply that arrived. Then nobody else may answer.
 */
function mayBeRefusedUnheard({ server, blows }: Evidence['world']): boolean {
  const isStopped = blows.struck.some(({ blow }) => blow.kind === 'kill' || blow.kind === 'zombie');
  return server.ledger.faults.includes('refused') && isStopped;
}

/** No run was cut off from its replies. */
function isSettled(world: Evidence['world']): boolean {
  return world.engines.length === 1 && world.engines[0]?.runs.length === 1;
}

function arrivedAt(world: Evidence['world'], wireKey: string): readonly string[] {
  const { answers } = world.server.ledger;
  return answers.flatMap(({ remoteId, jsonRpcId, bytes }) =>
    `${remoteId}/${jsonRpcId}` === wireKey ? [bytes] : [],
  );
}

function takenBy(world: Evidence['world'], wireKey: string): string | null {
  for (const { remoteId, questions } of world.server.executions) {
    for (const question of questions)
      if (`${remoteId}/${question.jsonRpcId}` === wireKey) return question.taken;
  }
  return null;
}

function judgeCancels({ world, row, rows }: Evidence): readonly string[] {
  const { policy, rounds, remoteReference } = row;
  return world.server.ledger.cancels.flatMap(({ at, remoteId }) => {
    if (remoteId !== remoteReference?.remoteId) {
      const isNoted = rows.evidence.some(({ kind }) => kind === 'second-reference');
      return isNoted ? [] : ['a cancel of something else'];
    }
    const isAsked = world.story.cancelsAskedAt.some((askedAt) => askedAt <= at);
    const isSpent = at >= world.startedAt + policy.waitBudgetMs;
    const isOverdue = rounds.some(({ deadlineAt }) => deadlineAt <= at);
    return isAsked || isSpent || isOverdue ? [] : ['a cancel that nobody asked for'];
  });
}
