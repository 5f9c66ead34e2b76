// Owns the shape of a tool's `job` declaration: how work is started, read, fetched, cancelled and answered by plain tools.
// Must never interpret it: only the adapter mcp/job-tools does. It is pinned with an operation, so it is JSON.

/** What a status word means. `notFound`: the server does not know the job (any more). */
export const JOB_MEANINGS = [
  'working',
  'inputRequired',
  'completed',
  'failed',
  'cancelled',
  'notFound',
] as const;
export type JobMeaning = (typeof JOB_MEANINGS)[number];

/** A second tool of the server, and its argument that takes the job's id. */
export interface JobTool {
  readonly tool: string;
  readonly argument: string;
}

/** Pointers (RFC 6901) lead into a tool's answer; see protocols/mcp/answer-members.ts. */
export interface JobSettings {
  /** To the id in the start tool's answer. */
  readonly idPointer: string;
  /** Declared by the operator: where the start tool answers with `isError`, nothing was started. */
  readonly refusedByError: boolean;
  readonly status: JobStatusTool;
  /** Null: the status answer that says the end is the result. */
  readonly result: JobResultTool | null;
  readonly cancel: JobTool | null;
  readonly input: JobInputTool | null;
}

export interface JobStatusTool extends JobTool {
  readonly pointer: string;
  readonly words: Readonly<Record<string, JobMeaning>>;
  /** To the job's id in the status answer; null: it is not named there. */
  readonly idPointer: string | null;
  readonly messagePointer: string | null;
  readonly interval: JobInterval | null;
}

/** How long the server wants to be left alone: always the same, or as each status says. */
export type JobInterval =
  | { readonly kind: 'fixed'; readonly intervalMs: number }
  | { readonly kind: 'told'; readonly pointer: string; readonly unitMs: 1 | 1_000 };

export interface JobResultTool extends JobTool {
  /** Its `isError` is trouble of the tool's own, never the result of the job. */
  readonly retryErrors: boolean;
}

/** The tool that takes a reply: the members of the reply are its other arguments. */
export interface JobInputTool extends JobTool {
  /** To the question's text in the status answer. */
  readonly questionPointer: string;
  /** To the schema of the reply there; null: the other arguments that the tool publishes. */
  readonly schemaPointer: string | null;
  /** What tells one question from the next; null: its text. `argument` takes it along with the reply. */
  readonly key: { readonly pointer: string; readonly argument: string | null } | null;
}
