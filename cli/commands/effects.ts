// Owns `effects`: which operations may have left effects that no receipt accounts for, and a person's word about one.
// Must never touch a receipt, nor make a store.

import { openSqliteStore } from '../../receipts/open-store.js';
import type { ListedReconciliation, ReconciliationEntry } from '../../receipts/effect-reads.js';
import type { Settlement } from '../../receipts/effects.js';
import { CommandError, EXIT_CODES } from '../exit-codes.js';
import { type Place, unknownHere, withReader } from '../open-place.js';
import { oneLine } from '../printable.js';
import { time } from '../render-view.js';
import { shellWord, writeJson, writeLines } from '../report.js';
import { layoutOf } from '../state-directory.js';

export interface EffectsOptions extends Place {
  readonly all: boolean;
  readonly json: boolean;
}

export interface SettleOptions extends Place {
  readonly note: string;
  readonly by: string;
  readonly json: boolean;
}

/** @returns 0 where nothing is owed, 5 where something is, also with --all */
export async function runEffects(options: EffectsOptions): Promise<number> {
  const listed = await withReader(
    options,
    async (reader) => (await reader?.listReconciliations({ includeSettled: options.all })) ?? [],
  );
  const isOwed = listed.some(({ status }) => status === 'open');
  if (options.json) writeJson({ schema: 'effectReconciliations.v1', reconciliations: listed });
  else if (listed.length > 0) writeLines(listed.flatMap((reconciliation) => linesOf(reconciliation)));
  else process.stderr.write(`nothing is owed${options.all ? '' : '; --all lists settled ones too'}\n`);
  return isOwed ? EXIT_CODES.notEnded : EXIT_CODES.completed;
}

/**
 * Says it once: the same word again changes nothing and is no fault, another word comes too late.
 * @returns 0 settled, 1 settled before by another word. @throws CommandError: unknown, nothing owed, an empty word
 */
export async function runSettle(callNodeId: string, options: SettleOptions): Promise<number> {
  const word = { note: options.note.trim(), settledBy: options.by.trim() };
  if (!word.note || !word.settledBy) {
    throw new CommandError('settling needs a note and a name: --note TEXT --by NAME');
  }
  // Read first: a store would be made where there is none.
  const settlement = await withReader(options, async (reader) => {
    const row = await reader?.read(callNodeId);
    if (!row) throw unknownHere(callNodeId, options);
    const said = await settle(callNodeId, word, options);
    if ('reconciliation' in said) return said;
    const how = row.receipt ? `it ended ${row.receipt.outcome}` : 'it has not ended';
    throw new CommandError(`nothing is owed for "${callNodeId}": ${how}`);
  });
  tell(callNodeId, settlement, options.json);
  const isOvertaken = settlement.kind === 'alreadySettled' && !settlement.isSameWord;
  return isOvertaken ? EXIT_CODES.overtaken : EXIT_CODES.completed;
}

async function settle(
  callNodeId: string,
  word: { readonly note: string; readonly settledBy: string },
  options: SettleOptions,
): Promise<Settlement> {
  const store = await openSqliteStore(layoutOf(options.stateDir).storeFile);
  try {
    return await store.settleReconciliation(callNodeId, word, Date.now());
  } finally {
    await store.close();
  }
}

type Settled = Extract<Settlement, { readonly kind: 'settled' | 'alreadySettled' }>;

function tell(callNodeId: string, { kind, reconciliation }: Settled, isJson: boolean): void {
  const last = reconciliation.entries.at(-1);
  if (last?.kind !== 'settled') throw new Error(`"${callNodeId}" was settled, and its last entry is no word`);
  const { at, note, settledBy } = last;
  const isFirst = kind === 'settled';
  if (isJson) {
    writeJson({ schema: 'effectSettlement.v1', callNodeId, isFirst, settledAt: at, settledBy, note });
    return;
  }
  const how = isFirst ? 'is settled' : 'was settled before, and nothing was changed';
  writeLines([`"${callNodeId}" ${how}: ${oneLine(note)} (${oneLine(settledBy)}, ${time(at)})`]);
}

function linesOf(reconciliation: ListedReconciliation): readonly string[] {
  const { callNodeId, server, tool, outcome, remoteId, status, entries } = reconciliation;
  const lines = [`${oneLine(callNodeId)}  ${oneLine(`${server}/${tool}`)}  ${outcome ?? 'not ended'}`];
  const add = (name: string, value: string | null): void => {
    if (value !== null) lines.push(`  ${name.padEnd(9)} ${oneLine(value)}`);
  };
  for (const entry of entries) add(entry.kind, sentenceOf(entry));
  add('remote id', remoteId);
  if (status === 'open') add('next', `dtc effects settle ${shellWord(callNodeId)} --note TEXT --by NAME`);
  return lines;
}

function sentenceOf(entry: ReconciliationEntry): string {
  return entry.kind === 'owed'
    ? `${time(entry.at)} ${entry.note}`
    : `${time(entry.at)} ${entry.settledBy}: ${entry.note}`;
}
