// Owns `dtc demo`: one long call on a real engine and a real server, with a killed worker, a question and one receipt.
// Must never claim what it did not see: the exit code comes from counts on the wire, SQL and process ids.

import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { type OperationView, ToolOperationClient, type ToolOperationHandle } from '../../client/index.js';
import { ENGINE_SEARCH_ATTRIBUTES } from '../../worker/engine-needs.js';
import { findTemporal, temporalCacheDir } from '../engine/temporal-binary.js';
import { startTemporalServer } from '../engine/temporal-server.js';
import { CommandError } from '../exit-codes.js';
import { watchInterrupts, whenAborted } from '../interrupts.js';
import { createProgress, type Progress } from '../progress.js';
import { resultText, viewLines } from '../render-view.js';
import { prepareStateDirectory, type StateDirectory } from '../state-directory.js';
import { startWorkerProcess, type WorkerChild } from '../worker-child.js';
import { countReceipts } from './count-receipts.js';
import { type EverythingServer, EverythingServerError, startEverythingServer } from './everything-server.js';
import { type PassThrough, startPassThrough } from './pass-through.js';
import { answerQuestion } from './self-answer.js';

export interface DemoOptions {
  /** Stay up with engine and UI until Ctrl-C. */
  readonly keep: boolean;
}

const TASK_QUEUE = 'durable-tool-calls';
const TOOL = { server: 'everything', tool: 'simulate-research-query' } as const;
const ARGUMENTS = { topic: 'python', ambiguous: true };

/** What the demo has to have seen to exit with 0. */
interface Seen {
  readonly killedPid: number;
  readonly killSignal: string | null;
  readonly secondPid: number;
  readonly chosen: string | null;
}

interface Stage {
  readonly directory: StateDirectory;
  readonly address: string;
  readonly uiUrl: string;
  readonly wire: PassThrough;
  readonly configFile: string;
  readonly client: ToolOperationClient;
  readonly say: (line: string) => void;
  readonly progress: Progress;
}

/** @returns 0 only where the kill, a new process, one request and one receipt were seen; 130 after Ctrl-C */
export async function runDemo(options: DemoOptions): Promise<number> {
  const undo: (() => Promise<unknown>)[] = [];
  const interrupts = watchInterrupts();
  try {
    const stage = await buildStage(undo);
    const interrupted = whenAborted(interrupts.signal).then(() => 130);
    return await Promise.race([play(stage, options, undo, interrupts.signal), interrupted]);
  } finally {
    interrupts.release();
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}

async function buildStage(undo: (() => Promise<unknown>)[]): Promise<Stage> {
  const progress = createProgress(process.stderr);
  const say = (line: string): void => progress.note(line);
  const everything = await startTool();
  undo.push(() => everything.stop());
  const found = await findTemporal({
    env: withoutCluster(process.env),
    cacheDir: temporalCacheDir(process.env),
    download: true,
    log: say,
  });
  if (found.kind !== 'binary') throw new Error('the demo starts a Temporal server of its own');
  // Each demo has a directory of its own: two at once must not share a database file.
  const directory = await prepareStateDirectory(
    join('.durable-tool-calls', `demo-${Date.now().toString(36)}`),
  );
  const engine = await startTemporalServer({
    binary: found.path,
    dbFile: directory.temporalDbFile,
    searchAttributes: ENGINE_SEARCH_ATTRIBUTES,
    logFile: join(directory.logDirectory, 'temporal.log'),
  });
  undo.push(engine.stop);
  say(`engine: ${engine.address}, database ${relative('.', directory.temporalDbFile)}`);
  const wire = await startPassThrough({ targetUrl: everything.url });
  undo.push(() => wire.stop());
  say(`tool server: @modelcontextprotocol/server-everything behind a counting pass-through at ${wire.url}`);
  const configFile = join(directory.path, 'tool-servers.json');
  const config = { mcpServers: { [TOOL.server]: { type: 'http', url: wire.url } } };
  await writeFile(configFile, `${JSON.stringify(config, null, 2)}\n`);
  const connection = await Connection.connect({ address: engine.address });
  undo.push(() => connection.close());
  const client = new ToolOperationClient({
    client: new Client({ connection }),
    taskQueue: TASK_QUEUE,
    log: say,
  });
  return { directory, address: engine.address, uiUrl: engine.uiUrl, wire, configFile, client, say, progress };
}

/** First of all: without it there is nothing to show. */
async function startTool(): Promise<EverythingServer> {
  try {
    return await startEverythingServer();
  } catch (error) {
    if (!EverythingServerError.isInstance(error)) throw error;
    throw new CommandError(`the demo runs in a checkout of the repository: ${error.message}`);
  }
}

/** The demo shows itself on its own server, whatever cluster this shell is set to. */
function withoutCluster(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, TEMPORAL_ADDRESS: '', TEMPORAL_PROFILE: '', TEMPORAL_CONFIG_FILE: '' };
}

