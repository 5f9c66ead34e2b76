// Owns the look-up after an ambiguous submission: is the one task of this session ours (`session-list`)?
// Must never say `found` for a task that another operation could have made, nor ever prove absence.

import type { JsonObject } from '../../operation/json.js';
import { LIMITS } from '../../operation/limits.js';
import { WireFault, type LookUp, type ToolServer } from '../adapter.js';
import { COUNTS } from '../mcp/pace.js';
import { channelOf, openSession, readPages, type McpSession } from '../mcp/session.js';
import { taskOf, type SeenTask } from './decode.js';

/**
 * How much older than our claim a task may look. Server and worker are different clocks (NTP keeps them within
 * seconds) and some servers cut createdAt to whole seconds. It cannot let a foreign task in by much: the list was
 * empty when the session was opened, right before the claim.
 */
const CLOCK_SKEW_MS = 5_000;

/** @throws WireFault Transient */
export async function findTask(
  server: ToolServer,
  session: McpSession,
  locator: JsonObject,
  firstLegClaimedAt: number,
): Promise<LookUp> {
  if (!session.canList) return cannotTell('the server declares no tasks/list');
  if (session.sessionId === null) return cannotTell('there is no session whose tasks could be listed');
  if (session.listWasEmpty !== true) return cannotTell('the list was not seen empty before the submission');
  const tasks = await listTasks(server, session);
  if (typeof tasks === 'string') return cannotTell(tasks);
  const [task, ...others] = tasks;
  if (!task) return cannotTell('the session lists no task; a late request may still make one');
  if (others.length > 0) return cannotTell(`the session lists ${tasks.length} tasks`);
  if (task.createdAt === null) return cannotTell('the listed task does not say when it was created');
  if (task.createdAt < firstLegClaimedAt - CLOCK_SKEW_MS)
    return cannotTell('the listed task is older than the claim');
  if (await isSeenElsewhere(server, task.taskId)) {
    return cannotTell('the list is not scoped to the session, so the task may be of another operation');
  }
  return { kind: 'found', reference: { remoteId: task.taskId, locator } };
}

async function listTasks(server: ToolServer, session: McpSession): Promise<readonly SeenTask[] | string> {
  const channel = channelOf(server, session);
  let entries;
  try {
    entries = await readPages(channel, 'tasks/list', 'tasks', COUNTS.taskPages);
  } catch (error) {
    if (!WireFault.isInstance(error)) throw error;
    if (error.kind === 'SessionLost') return 'the session is gone';
    throw new WireFault('Transient', error.message, error);
  }
  const tasks = entries.map((entry) => taskOf(entry, channel.redact));
  return tasks.includes(null) ? 'the list holds something that is no task' : (tasks as readonly SeenTask[]);
}

/**
 * The control: the specification scopes the list by authorization, and an empty list in a new session is what a quiet
 * authorization shows too. Another new session must not see the task; then it can only be this operation's.
 */
async function isSeenElsewhere(server: ToolServer, taskId: string): Promise<boolean> {
  const opening = await openSession(server).catch((error: unknown) => {
    throw WireFault.isInstance(error) ? new WireFault('Transient', error.message, error) : error;
  });
  if (opening.kind === 'unsupported')
    throw new WireFault('Transient', `the look-up's control: ${opening.message}`);
  const { session, channel } = opening.opened;
  try {
    const seen = await listTasks(server, session);
    if (typeof seen === 'string') throw new WireFault('Transient', `the look-up's control: ${seen}`);
    return seen.some((task) => task.taskId === taskId);
  } finally {
    await channel.end(LIMITS.releaseTimeoutMs);
  }
}

function cannotTell(evidence: string): LookUp {
  return { kind: 'cannotTell', evidence };
}
