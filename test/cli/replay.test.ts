// Owns the proof that people can replay recorded runs, in their own tests and from the command line: a real one replays,
// a tampered one does not and says where, and what is no history is told apart from both.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type RecordedRun, ReplayError, replayHistories, type ReplayOptions } from '../../worker/index.js';
import { type Lab, openLab } from '../integration/lab.js';
import { BUNDLE, quietRuntime } from '../replay/replay.js';
import { type Ended, startCommand } from './command-line.js';

interface Event {
  eventId: string;
  activityTaskScheduledEventAttributes?: { activityType: { name: string } };
  workflowExecutionStartedEventAttributes?: { workflowType: { name: string } };
}
interface History {
  events: Event[];
}

/** The default, which a run from source has to name; `dtc replay` below uses the default itself. */
const SHIPPED: ReplayOptions = { workflowBundle: { codePath: BUNDLE } };

const NODE = `replayed-${process.pid}`;
let lab: Lab;
let root: string;
/** As `temporal workflow show --output json` writes it. */
let exported: string;

beforeAll(async () => {
  quietRuntime();
  root = mkdtempSync(join(tmpdir(), 'dtc-replay-'));
  lab = await openLab();
  await lab.startWorker();
  const call = { callNodeId: NODE, server: 'everything', tool: 'echo', arguments: { message: 'hi' } };
  await lab.client.execute(call);
  exported = historyToJSON(await lab.temporal.workflow.getHandle(`tool-operation/${NODE}`).fetchHistory());
});
afterAll(async () => {
  await lab?.close();
  rmSync(root, { recursive: true, force: true });
});

function tampered(change: (history: History) => void): string {
  const history = JSON.parse(exported) as History;
  change(history);
  return JSON.stringify(history);
}

function lastStep(history: History): Event {
  const step = history.events.findLast((event) => event.activityTaskScheduledEventAttributes);
  if (!step) throw new Error('a history without a step');
  return step;
}

const otherActivity = (): string =>
  tampered((history) => {
    const { activityTaskScheduledEventAttributes: step } = lastStep(history);
    if (step) step.activityType.name = 'lookUp';
  });
const lacking = (eventId: number): string =>
  tampered((history) => {
    history.events.splice(eventId - 1, 1);
  });

function recorded(history: RecordedRun['history'], workflowId = 'run'): readonly RecordedRun[] {
  return [{ workflowId, history }];
}

async function failureOf(history: RecordedRun['history']): Promise<ReplayError> {
  const [result] = await replayHistories(recorded(history), SHIPPED);
  if (result?.kind !== 'failed') throw new Error('it replays');
  return result.error;
}

