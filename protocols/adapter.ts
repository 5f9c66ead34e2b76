// Owns the port to a wire contract: what a step body may ask of a server, and the few errors it may get back.
// Must never hold wire words: each contract maps its own once, in its `decode.ts`.

import type { JobSettings } from '../operation/job-settings.js';
import type { JsonObject, JsonValue } from '../operation/json.js';
import type { AdapterName, SubmissionPolicyName } from '../operation/names.js';
import type { InputAction, LookUpSettings, Question, RemoteReference } from '../operation/row.js';
import type { DeclaredMethod } from './declared-method.js';

/** How a token for a server is had; held and renewed in the worker's memory only. */
export type AuthSettings =
  | { readonly kind: 'bearer'; readonly token: string }
  /** Standard output of a program is the token. `lifetimeMs` null: until the server refuses it. */
  | { readonly kind: 'command'; readonly command: readonly string[]; readonly lifetimeMs: number | null }
  /** Client credentials (RFC 6749 section 4.4), or a refresh token (section 6) where one is given. */
  | {
      readonly kind: 'oauth';
      readonly clientId: string;
      readonly clientSecret: string | null;
      /** The one authorization server that the client's credentials are ever shown to. */
      readonly issuer: string;
      readonly scope: string | null;
      readonly refreshToken: string | null;
    };

/** A server that is a program of this worker, spoken to over its standard streams. */
export interface ProgramSettings {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absent: the worker's own. */
  readonly cwd?: string;
}

/**
 * A configured tool server as the worker knows it. `headers`, `auth`, `program` and `secrets` hold credentials: never
 * stored, never logged.
 */
export interface ToolServer {
  readonly name: string;
  /** Empty for a program. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly auth?: AuthSettings;
  readonly program?: ProgramSettings;
  /** What else no text may show: values that a program was given. */
  readonly secrets?: readonly string[];
  readonly protocol: AdapterName | 'auto';
  readonly maxPollsPerSecond: number;
  readonly trustAnnotations: boolean;
  /** Methods that start work, by tool name: of a contract whose servers publish none (`aip-151`). */
  readonly methods?: Readonly<Record<string, DeclaredMethod>>;
}

/** What one call puts on the wire. */
export interface ToolCall {
  readonly server: ToolServer;
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly submissionKey: string;
  readonly submissionPolicy: SubmissionPolicyName;
  readonly keyName: string | null;
  /** Of `lookup-tool` only. */
  readonly lookUp?: LookUpSettings;
  /** How long a plain synchronous call may take (ms). */
  readonly synchronousBoundMs: number;
  /** The largest result to take (bytes); absent: the default of operation/limits.ts. */
  readonly maxResultBytes?: number;
  /** Of a call that was asked before there was a task, and goes on. */
  readonly continuation?: Continuation;
}

/** What a server publishes about a tool, and the session in which the operation will live. */
export interface Negotiated {
  readonly adapter: AdapterName;
  /** All that a later process needs to go on in this session. Never a credential. */
  readonly session: JsonObject;
  readonly toolVersion: string | null;
  /** Digest of the tool's published descriptor. */
  readonly descriptorDigest: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject | null;
  readonly canList: boolean;
  /** Calls of this tool may become tasks. */
  readonly hasTasks: boolean;
  /** Work of this tool can be asked to stop. */
  readonly canCancel: boolean;
  readonly annotations: {
    readonly readOnly: boolean;
    readonly idempotent: boolean;
    /** Said in so many words: that it is the default of the protocol says nothing. */
    readonly destructive: boolean;
  };
  /** The second tool that was asked for; null where the server does not publish it, absent where none was. */
  readonly lookUpTool?: PublishedTool | null;
  /** How this very tool's submissions are told apart or found again, where that is declared. */
  readonly offered?: 'request-id' | 'operation-list' | undefined;
  /** What no schema can say: why these arguments cannot be put on the wire, or null. */
  readonly objectionTo?: (args: JsonObject) => string | null;
  /** The descriptor is our own configuration: where it changed, a repeat would be another request. */
  readonly isDeclared?: true;
}

/** What a server publishes about a tool that is only read with. */
export interface PublishedTool {
  readonly requiresTasks: boolean;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject | null;
}

/** `unknownTool` and `unsupported` are proofs that nothing was started. */
export type Negotiation =
  | { readonly kind: 'negotiated'; readonly negotiated: Negotiated }
  | { readonly kind: 'unknownTool'; readonly message: string }
  | { readonly kind: 'unsupported'; readonly message: string };

