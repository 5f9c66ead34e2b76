// Owns `resolve`: an operator's word about a held operation, and what comes of it.
// Must never speak without evidence and a name, nor call the word an end: only the receipt is.

import { setTimeout as sleep } from 'node:timers/promises';
import { ToolOperationError, type ToolOperationHandle } from '../../client/index.js';
import { isLedgerBehind, type OperationView } from '../../client/view.js';
import type { OperatorDecision } from '../../operation/facts.js';
import { CommandError, EXIT_CODES } from '../exit-codes.js';
import type { OperationState } from '../../operation/names.js';
import { actOn, type Place } from '../open-place.js';
import { readResultText } from '../read-result.js';
import { writeJson, writeView } from '../report.js';

export interface ResolveOptions extends Place {
  readonly found?: string;
  readonly neverCreated: boolean;
  readonly close: boolean;
  readonly outcome?: string;
  readonly result?: string;
  readonly evidence: string;
  readonly by: string;
  readonly json: boolean;
}

/** @returns 0 ended or back at work, 5 still held. @throws CommandError where it is not held or the word does not fit */
export async function runResolve(callNodeId: string, options: ResolveOptions): Promise<number> {
  if (!options.evidence.trim() || !options.by.trim()) {
    throw new CommandError('a decision needs evidence and a name: --evidence TEXT --by NAME');
  }
  const decision = await decisionOf(options);
  return actOn(callNodeId, options, {
    ended: (view) => Promise.reject(notHeld(callNodeId, view)),
    open: async (handle) => {
      const before = await told(handle);
      if (before.state !== 'UNRESOLVED' && !isLedgerBehind(before)) throw notHeld(callNodeId, before);
      if (before.decidedByOperator)
        throw new CommandError(
          `an operator has spoken about "${callNodeId}" already; its end is being written`,
        );
      await give(handle, decision, options);
      const after = await whatCame(handle, before);
      return tell(after, callNodeId, options);
    },
  });
}

/** @throws CommandError with the reason where the word does not fit */
async function give(
  handle: ToolOperationHandle,
  decision: OperatorDecision,
  options: ResolveOptions,
): Promise<void> {
  try {
    await handle.resolve(decision, { evidence: options.evidence, decidedBy: options.by });
  } catch (error) {
    if (!ToolOperationError.isInstance(error) || error.code !== 'InvalidRequest') throw error;
    throw new CommandError(error.message, EXIT_CODES.usage, { cause: error });
  }
}

function notHeld(callNodeId: string, { state, outcome }: OperationView): CommandError {
  const how = outcome === null ? `it is ${state}` : `it has ended: ${outcome}`;
  return new CommandError(`"${callNodeId}" is not held, so there is nothing to resolve: ${how}`);
}

async function decisionOf(options: ResolveOptions): Promise<OperatorDecision> {
  const given: OperatorDecision[] = [];
  if (options.found !== undefined) given.push({ kind: 'found', remoteId: options.found });
  if (options.neverCreated) given.push({ kind: 'neverCreated' });
  if (options.close) given.push({ kind: 'close' });
  const isEnd = options.outcome !== undefined || options.result !== undefined;
  const [decision] = given;
  if (given.length + Number(isEnd) !== 1) {
    throw new CommandError(
      'say one thing: --found REMOTE_ID, --never-created, --close, or --outcome with --result',
    );
  }
  if (!decision) return endOf(options);
  if (decision.kind === 'found' && !decision.remoteId) throw new CommandError('--found needs the remote id');
  return decision;
}

async function endOf({ outcome, result }: ResolveOptions): Promise<OperatorDecision> {
  if (outcome !== 'completed' && outcome !== 'failed')
    throw new CommandError('--result needs --outcome completed or --outcome failed');
  if (result === undefined) throw new CommandError(`--outcome ${outcome} needs --result: JSON, @file or -`);
  return { kind: 'ended', outcome, resultJson: await readResultText(result) };
}

const PATIENCE_MS = 60_000;
/** A submission that is looked up shows like a ledger that is behind, until its run tells. */
const PATIENCE_MS_IN: Partial<Record<OperationState, number>> = {
  UNRESOLVED: PATIENCE_MS,
  SUBMISSION_UNKNOWN: 10_000,
};
const LOOK_AGAIN_MS = 250;

/** Evidence comes only from the run itself: the view without it was read from outside, while its worker was starting. */
async function told(handle: ToolOperationHandle): Promise<OperationView> {
  const startedAt = Date.now();
  for (;;) {
    const view = await handle.status();
    const patienceMs = PATIENCE_MS_IN[view.state] ?? 0;
    if (view.evidence !== null || Date.now() > startedAt + patienceMs) return view;
    await sleep(LOOK_AGAIN_MS);
  }
}

/** What an operator's end passes through on its way to the receipt. */
const ENDING: readonly OperationState[] = ['UNRESOLVED', 'TERMINAL_OBSERVED', 'FETCHING_RESULT'];

async function whatCame(handle: ToolOperationHandle, before: OperationView): Promise<OperationView> {
  const untilAt = Date.now() + PATIENCE_MS;
  for (;;) {
    const view = await told(handle);
    // Held without a word in it: not taken, or held anew.
    const isHeld = (view.state === 'UNRESOLVED' || isLedgerBehind(view)) && !view.decidedByOperator;
    const isOnItsWay = ENDING.includes(view.state) || isLedgerBehind(view);
    if (view.receipt || !isOnItsWay || isHeld || Date.now() > untilAt) {
      // A word that was followed and led to nothing leaves its hold with other evidence.
      const isOther = view.heldSince !== before.heldSince || view.evidence !== before.evidence;
      if (!isHeld || isOther) return view;
      throw new CommandError(
        `the word was not taken: something about "${before.callNodeId}" came first; see "dtc unresolved"`,
      );
    }
    await sleep(LOOK_AGAIN_MS);
  }
}

function tell(view: OperationView, callNodeId: string, options: ResolveOptions): number {
  const isHeld = view.state === 'UNRESOLVED' || isLedgerBehind(view);
  const became = view.outcome !== null ? 'ended' : isHeld ? 'held' : 'working';
  if (options.json) {
    writeJson({ schema: 'resolution.v1', callNodeId, became, state: view.state, outcome: view.outcome });
  } else {
    const sentences = {
      ended: 'the word was taken, and the operation has ended',
      working: 'the word was taken, and the operation is back at work',
      held: 'the operation is still held',
    };
    process.stdout.write(`${sentences[became]}\n`);
    writeView(view, false);
  }
  return became === 'held' ? EXIT_CODES.notEnded : EXIT_CODES.completed;
}
