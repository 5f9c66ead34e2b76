// Owns the sessions: their style, their streams, the questions open in them, and their loss.
// Must never let one session see another's streams.

import { randomUUID } from 'node:crypto';
import { EventStream } from './event-streams.js';
import type { JsonValue } from './json.js';
import { WIRE_2025 } from './mcp-2025-11-25/wire.js';
import type { Task } from './tasks.js';
import { REVISIONS, type Wire } from './wire.js';
import { OK, type Word, wordAt } from './words.js';

/** How the server speaks in a session; chosen by the query of the URL that it was opened at. */
export interface Style {
  /** The contracts that are spoken here; of both, a request says in its headers which one it means. */
  readonly contract: Wire['revision'] | 'both';
  /** Replies as one-message SSE or as JSON. A `tasks/result` that may have to ask is a stream in any case. */
  readonly replies: 'sse' | 'json';
  readonly eventIds: boolean;
  /** Whether `tasks/list` and `tasks/cancel` are declared (and served). */
  readonly list: boolean;
  readonly cancel: boolean;
}

/** E.g. `?contract=both&replies=json&eventIds=no&list=no&cancel=no`; null where a word is unknown. */
export function readStyle(query: URLSearchParams): Style | null {
  const allowed: Readonly<Record<string, readonly string[]>> = {
    contract: [...REVISIONS, 'both'],
    replies: ['sse', 'json'],
    eventIds: ['yes', 'no'],
    list: ['yes', 'no'],
    cancel: ['yes', 'no'],
  };
  for (const [name, value] of query) if (!allowed[name]?.includes(value)) return null;
  const contract = query.get('contract');
  return {
    contract: contract === '2026-07-28' || contract === 'both' ? contract : '2025-11-25',
    replies: query.get('replies') === 'json' ? 'json' : 'sse',
    eventIds: query.get('eventIds') !== 'no',
    list: query.get('list') !== 'no',
    cancel: query.get('cancel') !== 'no',
  };
}

/** The answer to a JSON-RPC id that the server gave out in this session. */
export type AnswerListener = (answer: JsonValue) => void;

/** A question that was handed out in this session; one answer counts. */
interface AskedQuestion {
  readonly label: string;
  readonly question: number;
  readonly task: Task;
  isAnswered: boolean;
  readonly onAnswer: AnswerListener;
}

/** The call of a session, for what its lists suffer. */
interface SessionCall {
  readonly label: string;
  readonly lists: readonly Word[];
  listed: number;
}

export class Session {
  readonly sessionId = randomUUID();
  readonly style: Style;
  readonly wire: Wire;
  readonly questions = new Map<number, AskedQuestion>();
  private call: SessionCall | null = null;
  /** Set once the session is lost: how every further request in it is answered. */
  goneAs: '404' | '400' | null = null;
  private readonly streams = new Map<string, EventStream>();
  // 0 is a valid id, and the first one of real servers.
  private questionIds = 0;

  constructor(style: Style, wire: Wire = WIRE_2025) {
    this.style = style;
    this.wire = wire;
  }

  noteCall(label: string, lists: readonly Word[]): void {
    if (this.call?.label !== label) this.call = { label, lists, listed: 0 };
  }

  /** The word for a list after a call of this session; before one there is nothing that could be planned. */
  takeListWord(): { readonly label: string; readonly word: Word } {
    if (!this.call) return { label: '', word: OK };
    const { label, lists } = this.call;
    return { label, word: wordAt(lists, this.call.listed++) };
  }

  openStream(): EventStream {
    const stream = new EventStream(`s${this.streams.size}`, this.style.eventIds);
    this.streams.set(stream.streamId, stream);
    return stream;
  }

  streamOf(eventId: string): EventStream | undefined {
    return this.streams.get(eventId.split('-')[0] ?? '');
  }

  nextQuestionId(): number {
    return this.questionIds++;
  }

  end(): void {
    for (const stream of this.streams.values()) stream.forget();
  }
}

export class Sessions {
  private readonly open = new Map<string, Session>();

  create(style: Style): Session {
    const session = new Session(style);
    this.open.set(session.sessionId, session);
    return session;
  }

  find(sessionId: string): Session | null {
    return this.open.get(sessionId) ?? null;
  }

  lose(session: Session, goneAs: '404' | '400'): void {
    session.goneAs = goneAs;
    session.end();
  }

  /** The client ended it: unknown from now on. */
  end(session: Session): void {
    this.open.delete(session.sessionId);
    session.end();
  }
}