/** The bytes of a `result` or `error` value exactly as received, without the envelope. */
export interface ReceivedResult {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly isProtocolError: boolean;
  readonly isToolError: boolean;
  /** `structuredContent`, where present, parsed when it is asked for: only for the output-schema flag. */
  readonly structuredContent: JsonValue | undefined;
}

export interface Observation {
  readonly remoteStatus: string;
  /** The status in our words; `other` = a word this contract does not know (flagged, bounded, never terminal). */
  readonly meaning: 'working' | 'inputRequired' | 'completed' | 'failed' | 'cancelled' | 'other';
  readonly statusMessage: string | null;
  /** The server's hint as sent (ms); clamp before use. */
  readonly intervalMs: number | null;
  readonly expiresAt: number | null;
  /** All that is asked now, where the contract lists it in the status; else questions are picked up. */
  readonly questions?: readonly WireQuestion[];
  /** The result, where the contract carries it in the terminal status; else it is fetched. */
  readonly inline?: FetchedResult;
}

export type Submission =
  | { readonly kind: 'referenced'; readonly reference: RemoteReference; readonly observation: Observation }
  /** `reference`: where the contract names even work that is over at once. */
  | { readonly kind: 'answered'; readonly result: ReceivedResult; readonly reference?: RemoteReference }
  /**
   * Asked before there is a task: the call goes on with the replies, as another leg (MCP 2026-07-28, SEP-2322), or comes
   * again once a link was opened (MCP 2025-11-25, elicitation, -32042).
   */
  | {
      readonly kind: 'inputBeforeTask';
      readonly requestState: string | null;
      readonly questions: readonly WireQuestion[];
      /** The server is told nothing of the replies: the call just comes again, and only where all of them consent. */
      readonly needsConsent?: true;
    };

/** What a call is continued with: the server's own state, untouched, and the replies by its keys. */
export interface Continuation {
  readonly requestState: string | null;
  readonly replies: Readonly<Record<string, InputReply>>;
}

export type LookUp =
  | { readonly kind: 'found'; readonly reference: RemoteReference }
  | { readonly kind: 'provedAbsent'; readonly evidence: string }
  | { readonly kind: 'cannotTell'; readonly evidence: string };

/** A question as read from the wire. `wire` is what the answer needs, from any process. */
export interface WireQuestion {
  /** Unique within the operation: session and JSON-RPC id (0 is a valid id), or input key. */
  readonly wireKey: string;
  readonly wire: JsonObject;
  readonly question: Question;
}

/** What is already known, so that a replayed question is not taken twice. */
export interface KnownQuestions {
  readonly anchor: JsonObject | null;
  readonly wireKeys: readonly string[];
  /** What the known ones were read as: a dropped stream may be given the next one too. */
  readonly wires?: readonly JsonObject[];
  /** A known question still waits for its reply: then replays are read, but no further stream is opened. */
  readonly hasOpenRound?: boolean;
}

export interface InputReply {
  readonly action: InputAction;
  readonly content: JsonValue;
}

export interface AnswerHooks {
  /** Awaited after the status was read and before the answer's bytes may leave. */
  readonly beforeSend: () => Promise<void>;
  readonly afterSend: () => Promise<void>;
}

export type CancelAnswer = 'confirmed' | 'acknowledged' | 'refused' | 'unsupported';

export type FetchedResult =
  | { readonly kind: 'result'; readonly result: ReceivedResult }
  | { readonly kind: 'notYet' }
  /** Larger than what may be taken: asking again brings the same. */
  | { readonly kind: 'tooLarge'; readonly evidence: string }
  | { readonly kind: 'lost'; readonly evidence: string };

/** A result that comes within a status is read up to what any may have, so that its very size can be told. */
export function withinBound(fetched: FetchedResult, maxResultBytes: number): FetchedResult {
  const sizeBytes = fetched.kind === 'result' ? fetched.result.bytes.byteLength : 0;
  if (sizeBytes <= maxResultBytes) return fetched;
  return { kind: 'tooLarge', evidence: `the result has ${sizeBytes} bytes` };
}

export interface SubmitHooks {
  /** Called once the request's bytes were handed to the socket (a named crash window). */
  readonly afterSend: () => Promise<void>;
  /** Progress of a plain call, for people only. */
  readonly onProgress: (message: string) => void;
}

