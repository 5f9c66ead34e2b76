// Owns what a pending observation shows of itself (heartbeat details) to `status` and `watch`, without history.
// Must never hold arguments, credentials or results.

import type { PollCursor } from './facts.js';
import type { Question } from './row.js';

export interface OpenRound {
  readonly roundId: string;
  readonly question: Question;
  readonly schemaDigest: string;
  readonly deadlineAt: number;
}

/** The whole object is written with every heartbeat; a later attempt goes on from it. */
export interface LiveStatus {
  readonly schema: 'liveStatus.v1';
  readonly remoteStatus: string | null;
  readonly statusMessage: string | null;
  readonly expiresAt: number | null;
  readonly cursor: PollCursor;
  readonly openRounds: readonly OpenRound[];
  /** Looks in a row that met a transient fault. */
  readonly faultStreak: number;
  /** Looks in a row that said `input_required` and asked nothing. Absent: none. */
  readonly silentAsks?: number;
  /** What is odd about the last look though it is no fault, for people. */
  readonly notice?: string | null;
  /** The last transient fault, for people. */
  readonly lastFault: string | null;
  readonly updatedAt: number;
}
