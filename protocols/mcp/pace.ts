// Owns how long the MCP contracts wait for things that have no reply of their own (ms) and how much they accept.
// Must never hold a budget of an operation: those are in operation/limits.ts.

export const PACE = {
  /** A priming event comes with the reply's headers (server-everything: under 10 ms). */
  anchorMs: 3_000,
  /** One pick-up of questions in all; under the observe step's own patience. */
  pickUpMs: 20_000,
  /** Where a question was read before: a further one is queued already, and comes as soon as the stream is open. */
  pickUpAgainMs: 2_000,
  /**
   * A replay is written in one burst, but a server moves a question onto the dropped stream only when it wakes for
   * it (server-everything: once per pollInterval, 1 s). So a replay without news is taken again.
   */
  replayQuietMs: 400,
  replayAgainMs: 500,
  replaysMs: 4_000,
  /** After a first question, how long to wait for others asked with it. */
  moreQuestionsMs: 300,
  /** A resumed stream that stays silent is asked for again: some servers replay but never go live. */
  resumeQuietMs: 3_000,
  resumeDelayMs: 250,
  resumeDelayCeilingMs: 5_000,
  /** Answers to requests of the server that nobody here serves. */
  declineMs: 5_000,
  /** A program that has just ended is not started again at once. */
  restartMs: 1_000,
  restartCeilingMs: 60_000,
  /** One that lived so long was well: its next start is a first one. */
  wellAfterMs: 60_000,
  /** After its input was closed, and again after SIGTERM (2025-11-25, stdio, shutdown). */
  endProgramMs: 2_000,
  /** After a program's end, for what it wrote before. */
  lastWordsMs: 500,
} as const;

export const COUNTS = {
  resumeFailures: 4,
  /** A flood of requests from the server is not answered for ever. */
  declines: 32,
  /** Questions of a program that nobody was there to take. */
  keptQuestions: 64,
  toolPages: 100,
  taskPages: 100,
  nearNames: 5,
} as const;
