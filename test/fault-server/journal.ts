// Owns the journal: one JSON line per fact the server saw or did, appended before anybody can know of it.
// Must never be rewritten; it is what tests count by, never our side's word.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { JsonValue } from './json.js';
import type { Phase } from './plan.js';

export type ExecutionEnd = 'completed' | 'isError' | 'protocolError' | 'aborted';

/** `label` names the call in the test's own words. */
export type JournalFact =
  | { readonly kind: 'serverStarted'; readonly pid: number }
  | { readonly kind: 'sessionOpened' | 'sessionEnded' }
  | { readonly kind: 'sessionLost'; readonly label: string; readonly goneAs: string }
  | { readonly kind: 'toolsListed' }
  /** The request itself breaks its contract: nothing of it was looked at (2026-07-28). */
  | { readonly kind: 'requestRefused'; readonly method: string; readonly code: number }
  | {
      readonly kind: 'callReceived';
      readonly label: string | null;
      readonly tool: string | null;
      readonly asTask: boolean;
      readonly keyArgument: string | null;
      readonly keyMeta: string | null;
    }
  | {
      readonly kind: 'callRefused';
      readonly label: string | null;
      readonly code: number;
      readonly reason: string;
    }
  | { readonly kind: 'callDeduplicated'; readonly label: string; readonly key: string }
  | { readonly kind: 'taskCreated'; readonly label: string; readonly remoteTaskId: string }
  /** The body of the tool runs: this is what must happen once. */
  | {
      readonly kind: 'executionBegan';
      readonly label: string;
      readonly execution: number;
      readonly key: string | null;
    }
  | {
      readonly kind: 'executionEnded';
      readonly label: string;
      readonly execution: number;
      readonly how: ExecutionEnd;
    }
  /** `label` null: no such task for this session. */
  | {
      readonly kind: 'polled' | 'resultAsked' | 'cancelReceived';
      readonly label: string | null;
      readonly remoteTaskId: string;
    }
  | { readonly kind: 'tasksListed'; readonly tasks: number }
  /** By `find_work`; `label` null: no call was received under that key. */
  | {
      readonly kind: 'workLookedUp';
      readonly label: string | null;
      readonly key: string;
      readonly isFound: boolean;
    }
  | { readonly kind: 'questionAsked'; readonly label: string; readonly question: number }
  | {
      readonly kind: 'questionHandedOut';
      readonly label: string;
      readonly question: number;
      /** What its answer names: by the contract the one or the other. */
      readonly jsonRpcId?: number;
      readonly inputKey?: string;
    }
  /** `label` null: it answers no question that is open in this session. */
  | {
      readonly kind: 'answerReceived';
      readonly label: string | null;
      readonly question: number | null;
      readonly answer: JsonValue;
    }
  | { readonly kind: 'streamResumed'; readonly lastEventId: string; readonly isKnown: boolean }
  /** Somebody went where the word `redirect` pointed. */
  | { readonly kind: 'redirectFollowed'; readonly method: string }
  /** A word of a plan other than `ok` was played. */
  | {
      readonly kind: 'faultPlayed';
      readonly label: string;
      readonly phase: Phase;
      readonly word: string;
    };

/** Where a request came in: when its connection was accepted, and when its head was read from the socket (epoch ms). */
export interface Arrival {
  readonly connectedAt: number;
  readonly arrivedAt: number;
  readonly session: string | null;
}

export type JournalEntry = JournalFact & {
  readonly at: number;
  readonly session: string | null;
  readonly connectedAt?: number;
  readonly arrivedAt?: number;
};

export class Journal {
  private readonly file: string;
  private readonly executions = new Map<string, number>();

  /** Goes on in an existing file: the executions of an earlier process of this server count. */
  constructor(file: string) {
    this.file = file;
    for (const entry of readJournal(file)) {
      if (entry.kind === 'executionBegan') this.executions.set(entry.label, entry.execution);
    }
  }

  write(fact: JournalFact, arrival: Partial<Arrival> = {}): void {
    const entry: JournalEntry = { ...fact, at: Date.now(), session: null, ...arrival };
    // Synchronous: what the journal does not hold has not happened, whenever this process is killed.
    appendFileSync(this.file, `${JSON.stringify(entry)}\n`);
  }

  nextExecution(label: string): number {
    const execution = (this.executions.get(label) ?? 0) + 1;
    this.executions.set(label, execution);
    return execution;
  }
}

export function readJournal(file: string): readonly JournalEntry[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  // The last piece is empty, or a line that a killed process did not finish.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as JournalEntry);
}
