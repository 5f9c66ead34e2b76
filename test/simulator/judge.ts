// Owns what must be true of every simulated course, told from the server's own ledger and the store's tables.
// Must never read the core's rules to decide: `nextStep`, `apply` and policies are what is judged.

import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Receipt } from '../../operation/receipt.js';
import type { ToolOperation } from '../../operation/record.js';
import type { RowSnapshot } from '../../operation/row.js';
import type { Execution } from './execution.js';
import { judgeMessages } from './judge-messages.js';
import { judgePolls } from './judge-polls.js';
import type { MemoryStore, StoredRows } from './memory-store.js';
import { sessionIdOf } from './server-desk.js';
import type { World } from './world.js';

const FETCH_BUDGET_MS = 600_000;

export interface Evidence {
  readonly world: World;
  readonly rows: StoredRows;
  readonly row: RowSnapshot;
}

/** Lets a world live through its script and says what was wrong with it: nothing, where every promise was kept. */
export async function play(world: World, memory: MemoryStore): Promise<readonly string[]> {
  const wrong: string[] = [];
  try {
    await world.live();
    world.server.catchUp();
    if (!world.hasEnded()) {
      wrong.push(...judgeHold(world, await memory.store.read(world.callNodeId)));
      await world.close();
      if (!world.hasEnded()) wrong.push('a word does not end it');
    }
    await world.wakeTheDead();
    wrong.push(...(await judge(world, memory)));
  } catch (error) {
    wrong.push(`the world broke: ${(error as Error).stack}`);
  }
  return [...world.story.breaches, ...wrong];
}

export async function judge(world: World, memory: MemoryStore): Promise<readonly string[]> {
  const row = await memory.store.read(world.callNodeId);
  if (!row) return ['the store has no row'];
  const evidence: Evidence = { world, row, rows: memory.rowsOf(world.callNodeId) };
  return [
    ...judgeExecutions(evidence),
    ...judgeStore(evidence, memory),
    ...judgeOutcome(evidence),
    ...judgeRuns(evidence),
    ...judgeMessages(evidence),
    ...judgePolls(world),
  ];
}

/** Promise 1. */
function judgeExecutions({ world, row, rows }: Evidence): readonly string[] {
  const { executions, ledger, plan } = world.server;
  const keys = new Set(ledger.creates.map(({ key }) => key));
  if (keys.size > 1) return ['the submission key changed'];
  const taken = ledger.creates.filter(({ reply }) => reply !== 'refused').length;
  if (taken > rows.legs.length) return [`${taken} submissions arrived on ${rows.legs.length} legs`];
  if (row.submissionPolicy === 'repeatable') return [];
  // What was proved absent may be sent again.
  if (row.submissionPolicy === 'lookup-tool' && mayOutliveProof(world)) return [];
  const isCounted = plan.deduplicates || row.submissionPolicy === 'lookup-tool';
  const sends = isCounted ? executions.length : Math.max(executions.length, taken);
  return sends > 1 ? [`submitted ${sends} times`] : [];
}

/** Nobody can call back bytes that a stopped process lets go of later. */
function mayOutliveProof({ blows }: World): boolean {
  return blows.struck.some(({ name }) => name === 'before submit leaves');
}

/** Promise 2, and what an auditor of the store would ask. */
function judgeStore({ rows, row, world }: Evidence, memory: MemoryStore): readonly string[] {
  const { receipts, ready, reconciliations } = rows;
  const [stored] = receipts;
  const [outbox] = ready;
  if (!stored || !outbox || receipts.length > 1 || ready.length > 1)
    return [`${receipts.length} receipts, ${ready.length} ready rows`];
  const { receiptTexts } = world.story;
  const receipt = JSON.parse(stored.receipt_json) as Receipt;
  const wrong: string[] = [];
  if (receiptTexts.length !== 1) wrong.push(`${receiptTexts.length} receipts were written`);
  if (!isDeepStrictEqual(receipt, JSON.parse(receiptTexts[0] ?? 'null')))
    wrong.push('the receipt was changed');
  const digest = createHash('sha256').update(stored.receipt_json).digest('hex');
  if (digest !== stored.receipt_digest || digest !== outbox.receipt_digest)
    wrong.push('a receipt digest is off');
  if ((outbox.advances === 1) !== (receipt.outcome === 'completed'))
    wrong.push('advances without a completion');
  if (outbox.outcome !== receipt.outcome) wrong.push('the ready row tells another outcome');
  if (receipt.submissionLegs.length !== rows.legs.length) wrong.push('the receipt misses a leg');
  if (receipt.result && !memory.hasResult(receipt.result.digest)) wrong.push('the result is not stored');
  const isOpenEnd = receipt.outcome === 'cancelled' || receipt.outcome === 'unresolved';
  const mayHaveRun = receipt.submissionLegs.some(({ outcome }) => outcome !== 'notSent');
  const isOwed = isOpenEnd && mayHaveRun && row.policy.sideEffects !== 'none';
  if (isOwed && reconciliations.length !== 1) wrong.push('effects are owed and nobody is told');
  return wrong;
}

function trueOutcome({ ended, isToolError }: Execution): string {
  if (ended === 'completed' && isToolError) return 'failed';
  return ended ?? 'running';
}

