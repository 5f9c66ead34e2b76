// Owns the walk of an audit over a whole store, and its report.
// Must never write, nor call anything a fault that an operation does in passing while workers write.

import { setImmediate } from 'node:timers/promises';

import type { Outcome } from '../../operation/names.js';
import type { ReceiptsReader } from '../open-store.js';
import { faultsOfEnd } from './end-rules.js';
import {
  AUDIT_CHECKS,
  fault,
  findingOf,
  type AuditCheck,
  type AuditFinding,
  type Fault,
} from './findings.js';
import { auditReadsOf, type AuditedBlob, type AuditedOperation } from './reads.js';
import { faultsOfRow } from './row-rules.js';

export interface StoreAudit {
  readonly schema: 'storeAudit.v1';
  /** The version of its tables. */
  readonly storeVersion: number;
  /** True where no check found anything; notes are no faults. */
  readonly isClean: boolean;
  readonly operations: number;
  readonly open: number;
  readonly ended: Readonly<Partial<Record<Outcome, number>>>;
  readonly owedReconciliations: number;
  readonly checks: readonly CheckedOff[];
  /** The first ones, as far as they are kept; `checks` counts all. */
  readonly findings: readonly AuditFinding[];
  /** What is odd and harms nothing. */
  readonly notes: readonly string[];
}

export interface CheckedOff {
  readonly check: AuditCheck;
  readonly proves: string;
  /** How many operations, receipts, results or files were looked at. */
  readonly examined: number;
  readonly found: number;
}

export interface AuditOptions {
  /** Told of every finding, also of those that the report has no room for. */
  readonly onFinding?: (finding: AuditFinding) => void;
}

const OPERATIONS_PER_PAGE = 50;
const BLOBS_PER_PAGE = 8;
const FINDINGS_KEPT = 1_000;
const NAMED_IN_NOTES = 5;

/**
 * Proves for a whole store that its calls ended once each and that everything recomputes. Reads only, page by page: the
 * memory is bounded, and workers may write meanwhile.
 * @throws StoreError StoreUnusable where the file cannot be read at all
 */
export async function auditStore(reader: ReceiptsReader, options: AuditOptions = {}): Promise<StoreAudit> {
  const reads = auditReadsOf(reader);
  const ledger = new Ledger(options);
  const { version, damage } = await reader.check();
  ledger.examined('file');
  for (const word of damage) ledger.find(fault('file', `the database says: ${word}`), null);
  // A damaged file may not be readable row by row, and what it says proves nothing.
  if (damage.length > 0) return ledger.report(version);
  await eachPage((after) =>
    reads.visitOperations(after, OPERATIONS_PER_PAGE, (operation) => lookAt(operation, ledger)),
  );
  await eachPage((after) => reads.visitBlobs(after, BLOBS_PER_PAGE, (blob) => lookAtBlob(blob, ledger)));
  ledger.examined('orphans');
  for (const { table, parent, callNodeId } of await reads.orphans(FINDINGS_KEPT)) {
    ledger.find(fault('orphans', `a row of ${table} has no row in ${parent}`), callNodeId);
  }
  const stray = await reads.strayEvidence(FINDINGS_KEPT);
  if (stray.length > 0) {
    ledger.notes.push(`evidence is kept about operations that this store does not hold: ${named(stray)}`);
  }
  return ledger.report(version);
}

async function eachPage(page: (after: string | null) => Promise<string | null>): Promise<void> {
  let after: string | null = null;
  do {
    after = await page(after);
    // A worker of this very process must get its turn between two pages.
    await setImmediate();
  } while (after !== null);
}

const OF_EVERY_ROW: readonly AuditCheck[] = ['row', 'legs', 'rounds', 'cancel', 'effects'];
const OF_EVERY_END: readonly AuditCheck[] = ['receipt', 'facts', 'end', 'ready'];

function lookAt(operation: AuditedOperation, ledger: Ledger): void {
  const { callNodeId, ready, reconciliation, receipt } = operation;
  ledger.operations += 1;
  ledger.examined(...OF_EVERY_ROW, ...(receipt ? OF_EVERY_END : []));
  if (!receipt) ledger.open += 1;
  else if (ready) ledger.ended[ready.outcome] = (ledger.ended[ready.outcome] ?? 0) + 1;
  if (reconciliation?.status === 'open') ledger.owedReconciliations += 1;
  const rowFaults = faultsOfRow(operation);
  for (const found of rowFaults) ledger.find(found, callNodeId);
  for (const found of faultsOfEnd(operation)) ledger.find(found, callNodeId);
}

function lookAtBlob(blob: AuditedBlob, ledger: Ledger): void {
  const { digest, digestOfBytes, sizeBytes, storedBytes, referredBy } = blob;
  ledger.examined('result');
  const [callNodeId = null] = referredBy;
  const others = referredBy.length > 1 ? `, also the result of ${named(referredBy.slice(1))}` : '';
  if (digest !== digestOfBytes) {
    ledger.find(fault('result', `the bytes of result ${digest}${others} have another digest`), callNodeId);
  } else if (sizeBytes !== storedBytes) {
    const says = `result ${digest}${others} has ${storedBytes} bytes, and its size says ${sizeBytes}`;
    ledger.find(fault('result', says), callNodeId);
  }
  if (referredBy.length === 0) ledger.noteUnreferred(digest);
}

function named(names: readonly string[]): string {
  const some = names.slice(0, NAMED_IN_NOTES).map((name) => `"${name}"`);
  const left = names.length - some.length;
  return left > 0 ? `${some.join(', ')} and ${left} more` : some.join(', ');
}

/** What was looked at and found so far. */
class Ledger {
  operations = 0;
  open = 0;
  owedReconciliations = 0;
  readonly ended: Partial<Record<Outcome, number>> = {};
  readonly notes: string[] = [];
  readonly #unreferred: string[] = [];
  readonly #counts = new Map<AuditCheck, { examined: number; found: number }>();
  readonly #findings: AuditFinding[] = [];
  readonly #options: AuditOptions;

  constructor(options: AuditOptions) {
    this.#options = options;
  }

  examined(...checks: readonly AuditCheck[]): void {
    for (const check of checks) this.#countOf(check).examined += 1;
  }

  find(found: Fault, callNodeId: string | null): void {
    this.#countOf(found.check).found += 1;
    const finding = findingOf(found, callNodeId);
    this.#options.onFinding?.(finding);
    if (this.#findings.length < FINDINGS_KEPT) this.#findings.push(finding);
  }

  noteUnreferred(digest: string): void {
    if (this.#unreferred.length < FINDINGS_KEPT) this.#unreferred.push(digest);
  }

  report(storeVersion: number): StoreAudit {
    const names = Object.keys(AUDIT_CHECKS) as AuditCheck[];
    const checks = names.map((check): CheckedOff => {
      const { proves } = AUDIT_CHECKS[check];
      return { check, proves, ...this.#countOf(check) };
    });
    const unreferred =
      this.#unreferred.length === 0 ? [] : [`no operation refers to the result ${named(this.#unreferred)}`];
    return {
      schema: 'storeAudit.v1',
      storeVersion,
      isClean: checks.every(({ found }) => found === 0),
      operations: this.operations,
      open: this.open,
      ended: this.ended,
      owedReconciliations: this.owedReconciliations,
      checks,
      findings: this.#findings,
      notes: [...this.notes, ...unreferred],
    };
  }

  #countOf(check: AuditCheck): { examined: number; found: number } {
    const known = this.#counts.get(check);
    if (known) return known;
    const fresh = { examined: 0, found: 0 };
    this.#counts.set(check, fresh);
    return fresh;
  }
}
