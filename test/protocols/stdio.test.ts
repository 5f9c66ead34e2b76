// Owns the proof of servers that are programs: one process for all, its loss named, its question kept, its words drained.
// Must never leave a program behind.

import { createRequire } from 'node:module';
import { afterEach, describe, expect, it } from 'vitest';
import type { Negotiated, ProgramSettings, ToolServer, WireQuestion } from '../../protocols/adapter.js';
import { endProgram } from '../../protocols/mcp/stdio-channel.js';
import { createProtocolRegistry } from '../../protocols/registry.js';
import { NO_HOOKS, toolCall, toolServer } from './scripted-server.js';

const PROGRAM = new URL('../../dist/test/protocols/stdio-program.js', import.meta.url).pathname;
const EVERYTHING = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/server-everything/dist/index.js',
);
const SECRET = 'Pr0gram-secret/9';
const registry = createProtocolRegistry();
const plain = registry.adapter('synchronous');
const tasked = registry.adapter('mcp/2025-11-25');

const started: ToolServer[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => endProgram(server)));
});

function programServer(program: Partial<ProgramSettings> = {}): ToolServer {
  const settings = { command: process.execPath, args: [PROGRAM], env: { SECRET }, ...program };
  const server = toolServer('', { name: 'files', program: settings, secrets: [SECRET] });
  started.push(server);
  return server;
}

async function negotiate(server: ToolServer, tool: string): Promise<Negotiated> {
  const negotiation = await registry.negotiate(server, tool);
  if (negotiation.kind !== 'negotiated') throw new Error(negotiation.message);
  return negotiation.negotiated;
}

async function call(
  server: ToolServer,
  tool: string,
  args = {},
  session?: Negotiated['session'],
): Promise<string> {
  const place = session ?? (await negotiate(server, tool)).session;
  const submission = await plain.submit(toolCall(server, { tool, arguments: args }), place, NO_HOOKS);
  if (submission.kind !== 'answered') throw new Error(submission.kind);
  return (JSON.parse(Buffer.from(submission.result.bytes).toString()) as { content: [{ text: string }] })
    .content[0].text;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const pidOf = async (server: ToolServer): Promise<number> =>
  Number((await call(server, 'pid')).split(' ')[1]);

describe('a server that is a program', () => {
  it('is one process for all calls, greeted once, and ends with its worker', async () => {
    const server = programServer();
    const pids = await Promise.all(Array.from({ length: 8 }, () => pidOf(server)));
    expect(new Set(pids).size).toBe(1);
    const told = JSON.parse(await call(server, 'told')) as { method: string }[];
    expect(told.map(({ method }) => method)).toEqual(['initialize', 'notifications/initialized']);
    expect(isRunning(pids[0] ?? 0)).toBe(true);
    await endProgram(server);
    expect(isRunning(pids[0] ?? 0)).toBe(false);
  });

  it('that ends in mid-call leaves the submission ambiguous and says how it ended', async () => {
    const server = programServer();
    await expect(call(server, 'end')).rejects.toMatchObject({
      kind: 'Ambiguous',
      message: 'tools/call: the server process of files ended (exit code 3)',
    });
  });

  it('that ended has lost its sessions: reads say so, a submission was not sent, and the next one has a new process', async () => {
    const server = programServer();
    const { session } = await negotiate(server, 'pid');
    const pid = await pidOf(server);
    process.kill(pid, 'SIGKILL');
    const reference = { remoteId: 'task-1', locator: session };
    const ended = 'the server process of files ended (signal SIGKILL)';
    // The system may tell of the end a moment after the kill: until then a read waits for its reply, and loses it.
    await expect(tasked.observe(server, reference)).rejects.toMatchObject({
      message: `tasks/get: ${ended}`,
    });
    await expect(tasked.observe(server, reference)).rejects.toMatchObject({
      kind: 'SessionLost',
      message: `tasks/get: ${ended}`,
    });
    await expect(call(server, 'pid', {}, session)).rejects.toMatchObject({
      kind: 'NotSent',
      message: `tools/call: ${ended}`,
    });
    await expect(negotiate(server, 'pid')).rejects.toMatchObject({
      kind: 'NotSent',
      message: `initialize: ${ended}; it is started again in 1 s at the earliest`,
    });
    await expect.poll(() => pidOf(server).catch(() => pid), { timeout: 10_000 }).not.toBe(pid);
    // Still the old session's end, not the new process.
    await expect(tasked.observe(server, reference)).rejects.toMatchObject({ kind: 'SessionLost' });
  });

  it('that cannot be started is named with what to check', async () => {
    await expect(negotiate(programServer({ command: 'no-such-program-here' }), 'pid')).rejects.toMatchObject({
      kind: 'NotSent',
      message: 'initialize: the program of files could not be started (ENOENT); check "command" and "cwd"',
    });
  });

  it('that ends at every start is started less and less often', async () => {
    const server = programServer({ env: { DIE_AT_ONCE: '1' } });
    const said = await negotiate(server, 'pid').catch((error: Error) => error.message);
    expect(said).toBe('initialize: the server process of files ended (exit code 7)');
    const next = () => negotiate(server, 'pid').catch((error: Error) => error.message);
    await expect
      .poll(next, { timeout: 20_000, interval: 50 })
      .toMatch(/exit code 7\); it is started again in [24] s/);
  });

  it('may write to its standard error without end, and none of it is shown', async () => {
    const server = programServer();
    await expect(call(server, 'noise')).resolves.toContain('noise');
    const said = await call(server, 'fail').catch((error: Error) => error.message);
    expect(said).toBe('tools/call: JSON-RPC -32000, HTTP 200: no, [redacted]');
  });

  it('that reads no more leaves a call ambiguous when its time is over', async () => {
    const server = programServer();
    const { session } = await negotiate(server, 'deaf');
    await call(server, 'deaf', {}, session);
    const large = { tool: 'pid', arguments: { text: 'x'.repeat(1_000_000) }, synchronousBoundMs: 300 };
    await expect(plain.submit(toolCall(server, large), session, NO_HOOKS)).rejects.toMatchObject({
      kind: 'Ambiguous',
      message: 'tools/call: after sending: no complete reply within 300 ms',
    });
  });

  it('may give a result as large as is taken, and no larger one', async () => {
    const server = programServer();
    await expect(call(server, 'long', { bytes: 3_000_000 })).resolves.toHaveLength(3_000_000);
    const { session } = await negotiate(server, 'long');
    const small = toolCall(server, { tool: 'long', arguments: { bytes: 3_000_000 }, maxResultBytes: 1_024 });
    await expect(plain.submit(small, session, NO_HOOKS)).rejects.toMatchObject({
      kind: 'Ambiguous',
      isTooLarge: true,
    });
    await expect(call(server, 'pid')).resolves.toContain('pid');
  });

  it('keeps a question of a task until somebody reads the questions of that task', async () => {
    const server = programServer();
    const { session } = await negotiate(server, 'asks');
    await call(server, 'asks', { taskId: 'task-7' }, session);
    const pickUp = async (remoteId: string): Promise<readonly WireQuestion[]> => {
      const picked: WireQuestion[] = [];
      const known = { anchor: null, wireKeys: ['known'] };
      await tasked.pickUpQuestions(server, { remoteId, locator: session }, known, async (question) => {
        picked.push(question);
      });
      return picked;
    };
    expect(await pickUp('task-8')).toEqual([]);
    expect(await pickUp('task-7')).toMatchObject([
      { wire: { jsonRpcId: 1, sessionId: session['sessionId'] }, question: { message: 'about task-7' } },
    ]);
    expect(await pickUp('task-7')).toEqual([]);
    expect(JSON.parse(await call(server, 'told'))).not.toContainEqual(expect.objectContaining({ id: 1 }));
  });

  it('keeps a question of a task that comes while it is asked in the newer revision', async () => {
    const server = programServer();
    const { session } = await negotiate(server, 'asks');
    const modern = registry.adapter('mcp/2026-07-28');
    await modern.submit(toolCall(server, { tool: 'asks', arguments: { taskId: 'task-9' } }), {}, NO_HOOKS);
    const picked: WireQuestion[] = [];
    const reference = { remoteId: 'task-9', locator: session };
    await tasked.pickUpQuestions(
      server,
      reference,
      { anchor: null, wireKeys: ['known'] },
      async (question) => {
        picked.push(question);
      },
    );
    expect(picked).toMatchObject([{ question: { message: 'about task-9' } }]);
  });

  it('is refused what nobody here can answer, and its ping is answered', async () => {
    const server = programServer();
    await call(server, 'asks-nobody');
    const told = JSON.parse(await call(server, 'told')) as { id?: number }[];
    expect(told.filter(({ id }) => id !== undefined)).toMatchObject([
      { id: 2, error: { code: -32601 } },
      { id: 3, error: { code: -32601 } },
      { id: 4, result: {} },
    ]);
  });

  it('offers no list of tasks: it would show those of other operations', async () => {
    expect((await negotiate(programServer(), 'pid')).canList).toBe(false);
  });
});

