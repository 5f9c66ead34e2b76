// Owns the inside of the model server: its work, its sessions, its faults, and the ledger of what was really done.
// Must never import anything of the product but types and the port's one error; it is what receipts are judged by.

import type { JsonObject } from '../../operation/json.js';
import type { RemoteReference } from '../../operation/row.js';
import {
  type Observation,
  type ReceivedResult,
  type ToolAdapter,
  type ToolCall,
  WireFault,
} from '../../protocols/adapter.js';
import { Execution } from './execution.js';
import type { LookReply, ServerPlan } from './plan.js';
import type { VirtualTime } from './virtual-time.js';

/** What really happened at the server. */
export interface Ledger {
  readonly creates: { readonly at: number; readonly key: string; readonly reply: string }[];
  readonly polls: Poll[];
  readonly answers: {
    readonly at: number;
    readonly jsonRpcId: number;
    readonly remoteId: string;
    readonly bytes: string;
  }[];
  readonly cancels: { readonly at: number; readonly remoteId: string }[];
  /** Every word of the plan that was no plain reply. */
  readonly faults: string[];
}

export interface Poll {
  readonly at: number;
  readonly by: object | null;
  /** What the reply asked to be kept clear of after it (ms); null = the server said nothing. */
  hintMs: number | null;
  retryAfterMs: number | null;
  isAnswered: boolean;
  /** Its attempt had been given up when it came. */
  readonly isLate: boolean;
}

/** One exchange as its attempt lives through it; `mayStop` is a point where the attempt may be stopped. */
export interface Line {
  readonly time: VirtualTime;
  readonly mayStop: (point: string) => Promise<void>;
  /** Who is asking: the attempt. */
  readonly caller: () => object | null;
  readonly isGivenUp: (caller: object | null) => boolean;
}

type Faults = {
  -readonly [
    K in 'negotiations' | 'creates' | 'looks' | 'finds' | 'answers' | 'cancels' | 'fetches'
  ]: ServerPlan[K][number][];
};

export function sessionIdOf(session: JsonObject | undefined): string {
  const sessionId = session?.['sessionId'];
  return typeof sessionId === 'string' ? sessionId : 'none';
}

export class ServerDesk {
  readonly name: ToolAdapter['name'];
  readonly executions: Execution[] = [];
  readonly ledger: Ledger = { creates: [], polls: [], answers: [], cancels: [], faults: [] };
  readonly plan: ServerPlan;
  /** Bytes on the way that will start work, although nobody waits for a reply. */
  startsToCome = 0;
  isResultLost: boolean;
  readonly line: Line;
  readonly faults: Faults;
  readonly #byKey = new Map<string, Execution>();
  readonly lostSessions = new Set<string>();
  #isHealed = false;
  sessions = 0;
  #hints = 0;

  constructor(plan: ServerPlan, line: Line) {
    this.plan = plan;
    this.name = plan.contract;
    this.isResultLost = plan.isResultLost;
    this.line = line;
    this.faults = {
      negotiations: [...plan.negotiations],
      creates: [...plan.creates],
      looks: [...plan.looks],
      finds: [...plan.finds],
      answers: [...plan.answers],
      cancels: [...plan.cancels],
      fetches: [...plan.fetches],
    };
  }

  /** From now on it keeps its contract, and whatever it runs comes to an end. */
  heal(): void {
    this.#isHealed = true;
    for (const list of Object.values(this.faults)) list.length = 0;
    for (const execution of this.executions) execution.isHealed = true;
  }

  /** A look of anybody, however well everything is, cannot reach it any more. */
  isOutOfReach(execution: Execution, sessionId: string): boolean {
    const isElsewhere = !this.plan.tasksOutliveSessions && this.lostSessions.has(sessionId);
    return isElsewhere || execution.isForgotten(this.line.time.nowMs);
  }

  catchUp(): void {
    for (const execution of this.executions) execution.catchUp(this.line.time.nowMs);
  }

  next<T extends string>(list: T[], otherwise: T): T {
    const word = list.shift() ?? otherwise;
    if (word !== otherwise) this.ledger.faults.push(word);
    return word;
  }

  /** Bytes that have left arrive, whatever becomes of the attempt that sent them. */
  async exchange<T>(what: string, serve: () => T, afterSend?: () => Promise<void>): Promise<T> {
    const { time, mayStop } = this.line;
    await mayStop(`before ${what} leaves`);
    const reply = new Promise<T>((resolve, reject) => {
      time.after(this.plan.latencyMs, () => {
        this.catchUp();
        try {
          const said = serve();
          time.after(this.plan.latencyMs, () => resolve(said));
        } catch (error) {
          time.after(this.plan.latencyMs, () => reject(error as Error));
        }
      });
    });
    reply.catch(() => {});
    await afterSend?.();
    try {
      return await reply;
    } finally {
      await mayStop(`after the reply to ${what}`);
    }
  }

  start(call: ToolCall, sessionId: string): Execution {
    const known = this.plan.deduplicates ? this.#byKey.get(call.submissionKey) : undefined;
    if (known) {
      // Whoever is told of a task may ask for it.
      known.seenFrom.add(sessionId);
      return known;
    }
    const remoteId = `task-${this.executions.length + 1} of ${call.submissionKey}`;
    const execution = new Execution(
      remoteId,
      { sessionId, key: call.submissionKey },
      this.line.time.nowMs,
      this.plan,
    );
    execution.isHealed = this.#isHealed;
    this.executions.push(execution);
    this.#byKey.set(call.submissionKey, execution);
    return execution;
  }

  endNow(execution: Execution): void {
    if (execution.ended !== null) return;
    execution.endAs(execution.isToolError ? 'failed' : 'completed', this.line.time.nowMs);
  }

  resultOf(execution: Execution): ReceivedResult {
    return {
      bytes: new TextEncoder().encode(execution.resultText),
      mediaType: 'application/json',
      isProtocolError: false,
      isToolError: execution.isToolError,
      structuredContent: undefined,
    };
  }

  observationOf(execution: Execution, word: LookReply = 'ok'): Observation {
    const intervalMs = this.plan.hintsMs[this.#hints++ % this.plan.hintsMs.length] ?? null;
    const question = execution.openQuestion();
    const running = question || execution.isLingering ? 'inputRequired' : 'working';
    for (const asked of execution.questions) if (asked.taken !== null) asked.lingers -= 1;
    // A replica that has not heard of the end yet; a word that is in no specification.
    const isStale = word === 'stale' && execution.ended !== null;
    const meaning = word === 'otherWord' ? 'other' : isStale ? 'working' : (execution.ended ?? running);
    return {
      remoteStatus: meaning,
      meaning,
      statusMessage: null,
      intervalMs,
      expiresAt: execution.expiresAt,
    };
  }

  /** @throws WireFault where it is gone, or its session is */
  find({ remoteId, locator }: RemoteReference): Execution {
    const sessionId = sessionIdOf(locator);
    if (this.lostSessions.has(sessionId)) throw new WireFault('SessionLost', 'HTTP 404', { wireCode: 404 });
    const execution = this.executions.find((candidate) => candidate.remoteId === remoteId);
    const isElsewhere = !this.plan.tasksOutliveSessions && !execution?.seenFrom.has(sessionId);
    if (!execution || isElsewhere || execution.isForgotten(this.line.time.nowMs))
      throw new WireFault('NotFound', 'JSON-RPC -32602', { wireCode: -32602 });
    return execution;
  }
}
