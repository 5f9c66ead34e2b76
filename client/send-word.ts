// Owns how an operator's word gets to its operation: checked here as the fold will check it, then sent as a signal.
// Must never send a word that is known not to be taken, nor call a word an end.

import type { Client } from '@temporalio/client';
import type { OperatorDecision } from '../operation/facts.js';
import { LIMITS } from '../operation/limits.js';
import { MESSAGES, workflowIdOf } from '../operation/names.js';
import { objectionToWord, readOperatorResult } from '../operation/operator-word.js';
import type { OperatorMessage } from '../workflows/contract.js';
import { ToolOperationError } from './errors.js';
import { lookAtRun, queryRecord } from './look-at-run.js';
import { isLedgerBehind, type OperationView } from './view.js';

export interface Grounds {
  /** What was seen, and where. */
  readonly evidence: string;
  readonly decidedBy: string;
}

/** The most that the result of an operator's end may have. */
export const OPERATOR_RESULT_BYTES = LIMITS.operatorResultBytes;

/** Why a text cannot be the result of an operator's end, or null. */
export function objectionToResult(resultJson: string): string | null {
  const result = readOperatorResult(resultJson);
  return result.kind === 'unfit' ? result.why : null;
}

/** @throws ToolOperationError `InvalidRequest` where it is not held or the word does not fit; `OperationNotFound` */
export async function sendWord(
  client: Client,
  callNodeId: string,
  decision: OperatorDecision,
  grounds: Grounds,
): Promise<void> {
  const { view, isClosed } = await lookAtRun(client, callNodeId);
  const refuse = (why: string): ToolOperationError => new ToolOperationError('InvalidRequest', why, view);
  if (!grounds.evidence.trim() || !grounds.decidedBy.trim())
    throw refuse('a decision needs evidence and a name');
  const misspelt = misspellingIn(decision);
  if (misspelt !== null) throw refuse(misspelt);
  if (isClosed && !view.receipt) throw refuse(view.reason ?? 'its run is closed');
  // Without a worker only the engine's word is to be had; the fold decides all the same.
  const record = isClosed ? null : await queryRecord(client, callNodeId, view.runId);
  const objection = record ? objectionToWord(record, decision) : objectionFromOutside(view);
  if (objection !== null) throw refuse(`"${callNodeId}" does not take this word: ${objection}`);
  const message: OperatorMessage = { ...membersOf(decision), ...grounds };
  await client.workflow.getHandle(workflowIdOf(callNodeId)).signal(MESSAGES.operatorSignal, message);
}

/** What no state of an operation would take. */
function misspellingIn(decision: OperatorDecision): string | null {
  switch (decision.kind) {
    case 'found':
      return decision.remoteId ? null : 'name the remote work that was found';
    case 'ended': {
      const { outcome, resultJson } = decision as { outcome: unknown; resultJson: unknown };
      if (outcome !== 'completed' && outcome !== 'failed')
        return 'an operator ends an operation as "completed" or "failed"';
      if (typeof resultJson !== 'string') return 'an end needs its result, as JSON text';
      return objectionToResult(resultJson);
    }
    default:
      return null;
  }
}

function objectionFromOutside(view: OperationView): string | null {
  if (view.outcome !== null) return `it has ended: ${view.outcome}`;
  if (view.state === 'UNRESOLVED' || isLedgerBehind(view)) return null;
  return `it is not held, it is ${view.state}`;
}

function membersOf(decision: OperatorDecision): Pick<OperatorMessage, 'decision'> & Partial<OperatorMessage> {
  const { kind, ...members } = decision;
  return { decision: kind, ...members };
}