describe('server-everything as a program', () => {
  it('runs two tasks at once in one process, and each gets the answer to its own question', async () => {
    const server = programServer({ args: [EVERYTHING, 'stdio'], env: {} });
    const { session, adapter } = await negotiate(server, 'simulate-research-query');
    expect(adapter).toBe('mcp/2025-11-25');
    const research = async (interpretation: string): Promise<string> => {
      const args = { topic: 'python', ambiguous: true };
      const submitted = await tasked.submit(
        toolCall(server, { tool: 'simulate-research-query', arguments: args }),
        session,
        NO_HOOKS,
      );
      if (submitted.kind !== 'referenced') throw new Error(submitted.kind);
      const { reference } = submitted;
      const meaning = async () => (await tasked.observe(server, reference)).meaning;
      await expect.poll(meaning, { timeout: 20_000, interval: 200 }).toBe('inputRequired');
      const picked: WireQuestion[] = [];
      await tasked.pickUpQuestions(server, reference, { anchor: null, wireKeys: [] }, async (question) => {
        picked.push(question);
      });
      expect(picked).toHaveLength(1);
      const reply = { action: 'accept', content: { interpretation } } as const;
      const hooks = { beforeSend: async () => undefined, afterSend: async () => undefined };
      await tasked.answer(server, reference, picked[0]?.wire ?? {}, reply, hooks);
      await expect.poll(meaning, { timeout: 20_000, interval: 200 }).toBe('completed');
      const fetched = await tasked.fetchResult(server, reference);
      return fetched.kind === 'result' ? Buffer.from(fetched.result.bytes).toString() : fetched.kind;
    };
    const [snake, comedy] = await Promise.all([research('snake'), research('comedy')]);
    expect(snake).toContain('python (snake)');
    expect(comedy).toContain('python (comedy)');
  });
});
