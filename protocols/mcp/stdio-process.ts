// Owns one run of a server's program: its streams, the requests that wait for it, the questions nobody has taken yet.
// Must never show what it writes to its standard error, nor let it outlive this worker.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import type { ProgramSettings } from '../adapter.js';
import {
  answerToStray,
  type ListenOptions,
  type MessageVerdict,
  type RequestOptions,
  type ServerMessage,
} from './channel.js';
import { readMessage, type RpcMessage } from './json-rpc.js';
import { COUNTS, PACE } from './pace.js';
import { relatedTaskOf } from './related-task.js';
import { lost, outcomeOf, type RpcOutcome } from './rpc-outcome.js';
import { type Line, LineCutter } from './stdio-lines.js';

const LONGEST_LINE_BYTES = LIMITS.storedResultCeilingBytes + LIMITS.wireSlackBytes;
const IS_WINDOWS = process.platform === 'win32';

/** Ended with us, should nobody have ended them before. */
const live = new Set<ServerProcess>();
process.once('exit', () => {
  for (const each of live) each.signal('SIGTERM');
});

interface Waiter {
  readonly options: ListenOptions;
  readonly settle: (outcome: RpcOutcome) => void;
  readonly fail: (error: unknown) => void;
  /** After a first question: ends the wait when nothing more comes. */
  quiet: NodeJS.Timeout | null;
}

/** Why the program could not be started; nothing was sent. */
export class ProgramFault extends Error {
  override readonly name = 'ProgramFault';
}

export class ServerProcess {
  /** Names this run in stored sessions: another one knows nothing of its tasks. */
  readonly sessionId = `process-${randomUUID()}`;
  readonly startedAt = Date.now();
  /** How it ended, as a sentence; null while it runs. */
  end: string | null = null;
  readonly ended: Promise<void>;
  private readonly name: string;
  private readonly child: ChildProcess;
  private readonly input: Writable;
  private readonly waiters = new Map<string, Waiter>();
  private kept: Extract<ServerMessage, { kind: 'request' }>[] = [];
  private greeting: Promise<RpcOutcome> | null = null;
  private isGreeted = false;

  /** @throws ProgramFault */
  static async start(name: string, program: ProgramSettings): Promise<ServerProcess> {
    const child = spawn(program.command, program.args, {
      env: { ...getDefaultEnvironment(), ...program.env },
      ...(program.cwd === undefined ? {} : { cwd: program.cwd }),
      stdio: ['pipe', 'pipe', 'pipe'],
      // A group of its own: a Ctrl-C in the terminal is for the worker, which lets submissions end first.
      detached: !IS_WINDOWS,
      windowsHide: true,
    });
    try {
      await once(child, 'spawn');
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code';
      throw new ProgramFault(
        `the program of ${name} could not be started (${code}); check "command" and "cwd"`,
      );
    }
    return new ServerProcess(name, child);
  }

  private constructor(name: string, child: ChildProcess) {
    this.name = name;
    this.child = child;
    const { stdin, stdout, stderr } = child;
    if (!stdin || !stdout || !stderr) throw new Error('a program without streams');
    this.input = stdin;
    stdin.on('error', () => undefined);
    // Drained, so that it never blocks, and shown to nobody: it may hold what the program was given.
    stderr.on('error', () => undefined).resume();
    const read = this.readOutput(stdout).catch(() => undefined);
    this.ended = new Promise((resolve) => {
      child.once('exit', (exitCode, signal) => {
        live.delete(this);
        this.end = `the server process of ${name} ended (${signal === null ? `exit code ${exitCode}` : `signal ${signal}`})`;
        // What it wrote before its end still counts. A grandchild may hold the stream open for ever.
        void Promise.race([read, sleep(PACE.lastWordsMs)]).then(() => {
          this.loseAll(this.end ?? '');
          resolve();
        });
      });
    });
    live.add(this);
    // A caller that forgets it can still end; then the hook ends the program.
    child.unref();
    for (const stream of [stdin, stdout, stderr]) (stream as Socket).unref();
  }

  /** `initialize` is said once per process, whoever asks first. */
  async initialize(params: JsonObject, options: RequestOptions): Promise<RpcOutcome> {
    this.greeting ??= this.request('initialize', params, options);
    const outcome = await this.greeting;
    if (outcome.kind !== 'result') this.greeting = null;
    return outcome;
  }

  async sayInitialized(message: JsonObject): Promise<void> {
    if (this.isGreeted) return;
    this.isGreeted = true;
    await this.write(message);
  }

  async request(method: string, params: JsonObject, options: RequestOptions): Promise<RpcOutcome> {
    const id = randomUUID();
    // The process ended before: no byte can have been read.
    if (this.end !== null) return { kind: 'notSent', detail: this.end };
    const timers: NodeJS.Timeout[] = [];
    let waiter: Waiter | undefined;
    const outcome = new Promise<RpcOutcome>((settle, fail) => {
      const late = lost(`after sending: no complete reply within ${options.timeoutMs} ms`);
      timers.push(setTimeout(() => settle(late), Math.min(options.timeoutMs, 2 ** 31 - 1)));
      options.signal?.addEventListener('abort', () => settle(lost('after sending: aborted')), { once: true });
      waiter = { options, settle, fail, quiet: null };
      this.waiters.set(id, waiter);
    });
    outcome.catch(() => undefined);
    try {
      // One that does not read takes no bytes: the time limit counts for that too.
      await Promise.race([this.write({ id, method, params }), outcome]);
      await options.afterSend?.();
      if (waiter) await this.offerKept(waiter);
      return await outcome;
    } finally {
      for (const timer of timers) clearTimeout(timer);
      if (waiter?.quiet) clearTimeout(waiter.quiet);
      this.waiters.delete(id);
    }
  }

