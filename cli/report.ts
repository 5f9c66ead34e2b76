// Owns what a command leaves on the screen when it ends: the document or the lines on standard output, and on standard
// error how to come back. Must never call an open operation ended.

import type { OperationView } from '../client/view.js';
import type { JsonValue } from '../operation/json.js';
import type { ReceiptsReader } from '../receipts/open-store.js';
import { printable } from './printable.js';
import type { Progress } from './progress.js';
import { resultText, viewLines } from './render-view.js';
import type { Runtime } from './runtime.js';

/** False for people; true for one document; `line` for one line of JSON. */
export type JsonForm = boolean | 'line';

export interface ReportOptions {
  readonly isJson: JsonForm;
  readonly reader: ReceiptsReader | null;
}

export async function reportEnd(
  view: OperationView,
  toolResult: JsonValue,
  options: ReportOptions,
): Promise<void> {
  if (options.isJson) {
    writeJson(withValue(view, toolResult), options.isJson);
    return;
  }
  if (view.result && toolResult !== null) {
    const text = resultText(toolResult);
    // Into a pipe or a file as it is; on a terminal without what could steer it.
    process.stdout.write(`${process.stdout.isTTY ? printable(text) : text}\n\n`);
  }
  const ready = await options.reader?.readReady(view.callNodeId).catch(() => null);
  writeLines(viewLines(view, { receiptDigest: ready?.receiptDigest ?? null }));
}

export interface OpenReport {
  readonly callNodeId: string;
  readonly isJson: JsonForm;
}

/** The operation has not ended: where it stands, and how to come back. */
export function reportOpen(
  view: OperationView | null,
  sentence: string,
  report: OpenReport,
  runtime: Pick<Runtime, 'isEmbedded'>,
): void {
  if (view) writeView(view, report.isJson);
  process.stderr.write(`${printable(sentence)}\n`);
  process.stderr.write(`${wayBack(report.callNodeId, runtime.isEmbedded)}\n`);
}

export function writeView(view: OperationView, isJson: JsonForm): void {
  if (isJson) writeJson(view, isJson);
  else writeLines(viewLines(view));
}

/** Embedded: engine and worker live with the command. */
export function wayBack(callNodeId: string, isEmbedded: boolean): string {
  const name = shellWord(callNodeId);
  const command = `the same "dtc call … --call-node ${name}", or "dtc watch ${name}"`;
  if (!isEmbedded) return `It goes on at the running engine. To come back: ${command}.`;
  return (
    'The remote work goes on; our polling pauses until the next command on this state directory ' +
    `("dtc up" keeps polling). To come back: ${command}.`
  );
}

/** A name as it can be typed again. */
export function shellWord(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const CLOSE_NOTICE_MS = 3_000;

/** Ends the engine and worker of this command; says what it waits for where that takes a while. */
export async function closeRuntime(runtime: Runtime, progress: Progress): Promise<void> {
  const notice = setTimeout(() => {
    progress.note(
      'waiting for the step in flight to end (Ctrl-C leaves at once; a submission may then be in doubt)',
    );
  }, CLOSE_NOTICE_MS);
  try {
    await runtime.close();
  } catch (error) {
    progress.note(
      `the engine did not end cleanly: ${error instanceof Error ? error.message : 'unknown reason'}`,
    );
  } finally {
    clearTimeout(notice);
  }
}

function withValue(view: OperationView, toolResult: JsonValue): OperationView {
  if (!view.result || 'value' in view.result || toolResult === null) return view;
  return { ...view, result: { ...view.result, value: toolResult } };
}

/** One document, or one line of a stream. */
export function writeJson(value: object, form: JsonForm = true): void {
  process.stdout.write(`${form === 'line' ? JSON.stringify(value) : JSON.stringify(value, null, 2)}\n`);
}

export function writeLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.map(printable).join('\n')}\n`);
}
