// Owns the command line as a whole: its commands in the order of the help, and the table of exit codes there.
// Must never load a command's code before it is run: `--help` needs none of it.

import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { addActs } from './acts.js';
import { addCalls } from './calls.js';
import { addStoreWork } from './store-work.js';
import { addLooks } from './looks.js';
import type { Report } from './shared-options.js';

const EXIT_HELP = `
Exit codes: 0 completed, 1 failed, 2 usage or configuration (nothing was started), 3 cancelled, 4 rejected,
5 not ended, held or closed as unresolved, 130 interrupted locally. Commands that answer another question say so in
their own --help.`;

export function buildProgram(report: Report): Command {
  const program = new Command('durable-tool-calls')
    .alias('dtc')
    .description('Long MCP tool calls that end exactly once, with one receipt each.')
    .version(packageVersion())
    .addHelpText('after', EXIT_HELP)
    .showSuggestionAfterError()
    // Or the flags of `effects settle` would be taken for those of `effects`.
    .enablePositionalOptions()
    .exitOverride();
  addCalls(program, report);
  addActs(program, report);
  addLooks(program, report);
  addStoreWork(program, report);
  return program;
}

function packageVersion(): string {
  // Compiled, this file lies three folders under the package; in a source run two.
  for (const up of ['../../../package.json', '../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as Record<
        string,
        string
      >;
      if (name === 'durable-tool-calls' && version !== undefined) return version;
    } catch {
      // Not there: the other one.
    }
  }
  return 'unknown';
}