/** Promises 3 and 4: the receipt says what really was. */
function judgeOutcome({ rows, world }: Evidence): readonly string[] {
  if (!rows.receipts[0]) return [];
  const receipt = JSON.parse(rows.receipts[0].receipt_json) as Receipt;
  const { outcome, remoteReference, result, decision } = receipt;
  const { executions, startsToCome } = world.server;
  const told = remoteReference
    ? executions.find(({ remoteId }) => remoteId === remoteReference.remoteId)
    : executions.find(({ resultDigest }) => resultDigest === result?.digest);
  const hasStarted = executions.length > 0 || startsToCome > 0;
  switch (outcome) {
    case 'completed':
    case 'failed':
      if (!told || trueOutcome(told) !== outcome)
        return [`${outcome}, in truth ${told && trueOutcome(told)}`];
      if (told.resultDigest !== result?.digest) return ['the result is not what the work came to'];
      return outcome === 'failed' && receipt.failureKind !== 'tool' ? ['the wrong kind of failure'] : [];
    case 'cancelled':
      if (decision.evidence === 'never sent' || decision.evidence === 'proved absent') {
        const isExcused = decision.evidence === 'proved absent' && mayOutliveProof(world);
        return hasStarted && !isExcused ? [`cancelled as ${decision.evidence}, and it ran`] : [];
      }
      return told?.ended === 'cancelled' ? [] : [`cancelled, in truth ${told && trueOutcome(told)}`];
    case 'rejected': {
      const isWord = world.story.operatorSpoke === 'neverCreated' && decision.evidence.startsWith('operator');
      return hasStarted && !isWord ? ['rejected, and it ran'] : [];
    }
    case 'unresolved':
      return decision.evidence.startsWith('operator') ? [] : ['unresolved without a word'];
  }
}

/** A run that completes hands out the receipt, its result, and a verdict for every reply. */
function judgeRuns({ rows, world }: Evidence): readonly string[] {
  const stored: unknown = JSON.parse(rows.receipts[0]?.receipt_json ?? 'null');
  const completed = world.engines.flatMap(({ runs }) => runs.filter(({ status }) => status === 'completed'));
  return completed.flatMap(({ value, history, sandbox, runId }) => {
    const end = value as { receipt: Receipt; resultJson: string | null };
    const wrong = isDeepStrictEqual(end.receipt, stored) ? [] : [`${runId} tells another receipt`];
    const { result } = end.receipt;
    const digest = createHash('sha256')
      .update(end.resultJson ?? '')
      .digest('hex');
    if (result && digest !== result.digest) wrong.push(`${runId} brings another result`);
    const updates = history.flatMap(({ jobs }) =>
      jobs.flatMap((job) => (job.kind === 'update' ? [job.id] : [])),
    );
    if (updates.some((id) => !sandbox.updates.has(id))) wrong.push(`${runId} left a reply without a verdict`);
    return wrong;
  });
}

/** Promise 11: where all is well again, only that is held which nobody can find out. */
function judgeHold(world: World, row: RowSnapshot | null): readonly string[] {
  const record = world.record();
  if (!record) return ['no run, and no receipt'];
  // Another engine has ended it. A run that is held beside it looks no more, and ends with the next word.
  const isHeldBeside = world.engines.length > 1 && record.state === 'UNRESOLVED';
  if (world.story.receiptTexts.length > 0) return isHeldBeside ? [] : ['a run never ends'];
  // A run that was reset before its row was made may not make it: the row may as well be lost. A person sees that.
  const mayBeRestored = world.blows.struck.some(({ blow }) => blow.kind === 'reset');
  const isAboutLedger = record.ledgerBehind ? !row : record.hold?.evidence.includes('restored from before');
  // Not even where a late opening makes it after all: it may be made anew, and what was sent before is forgotten.
  if (mayBeRestored && isAboutLedger && world.server.ledger.creates.length === 0) return [];
  if (record.state !== 'UNRESOLVED' || !record.hold?.evidence)
    return [`neither ended nor held: ${record.state}`];
  world.story.holds.push(record.hold.reason);
  return mayBeHeld(world, record)
    ? []
    : [`held for no reason: ${record.hold.reason}: ${record.hold.evidence}`];
}

function mayBeHeld({ server, isHealed, story }: World, record: ToolOperation): boolean {
  const { remoteReference, hold, submissionLegs } = record;
  if (!isHealed) return true;
  const inDoubt = submissionLegs.some(({ outcome }) => outcome === 'ambiguous' || outcome === 'open');
  const work = server.executions.find(({ remoteId }) => remoteId === remoteReference?.remoteId);
  const sessionId = sessionIdOf(remoteReference?.locator);
  // Nobody who names a task knows which session it is bound to.
  const isUnreachable = story.operatorSpoke === 'found' && !server.plan.tasksOutliveSessions;
  const isGone = remoteReference !== null && (!work || isUnreachable || server.isOutOfReach(work, sessionId));
  switch (hold?.reason) {
    case 'ambiguous-submission':
      return inDoubt && !remoteReference;
    case 'look-up-deadline':
      if (record.submissionPolicy === 'lookup-tool') return false;
      return inDoubt && !remoteReference && !isFindable(record, server.executions, server.plan.canList);
    case 'result-lost':
      return server.isResultLost || isGone || isPutOff(server);
    default:
      return isGone;
  }
}

/** It was told to come again only after the fetch budget. */
function isPutOff({ plan, ledger }: World['server']): boolean {
  return plan.retryAfterMs >= FETCH_BUDGET_MS && ledger.faults.includes('retryAfter');
}

/** The one task of the operation's own session, which a look-up lists. */
function isFindable(record: ToolOperation, executions: readonly Execution[], canList: boolean): boolean {
  // Sent again after a refusal that came too late to be recorded as the end: in a session nobody wrote down.
  const isAfterRefusal = record.submissionLegs.some(({ outcome }) => outcome === 'refused');
  const isTask = record.adapter !== 'synchronous';
  const isListed = canList && executions.length === 1;
  return record.submissionPolicy === 'session-list' && isTask && isListed && !isAfterRefusal;
}
