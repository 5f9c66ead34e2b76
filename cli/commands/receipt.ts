// Owns `receipt`: the end of one operation as the store holds it, and its exact result.
// Must never need an engine, nor alter a byte of the result.

import type { ReceiptsReader } from '../../receipts/open-store.js';
import { CommandError, exitCodeOf, EXIT_CODES } from '../exit-codes.js';
import { type Place, unknownHere, withReader } from '../open-place.js';
import { receiptDetails } from '../render-receipt.js';
import { shellWord, writeJson, writeLines } from '../report.js';

export interface ReceiptOptions extends Place {
  readonly json: boolean;
  readonly result: boolean;
}

/** @returns the exit code of the outcome. @throws CommandError: unknown (2), or without an end (5) */
export function runReceipt(callNodeId: string, options: ReceiptOptions): Promise<number> {
  if (options.json && options.result)
    throw new CommandError('--json and --result both want standard output: choose');
  return withReader(options, async (reader) => {
    const row = await reader?.read(callNodeId);
    if (!reader || !row) throw unknownHere(callNodeId, options);
    const { receipt } = row;
    if (!receipt) {
      throw new CommandError(
        `"${callNodeId}" has no receipt yet: dtc watch ${shellWord(callNodeId)}`,
        EXIT_CODES.notEnded,
      );
    }
    const exitCode = exitCodeOf(receipt);
    if (options.result) await writeResult(callNodeId, receipt.result?.digest ?? null, reader, exitCode);
    else if (options.json) writeJson(receipt);
    else {
      const ready = await reader.readReady(callNodeId);
      const reconciliation = await reader.readReconciliation(callNodeId);
      writeLines(receiptDetails(receipt, { ready, reconciliation }));
    }
    return exitCode;
  });
}

/** As received, byte for byte: no line end is added. */
async function writeResult(
  callNodeId: string,
  digest: string | null,
  reader: ReceiptsReader,
  exitCode: number,
): Promise<void> {
  const bytes = digest === null ? null : await reader.readResult(digest);
  if (bytes === null) throw new CommandError(`"${callNodeId}" ended without a result`, exitCode);
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}
