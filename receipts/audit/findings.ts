// Owns the table of what an audit proves, and how a fault becomes one sentence that says what to do.
// Must never hold a rule; rules live in the files named after what they look at.

export type AuditCheck =
  | 'file'
  | 'orphans'
  | 'row'
  | 'legs'
  | 'rounds'
  | 'cancel'
  | 'result'
  | 'receipt'
  | 'facts'
  | 'end'
  | 'ready'
  | 'effects';

/** In the order of the report. `mend`: the end of every sentence of that check. */
export const AUDIT_CHECKS: Readonly<Record<AuditCheck, { readonly proves: string; readonly mend: string }>> =
  {
    file: {
      proves: 'the database file is sound',
      mend: 'restore the store from a backup',
    },
    orphans: {
      proves: 'no row is without the row it belongs to',
      mend: 'what it belonged to is lost: restore the store from a backup, and let nothing downstream act on it',
    },
    row: {
      proves: 'arguments, request and submission key recompute',
      mend: 'restore the store from a backup, and do not call under this name before',
    },
    legs: {
      proves: 'submissions are numbered without gaps, and one was taken up',
      mend: 'look on the server for what was submitted before this call is resolved or sent again',
    },
    rounds: {
      proves: 'each question has one reply at most, recorded before it was sent',
      mend: 'look on the server for what was answered before anybody answers again',
    },
    cancel: {
      proves: 'a cancel has a generation, a reason and a delivery, or none of them',
      mend: 'look on the server whether this call was cancelled',
    },
    result: {
      proves: 'each result is stored whole, under its digest',
      mend: 'fetch the result from the server while it has it, or restore the store from a backup',
    },
    receipt: {
      proves: 'each receipt is canonical, and its digest recomputes',
      mend: 'it was changed after it was written: restore the store from a backup',
    },
    facts: {
      proves: 'each receipt says what its row holds',
      mend: 'one of the two was changed after acceptance: restore the store from a backup',
    },
    end: {
      proves: 'each end is the one that its row proves',
      mend: 'do not act on this receipt, and look on the server for the true end',
    },
    ready: {
      proves: 'each receipt has its ready row: same digest and outcome, advancing only if completed',
      mend: 'stop what reads the ready rows, and restore the store from a backup',
    },
    effects: {
      proves: 'reconciliation is owed where effects may exist, and only there',
      mend: 'look on the server for effects of this call',
    },
  };

export interface AuditFinding {
  readonly check: AuditCheck;
  /** Null where it is about no single operation. */
  readonly callNodeId: string | null;
  /** One sentence: whom it is about, what is wrong, what to do. */
  readonly says: string;
}

/** What a rule found wrong with one operation; the report makes a finding of it. */
export interface Fault {
  readonly check: AuditCheck;
  readonly wrong: string;
}

export function fault(check: AuditCheck, wrong: string): Fault {
  return { check, wrong };
}

/** None where nothing is wrong: all that one check has against one operation is one finding. */
export function faults(check: AuditCheck, wrongs: readonly (string | false | null)[]): readonly Fault[] {
  const found = wrongs.filter((wrong) => wrong !== false && wrong !== null);
  return found.length === 0 ? [] : [fault(check, found.join(', and '))];
}

export function findingOf({ check, wrong }: Fault, callNodeId: string | null): AuditFinding {
  const whom = callNodeId === null ? 'the store' : `"${callNodeId}"`;
  return { check, callNodeId, says: `${whom}: ${wrong}; ${AUDIT_CHECKS[check].mend}.` };
}