async function play(
  stage: Stage,
  options: DemoOptions,
  undo: (() => Promise<unknown>)[],
  signal: AbortSignal,
): Promise<number> {
  const { say, client } = stage;
  const first = await startWorker(stage, undo);
  say(`worker: process ${first.pid}`);
  const callNodeId = `demo-${Date.now().toString(36)}`;
  const handle = await client.start({ callNodeId, ...TOOL, arguments: ARGUMENTS });
  say(`call: ${TOOL.server}/${TOOL.tool} ${JSON.stringify(ARGUMENTS)} as "${callNodeId}"`);

  const isAsked = (view: OperationView): boolean => view.pendingInput.length > 0 || view.receipt !== null;
  const asked = await Promise.race([watchUntil(handle, stage, isAsked), lost(first)]);
  const round = asked.pendingInput[0];
  if (!round) return fail(say, 'the operation ended without its question');
  say(`question: "${round.question.message}" — stored as round ${round.roundId}`);
  const killSignal = await first.kill();
  say(
    `kill -9: worker ${first.pid} is gone (${killSignal}); the question is in the store, nobody has answered`,
  );
  const starting = startWorker(stage, undo);
  const answer = await answerQuestion(round.question, { signal, say, progress: stage.progress });
  const second = await starting;
  if (!answer) return 130;
  const { content, action } = answer;
  say(`new worker: process ${second.pid}`);
  const verdict = await handle.answer({ roundId: round.roundId, action, content });
  say(`answer: ${verdict.kind}, delivered in the old session by process ${second.pid}`);

  const ended = await Promise.race([
    watchUntil(handle, stage, (view) => view.receipt !== null),
    lost(second),
  ]);
  const chosen = action === 'accept' ? (Object.values(content as Record<string, string>)[0] ?? null) : null;
  const seen: Seen = { killedPid: first.pid, killSignal, secondPid: second.pid, chosen };
  const exitCode = report(stage, ended, seen);
  await tellWhere(stage, ended, options, signal);
  return exitCode;
}

async function startWorker(stage: Stage, undo: (() => Promise<unknown>)[]): Promise<WorkerChild> {
  const worker = await startWorkerProcess({
    address: stage.address,
    namespace: 'default',
    taskQueue: TASK_QUEUE,
    storeFile: stage.directory.storeFile,
    configFile: stage.configFile,
  });
  undo.push(() => worker.stop());
  return worker;
}

/** Rejects where a worker died that nobody killed: the demo would wait for ever. */
async function lost(worker: WorkerChild): Promise<never> {
  await worker.ended;
  throw new Error(`worker ${worker.pid} ended by itself`);
}

async function watchUntil(
  handle: ToolOperationHandle,
  stage: Stage,
  fits: (view: OperationView) => boolean,
): Promise<OperationView> {
  for await (const view of handle.watch({ everyMs: 500 })) {
    stage.progress.show(view);
    if (fits(view)) return view;
  }
  return handle.status();
}

/** Says what was seen, and judges by that alone. */
function report(stage: Stage, ended: OperationView, seen: Seen): number {
  const { say, wire, directory } = stage;
  stage.progress.end();
  const requests = wire.counts().toolsCall;
  const receipts = countReceipts(directory.storeFile, ended.callNodeId);
  for (const line of viewLines(ended)) say(line);
  if (ended.result?.value !== undefined) process.stdout.write(`\n${resultText(ended.result.value)}\n\n`);
  say(`tools/call requests: ${requests}, receipts: ${receipts}`);
  if (seen.killSignal !== 'SIGKILL') return fail(say, `worker ${seen.killedPid} was not killed`);
  if (seen.secondPid === seen.killedPid) return fail(say, 'the answer came from the same process');
  if (ended.outcome !== 'completed') return fail(say, `the outcome is ${ended.outcome}`);
  const text = JSON.stringify(ended.result?.value ?? null);
  if (seen.chosen !== null && !text.includes(seen.chosen)) {
    return fail(say, `the result does not contain "${seen.chosen}"`);
  }
  return requests === 1 && receipts === 1 ? 0 : fail(say, 'not exactly one request and one receipt');
}

function fail(say: (line: string) => void, why: string): number {
  say(`the demo failed: ${why}`);
  return 1;
}

async function tellWhere(
  stage: Stage,
  ended: OperationView,
  options: DemoOptions,
  signal: AbortSignal,
): Promise<void> {
  const { say, directory, uiUrl } = stage;
  const path = `/namespaces/default/workflows/${encodeURIComponent(ended.workflowId)}/${ended.runId}/history`;
  say(`workflow: ${uiUrl}${path}`);
  const place = relative('.', directory.path);
  if (options.keep) {
    say('it stays up until Ctrl-C');
    await whenAborted(signal);
    return;
  }
  say(`open it again: npx dtc up --state-dir ${place} --config ${place}/tool-servers.json`);
  say(`it prints the address of the UI; the path there is ${path}`);
}
