// Owns `audit`: the proof over a whole store, as a table, with one sentence for each fault.
// Must never need an engine, nor mend anything.

import { auditStore, type CheckedOff, type StoreAudit } from '../../receipts/audit/audit-store.js';
import { CommandError, EXIT_CODES } from '../exit-codes.js';
import { type Place, withReader } from '../open-place.js';
import { columns, oneLine } from '../printable.js';
import { writeJson, writeLines } from '../report.js';
import { layoutOf } from '../state-directory.js';

export interface AuditOptions extends Place {
  readonly json: boolean;
}

/** @returns 0 where nothing is wrong, 1 where something is. @throws CommandError where there is no store */
export async function runAudit(options: AuditOptions): Promise<number> {
  const audit = await withReader(options, (reader) => {
    if (reader) return auditStore(reader);
    throw new CommandError(`there is no store at ${layoutOf(options.stateDir).storeFile}; see --state-dir`);
  });
  if (options.json) writeJson(audit);
  else writeLines(linesOf(audit));
  return audit.isClean ? EXIT_CODES.completed : EXIT_CODES.wrong;
}

function linesOf(audit: StoreAudit): readonly string[] {
  const left = audit.checks.reduce((sum, { found }) => sum + found, 0) - audit.findings.length;
  return [
    ...columns([['', 'EXAMINED', 'WRONG', 'PROVES'], ...audit.checks.map(rowOf)]),
    '',
    ...audit.findings.map(({ says }) => oneLine(says)),
    ...(left > 0 ? [`… and ${left} more.`] : []),
    ...audit.notes.map((note) => oneLine(`note: ${note}`)),
    sumOf(audit),
  ];
}

function rowOf({ examined, found, proves }: CheckedOff): readonly string[] {
  const mark = found > 0 ? 'WRONG' : examined > 0 ? 'ok' : '-';
  return [mark, String(examined), String(found), proves];
}

function sumOf({ operations, open, ended, owedReconciliations, storeVersion, isClean }: StoreAudit): string {
  const ends = Object.entries(ended).map(([outcome, count]) => `${count} ${outcome}`);
  const owed =
    owedReconciliations === 0 ? '' : `; ${owedReconciliations} reconciliation(s) owed: dtc effects`;
  const verdict = isClean ? 'nothing is wrong' : 'see above';
  return `${operations} operation(s): ${[`${open} open`, ...ends].join(', ')}; store version ${storeVersion}${owed}; ${verdict}`;
}