  /** Resolves when the system has it. What goes wrong then, the process's end says. */
  write(message: JsonObject): Promise<void> {
    const line = `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
    return new Promise((resolve) => this.input.write(line, () => resolve()));
  }

  /** Input closed, then SIGTERM, then SIGKILL. */
  async stop(): Promise<void> {
    this.child.ref();
    this.input.end();
    if (await this.isGoneWithin(PACE.endProgramMs)) return;
    this.signal('SIGTERM');
    if (await this.isGoneWithin(PACE.endProgramMs)) return;
    this.signal('SIGKILL');
    await this.ended;
  }

  private async isGoneWithin(ms: number): Promise<boolean> {
    await Promise.race([this.ended, sleep(ms)]);
    return this.end !== null;
  }

  /** With all it started: `npx` and shells have the server as a child. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this.child;
    try {
      if (IS_WINDOWS || pid === undefined) this.child.kill(signal);
      else process.kill(-pid, signal);
    } catch {
      // Gone already.
    }
  }

  private async readOutput(stdout: NodeJS.ReadableStream): Promise<void> {
    const cutter = new LineCutter(LONGEST_LINE_BYTES);
    for await (const chunk of stdout) for (const line of cutter.cut(chunk as Buffer)) await this.take(line);
  }

  private async take(line: Line): Promise<void> {
    if (line.kind === 'tooLong') return this.loseTooLong(line);
    const message = readMessage(line.bytes);
    // Many programs print a word of their own here; it is nobody's message.
    if (message.kind === 'garbled') return;
    if (message.kind === 'request' || message.kind === 'notification') return this.dispatch(message);
    this.settleReply(message, line.bytes.byteLength);
  }

  private settleReply(
    message: Exclude<RpcMessage, ServerMessage | { kind: 'garbled' }>,
    bytes: number,
  ): void {
    const waiter = typeof message.id === 'string' ? this.waiters.get(message.id) : undefined;
    if (!waiter) return;
    if (bytes > (waiter.options.maxReplyBytes ?? LIMITS.wireReplyBytes))
      return waiter.settle(tooLarge(bytes));
    const header = (name: string): string | null => (name === 'mcp-session-id' ? this.sessionId : null);
    waiter.settle(outcomeOf(message, message.id, { status: 200, retryAfterMs: null, header }));
  }

  private loseTooLong({ start, end }: Extract<Line, { kind: 'tooLong' }>): void {
    for (const [id, waiter] of this.waiters)
      if (start.includes(id) || end.includes(id)) waiter.settle(tooLarge(LONGEST_LINE_BYTES));
  }

  private loseAll(detail: string): void {
    for (const waiter of this.waiters.values()) waiter.settle(lost(detail));
  }

  private async dispatch(message: ServerMessage): Promise<void> {
    const verdict = await this.offer(message, [...this.waiters.values()]);
    if (message.kind !== 'request' || verdict === 'taken' || verdict === 'stopSoon') return;
    // It is said once, and its task's next reader may come later: a refusal would answer for a person.
    const isOfTask = message.method === 'elicitation/create' && relatedTaskOf(message.params) !== undefined;
    if (isOfTask && this.kept.length < COUNTS.keptQuestions) this.kept.push(message);
    else this.decline(message);
  }

  private async offerKept(waiter: Waiter): Promise<void> {
    for (const message of this.kept.slice()) {
      const verdict = await this.offer(message, [waiter]);
      if (verdict === 'taken' || verdict === 'stopSoon')
        this.kept = this.kept.filter((other) => other !== message);
    }
  }

  /** The first who takes it has it. */
  private async offer(message: ServerMessage, waiters: readonly Waiter[]): Promise<MessageVerdict> {
    for (const waiter of waiters) {
      try {
        const verdict = await waiter.options.onMessage?.(message, null);
        if (verdict === 'stopSoon') {
          if (waiter.quiet) clearTimeout(waiter.quiet);
          waiter.quiet = setTimeout(() => waiter.settle({ kind: 'stopped' }), PACE.moreQuestionsMs);
        }
        if (verdict === 'taken' || verdict === 'stopSoon') return verdict;
      } catch (error) {
        // Its own hook failed (the store, say): the message stays for others, and for its next attempt.
        waiter.fail(error);
      }
    }
    return 'ignored';
  }

  /** Not awaited: a program that does not read must not keep us from reading. */
  private decline(message: Extract<ServerMessage, { kind: 'request' }>): void {
    void this.write(answerToStray(message));
  }
}

function tooLarge(bytes: number): RpcOutcome {
  const detail = `the reply has ${bytes} bytes or more`;
  return { kind: 'lost', detail, isContractBreach: true, isTooLarge: true };
}
