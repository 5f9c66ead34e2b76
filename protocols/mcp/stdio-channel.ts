// Owns JSON-RPC with a server that is a program of this worker, and which run of it a session belongs to.
// Must never let a session go on in another process: that one knows nothing of its tasks.

import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../operation/json.js';
import { backOffMs } from '../../operation/policy.js';
import type { ProgramSettings, ToolServer } from '../adapter.js';
import { redactorOf, type Redact } from '../redact.js';
import type { ChannelSession, RequestOptions, RpcChannel } from './channel.js';
import { PACE } from './pace.js';
import { cleanOutcome, lost, type RpcOutcome } from './rpc-outcome.js';
import { ProgramFault, ServerProcess } from './stdio-process.js';

const REMEMBERED_ENDS = 64;

/** One per server and worker: started when it is first needed, and again, with back-off, after it ended. */
class ServerProgram {
  private readonly name: string;
  private readonly settings: ProgramSettings;
  private starting: Promise<ServerProcess> | null = null;
  private current: ServerProcess | null = null;
  private failures = 0;
  private lastFault = '';
  /** How earlier runs ended, by the session they were. */
  private readonly ends = new Map<string, string>();
  private notBeforeAt = 0;

  constructor(name: string, settings: ProgramSettings) {
    this.name = name;
    this.settings = settings;
  }

  /** @throws ProgramFault */
  async running(): Promise<ServerProcess> {
    if (this.current?.end === null) return this.current;
    return (this.starting ??= this.start().finally(() => {
      this.starting = null;
    }));
  }

  /** The process that this session lives in, or why there is none. */
  processOf(sessionId: string): ServerProcess | string {
    if (this.current?.sessionId === sessionId) return this.current.end ?? this.current;
    return (
      this.ends.get(sessionId) ??
      `the server process of ${this.name} that held this session was another worker's, or of an earlier one`
    );
  }

  async stop(): Promise<void> {
    await this.starting?.catch(() => undefined);
    const { current } = this;
    if (current?.end === null) await current.stop();
    // Ended by us: its next start, should there be one, need not wait.
    this.failures = 0;
    this.notBeforeAt = 0;
  }

  private async start(): Promise<ServerProcess> {
    const waitMs = this.notBeforeAt - Date.now();
    if (waitMs > 0)
      throw new ProgramFault(
        `${this.lastFault}; it is started again in ${Math.ceil(waitMs / 1_000)} s at the earliest`,
      );
    try {
      const started = await ServerProcess.start(this.name, this.settings);
      this.current = started;
      void started.ended.then(() => {
        const end = started.end ?? '';
        this.ends.set(started.sessionId, end);
        const [oldest] = this.ends.keys();
        if (this.ends.size > REMEMBERED_ENDS && oldest !== undefined) this.ends.delete(oldest);
        this.noteEnd(Date.now() - started.startedAt, end);
      });
      return started;
    } catch (error) {
      if (error instanceof ProgramFault) this.noteEnd(0, error.message);
      throw error;
    }
  }

  private noteEnd(livedMs: number, fault: string): void {
    this.failures = livedMs >= PACE.wellAfterMs ? 1 : this.failures + 1;
    this.lastFault = fault;
    this.notBeforeAt = Date.now() + backOffMs(PACE.restartMs, PACE.restartCeilingMs, this.failures);
  }
}

const programs = new WeakMap<ToolServer, ServerProgram>();

function programOf(server: ToolServer): ServerProgram {
  const known = programs.get(server);
  if (known) return known;
  // A broken invariant of ours: only servers with a program come here.
  if (!server.program) throw new Error(`${server.name} is no program`);
  const made = new ServerProgram(server.name, server.program);
  programs.set(server, made);
  return made;
}

/** Ends the program of a server, where it has one that runs. */
export async function endProgram(server: ToolServer): Promise<void> {
  await programs.get(server)?.stop();
}

const NO_REPLY_OF_ITS_OWN: RpcOutcome = { kind: 'status', status: 202, retryAfterMs: null };

export class StdioChannel implements RpcChannel {
  readonly redact: Redact;
  readonly hasPrimingEvents = false;
  readonly isShared = true;
  private readonly program: ServerProgram;
  private readonly sessionId: string | null;

  constructor(server: ToolServer, session: ChannelSession) {
    this.redact = redactorOf(server);
    this.program = programOf(server);
    this.sessionId = session.sessionId;
  }

  async request(method: string, params: JsonObject, options: RequestOptions): Promise<RpcOutcome> {
    const place = await this.place();
    if (!(place instanceof ServerProcess)) return cleanOutcome(place, this.redact);
    const outcome =
      method === 'initialize'
        ? await place.initialize(params, options)
        : await place.request(method, params, options);
    return cleanOutcome(this.inSession(outcome), this.redact);
  }

  async post(message: JsonObject, options: RequestOptions): Promise<RpcOutcome> {
    const place = await this.place();
    if (!(place instanceof ServerProcess)) return cleanOutcome(place, this.redact);
    const isGreeting = message['method'] === 'notifications/initialized';
    const written = isGreeting ? place.sayInitialized(message) : place.write(message);
    const late = new AbortController();
    const patience = sleep(options.timeoutMs, 'late', { signal: late.signal }).catch(() => 'stopped');
    const isLate = (await Promise.race([written, patience])) === 'late';
    late.abort();
    if (isLate) return lost(`after sending: not taken within ${options.timeoutMs} ms`);
    await options.afterSend?.();
    return NO_REPLY_OF_ITS_OWN;
  }

  /** A program's output cannot be replayed. */
  async firstEventId(): Promise<string | null> {
    return null;
  }

  async replay(): Promise<RpcOutcome> {
    return { kind: 'notSent', detail: 'the output of a program cannot be replayed' };
  }

  /** The process is everybody's: it ends with the worker. */
  async end(): Promise<void> {}

  private async place(): Promise<ServerProcess | RpcOutcome> {
    if (this.sessionId !== null) {
      const found = this.program.processOf(this.sessionId);
      return typeof found === 'string' ? { kind: 'notSent', detail: found, isSessionGone: true } : found;
    }
    try {
      return await this.program.running();
    } catch (error) {
      if (error instanceof ProgramFault) return { kind: 'notSent', detail: error.message };
      throw error;
    }
  }

  /** It ended between our look and the request. */
  private inSession(outcome: RpcOutcome): RpcOutcome {
    const isGone = outcome.kind === 'notSent' && this.sessionId !== null;
    return isGone ? { ...outcome, isSessionGone: true } : outcome;
  }
}
