// Owns how an operation looks to a person: a few readable lines. Must never hide what is not known.

import type { OperationView, PendingInput } from '../client/view.js';
import type { JsonObject, JsonValue } from '../operation/json.js';
import type { Receipt } from '../operation/receipt.js';
import { oneLine } from './printable.js';

/** One line while it runs. */
export function progressLine(view: OperationView): string {
  const parts: string[] = [view.state];
  if (view.remoteStatus !== null) parts.push(`remote ${oneLine(view.remoteStatus)}`);
  if (view.statusMessage !== null) parts.push(oneLine(view.statusMessage));
  if (view.cancelRequested && view.state !== 'CANCEL_REQUESTED') parts.push('cancel requested');
  if (view.pendingInput.length > 0) parts.push(`${view.pendingInput.length} open question(s)`);
  if (view.polls > 0) parts.push(`polls ${view.polls}`);
  if (view.notice !== null) parts.push(oneLine(view.notice));
  if (view.waitingForWorkerSince !== null)
    parts.push(`waits for a worker since ${time(view.waitingForWorkerSince)}`);
  return parts.join(' · ');
}

export interface RenderedEnd {
  /** SHA-256 of the receipt, where the store tells it. */
  readonly receiptDigest: string | null;
}

/** The operation in a few lines; the result is not among them. */
export function viewLines(
  view: OperationView,
  end: RenderedEnd = { receiptDigest: null },
): readonly string[] {
  const head = view.outcome === null ? view.state : `${view.outcome}${kindOf(view)}`;
  const lines = [`${head}  ${view.server ?? '?'}/${view.tool ?? '?'}  ${view.callNodeId}`];
  const add = (name: string, value: string | null): void => {
    if (value !== null && value !== '') lines.push(`  ${name.padEnd(9)} ${oneLine(value)}`);
  };
  add('state', view.outcome === null ? null : view.state);
  add('remote', remoteOf(view));
  add('notice', view.notice);
  add('reason', view.reason);
  add('evidence', view.evidence ?? view.receipt?.decision.evidence ?? null);
  add('polls', view.polls === 0 ? null : String(view.polls));
  if (view.outcome === null && view.cancelRequested) add('cancel', 'requested');
  if (view.waitingForWorkerSince !== null) add('worker', `none since ${time(view.waitingForWorkerSince)}`);
  for (const round of view.pendingInput) add('question', questionOf(round));
  if (view.receipt) lines.push(...receiptLines(view.receipt, end.receiptDigest).map((line) => `  ${line}`));
  add('run', view.outcome === null ? `${view.workflowId} ${view.runId}` : null);
  return lines;
}

function kindOf(view: OperationView): string {
  return view.failureKind === null ? '' : ` (${view.failureKind})`;
}

function remoteOf(view: OperationView): string | null {
  const said = [view.remoteStatus, view.statusMessage].filter((part) => part !== null).join(': ');
  const where = view.adapter === null ? '' : ` [${view.adapter}]`;
  return said === '' && where === '' ? null : `${said}${where}`.trim();
}

export function questionOf(round: PendingInput): string {
  const link = round.question.url === null ? '' : ` ${round.question.url}`;
  return `${round.question.message}${link} (until ${time(round.deadlineAt)})`;
}

function receiptLines(receipt: Receipt, digest: string | null): readonly string[] {
  const lines = [
    `receipt   ${digest === null ? '' : `sha256 ${digest}, `}accepted ${time(receipt.acceptedAt)}`,
  ];
  const { result } = receipt;
  if (result)
    lines.push(`result    sha256 ${result.digest}, ${result.sizeBytes} bytes, ${oneLine(result.mediaType)}`);
  if (result?.outputSchema === 'missed')
    lines.push('note      the result does not fit the published output schema');
  if (result?.outputSchema === 'unchecked')
    lines.push('note      the result is too large to be held against the published output schema');
  if (receipt.submissionLegs.length > 1) lines.push(`sent      ${receipt.submissionLegs.length} submissions`);
  if (receipt.effects !== 'none-owed')
    lines.push('effects   may exist although nothing was accepted: reconcile them');
  return lines;
}

/** A tool's result for reading: its texts; anything else as JSON. */
export function resultText(value: JsonValue): string {
  const content = isObject(value) ? value['content'] : undefined;
  if (!Array.isArray(content)) return JSON.stringify(value, null, 2);
  const parts = content.map((part: JsonValue) => contentText(isObject(part) ? part : {}));
  const structured = isObject(value) ? value['structuredContent'] : undefined;
  // A tool with structured content repeats it as text (2025-11-25, "structured content"); where it does not, show it.
  if (
    structured !== undefined &&
    !content.some((part: JsonValue) => isObject(part) && part['type'] === 'text')
  ) {
    parts.push(JSON.stringify(structured, null, 2));
  }
  return parts.join('\n');
}

function contentText(part: JsonObject): string {
  if (part['type'] === 'text' && typeof part['text'] === 'string') return part['text'];
  const { data } = part;
  if (typeof data !== 'string') return JSON.stringify(part, null, 2);
  const kind = [part['type'], part['mimeType']].filter((word) => typeof word === 'string').join(' ');
  return `[${kind}, ${data.length} base64 characters; see --json]`;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function time(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
}