describe('replayHistories', () => {
  test('takes the text of an export, its JSON, and the message of the client', async () => {
    const message = await lab.temporal.workflow.getHandle(`tool-operation/${NODE}`).fetchHistory();
    const events = (JSON.parse(exported) as History).events.length;
    const runs = [exported, JSON.parse(exported) as object, message].flatMap((history) => recorded(history));
    expect(await replayHistories(runs, SHIPPED)).toEqual(
      runs.map(() => ({ kind: 'replayed', workflowId: 'run', events })),
    );
  });

  test('takes an asynchronous source, goes on after a failure, and keeps the order', async () => {
    async function* source(): AsyncGenerator<RecordedRun> {
      yield { workflowId: 'bad', history: otherActivity() };
      yield { workflowId: 'good', history: exported };
    }
    const results = await replayHistories(source(), SHIPPED);
    expect(results.map(({ kind, workflowId }) => [workflowId, kind])).toEqual([
      ['bad', 'failed'],
      ['good', 'replayed'],
    ]);
  });

  test('a step of another name is another course, at its own event', async () => {
    const error = await failureOf(otherActivity());
    const { eventId } = lastStep(JSON.parse(exported) as History);
    expect(error.code).toBe('DifferentCourse');
    expect(error.event).toEqual({ eventId: Number(eventId), eventType: 'ActivityTaskScheduled' });
    expect(error.message).toMatch(/^run does not replay at event \d+ \(ActivityTaskScheduled\): .*'lookUp'/);
  });

  test('no event can be taken out', async () => {
    const last = (JSON.parse(exported) as History).events.length;
    // Without its last event a history is the beginning of one, and that replays.
    for (let eventId = 1; eventId < last; eventId += 1) {
      const error = await failureOf(lacking(eventId));
      expect([error.code, error.message]).toEqual([
        'IncompleteHistory',
        expect.stringContaining(`event ${eventId} is missing`),
      ]);
    }
  });

  test('an unknown workflow type is the failure of the workflow', async () => {
    const unknown = tampered((history) => {
      const started = history.events[0]?.workflowExecutionStartedEventAttributes;
      if (started) started.workflowType.name = 'nobodys';
    });
    expect(await failureOf(unknown)).toMatchObject({
      code: 'WorkflowFailed',
      message: expect.stringContaining("'nobodys'"),
    });
  });

  test.each([
    ['', 'it is empty'],
    [' \n', 'it is empty'],
    ['{"events": [', 'it is not valid JSON'],
    ['{"mcpServers":{}}', 'it has no list "events"'],
    ['null', 'it has no list "events"'],
    ['{"events":[]}', 'its list "events" is empty'],
    ['{"events":[{"a":1}]}', 'an entry of "events" has no "eventId" and "eventType"'],
    ['{"events":[{"eventId":"1","eventType":"X"}]}', 'do not have the shape'],
  ])('%j is no history', async (text, why) => {
    expect(await failureOf(text)).toMatchObject({
      code: 'NotAHistory',
      message: expect.stringMatching(`^run is no workflow history: .*${why}`),
    });
  });

  test('throws the first failure where it is asked to', async () => {
    const thrown = replayHistories(recorded(lacking(5)), { ...SHIPPED, throwOnFailure: true });
    await expect(thrown).rejects.toSatisfy((error) => ReplayError.isInstance(error));
  });

  test('replays against workflows of a caller, which here do not know the type', async () => {
    const workflowsPath = fileURLToPath(
      new URL('../../dist/examples/orchestrator/workflow.js', import.meta.url),
    );
    const [result] = await replayHistories(recorded(exported), { workflowsPath });
    expect(result).toMatchObject({ kind: 'failed', error: { code: 'WorkflowFailed' } });
  });
});

describe('dtc replay', () => {
  const run = (...args: string[]): Promise<Ended> =>
    startCommand({ cwd: root, env: { TEMPORAL_ADDRESS: inject('temporalAddress') } }, 'replay', ...args)
      .ended;
  const file = (name: string, text: string): string => {
    writeFileSync(join(root, name), text);
    return name;
  };

  test('is content with files that replay, and with a run of the engine', async () => {
    const files = await run(file('good.json', exported), file('same.json', exported));
    expect(files.stdout).toMatch(/^good\.json replays \(\d+ events\)\nsame\.json replays /);
    expect(files.exitCode, files.stderr).toBe(0);
    const byName = await run('--call-node', NODE);
    expect(byName.stdout).toContain(`tool-operation/${NODE} replays`);
    expect(byName.exitCode, byName.stderr).toBe(0);
    const byId = await run('--workflow', 'no-such-run');
    expect(byId.stderr).toContain('the engine knows no run of "no-such-run"');
    expect(byId.exitCode).toBe(2);
  });

  test('names the file, the event and the difference of one that does not, and goes on', async () => {
    const { exitCode, stdout, stderr } = await run(
      file('odd.json', otherActivity()),
      file('torn.json', exported.slice(0, 900)),
      file('good.json', exported),
    );
    const lines = stderr.trimEnd().split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^odd\.json does not replay at event \d+ \(ActivityTaskScheduled\): /);
    expect(lines[1]).toMatch(/^torn\.json is no workflow history: it is not valid JSON/);
    expect(stdout).toContain('good.json replays');
    expect(exitCode).toBe(1);
  });

  test.each([
    ['an empty file', ''],
    ['other JSON', '{"name":"x"}'],
    ['a torn file', '{"events":[{"eventId":"1",'],
  ])('%s is unreadable input', async (_what, text) => {
    const { exitCode, stdout, stderr } = await run(file('input.json', text));
    expect(stderr).toMatch(/^input\.json is no workflow history: [^\n]+\n$/);
    expect(stdout).toBe('');
    expect(exitCode).toBe(2);
  });

  test('one of three ways to name a run is needed', async () => {
    const none = await run();
    expect(none.stderr).toContain('give history files, or --workflow ID, or --call-node ID');
    expect(none.exitCode).toBe(2);
    expect((await run('absent.json')).stderr).toContain('absent.json: cannot be read (ENOENT)');
  });
});
