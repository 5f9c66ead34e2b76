// Owns what a worker tells of its steps, for logs and metrics. Derived from facts in one place.
// Must never hold arguments, replies, results or credentials.

import type { Remark, StepFact } from '../operation/facts.js';
import type { Outcome } from '../operation/names.js';
import type { SweepCounts } from './sweep.js';

interface OfOperation {
  readonly callNodeId: string;
  readonly step: string;
  readonly attempt: number;
}

export type OperationEvent =
  /** A step ended with an outcome; `said` is its finding or verdict. */
  | (OfOperation & {
      readonly kind: 'stepEnded';
      readonly server: string | null;
      readonly tool: string | null;
      readonly said: string;
      readonly durationMs: number;
    })
  /**
   * An attempt ended and another follows after `delayMs`: for `observe` that is an ordinary poll. Without its message:
   * that is mostly the server's own words, which may repeat arguments.
   */
  | (OfOperation & {
      readonly kind: 'stepRetried';
      readonly code: string;
      readonly delayMs: number;
    })
  /** An attempt met something that is no part of its contract. */
  | (OfOperation & { readonly kind: 'stepFault'; readonly message: string })
  | (OfOperation & {
      readonly kind: 'accepted';
      readonly server: string;
      readonly tool: string;
      readonly outcome: Outcome;
      /** From the request to cancel to the receipt (ms); null where nobody asked. */
      readonly cancelLatencyMs: number | null;
    })
  | (OfOperation & {
      readonly kind: 'refused';
      readonly server: string;
      readonly what: 'submission' | 'reply' | 'acceptance';
      readonly reason: string;
    })
  /** What is odd about a tool; nothing was decided by it. */
  | (OfOperation & {
      readonly kind: 'remarked';
      readonly server: string;
      readonly tool: string;
      readonly what: Remark['what'];
      readonly detail: string;
    })
  /** One sweep over the open rows of the store. */
  | ({ readonly kind: 'swept' } & SweepCounts)
  /** One exchange with a tool server; `result` is `ok` or the kind of the fault. */
  | {
      readonly kind: 'wireCall';
      /** Null where it is for no operation. */
      readonly callNodeId: string | null;
      readonly server: string;
      readonly call: string;
      readonly result: string;
      readonly durationMs: number;
    };

export function eventsOf(
  fact: StepFact,
  of: OfOperation,
  durationMs: number,
  cancelAskedAt: number | null,
): readonly OperationEvent[] {
  if (fact.kind === 'ledgerMissing') {
    return [{ ...of, kind: 'stepEnded', server: null, tool: null, said: 'ledgerMissing', durationMs }];
  }
  const { server, tool } = fact.row;
  const events: OperationEvent[] = [
    { ...of, kind: 'stepEnded', server, tool, said: saidBy(fact), durationMs },
  ];
  const refuse = (what: 'submission' | 'reply' | 'acceptance', reason: string): void => {
    events.push({ ...of, kind: 'refused', server, what, reason });
  };
  if (fact.kind === 'submitted') {
    if (fact.row.rejection) refuse('submission', fact.row.rejection.code);
    for (const remark of fact.remarks ?? [])
      events.push({ ...of, kind: 'remarked', server, tool, ...remark });
  }
  if (fact.kind === 'answered' && fact.verdict.kind === 'refused') refuse('reply', 'schema');
  if (fact.kind === 'accepted' && fact.finding === 'refused')
    refuse('acceptance', fact.evidence?.split(':')[0] ?? '');
  if (fact.kind === 'accepted' && fact.row.receipt) {
    const { outcome, acceptedAt } = fact.row.receipt;
    const cancelLatencyMs = cancelAskedAt === null ? null : Math.max(0, acceptedAt - cancelAskedAt);
    events.push({ ...of, kind: 'accepted', server, tool, outcome, cancelLatencyMs });
  }
  return events;
}

function saidBy(fact: Exclude<StepFact, { kind: 'ledgerMissing' }>): string {
  switch (fact.kind) {
    case 'opened':
      return fact.row.receipt ? 'ended already' : `epoch ${fact.row.executionEpoch}`;
    case 'submitted':
      return fact.row.rejection?.code ?? fact.row.legs.at(-1)?.outcome ?? 'nothing sent';
    case 'answered':
      return fact.verdict.kind;
    case 'cancelSent':
      return fact.reply;
    case 'endRecorded':
      return fact.row.terminalObservation?.remoteStatus ?? 'overtaken';
    default:
      return fact.finding;
  }
}
