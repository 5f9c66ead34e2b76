// Owns every number that bounds an operation: sizes in bytes, budgets and intervals in ms.
// Must never read a clock; deadlines are absolute times computed from the record by policy.ts.

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

export const LIMITS = {
  // sizes
  callNodeIdChars: 200,
  argumentsBytes: 256 * 1024,
  replyBytes: 64 * 1024,
  questionBytes: 32 * 1024,
  openQuestions: 32,
  schemaDepth: 16,
  schemaPatternChars: 256,
  schemaRefs: 12,
  inlineResultBytes: 64 * 1024,
  storedResultBytes: 64 * 1024 * 1024,
  storedResultCeilingBytes: 256 * 1024 * 1024,
  /** Of a result whose structured content is held against the published schema: that takes values, and time. */
  checkedResultBytes: 1024 * 1024,
  /** A reply that carries neither a result nor a list; one with a result may have that and the slack. */
  wireReplyBytes: 1024 * 1024,
  /** All pages of one list, and all that a replayed stream brings. */
  wireListBytes: 4 * 1024 * 1024,
  wireSlackBytes: 1024 * 1024,
  /** Up to twice as long inside a message, and twice in a history, which must be read within one reply of 4 MB. */
  operatorResultBytes: 512 * 1024,
  wireJsonDepth: 512,
  evidenceChars: 400,
  messageIdChars: 200,
  remoteIdChars: 4_096,
  statusMessageChars: 300,
  failureMessageChars: 480,
  reasonChars: 300,
  uiSummaryChars: 180,
  uiDetailsChars: 8_000,
  fairnessKeyBytes: 64,

  // budgets (ms)
  waitBudgetMs: 24 * HOUR_MS,
  submitBudgetMs: 5 * MINUTE_MS,
  lookUpBudgetMs: 10 * MINUTE_MS,
  settleBudgetMs: 10 * MINUTE_MS,
  fetchBudgetMs: 10 * MINUTE_MS,
  inputBudgetMs: 24 * HOUR_MS,
  synchronousBoundMs: 60 * SECOND_MS,
  /** How long a server remembers a request id (AIP-155), where nothing else is configured. */
  requestIdWindowMs: 60 * MINUTE_MS,

  // pace (ms)
  pollFloorMs: 1 * SECOND_MS,
  pollCeilingMs: 5 * MINUTE_MS,
  pollDefaultMs: 5 * SECOND_MS,
  pollJitterShare: 0.1,
  inputPollMs: 15 * SECOND_MS,
  lookUpGapMs: 2 * SECOND_MS,
  lookUpGapCeilingMs: 60 * SECOND_MS,
  cancelResendMs: 2 * SECOND_MS,
  cancelResendCeilingMs: 2 * MINUTE_MS,
  fetchRetryMs: 2 * SECOND_MS,
  answerRetryCeilingMs: 30 * SECOND_MS,
  submitRetryMs: 2 * SECOND_MS,
  missedGapMs: 3 * SECOND_MS,
  silentAskGapMs: 2 * SECOND_MS,
  silentAskCeilingMs: 60 * SECOND_MS,
  createLagMs: 30 * SECOND_MS,
  attachGapMs: 2 * SECOND_MS,
  ledgerGapMs: 30 * SECOND_MS,
  recheckGapMs: 10 * MINUTE_MS,
  recheckCeilingMs: 6 * HOUR_MS,
  sweepEveryMs: 1 * MINUTE_MS,
  /** An open row younger than this is left alone: its start may be on its way. */
  sweepAgeMs: 1 * MINUTE_MS,
  retryAfterCeilingMs: 1 * HOUR_MS,

  /** Of a request id's window: the rest is for what is still on its way when it closes. */
  requestIdUsableShare: 0.9,

  // one request on the wire (ms)
  requestTimeoutMs: 30 * SECOND_MS,
  connectTimeoutMs: 10 * SECOND_MS,
  cancelTimeoutMs: 30 * SECOND_MS,
  releaseTimeoutMs: 2 * SECOND_MS,
  /** One request to an authorization server. */
  tokenTimeoutMs: 10 * SECOND_MS,

  // engine (ms)
  heartbeatMs: 700,
  heartbeatTimeoutMs: 2 * SECOND_MS,
  stickyTimeoutMs: 1 * SECOND_MS,

  // counts
  submissionLegs: 3,
  missedReads: 3,
  acceptRefusals: 3,
  takeovers: 3,
  violationReads: 3,
  silentAsks: 4,
  /** Times that a call may be asked before there is any work. */
  continuations: 16,
} as const;