export interface ToolAdapter {
  readonly name: AdapterName;
  /** @throws WireFault NotSent | RefusedByServer | Ambiguous */
  submit(call: ToolCall, session: JsonObject, hooks: SubmitHooks): Promise<Submission>;
  /** `provedAbsent` is what the contract or the operator's declaration proves; whether it counts yet, the store rules. @throws WireFault Transient */
  findBySubmission(call: ToolCall, session: JsonObject, firstLegClaimedAt: number): Promise<LookUp>;
  /**
   * `maxResultBytes`: as for `fetchResult`, where the contract carries the result in the status. `isTooLarge` on a
   * ProtocolViolation: nothing but the size of the status could be seen.
   * @throws WireFault Transient | NotFound | SessionLost | ProtocolViolation
   */
  observe(server: ToolServer, reference: RemoteReference, maxResultBytes?: number): Promise<Observation>;
  /** A new session for the same reference, after the old one was lost. @throws WireFault Transient */
  renewSession(server: ToolServer, reference: RemoteReference): Promise<RemoteReference>;
  /** Where a lost question can be replayed from, or null. Best effort: never throws. */
  anchor(server: ToolServer, reference: RemoteReference): Promise<JsonObject | null>;
  /**
   * Reads the open questions. `onQuestion` stores one before the source of it is let go.
   * @throws WireFault Transient | SessionLost | ProtocolViolation
   */
  pickUpQuestions(
    server: ToolServer,
    reference: RemoteReference,
    known: KnownQuestions,
    onQuestion: (question: WireQuestion) => Promise<void>,
  ): Promise<void>;
  /**
   * `RefusedByServer`: the server said for good that it does not take these bytes; the question itself stays open.
   * `NotFound`: nothing was sent, and one such answer does not mean that the work is gone.
   * @throws WireFault RefusedByServer | Transient | NotFound | SessionLost
   */
  answer(
    server: ToolServer,
    reference: RemoteReference,
    wire: JsonObject,
    reply: InputReply,
    hooks: AnswerHooks,
  ): Promise<'delivered' | 'roundClosed'>;
  /** @throws WireFault Transient | NotFound | SessionLost */
  cancel(
    server: ToolServer,
    reference: RemoteReference,
    afterSend: () => Promise<void>,
  ): Promise<CancelAnswer>;
  /**
   * `maxResultBytes`: the largest result to take; absent: the default of operation/limits.ts.
   * @throws WireFault Transient | SessionLost | ProtocolViolation
   */
  fetchResult(
    server: ToolServer,
    reference: RemoteReference,
    maxResultBytes?: number,
  ): Promise<FetchedResult>;
  /**
   * Ends the session, best effort, after the receipt is committed. `endedId`: the remote work whose end the receipt holds.
   * Never throws.
   */
  release(server: ToolServer, session: JsonObject, endedId?: string): Promise<void>;
}

/** All wire contracts behind one door: negotiation picks the contract, later steps ask for the pinned one. */
export interface ProtocolRegistry {
  /**
   * `job`: the tool is declared to start a job that other tools of its server look after.
   * @throws WireFault NotSent | Transient (nothing was submitted either way) | ProtocolViolation
   */
  negotiate(server: ToolServer, tool: string, lookUpTool?: string, job?: JobSettings): Promise<Negotiation>;
  adapter(name: AdapterName): ToolAdapter;
}

export type WireFaultKind =
  | 'NotSent'
  | 'RefusedByServer'
  | 'Ambiguous'
  | 'Transient'
  | 'NotFound'
  | 'SessionLost'
  | 'ProtocolViolation';

/** The only error an adapter throws. `message` never holds a credential or a whole body. */
export class WireFault extends Error {
  override readonly name = 'WireFault';
  readonly kind: WireFaultKind;
  readonly retryAfterMs: number | null;
  /** The wire's own code, for evidence: HTTP status or JSON-RPC code. */
  readonly wireCode: number | null;
  /** The reply was larger than what may be taken: asking again brings the same. */
  readonly isTooLarge: boolean;

  constructor(
    kind: WireFaultKind,
    message: string,
    extra: { retryAfterMs?: number | null; wireCode?: number | null; isTooLarge?: boolean } = {},
  ) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = extra.retryAfterMs ?? null;
    this.wireCode = extra.wireCode ?? null;
    this.isTooLarge = extra.isTooLarge ?? false;
  }

  static isInstance(value: unknown): value is WireFault {
    return value instanceof Error && value.name === 'WireFault' && 'kind' in value;
  }
}
