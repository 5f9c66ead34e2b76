// Owns what has to be said after a backup took the place of the store: to every open run, and to whoever put it there.
// Must never repair anything: runs compare themselves with their rows, people decide about the rest.

import { type Client, type WorkflowExecutionInfo, WorkflowNotFoundError } from '@temporalio/client';
import { callNodeIdOf, MESSAGES, type Outcome, WORKFLOW_TYPE } from '../operation/names.js';
import type { Receipt } from '../operation/receipt.js';
import type { ToolOperation } from '../operation/record.js';
import type { OperationEnd } from '../workflows/contract.js';
import { queryRecord } from './look-at-run.js';
import { checkDurationMs, pause } from './pause.js';

export interface RestoredOptions {
  /** Reads the restored store (the exported receipts reader does); without it ended operations are not compared. */
  readonly receipts?: { readReceipt(callNodeId: string): Promise<Receipt | null> };
  /** ms that one run may take to answer; default 60,000. */
  readonly timeoutMs?: number;
}

interface OfOperation {
  readonly callNodeId: string;
  readonly server: string | null;
  readonly tool: string | null;
}

export type RestoredFinding =
  /** Its row has forgotten what the run has seen. Nothing is sent; an operator ends it, or the newer store comes back. */
  | (OfOperation & { readonly kind: 'ledgerBehind'; readonly since: number; readonly evidence: string })
  /** It ended, and the store no longer holds its receipt; its run still does. */
  | (OfOperation & { readonly kind: 'receiptLost'; readonly outcome: Outcome })
  /** No worker, or one of an older release: whether its row is behind nobody knows. */
  | (OfOperation & { readonly kind: 'noAnswer' });

export interface RestoredReport {
  /** Open runs that were told. */
  readonly open: number;
  /** Ended operations whose receipt was looked for; null where no store was given. */
  readonly ended: number | null;
  /** Empty where all is well. */
  readonly findings: readonly RestoredFinding[];
}

const ANSWER_TIMEOUT_MS = 60_000;
const LOOK_AGAIN_MS = 200;
/** Each waits for a worker's answer. */
const AT_ONCE = 16;

/** @throws ToolOperationError `InvalidRequest` */
export async function tellRestored(
  client: Client,
  taskQueue: string,
  options: RestoredOptions,
): Promise<RestoredReport> {
  checkDurationMs('timeoutMs', options.timeoutMs);
  const open = await runsOf(client, taskQueue, 'Running');
  const timeoutMs = options.timeoutMs ?? ANSWER_TIMEOUT_MS;
  const answers = await eachOf(open, (run) => tellRun(client, run, timeoutMs));
  const { receipts } = options;
  if (!receipts) return { open: open.length, ended: null, findings: answers.flatMap((found) => found ?? []) };
  // After the open ones: some of them end meanwhile.
  const ended = await runsOf(client, taskQueue, 'Completed');
  const losses = await eachOf(ended, (run) => findLoss(client, run, receipts));
  const findings = [...answers, ...losses].flatMap((found) => found ?? []);
  return { open: open.length, ended: ended.length, findings };
}

/** Of this task queue: the workers of another may have another store. */
async function runsOf(
  client: Client,
  taskQueue: string,
  status: 'Running' | 'Completed',
): Promise<WorkflowExecutionInfo[]> {
  const runs: WorkflowExecutionInfo[] = [];
  const queue = taskQueue.replaceAll("'", "''");
  const query = `WorkflowType = '${WORKFLOW_TYPE}' AND ExecutionStatus = '${status}' AND TaskQueue = '${queue}'`;
  for await (const run of client.workflow.list({ query, pageSize: 500 })) {
    if (callNodeIdOf(run.workflowId) !== null) runs.push(run);
  }
  return runs;
}

async function eachOf<Item, Found>(
  items: readonly Item[],
  look: (item: Item) => Promise<Found>,
): Promise<Found[]> {
  const found: Found[] = [];
  const left = items.entries();
  const one = async (): Promise<void> => {
    for (const [index, item] of left) found[index] = await look(item);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, one));
  return found;
}

/** Null where its row is as new as the run, or where the run has ended. */
async function tellRun(
  client: Client,
  { workflowId, runId, memo }: WorkflowExecutionInfo,
  timeoutMs: number,
): Promise<RestoredFinding | null> {
  const operation = operationOf(workflowId, memo);
  try {
    await client.workflow.getHandle(workflowId, runId).signal(MESSAGES.restoredSignal);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    // The engine hands a query over after every signal that came before it.
    const record = await queryRecord(client, operation.callNodeId, runId);
    if (record && hasCompared(record)) return behindIn(record, operation);
    if (performance.now() >= untilMs) return { ...operation, kind: 'noAnswer' };
    await pause(LOOK_AGAIN_MS);
  }
}

/** Strictly: a record of an older release knows nothing of it, and has compared nothing. */
function hasCompared(record: ToolOperation): boolean {
  return record.reopen === false || record.receipt !== null;
}

function behindIn({ ledgerBehind }: ToolOperation, operation: OfOperation): RestoredFinding | null {
  if (!ledgerBehind) return null;
  return { ...operation, kind: 'ledgerBehind', since: ledgerBehind.at, evidence: ledgerBehind.evidence };
}

async function findLoss(
  client: Client,
  { workflowId, runId, memo }: WorkflowExecutionInfo,
  receipts: NonNullable<RestoredOptions['receipts']>,
): Promise<RestoredFinding | null> {
  const operation = operationOf(workflowId, memo);
  if (await receipts.readReceipt(operation.callNodeId)) return null;
  const end = (await client.workflow.getHandle(workflowId, runId).result()) as OperationEnd;
  return { ...operation, kind: 'receiptLost', outcome: end.receipt.outcome };
}

function operationOf(workflowId: string, memo: Record<string, unknown> | undefined): OfOperation {
  const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  const callNodeId = callNodeIdOf(workflowId) ?? workflowId;
  return { callNodeId, server: text(memo?.['server']), tool: text(memo?.['tool']) };
}
