// Owns `restored`: after a backup took the place of the store, every open run compares itself with its row, and what the
// store has forgotten is listed. Must never repair or end anything: `resolve` does, with a name.

import type { RestoredFinding, RestoredReport } from '../../client/store-restored.js';
import { workingConfig } from '../config-file.js';
import { EXIT_CODES } from '../exit-codes.js';
import { endingSteps, RESTORE } from '../next-steps.js';
import { hasTraces, type Place, withRuntime } from '../open-place.js';
import { oneLine } from '../printable.js';
import { createProgress } from '../progress.js';
import { time } from '../render-view.js';
import { shellWord, writeJson, writeLines } from '../report.js';
import { layoutOf, readLiveEngine } from '../state-directory.js';

export interface RestoredCommandOptions extends Place {
  readonly json: boolean;
}

/** @returns 0 where all is well, 5 where something is listed. @throws CommandError where no worker could answer */
export async function runRestored(options: RestoredCommandOptions): Promise<number> {
  const report = await readReport(options);
  const { open, ended, findings } = report;
  const operations = findings.map((finding) => ({ ...finding, next: nextSteps(finding) }));
  if (options.json) writeJson({ schema: 'restoredStore.v1', open, ended, operations });
  else if (findings.length === 0) process.stdout.write(`${wellSentence(report)}\n`);
  else writeLines(findings.flatMap(linesOf));
  return findings.length === 0 ? EXIT_CODES.completed : EXIT_CODES.notEnded;
}

async function readReport(options: RestoredCommandOptions): Promise<RestoredReport> {
  if (!hasTraces(options)) return { open: 0, ended: 0, findings: [] };
  const progress = createProgress(process.stderr);
  const live = await readLiveEngine(layoutOf(options.stateDir));
  const configFile = await workingConfig(options.config, live, progress.note);
  return withRuntime({ ...options, configFile, progress }, ({ client, reader }) =>
    client.storeRestored(reader ? { receipts: reader } : {}),
  );
}

function wellSentence({ open, ended }: RestoredReport): string {
  const compared = ended === null ? '' : ` and the receipts of ${ended} ended ones`;
  return `all is well: the store knows all that ${open} open operations have seen${compared}`;
}

function nextSteps(finding: RestoredFinding): readonly string[] {
  const name = shellWord(finding.callNodeId);
  switch (finding.kind) {
    case 'ledgerBehind':
      return [RESTORE, ...endingSteps(finding.callNodeId)];
    case 'receiptLost':
      return [
        `bring the newer store back; until then only its run holds the receipt: dtc status ${name} --json`,
        'it is never begun again; whoever waits for its ready row in the store has to be told by hand',
      ];
    case 'noAnswer':
      return ['start a worker of this release for it, then "dtc restored" again'];
  }
}

const TITLES = {
  ledgerBehind: 'the store is older than its run; nothing is sent',
  receiptLost: 'receipt lost from the store',
  noAnswer: 'its run has not answered: whether the store is older is not known',
} as const;

function linesOf(finding: RestoredFinding): readonly string[] {
  const lines = [`${finding.callNodeId}  ${finding.server ?? '?'}/${finding.tool ?? '?'}`];
  const add = (name: string, value: string): void => {
    lines.push(`  ${name.padEnd(9)} ${oneLine(value)}`);
  };
  add('what', TITLES[finding.kind]);
  if (finding.kind === 'ledgerBehind') {
    add('evidence', finding.evidence);
    add('since', time(finding.since));
  }
  if (finding.kind === 'receiptLost') add('outcome', finding.outcome);
  for (const step of nextSteps(finding)) add('next', step);
  return lines;
}
