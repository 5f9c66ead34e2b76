// Owns `resolve`: an operator's word about a held operation, and what comes of it.
// Must never speak without evidence and a name, nor call the word an end: only the receipt is.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ToolOperationHandle } from '../../client/index.js';
import type { OperationView } from '../../client/view.js';
import type { OperatorDecision } from '../../operation/facts.js';
import { CommandError, EXIT_CODES } from '../exit-codes.js';
import { actOn, type Place } from '../open-place.js';
import { writeJson, writeView } from '../report.js';

export interface ResolveOptions extends Place {
  readonly found?: string;
  readonly neverCreated: boolean;
  readonly close: boolean;
  readonly evidence: string;
  readonly by: string;
  readonly json: boolean;
}

/** @returns 0 ended or back at work, 5 still held. @throws CommandError where it is not held or the word does not fit */
export function runResolve(callNodeId: string, options: ResolveOptions): Promise<number> {
  const decision = decisionOf(options);
  if (!options.evidence.trim() || !options.by.trim()) {
    throw new CommandError('a decision needs evidence and a name: --evidence TEXT --by NAME');
  }
  return actOn(callNodeId, options, {
    ended: (view) => Promise.reject(notHeld(callNodeId, view)),
    open: async (handle) => {
      const before = await told(handle);
      if (before.state !== 'UNRESOLVED') throw notHeld(callNodeId, before);
      if (before.decidedByOperator)
        throw new CommandError(
          `an operator has spoken about "${callNodeId}" already; its end is being written`,
        );
      await handle.resolve(decision, { evidence: options.evidence, decidedBy: options.by });
      const after = await whatCame(handle, before);
      return tell(after, before, callNodeId, options);
    },
  });
}

function notHeld(callNodeId: string, { state, outcome }: OperationView): CommandError {
  const how = outcome === null ? `it is ${state}` : `it has ended: ${outcome}`;
  return new CommandError(`"${callNodeId}" is not held, so there is nothing to resolve: ${how}`);
}

function decisionOf(options: ResolveOptions): OperatorDecision {
  const given: OperatorDecision[] = [];
  if (options.found !== undefined) given.push({ kind: 'found', remoteId: options.found });
  if (options.neverCreated) given.push({ kind: 'neverCreated' });
  if (options.close) given.push({ kind: 'close' });
  const [decision] = given;
  if (!decision || given.length > 1) {
    throw new CommandError('say one thing: --found REMOTE_ID, --never-created or --close');
  }
  if (decision.kind === 'found' && !decision.remoteId) throw new CommandError('--found needs the remote id');
  return decision;
}

const PATIENCE_MS = 60_000;
const LOOK_AGAIN_MS = 250;

/** Evidence comes only from the run itself: the view without it was read from outside, while its worker was starting. */
async function told(handle: ToolOperationHandle): Promise<OperationView> {
  const untilAt = Date.now() + PATIENCE_MS;
  for (;;) {
    const view = await handle.status();
    if (view.state !== 'UNRESOLVED' || view.evidence !== null || Date.now() > untilAt) return view;
    await sleep(LOOK_AGAIN_MS);
  }
}

async function whatCame(handle: ToolOperationHandle, before: OperationView): Promise<OperationView> {
  const untilAt = Date.now() + PATIENCE_MS;
  for (;;) {
    const view = await told(handle);
    // Held without a word in it: not taken, or held anew.
    const isHeld = view.state === 'UNRESOLVED' && !view.decidedByOperator;
    if (view.receipt || view.state !== 'UNRESOLVED' || isHeld || Date.now() > untilAt) {
      // A word that was followed and led to nothing leaves its hold with other evidence.
      const isOther = view.heldSince !== before.heldSince || view.evidence !== before.evidence;
      if (!isHeld || isOther) return view;
      throw new CommandError(refusalOf(before));
    }
    await sleep(LOOK_AGAIN_MS);
  }
}

function refusalOf(before: OperationView): string {
  const why =
    before.adapter === 'synchronous'
      ? 'a tool without tasks has no remote work to name'
      : 'the server has named its work, so it was created and is nothing else';
  return `the word does not fit "${before.callNodeId}" and was not taken: ${why}`;
}

function tell(
  view: OperationView,
  before: OperationView,
  callNodeId: string,
  options: ResolveOptions,
): number {
  const isHeldAgain = view.state === 'UNRESOLVED' && view.heldSince !== before.heldSince;
  const became =
    view.outcome !== null ? 'ended' : isHeldAgain || view.state === 'UNRESOLVED' ? 'held' : 'working';
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
